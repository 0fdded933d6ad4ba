/* Voxels and keys in device code: the arithmetic of kernels/cpu/geometry/geo_grid.h, and functions that several kernels of
   the geometry stage share. For .cu files alone. */
#ifndef PNET_KERNELS_CUDA_GEO_GRID_H
#define PNET_KERNELS_CUDA_GEO_GRID_H

#include "kernels/geometry.h"
#include "kernels/morton.h"

#define WARP_ALL 0xffffffffu /* all lanes of a warp */

/* Returns the index of the voxel of coordinate `p` (metres) on one axis, clamped to the key range. Sets `inside` to false if
   it was clamped. */
static __device__ __forceinline__ int32_t voxel_index(float p, struct pnet_grid grid, bool &inside)
{
    const float reach = 1073741824.0f; /* 2^30 */
    float x = p * grid.inverse_base;
    if (!(x >= -reach && x < reach)) {
        inside = false;
        return x > 0 ? PNET_KEY_BIAS - 1 : -PNET_KEY_BIAS;
    }
    int32_t index = __float2int_rd(x);
    if (grid.factor != 1) {
        int32_t quotient = index / grid.factor;
        index = quotient - (quotient * grid.factor > index);
    }
    if (index < -PNET_KEY_BIAS || index >= PNET_KEY_BIAS) {
        inside = false;
        return index > 0 ? PNET_KEY_BIAS - 1 : -PNET_KEY_BIAS;
    }
    return index;
}

/* Returns the same as a position in units of voxels. */
static __device__ __forceinline__ float voxel_place(float p, struct pnet_grid grid)
{
    bool inside = true;
    if (grid.factor != 1) return (float)voxel_index(p, grid, inside);
    float least = -PNET_KEY_BIAS, last = PNET_KEY_BIAS - 1;
    return fminf(fmaxf(floorf(p * grid.inverse_base), least), last);
}

/* Returns the edge of a voxel in metres. */
static __device__ __forceinline__ float grid_cell(struct pnet_grid grid)
{
    return grid.base * (float)grid.factor;
}

/* Returns the place of a point along a curve through a cube, in steps of 2^-bits of its edge. Points outside go to its border. */
static __device__ __forceinline__ uint64_t curve_place(
    const float *p, const float low[3], float edge, int bits)
{
    float last = (float)((1u << bits) - 1);
    uint32_t index[3];
    for (int a = 0; a < 3; a++) {
        float x = edge > 0 ? (p[a] - low[a]) / edge * last : 0;
        index[a] = (uint32_t)fminf(fmaxf(x, 0.0f), last);
    }
    return pnet_key_join(index[0], index[1], index[2]);
}

static __device__ __forceinline__ uint64_t point_key(
    const float *p, struct pnet_grid grid, bool &inside)
{
    uint32_t v[3];
    for (int a = 0; a < 3; a++) v[a] = (uint32_t)(voxel_index(p[a], grid, inside) + PNET_KEY_BIAS);
    return pnet_key_join(v[0], v[1], v[2]);
}

/* Converts a float to an integer in the same order, so that integers find the least of several floats. */
static __device__ __forceinline__ uint32_t float_rank(float x)
{
    uint32_t bits = __float_as_uint(x);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static __device__ __forceinline__ float rank_float(uint32_t rank)
{
    return __uint_as_float(rank & 0x80000000u ? rank & 0x7fffffffu : ~rank);
}

/* Returns the sample of a place; place < row_splits[samples]. */
static __device__ __forceinline__ int32_t sample_of(
    const int64_t *row_splits, int32_t samples, int64_t place)
{
    int32_t low = 0, high = samples - 1;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (row_splits[middle + 1] > place)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static __device__ __forceinline__ int64_t thread_index()
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ __forceinline__ int64_t thread_count()
{
    return (int64_t)gridDim.x * blockDim.x;
}

#endif
