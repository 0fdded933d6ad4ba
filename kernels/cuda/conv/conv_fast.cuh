/* Products on the matrix unit: how operands are formed, and how weights are laid out for it. */
#ifndef PNET_KERNELS_CUDA_CONV_FAST_CUH
#define PNET_KERNELS_CUDA_CONV_FAST_CUH

#include "kernels/cuda/conv/conv_common.cuh"

/* Weights laid out for the matrix unit (struct conv_blocks). */
void conv_pack_weights(const conv_blocks &b, const conv_product &p, void *blocks);

static __host__ __device__ inline const float *conv_block_scales(
    const conv_blocks &b, const void *blocks)
{
    return (const float *)((const char *)blocks + (size_t)b.count * b.bytes);
}

/* Which channel column n of a block is, with `units`: the matrix unit gives lane t of four the sums of columns 2t and
   2t + 1 of 8. */
static __device__ __forceinline__ int conv_column_at(int n)
{
    return n / 32 * 32 + n % 8 / 2 * 8 + n % 32 / 8 * 2 + n % 2;
}

/* The power of two that brings values below 2^(1 + exponent of `most`) below 2^top. */
static __device__ __forceinline__ float conv_scale(float most, int top)
{
    int e = most > 0 ? (int)(__float_as_uint(most) >> 23) - 127 : 0, s = top - 1 - e;
    s = s > 126 ? 126 : s < -126 ? -126 : s;
    return __uint_as_float((unsigned)(s + 127) << 23);
}

/* Of a value that is not finite nothing is known. */
static __device__ __forceinline__ float conv_finite_size(float x)
{
    x = fabsf(x);
    return x < INFINITY ? x : 0;
}

/* The kernels of MVMR on the matrix unit, among which conv_choose chooses. `work` holds the packed weights; where there are
   few rows, partial sums. */
void conv_triplets_mvmr(const conv_product &p, enum pnet_precision precision, void *work);
void conv_tiles_mvmr(const conv_product &p, enum pnet_precision precision, void *work);
void conv_tiles_wide(const conv_product &p, enum pnet_precision precision, void *work);
void conv_dense_mvmr(const conv_product &p, enum pnet_precision precision);
void conv_few_mvmr(const conv_product &p, enum pnet_precision precision, void *work);

#endif
