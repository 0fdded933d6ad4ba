/* The ball that is the support of a row. */
#ifndef PNET_KERNELS_CUDA_APML_BALL_CUH
#define PNET_KERNELS_CUDA_APML_BALL_CUH

#include "kernels/cuda/sets/apml_parts.h"
#include "kernels/cuda/sets/points.cuh"
#include "kernels/cuda/sets/tree_walk.cuh"

/* What kernels read of the search. */
struct apml_view {
    const float *slope, *kappa;
    const int32_t *finite;
    float2 *near;
};

static inline struct apml_view view_of(const struct apml_parts *p, const int32_t *finite)
{
    return {p->slope, p->kappa, finite, (float2 *)p->near};
}

static __device__ __forceinline__ float gap_of(float2 near)
{
    return fmaxf(near.y - near.x, 1e-8f);
}

/* R of a row, among `points` points. */
static __device__ __forceinline__ float radius_of(float2 near, float kappa, int64_t points)
{
    return points < 2 ? near.x : __fmaf_rn(kappa, gap_of(near), near.x);
}

/* The largest squared distance, as bits, whose root, rounded, is at most `radius`: a comparison with it is a comparison of the
   rounded distance with the radius. The same as pnet_geo_square of the CPU. */
static __device__ __forceinline__ uint32_t square_bits(float radius)
{
    const uint32_t most = 0x7f7fffffu; /* the largest float */
    uint32_t bits = min(__float_as_uint(radius * radius), most);
    while (bits > 0 && __fsqrt_rn(__uint_as_float(bits)) > radius) bits--;
    while (bits < most && __fsqrt_rn(__uint_as_float(bits + 1)) <= radius) bits++;
    return bits;
}

/* A point of a support, (distance, row) from the highest bit down. */
static __device__ __forceinline__ uint64_t support_key(uint32_t distance2, int32_t row)
{
    float distance = __fsqrt_rn(__uint_as_float(distance2));
    return (uint64_t)__float_as_uint(distance) << 32 | (uint32_t)row;
}

/* The same as (row, distance), and back. */
static __device__ __forceinline__ uint64_t swapped(uint64_t key)
{
    return key << 32 | key >> 32;
}

#endif
