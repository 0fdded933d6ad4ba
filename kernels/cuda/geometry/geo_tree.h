/* A tree of boxes over the points of a level, for every search of the geometry stage; the device's form of
   kernels/cpu/geometry/geo_tree.h. For .cu files alone.

   32 places in a row along a curve are a leaf, the boxes of 32 leaves a group, and so on: every test is one step of a warp.
   A leaf may hold points of two samples; a walk visits the places of one sample. Pruning is exact: a distance to a box is
   computed by the same operations as the distance to a point, and rounding keeps order. */
#ifndef PNET_KERNELS_CUDA_GEO_TREE_H
#define PNET_KERNELS_CUDA_GEO_TREE_H

#include "kernels/cuda/geometry/geo_grid.h"
#include "kernels/cuda/geometry/geo_parts.h"

/* One side of a search. */
struct geo_points {
    int64_t rows;
    int32_t samples;
    const int64_t *row_splits;
    const float *xyz;
    const int32_t *order; /* place to row; NULL: place = row */
    struct pnet_grid grid;
    const float *placed; /* positions by place; NULL: they are those of the rows, in xyz */
    const int64_t
        *live; /* device memory: how many points there are, at most `rows`; NULL: `rows` */
};

static __device__ __forceinline__ struct geo_box box_at(const struct geo_box *from)
{
    float4 first = *(const float4 *)from, second = *((const float4 *)from + 1);
    return {{first.x, first.y, first.z}, {first.w, second.x, second.y}, __float_as_int(second.z),
        second.w};
}

/* Builds the tree over positions in metres or, with `voxel`, over indices of voxels. */
void pnet_cuda_geo_tree_build(
    const struct geo_tree *t, const struct geo_points *points, bool voxel);

/* Returns the points of a level. With `order`, sorts them along a curve first, in `work`. */
struct geo_points pnet_cuda_geo_points_of(
    const struct pnet_level *level, int32_t *order, void *work);

static __device__ __forceinline__ int32_t row_at(const struct geo_points &p, int64_t place)
{
    return p.order ? p.order[place] : (int32_t)place;
}

/* Sets the position of a row for searching: metres, or its voxel. */
static __device__ __forceinline__ void place_of(
    const struct geo_points &p, int64_t row, bool voxel, float at[3])
{
    for (int a = 0; a < 3; a++) {
        float x = p.xyz[3 * row + a];
        at[a] = voxel ? voxel_place(x, p.grid) : x;
    }
}

/* The same of the point at a place. */
static __device__ __forceinline__ void point_at(
    const struct geo_points &p, int64_t place, bool voxel, float at[3])
{
    if (!p.placed) return place_of(p, row_at(p, place), voxel, at);
    for (int a = 0; a < 3; a++) at[a] = p.placed[3 * place + a];
}

/* A walk of a warp through the places [first, end) of a tree. Lane l holds the members that are left of the present group at
   level l. */
struct geo_walk {
    int level; /* level of the present group; the tree's depth: the walk is over */
    uint32_t first, end;
    uint32_t left;
    uint32_t group;
};

/* Tells whether the lane's member of a group holds places of the walk. */
static __device__ __forceinline__ bool walk_member(
    const struct geo_walk &w, int level, uint32_t member)
{
    int shift = 5 * (level + 1);
    return member >= w.first >> shift && member <= (w.end - 1) >> shift;
}

static __device__ __forceinline__ void walk_enter(
    struct geo_walk &w, int level, uint32_t group, uint32_t members)
{
    w.level = level;
    if ((int)(threadIdx.x % 32) == level) {
        w.group = group;
        w.left = members;
    }
}

static __device__ __forceinline__ uint32_t walk_left(const struct geo_walk &w)
{
    return __shfl_sync(WARP_ALL, w.left, w.level);
}

/* Takes member `bit` out of the present group. Returns its number in the level. */
static __device__ __forceinline__ uint32_t walk_take(struct geo_walk &w, int bit)
{
    uint32_t member = __shfl_sync(WARP_ALL, w.group, w.level) * 32 + (uint32_t)bit;
    if ((int)(threadIdx.x % 32) == w.level) w.left &= ~(1u << bit);
    return member;
}

#endif
