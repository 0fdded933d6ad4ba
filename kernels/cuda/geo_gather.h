/* The points near some centres, gathered from the tree into shared memory by a warp. For .cu files
   alone. */
#ifndef PNET_KERNELS_CUDA_GEO_GATHER_H
#define PNET_KERNELS_CUDA_GEO_GATHER_H

#include "kernels/cuda/geo_set.h"

enum {
    GATHER = 256, /* points in shared memory */
    LEAVES = 4,   /* that are read side by side */
    NOBODY = -2,  /* row of an idle lane; -1: parent of an idle point */
};

template <bool PARENT> struct gathered {
    float4 point[GATHER]; /* position, row */
    int32_t parent[PARENT ? GATHER : 1];
};

/* The boxes around a warp's centres, and around their children. */
struct reach {
    float low[3], high[3], child_low[3], child_high[3];
};

/* A lane's centre, in the space of pairs. */
struct query {
    int32_t row;
    float at[3];
};

static __device__ __forceinline__ struct query query_at(
    const struct geo_set &s, bool there, int64_t place)
{
    struct query q = {NOBODY, {NAN, NAN, NAN}};
    if (there) {
        q.row = row_at(s.out, place);
        centre_of(s, q.row, s.pair_in_voxels, q.at);
    }
    return q;
}

/* Boxes around the centres up to each lane, from below or from above. */
static __device__ __forceinline__ void grow_by_lanes(float low[3], float high[3], bool upwards)
{
    for (int step = 1; step < 32; step *= 2)
        for (int a = 0; a < 3; a++) {
            float l = upwards ? __shfl_up_sync(WARP_ALL, low[a], step)
                              : __shfl_down_sync(WARP_ALL, low[a], step);
            float h = upwards ? __shfl_up_sync(WARP_ALL, high[a], step)
                              : __shfl_down_sync(WARP_ALL, high[a], step);
            low[a] = fminf(low[a], l); /* from nowhere comes the lane's own: no harm */
            high[a] = fmaxf(high[a], h);
        }
}

static __device__ __forceinline__ float volume_near(
    const float low[3], const float high[3], float margin)
{
    float volume = 1;
    for (int a = 0; a < 3; a++) volume *= high[a] - low[a] + margin;
    return volume;
}

/* The curve jumps now and then: the box around 32 centres may be mostly empty space, though not of
   points. Lanes [from, returned) are worth a search of their own, which two boxes together would
   cost more than half of; their box is in `r`. The cost of a search goes with the volume it looks
   at, and not below that of looking at all. */
static __device__ int split_lanes(
    const struct geo_set &s, const struct query &q, int from, int to, struct reach &r)
{
    int lane = threadIdx.x % 32;
    for (;;) {
        float low[3], high[3], rest_low[3], rest_high[3];
        bool active = lane >= from && lane < to;
        for (int a = 0; a < 3; a++) {
            low[a] = rest_low[a] = active ? q.at[a] : INFINITY;
            high[a] = rest_high[a] = active ? q.at[a] : -INFINITY;
        }
        grow_by_lanes(low, high, true);
        for (int a = 0; a < 3; a++) {
            r.low[a] = __shfl_sync(WARP_ALL, low[a], to - 1);
            r.high[a] = __shfl_sync(WARP_ALL, high[a], to - 1);
        }
        if (to - from < 2) return to;
        grow_by_lanes(rest_low, rest_high, false);
        float margin = s.high - s.low;
        for (int a = 0; a < 3; a++) margin = fmaxf(margin, (r.high[a] - r.low[a]) / 8);
        float rest = __shfl_down_sync(WARP_ALL, volume_near(rest_low, rest_high, margin), 1);
        float parts = volume_near(low, high, margin) + rest;
        uint32_t bits = lane >= from && lane < to - 1 ? __float_as_uint(parts) : UINT32_MAX;
        uint32_t least = __reduce_min_sync(WARP_ALL, bits);
        if (!(volume_near(r.low, r.high, margin) > 2 * __uint_as_float(least))) return to;
        to = __ffs((int)__ballot_sync(WARP_ALL, bits == least));
    }
}

/* The box around the children of lanes' rows. */
static __device__ __forceinline__ void reach_children(
    const struct geo_set &s, const struct query &q, bool active, struct reach &r)
{
    for (int a = 0; a < 3; a++) {
        uint32_t low = active ? s.child_box[6 * (int64_t)q.row + a] : UINT32_MAX;
        uint32_t high = active ? s.child_box[6 * (int64_t)q.row + 3 + a] : 0;
        r.child_low[a] = rank_float(__reduce_min_sync(WARP_ALL, low));
        r.child_high[a] = rank_float(__reduce_max_sync(WARP_ALL, high));
    }
}

/* Can a box (or a point) hold a point that makes a pair with any centre, or a child of one? */
template <bool BALL, bool PARENT>
static __device__ __forceinline__ bool is_near(
    const struct geo_set &s, const struct reach &r, const float low[3], const float high[3])
{
    bool near = true, child = PARENT;
    float gap[3];
    for (int a = 0; a < 3; a++) {
        float above = low[a] - r.high[a];
        if (BALL)
            gap[a] = fmaxf(fmaxf(above, r.low[a] - high[a]), 0.0f);
        else
            near = near && s.low <= high[a] - r.low[a] && above <= s.high;
        if (PARENT) child = child && low[a] <= r.child_high[a] && r.child_low[a] <= high[a];
    }
    if (BALL) near = (gap[0] * gap[0] + gap[1] * gap[1]) + gap[2] * gap[2] <= s.radius2;
    return near || child;
}

template <bool BALL, bool PARENT>
static __device__ __forceinline__ uint32_t near_members(const struct geo_set &s,
    const struct reach &r, const struct geo_walk &w, int level, int64_t group)
{
    int64_t member = group * 32 + threadIdx.x % 32, nodes = s.tree.nodes[level];
    bool near = false;
    if (walk_member(w, level, member)) {
        const float *box = s.tree.box[level] + member;
        float low[3], high[3];
        for (int a = 0; a < 3; a++) {
            low[a] = box[a * nodes];
            high[a] = box[(3 + a) * nodes];
        }
        near = is_near<BALL, PARENT>(s, r, low, high);
    }
    return __ballot_sync(WARP_ALL, near);
}

template <bool BALL, bool PARENT>
static __device__ struct geo_walk walk_begin(
    const struct geo_set &s, const struct reach &r, int32_t sample)
{
    struct geo_walk w = {};
    int top = s.tree.depth - 1;
    w.first = s.in.row_splits[sample];
    w.end = s.in.row_splits[sample + 1];
    w.level = s.tree.depth;
    if (w.end > w.first) walk_enter(w, top, 0, near_members<BALL, PARENT>(s, r, w, top, 0));
    return w;
}

/* Takes the near points of some leaves of the group in hand behind the first `count` in the room;
   how many there are then. */
template <bool BALL, bool PARENT>
static __device__ int gather_leaves(const struct geo_set &s, const struct reach &r,
    struct geo_walk &w, int count, struct gathered<PARENT> &room)
{
    int lane = threadIdx.x % 32, many = (GATHER - count) / 32;
    uint32_t left = walk_left(w);
    int64_t group = __shfl_sync(WARP_ALL, w.group, 0);
    float at[LEAVES][3];
    int32_t row[LEAVES];
#pragma unroll
    for (int b = 0; b < LEAVES; b++) {
        int64_t place = (group * 32 + __ffs((int)left) - 1) * 32 + lane;
        bool there = left && b < many && place >= w.first && place < w.end;
        row[b] = there ? row_at(s.in, place) : -1;
        for (int a = 0; a < 3; a++) at[b][a] = there ? s.in.xyz[3 * (int64_t)row[b] + a] : 0;
        if (b < many) left &= left - 1;
    }
    if (lane == 0) w.left = left;
#pragma unroll
    for (int b = 0; b < LEAVES; b++) {
        bool inside = true;
        if (s.pair_in_voxels)
            for (int a = 0; a < 3; a++) at[b][a] = (float)voxel_index(at[b][a], s.in.grid, inside);
        bool near = row[b] >= 0 && is_near<BALL, PARENT>(s, r, at[b], at[b]);
        uint32_t mask = __ballot_sync(WARP_ALL, near);
        int slot = count + __popc(mask & ((1u << lane) - 1));
        if (near) {
            room.point[slot] = make_float4(at[b][0], at[b][1], at[b][2], __int_as_float(row[b]));
            if (PARENT) room.parent[slot] = s.parent[row[b]];
        }
        count += __popc(mask);
    }
    return count;
}

/* Gathers near points from where the walk stands on, until there is no room for another leaf; fills
   up to a multiple of 32 with points that are near to nothing. How many there are. */
template <bool BALL, bool PARENT>
static __device__ int gather(const struct geo_set &s, const struct reach &r, struct geo_walk &w,
    struct gathered<PARENT> &room)
{
    int lane = threadIdx.x % 32, count = 0;
    while (w.level < s.tree.depth && count <= GATHER - 32) {
        uint32_t left = walk_left(w);
        if (!left) {
            w.level++;
        } else if (w.level == 0) {
            count = gather_leaves<BALL, PARENT>(s, r, w, count, room);
        } else {
            int level = w.level - 1;
            int64_t member = walk_take(w, __ffs((int)left) - 1);
            walk_enter(w, level, member, near_members<BALL, PARENT>(s, r, w, level, member));
        }
    }
    int filled = (count + 31) / 32 * 32;
    for (int slot = count + lane; slot < filled; slot += 32) {
        room.point[slot] = make_float4(NAN, NAN, NAN, 0);
        if (PARENT) room.parent[slot] = -1;
    }
    __syncwarp();
    return filled;
}

template <bool BALL, bool PARENT>
static __device__ __forceinline__ bool is_pair(
    const struct geo_set &s, const struct query &q, const struct gathered<PARENT> &points, int slot)
{
    float4 p = points.point[slot];
    float d[3] = {p.x - q.at[0], p.y - q.at[1], p.z - q.at[2]};
    bool pair = true;
    if (BALL)
        pair = (d[0] * d[0] + d[1] * d[1]) + d[2] * d[2] <= s.radius2;
    else
        for (int a = 0; a < 3; a++) pair = pair && s.low <= d[a] && d[a] <= s.high;
    if (PARENT) pair = pair || points.parent[slot] == q.row;
    return pair;
}

/* An idle lane makes no pair. */
static __device__ __forceinline__ struct query query_if(const struct query &q, bool active)
{
    struct query own = q;
    if (!active) {
        own.row = NOBODY;
        own.at[0] = NAN;
    }
    return own;
}

/* The centre of another lane. */
static __device__ __forceinline__ struct query query_of(const struct query &q, int lane)
{
    struct query other;
    other.row = __shfl_sync(WARP_ALL, q.row, lane);
    for (int a = 0; a < 3; a++) other.at[a] = __shfl_sync(WARP_ALL, q.at[a], lane);
    return other;
}

#endif
