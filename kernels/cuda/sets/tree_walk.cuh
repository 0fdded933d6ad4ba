/* Walks of a warp through the tree over two sets, for up to 32 points that lie close together; each lane has one. */
#ifndef PNET_KERNELS_CUDA_TREE_WALK_CUH
#define PNET_KERNELS_CUDA_TREE_WALK_CUH

#include "kernels/cuda/geometry/geo_gather.h"
#include "kernels/cuda/geometry/geo_near.h"
#include "kernels/cuda/sets/set_tree.h"

/* A warp's shared memory. */
struct walk_room {
    float4 point[32]; /* of a leaf: position, row */
    struct geo_gaps gaps;
};

/* Blocks for kernels of which each has `places` places. */
static inline unsigned place_blocks(const struct set_tree *t, int places)
{
    return (unsigned)((t->places + places - 1) / places);
}

/* The points of a tree, by place. */
static inline struct geo_points places_of(const struct set_tree *t)
{
    struct geo_points p = {};
    p.rows = t->places;
    p.samples = 2 * t->samples;
    p.row_splits = t->splits;
    p.order = t->row;
    p.placed = t->placed;
    p.live = t->splits + 2 * (int64_t)t->samples;
    return p;
}

/* A search for points of the other set. */
static inline struct geo_set search_of(const struct set_tree *t)
{
    struct geo_set s = {};
    s.in = s.out = places_of(t);
    s.tree = t->tree;
    return s;
}

/* What a part of a warp searches: places [first, end) of the other set's sample. */
struct part {
    struct query own; /* row: NO_ROW in a lane that has no point */
    struct reach reach;
    int64_t place; /* of the lane's point */
    int32_t sample, other;
    int64_t first, end;
};

static __device__ __forceinline__ bool has_point(const struct part &p)
{
    return p.own.row != NO_ROW;
}

/* Calls search(part) for the points of a warp among the first `places`, as many at a time as are in one sample and close
   together. Points that are not finite are left out, but for take_broken(row). */
template <class Broken, class Search>
static __device__ __forceinline__ void for_parts(
    const struct geo_set &s, int64_t places, Broken take_broken, Search search)
{
    const int lane = (int)threadIdx.x % 32;
    const int32_t samples = s.in.samples / 2;
    struct geo_points out = s.out;
    out.rows = places;
    struct tile t = tile_of(out);
    struct query all = {NO_ROW, {NAN, NAN, NAN}, 0};
    struct part p;
    p.place = t.first + lane;
    if (lane < t.lanes) {
        all.row = row_at(out, p.place);
        point_at(out, p.place, false, all.at);
        if (!isfinite(all.at[0]) || !isfinite(all.at[1]) || !isfinite(all.at[2])) {
            take_broken(all.row);
            all = {NO_ROW, {NAN, NAN, NAN}, 0};
        }
    }
    for (int from = 0, to; from < t.lanes; from = to) {
        to = tile_sample_end(out, t, from);
        to = reach_part<SEARCH_BALL, false>(s, all, from, to, p.own, p.reach);
        p.sample = t.sample;
        p.other = t.sample < samples ? t.sample + samples : t.sample - samples;
        p.first = s.in.row_splits[p.other];
        p.end = s.in.row_splits[p.other + 1];
        search(p);
    }
}

/* Takes the points of a leaf whose squared distance to the warp's box is at most `most`, as bits. Returns their number. */
static __device__ __forceinline__ int take_near(const struct geo_set &s, const struct part &p,
    int64_t leaf, uint32_t most, struct walk_room &room)
{
    const int lane = (int)threadIdx.x % 32;
    const int64_t place = leaf * 32 + lane;
    bool near = place >= p.first && place < p.end;
    float at[3] = {0, 0, 0};
    int32_t row = 0;
    if (near) {
        row = row_at(s.in, place);
        point_at(s.in, place, false, at);
        near = gap_bits(at, at, p.reach.low, p.reach.high) <= most;
    }
    uint32_t mask = __ballot_sync(WARP_ALL, near);
    if (near)
        room.point[__popc(mask & ((1u << lane) - 1))] =
            make_float4(at[0], at[1], at[2], __int_as_float(row));
    __syncwarp();
    return __popc(mask);
}

static __device__ __forceinline__ uint32_t distance2_bits(const float p[3], const float at[3])
{
    float dx = p[0] - at[0], dy = p[1] - at[1], dz = p[2] - at[2];
    return __float_as_uint((dx * dx + dy * dy) + dz * dz);
}

/* Visits the leaves near the points of a part, near ones first. bound() is the squared distance, as bits, up to which the lane
   looks for points; wants(level, member, box, gap) tells whether the lane looks for points in that box, which is `gap` away.
   take(distance2, row), distance2 as bits, gets the points in boxes that any lane wants. All lanes call these. */
template <class Bound, class Wants, class Take>
static __device__ __forceinline__ void walk_part(const struct geo_set &s, const struct part &p,
    struct walk_room &room, Bound bound, Wants wants, Take take)
{
    const float *low = p.reach.low, *high = p.reach.high;
    struct geo_walk w = walk_near(s.tree, p.first, p.end, low, high, room.gaps);
    uint32_t most = __reduce_max_sync(WARP_ALL, has_point(p) ? bound() : 0);
    for (;;) {
        int64_t leaf = next_wanted_leaf(
            s.tree, w, most, low, high, room.gaps, [&](int level, uint32_t member) {
                struct geo_box box = box_at(&s.tree.box[level][member]);
                uint32_t gap = gap_bits(box.low, box.high, p.own.at, p.own.at);
                bool wanted = wants(level, member, box, gap);
                return __any_sync(WARP_ALL, wanted && has_point(p)) != 0;
            });
        if (leaf < 0) return;
        int points = take_near(s, p, leaf, most, room);
        for (int c = 0; c < points; c++) {
            float4 point = room.point[c];
            float at[3] = {point.x, point.y, point.z};
            take(distance2_bits(at, p.own.at), __float_as_int(point.w));
        }
        most = __reduce_max_sync(WARP_ALL, has_point(p) ? bound() : 0);
        __syncwarp();
    }
}

#endif
