/* Candidates for the nearest points. Each is one number: (distance^2, not self, row) from the highest bit down. Distances
   are not negative, so the order of their bits is their order, and the tie rule costs nothing. For .cu files alone. */
#ifndef PNET_KERNELS_CUDA_GEO_NEAR_H
#define PNET_KERNELS_CUDA_GEO_NEAR_H

#include "kernels/cuda/geometry/geo_set.h"

static __device__ __forceinline__ uint64_t candidate(
    const float p[3], const float at[3], bool self, int32_t row)
{
    float dx = p[0] - at[0], dy = p[1] - at[1], dz = p[2] - at[2];
    float distance2 = (dx * dx + dy * dy) + dz * dz;
    return (uint64_t)__float_as_uint(distance2) << 32 | (self ? 0 : 0x80000000u) | (uint32_t)row;
}

static __device__ __forceinline__ float distance2_of(uint64_t item)
{
    return __uint_as_float((uint32_t)(item >> 32));
}

static __device__ __forceinline__ int32_t row_of(uint64_t item)
{
    return (int32_t)(item & 0x7fffffffu);
}

/* Returns the squared distance between two boxes, as bits. */
static __device__ __forceinline__ uint32_t gap_bits(
    const float low[3], const float high[3], const float from[3], const float to[3])
{
    float d[3];
    for (int a = 0; a < 3; a++) d[a] = fmaxf(fmaxf(low[a] - to[a], from[a] - high[a]), 0.0f);
    return __float_as_uint((d[0] * d[0] + d[1] * d[1]) + d[2] * d[2]);
}

/* Distances from a box to the members of the groups of a walk: the squared distance to a member, which prunes, and that
   between the centres, which gives the order of visits. Where the curve jumps a leaf's box touches many others, although its
   points are far from most of them. */
struct geo_gaps {
    uint32_t gap[TREE_DEPTH][32], middle[TREE_DEPTH][32];
};

static __device__ __forceinline__ uint32_t middle_bits(
    const float low[3], const float high[3], const float from[3], const float to[3])
{
    float sum = 0;
    for (int a = 0; a < 3; a++) {
        float d = (low[a] + high[a]) - (from[a] + to[a]);
        sum += d * d;
    }
    return __float_as_uint(sum);
}

/* How a walk sees a box: its gap and its middle, from the box [from, to]. */
struct box_measure {
    const float *from, *to;
    __device__ __forceinline__ uint2 operator()(const struct geo_box &box) const
    {
        return {gap_bits(box.low, box.high, from, to), middle_bits(box.low, box.high, from, to)};
    }
};

/* Enters a group: measures its members. */
template <class Measure>
static __device__ __forceinline__ void enter_near(const struct geo_tree &t, struct geo_walk &w,
    int level, uint32_t group, const Measure &measure, struct geo_gaps &gaps)
{
    int lane = threadIdx.x % 32;
    uint32_t member = group * 32 + (uint32_t)lane;
    bool there = walk_member(w, level, member);
    if (there) {
        uint2 seen = measure(box_at(&t.box[level][member]));
        gaps.gap[level][lane] = seen.x;
        gaps.middle[level][lane] = seen.y;
    }
    walk_enter(w, level, group, __ballot_sync(WARP_ALL, there));
}

/* Begins a walk through places [first, end) that visits near members first. */
template <class Measure>
static __device__ __forceinline__ struct geo_walk walk_measured(const struct geo_tree &t,
    int64_t first, int64_t end, const Measure &measure, struct geo_gaps &gaps)
{
    struct geo_walk w = {};
    w.first = (uint32_t)first;
    w.end = (uint32_t)end;
    w.level = t.depth;
    if (end > first) enter_near(t, w, t.depth - 1, 0, measure, gaps);
    return w;
}

static __device__ __forceinline__ struct geo_walk walk_near(const struct geo_tree &t, int64_t first,
    int64_t end, const float from[3], const float to[3], struct geo_gaps &gaps)
{
    return walk_measured(t, first, end, box_measure{from, to}, gaps);
}

/* Returns the next leaf whose distance is not above `most`; -1: there is none. Leaves out members for which wants(level, member),
   which all lanes call, is false. */
template <class Measure, class Wants>
static __device__ __forceinline__ int64_t next_wanted_leaf(const struct geo_tree &t,
    struct geo_walk &w, uint32_t most, const Measure &measure, struct geo_gaps &gaps, Wants wants)
{
    int lane = threadIdx.x % 32;
    while (w.level < t.depth) {
        bool open = walk_left(w) >> lane & 1 && gaps.gap[w.level][lane] <= most;
        uint32_t mask = __ballot_sync(WARP_ALL, open);
        if (!mask) {
            w.level++; /* the other members are too far */
            continue;
        }
        uint32_t own = open ? gaps.middle[w.level][lane] : UINT32_MAX;
        uint32_t least = __reduce_min_sync(WARP_ALL, own);
        int bit = __ffs((int)(__ballot_sync(WARP_ALL, own == least) & mask)) - 1;
        uint32_t member = walk_take(w, bit);
        if (!wants(w.level, member)) continue;
        if (w.level == 0) return member;
        enter_near(t, w, w.level - 1, member, measure, gaps);
    }
    return -1;
}

static __device__ __forceinline__ int64_t next_leaf(const struct geo_tree &t, struct geo_walk &w,
    uint32_t most, const float from[3], const float to[3], struct geo_gaps &gaps)
{
    return next_wanted_leaf(
        t, w, most, box_measure{from, to}, gaps, [](int, uint32_t) { return true; });
}

#endif
