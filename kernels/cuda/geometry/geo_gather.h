/* A warp gathers the points near some centres from the tree into shared memory. For .cu files alone. */
#ifndef PNET_KERNELS_CUDA_GEO_GATHER_H
#define PNET_KERNELS_CUDA_GEO_GATHER_H

#include "kernels/cuda/geometry/geo_set.h"

enum {
    GATHER = 256, /* points in shared memory */
    LEAVES = 4,   /* leaves read at the same time */
    NO_ROW = -2,  /* row of a lane without a query; -1: the parent of a point without one */
};

/* How pairs are tested: by |d|, by the largest coordinate of d, or by voxels. */
enum { SEARCH_BALL, SEARCH_CUBE, SEARCH_WINDOW };

template <int KIND, bool PARENT> struct gathered {
    float4 point[GATHER]; /* position, row */
    int32_t parent[PARENT ? GATHER : 1];
    __align__(16) uint32_t packed[KIND == SEARCH_WINDOW ? GATHER : 4];
};

/* The boxes around a warp's centres, around all points that can pair with them, and around their children. */
struct reach {
    float low[3], high[3], from[3], to[3], child_low[3], child_high[3];
    bool packs; /* voxels near the box can be packed */
};

/* A lane's centre, in the space of pairs. */
struct query {
    int32_t row;
    float at[3];
    uint32_t packed;
};

/* The lanes of a warp's centres, and those that are searched for now. */
struct tile {
    int64_t first; /* place of lane 0 */
    int lanes;
    int32_t sample;
};

static __device__ struct tile tile_of(const struct geo_points &p)
{
    struct tile t;
    t.first = thread_index() - threadIdx.x % 32;
    int64_t left = p.rows - t.first;
    t.lanes = left <= 0 ? 0 : left < 32 ? (int)left : 32;
    t.sample = left > 0 ? sample_of(p.row_splits, p.samples, t.first) : 0;
    return t;
}

/* Sets t.sample to the sample of lane `from`. Returns the lane after the last one of that sample. */
static __device__ int tile_sample_end(const struct geo_points &p, struct tile &t, int from)
{
    while (p.row_splits[t.sample + 1] <= t.first + from) t.sample++;
    int64_t left = p.row_splits[t.sample + 1] - t.first;
    return left < t.lanes ? (int)left : t.lanes;
}

/* Packs a voxel near a box into three numbers of 10 bits: a point's from the low corner of the window around the box, a
   centre's from the low corner of the box. Then point - centre is the offset in the window. It lies in the window if no
   number reaches the power of two above K - 1, neither as it is nor after that power less K is added. If the lowest number
   is outside and borrows from the next one, the next one's value does not matter. */
enum { PACK_BITS = 10, PACK_REACH = 1 << (PACK_BITS - 1) };

static __device__ __forceinline__ uint32_t pack_voxel(const float at[3], const float from[3])
{
    return (uint32_t)(int32_t)(at[0] - from[0]) |
           (uint32_t)(int32_t)(at[1] - from[1]) << PACK_BITS |
           (uint32_t)(int32_t)(at[2] - from[2]) << (2 * PACK_BITS);
}

struct window {
    uint32_t mask, more;
};

static __device__ __forceinline__ struct window window_of(int32_t kernel)
{
    const uint32_t ones = 1 | 1 << PACK_BITS | 1 << (2 * PACK_BITS);
    uint32_t size = 1;
    while (size < (uint32_t)kernel) size *= 2;
    return {~((size - 1) * ones), (size - (uint32_t)kernel) * ones};
}

static __device__ __forceinline__ bool in_window(struct window w, uint32_t point, uint32_t centre)
{
    uint32_t offset = point - centre;
    return ((offset | (offset + w.more)) & w.mask) == 0;
}

static __device__ __forceinline__ struct query query_at(
    const struct geo_set &s, bool there, int64_t place)
{
    struct query q = {NO_ROW, {NAN, NAN, NAN}, 0};
    if (there) {
        q.row = row_at(s.out, place);
        centre_of(s, q.row, s.pair_in_voxels, q.at);
    }
    return q;
}

/* Computes boxes around the centres of all lanes up to each lane, from either end. */
static __device__ __forceinline__ void grow_by_lanes(float low[3], float high[3], bool upwards)
{
    for (int step = 1; step < 32; step *= 2)
        for (int a = 0; a < 3; a++) {
            float l = upwards ? __shfl_up_sync(WARP_ALL, low[a], step)
                              : __shfl_down_sync(WARP_ALL, low[a], step);
            float h = upwards ? __shfl_up_sync(WARP_ALL, high[a], step)
                              : __shfl_down_sync(WARP_ALL, high[a], step);
            /* a shuffle from outside of the warp returns the lane's own value, which is harmless */
            low[a] = fminf(low[a], l);
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

/* Where the curve jumps, the box around 32 centres is mostly empty. Finds lanes [from, returned) to search for separately,
   if two boxes together cost less than one by the factor `gain`; their box is in `r`. The cost of a search is proportional to
   the volume of its box, above a fixed minimum. */
static __device__ int split_lanes(
    const struct geo_set &s, const struct query &q, int from, int to, float gain, struct reach &r)
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
        if (!(volume_near(r.low, r.high, margin) > gain * __uint_as_float(least))) return to;
        to = __ffs((int)__ballot_sync(WARP_ALL, bits == least));
    }
}

/* Computes the box around the children of the lanes' rows. */
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

/* Selects lanes [from, returned), at most up to `to`. q gets their centres, and other lanes are idle; r gets the box that
   they reach. */
template <int KIND, bool PARENT>
static __device__ int reach_part(const struct geo_set &s, const struct query &all, int from, int to,
    struct query &q, struct reach &r, float gain = 2)
{
    int lane = threadIdx.x % 32;
    to = split_lanes(s, all, from, to, gain, r);
    bool active = lane >= from && lane < to;
    q = all;
    if (!active) {
        q.row = NO_ROW;
        q.at[0] = NAN;
    }
    for (int a = 0; a < 3; a++) {
        float slack = s.slack + fmaxf(fabsf(r.low[a]), fabsf(r.high[a])) * 0x1p-22f;
        if (KIND == SEARCH_WINDOW) slack = 0;
        r.from[a] = r.low[a] + (s.low - slack);
        r.to[a] = r.high[a] + (s.high + slack);
    }
    if (PARENT) reach_children(s, q, active, r);
    if (KIND == SEARCH_WINDOW) {
        r.packs = true;
        for (int a = 0; a < 3; a++)
            r.packs = r.packs && r.high[a] - r.low[a] + (float)s.cells.kernel < (float)PACK_REACH;
        /* idle lanes: outside of every window */
        q.packed = active ? pack_voxel(all.at, r.low) : PACK_REACH;
    }
    return to;
}

/* Tells whether a box (or a point) can hold a point that pairs with any centre, or a child of one. */
template <bool PARENT>
static __device__ __forceinline__ bool is_near(
    const struct reach &r, const float low[3], const float high[3])
{
    bool near = low[0] <= r.to[0] && low[1] <= r.to[1] && low[2] <= r.to[2] &&
                high[0] >= r.from[0] && high[1] >= r.from[1] && high[2] >= r.from[2];
    if (PARENT)
        near = near || (low[0] <= r.child_high[0] && low[1] <= r.child_high[1] &&
                           low[2] <= r.child_high[2] && high[0] >= r.child_low[0] &&
                           high[1] >= r.child_low[1] && high[2] >= r.child_low[2]);
    return near;
}

template <bool PARENT>
static __device__ __forceinline__ uint32_t near_members(const struct geo_set &s,
    const struct reach &r, const struct geo_walk &w, int level, uint32_t group)
{
    uint32_t member = group * 32 + threadIdx.x % 32;
    bool near = false;
    if (walk_member(w, level, member)) {
        struct geo_box box = box_at(&s.tree.box[level][member]);
        near = is_near<PARENT>(r, box.low, box.high);
    }
    return __ballot_sync(WARP_ALL, near);
}

template <int KIND, bool PARENT>
static __device__ struct geo_walk walk_begin(
    const struct geo_set &s, const struct reach &r, int32_t sample)
{
    struct geo_walk w = {};
    int top = s.tree.depth - 1;
    w.first = (uint32_t)s.in.row_splits[sample];
    w.end = (uint32_t)s.in.row_splits[sample + 1];
    w.level = s.tree.depth;
    if (w.end > w.first) walk_enter(w, top, 0, near_members<PARENT>(s, r, w, top, 0));
    return w;
}

/* Appends the near points of some leaves of the present group to the first `count` points. Returns the new number of points. */
template <int KIND, bool PARENT>
static __device__ int gather_leaves(const struct geo_set &s, const struct reach &r,
    struct geo_walk &w, int count, struct gathered<KIND, PARENT> &room)
{
    int lane = threadIdx.x % 32, many = (GATHER - count) / 32;
    uint32_t left = walk_left(w);
    uint32_t group = __shfl_sync(WARP_ALL, w.group, 0);
    float at[LEAVES][3];
    int32_t row[LEAVES];
#pragma unroll
    for (int b = 0; b < LEAVES; b++) {
        uint32_t place = (group * 32 + (uint32_t)__ffs((int)left) - 1) * 32 + (uint32_t)lane;
        bool there = left && b < many && place >= w.first && place < w.end;
        row[b] = there ? row_at(s.in, place) : -1;
        for (int a = 0; a < 3; a++) at[b][a] = there ? s.in.xyz[3 * (int64_t)row[b] + a] : 0;
        if (b < many) left &= left - 1;
    }
    if (lane == 0) w.left = left;
#pragma unroll
    for (int b = 0; b < LEAVES; b++) {
        if (KIND == SEARCH_WINDOW)
            for (int a = 0; a < 3; a++) at[b][a] = voxel_place(at[b][a], s.in.grid);
        bool near = row[b] >= 0 && is_near<PARENT>(r, at[b], at[b]);
        uint32_t mask = __ballot_sync(WARP_ALL, near);
        int slot = count + __popc(mask & ((1u << lane) - 1));
        if (near) {
            room.point[slot] = make_float4(at[b][0], at[b][1], at[b][2], __int_as_float(row[b]));
            if (PARENT) room.parent[slot] = s.parent[row[b]];
            if (KIND == SEARCH_WINDOW) room.packed[slot] = pack_voxel(at[b], r.from);
        }
        count += __popc(mask);
    }
    return count;
}

/* Gathers near points, from the present place of the walk on, until there is no room for another leaf. Fills up to a
   multiple of 32 with points that are near to nothing. Returns the number of points. */
template <int KIND, bool PARENT>
static __device__ int gather(const struct geo_set &s, const struct reach &r, struct geo_walk &w,
    struct gathered<KIND, PARENT> &room)
{
    int lane = threadIdx.x % 32, count = 0;
    while (w.level < s.tree.depth && count <= GATHER - 32) {
        uint32_t left = walk_left(w);
        if (!left) {
            w.level++;
        } else if (w.level == 0) {
            count = gather_leaves<KIND, PARENT>(s, r, w, count, room);
        } else {
            int level = w.level - 1;
            uint32_t member = walk_take(w, __ffs((int)left) - 1);
            walk_enter(w, level, member, near_members<PARENT>(s, r, w, level, member));
        }
    }
    int filled = (count + 31) / 32 * 32;
    for (int slot = count + lane; slot < filled; slot += 32) {
        room.point[slot] = make_float4(NAN, NAN, NAN, 0);
        if (PARENT) room.parent[slot] = -1;
        if (KIND == SEARCH_WINDOW) room.packed[slot] = UINT32_MAX;
    }
    __syncwarp();
    return filled;
}

template <int KIND, bool PARENT>
static __device__ __forceinline__ bool is_pair(const struct geo_set &s, const struct query &q,
    const struct gathered<KIND, PARENT> &points, int slot)
{
    float4 p = points.point[slot];
    float d[3] = {p.x - q.at[0], p.y - q.at[1], p.z - q.at[2]};
    bool pair = true;
    if (KIND == SEARCH_BALL)
        pair = (d[0] * d[0] + d[1] * d[1]) + d[2] * d[2] <= s.radius2;
    else
        for (int a = 0; a < 3; a++) pair = pair && s.low <= d[a] && d[a] <= s.high;
    if (PARENT) pair = pair || points.parent[slot] == q.row;
    return pair;
}

/* Calls take(slot) for each of the first `points` gathered points that pairs with the lane's centre. */
template <int KIND, bool PARENT, class Take>
static __device__ __forceinline__ void for_pairs(const struct geo_set &s, const struct reach &r,
    const struct query &q, const struct gathered<KIND, PARENT> &room, int points, Take take)
{
    if (KIND == SEARCH_WINDOW && r.packs) {
        struct window w = window_of(s.cells.kernel);
#pragma unroll 2
        for (int slot = 0; slot < points; slot += 4) {
            uint4 four = *(const uint4 *)&room.packed[slot];
            if (in_window(w, four.x, q.packed)) take(slot);
            if (in_window(w, four.y, q.packed)) take(slot + 1);
            if (in_window(w, four.z, q.packed)) take(slot + 2);
            if (in_window(w, four.w, q.packed)) take(slot + 3);
        }
        return;
    }
#pragma unroll 8
    for (int slot = 0; slot < points; slot++)
        if (is_pair<KIND, PARENT>(s, q, room, slot)) take(slot);
}

/* Returns the centre of another lane. */
static __device__ __forceinline__ struct query query_of(const struct query &q, int lane)
{
    struct query other = {};
    other.row = __shfl_sync(WARP_ALL, q.row, lane);
    for (int a = 0; a < 3; a++) other.at[a] = __shfl_sync(WARP_ALL, q.at[a], lane);
    return other;
}

#endif
