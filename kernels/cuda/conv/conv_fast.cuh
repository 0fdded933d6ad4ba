/* Products on the matrix unit: scales of operands and packed weights. */
#ifndef PNET_KERNELS_CUDA_CONV_FAST_CUH
#define PNET_KERNELS_CUDA_CONV_FAST_CUH

#include "kernels/cuda/conv/conv_common.cuh"

/* Weights laid out for the matrix unit (struct conv_blocks). `of_all`: CONV_TILE_SCALED, the size of the largest weight. */
void pnet_cuda_conv_pack_weights(
    const conv_blocks &b, const conv_product &p, void *blocks, const uint32_t *of_all = nullptr);

static __host__ __device__ inline const float *conv_block_scales(
    const conv_blocks &b, const void *blocks)
{
    return (const float *)((const char *)blocks + (size_t)b.count * b.bytes);
}

/* Which channel column n of a packed block holds, with `units`. Of 8 columns the matrix unit gives lane t of four the
   sums of columns 2t and 2t + 1; in this order a lane has 8 neighbouring channels of 32. */
static __device__ __forceinline__ int conv_column_at(int n)
{
    return n / 32 * 32 + n % 8 / 2 * 8 + n % 32 / 8 * 2 + n % 2;
}

/* The power of two by which to multiply so that values up to `most` stay below 2^top. */
static __device__ __forceinline__ float conv_scale(float most, int top)
{
    int e = most > 0 ? (int)(__float_as_uint(most) >> 23) - 127 : 0, s = top - 1 - e;
    s = s > 126 ? 126 : s < -126 ? -126 : s;
    return __uint_as_float((unsigned)(s + 127) << 23);
}

/* The size of a finite value; 0 for infinity and NaN, which must not become a scale. */
static __device__ __forceinline__ float conv_finite_size(float x)
{
    x = fabsf(x);
    return x < INFINITY ? x : 0;
}

#endif
