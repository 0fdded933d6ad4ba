/* Walks of a warp through the tree over two sets, for up to 32 points that lie close together; each lane has one. */
#ifndef PNET_KERNELS_CUDA_TREE_WALK_CUH
#define PNET_KERNELS_CUDA_TREE_WALK_CUH

#include "kernels/cuda/geometry/geo_gather.h"
#include "kernels/cuda/geometry/geo_near.h"
#include "kernels/cuda/sets/set_tree.h"

/* The middle of a small set. A box says little about distances from there if its points lie on a curved surface: they are farther
   than its corners. So the nodes of the other set have the least distance of their points to the centre. For a point q, and the
   points p of a node, relative to the centre:
     |q - p|^2 = |p|^2 + sum over axes of (q - p)^2 - p^2 >= least |p|^2 + sum over axes of the least (q - p)^2 - p^2,
   and the latter is least at an end of the node's box, also if q is any point of a box. */
struct centre {
    bool there;
    float at[3];
};

/* A warp's shared memory. */
struct walk_room {
    float4 point[32];     /* of a leaf: position, row */
    struct centre centre; /* of the part's sample: rarely needed, so not in registers */
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
struct set_search : geo_set {
    const uint32_t *low, *high, *broken; /* of the tree */
};

static inline struct set_search search_of(const struct set_tree *t)
{
    struct set_search s = {};
    s.in = s.out = places_of(t);
    s.tree = t->tree;
    s.low = t->low;
    s.high = t->high;
    s.broken = t->broken;
    return s;
}

enum {
    SMALL_SET =
        4, /* a set has a centre for searches in another one whose box is so many times as large */
    SPLIT_GAIN =
        8, /* see split_lanes. A box that is mostly empty costs a walk little: each lane looks at boxes from its own point */
};

static constexpr float LARGEST_EDGE = 0x1p62f; /* squares up to that can be added up */

/* The centre of a sample of either set, against that of the other set. */
static __device__ __noinline__ struct centre centre_of_sample(const uint32_t *low,
    const uint32_t *high, const uint32_t *broken, int32_t samples, int32_t sample)
{
    const int64_t own = 3 * (int64_t)sample,
                  other = 3 * (int64_t)(sample < samples ? sample + samples : sample - samples);
    struct centre c = {};
    float edge = 0, others = 0, all = 0;
    for (int a = 0; a < 3; a++) {
        const float from = rank_float(low[own + a]), to = rank_float(high[own + a]),
                    others_from = rank_float(low[other + a]),
                    others_to = rank_float(high[other + a]);
        c.at[a] = 0.5f * from + 0.5f * to;
        edge = fmaxf(edge, to - from);
        others = fmaxf(others, others_to - others_from);
        all = fmaxf(all, fmaxf(to, others_to) - fminf(from, others_from));
    }
    c.there = !*broken && SMALL_SET * edge < others && all < LARGEST_EDGE;
    return c;
}

/* What is surely at most the squared distance, as it is computed, between a place in the box [from, to] and a point of a node.
   NaN or -INFINITY: nothing is known. The sums differ from the exact ones by less than 16 roundings of 2^-24 of what they add up,
   or by a few of the smallest numbers. */
static __device__ __forceinline__ float distance2_least(const struct geo_box &box,
    const struct centre &c, const float from[3], const float to[3], float *about = nullptr)
{
    float sum = box.centre2, all = box.centre2;
    for (int a = 0; a < 3; a++) {
        const float low = box.low[a] - c.at[a], high = box.high[a] - c.at[a],
                    to_low = fmaxf(fmaxf(box.low[a] - to[a], from[a] - box.low[a]), 0.0f),
                    to_high = fmaxf(fmaxf(box.high[a] - to[a], from[a] - box.high[a]), 0.0f),
                    low2 = low * low, high2 = high * high, to_low2 = to_low * to_low,
                    to_high2 = to_high * to_high;
        const bool first = to_low2 - low2 < to_high2 - high2;
        sum += first ? to_low2 - low2 : to_high2 - high2;
        all += first ? to_low2 + low2 : to_high2 + high2;
    }
    if (about) *about = sum;
    return sum - (all * 0x1p-19f + 0x1p-140f);
}

/* How the walk of a part sees a box. */
struct part_measure {
    const float *from, *to;
    bool centred;
    const struct centre *centre;
    __device__ __forceinline__ uint2 operator()(const struct geo_box &box) const
    {
        uint2 seen = box_measure{from, to}(box);
        if (!centred) return seen;
        float middle[3], about;
        for (int a = 0; a < 3; a++) middle[a] = 0.5f * (from[a] + to[a]);
        distance2_least(box, *centre, middle, middle, &about);
        const float gap = __uint_as_float(seen.x),
                    at_middle = __uint_as_float(gap_bits(box.low, box.high, middle, middle));
        seen.x = __float_as_uint(fmaxf(gap, distance2_least(box, *centre, from, to)));
        seen.y = __float_as_uint(fmaxf(at_middle, about));
        return seen;
    }
};

/* What a part of a warp searches: places [first, end) of the other set's sample. */
struct part {
    struct query own; /* row: NO_ROW in a lane that has no point */
    struct reach reach;
    int64_t place; /* of the lane's point */
    int32_t sample, other;
    int64_t first, end;
};

/* Sets what a part searches from its sample. */
static __device__ __forceinline__ void look_from(const struct set_search &s, struct part &p)
{
    const int32_t samples = s.in.samples / 2;
    p.other = p.sample < samples ? p.sample + samples : p.sample - samples;
    p.first = s.in.row_splits[p.other];
    p.end = s.in.row_splits[p.other + 1];
}

static __device__ __forceinline__ bool has_point(const struct part &p)
{
    return p.own.row != NO_ROW;
}

/* Sets the centre of the sample of a part, in shared memory. Returns whether it is there. */
static __device__ __forceinline__ bool take_centre(
    const struct set_search &s, const struct part &p, struct centre &to)
{
    __syncwarp(); /* the last one has been read */
    if (threadIdx.x % 32 == 0)
        to = centre_of_sample(s.low, s.high, s.broken, s.in.samples / 2, p.sample);
    __syncwarp();
    return to.there;
}

/* Calls search(part) for the points of a warp among the first `places`, as many at a time as are in one sample and close
   together. Points that are not finite are left out, but for take_broken(row). */
template <class Broken, class Search>
static __device__ __forceinline__ void for_parts(
    const struct set_search &s, int64_t places, Broken take_broken, Search search)
{
    const int lane = (int)threadIdx.x % 32;
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
        to = reach_part<SEARCH_BALL, false>(s, all, from, to, p.own, p.reach, SPLIT_GAIN);
        p.sample = t.sample;
        look_from(s, p);
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
static __device__ __forceinline__ void walk_part(const struct set_search &s, const struct part &p,
    struct walk_room &room, Bound bound, Wants wants, Take take)
{
    const bool centred = take_centre(s, p, room.centre);
    const struct part_measure measure = {p.reach.low, p.reach.high, centred, &room.centre};
    struct geo_walk w = walk_measured(s.tree, p.first, p.end, measure, room.gaps);
    uint32_t most = __reduce_max_sync(WARP_ALL, has_point(p) ? bound() : 0);
    for (;;) {
        int64_t leaf =
            next_wanted_leaf(s.tree, w, most, measure, room.gaps, [&](int level, uint32_t member) {
                struct geo_box box = box_at(&s.tree.box[level][member]);
                uint32_t gap = gap_bits(box.low, box.high, p.own.at, p.own.at);
                bool wanted = !(centred && distance2_least(box, room.centre, p.own.at, p.own.at) >
                                               __uint_as_float(bound())) &&
                              wants(level, member, box, gap);
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
