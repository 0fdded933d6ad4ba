/* Products on the matrix unit: how operands are formed, and how weights are laid out for it. */
#ifndef PNET_KERNELS_CUDA_CONV_FAST_CUH
#define PNET_KERNELS_CUDA_CONV_FAST_CUH

#include "kernels/cuda/conv_common.cuh"

/* How operands become 16 bits:
     CONV_SPLIT   half, twice: x = (high + low) / scale, three products, 22 significant bits: fp32
     CONV_SCALED  half, once, scaled likewise: the 11 bits of tf32 without the range of half
     CONV_BFLOAT, CONV_HALF  as they are
   Scales are powers of two that bring the largest operand of a block near the top of half's range. */
enum conv_form { CONV_SPLIT, CONV_SCALED, CONV_BFLOAT, CONV_HALF };

static inline conv_form conv_form_of(enum pnet_precision p)
{
    return p == PNET_FP32   ? CONV_SPLIT
           : p == PNET_TF32 ? CONV_SCALED
           : p == PNET_BF16 ? CONV_BFLOAT
                            : CONV_HALF;
}

/* Weights as blocks of `depth` input channels and `columns` output channels, in the order cell, group, block of input
   channels, block of output channels. A block has one plane (two for CONV_SPLIT: high, low), a plane one row of `depth`
   elements a column, permuted as gathering threads hold them (`unit` channels one after the other, four threads a row),
   and swizzled in units of 16 bytes as the matrix unit reads them. Columns are in order, or, with `units`, such that
   each of the four threads that hold a row's sums has units of 8 channels. Behind all blocks stand their inverse scales. */
struct conv_blocks {
    conv_form form;
    int depth, columns;
    int unit;        /* 4 or 8 */
    bool units;      /* of sums */
    int deep, whole; /* blocks of input and of output channels of a group */
    int first, wide; /* of the latter: where the part that is packed begins, how many it has */
    int64_t count;   /* of the part */
    size_t bytes;    /* of a block */
};

/* The first part, and the one from `first` on. A product is made in parts of its columns where the whole would take more
   memory than a layer is meant to; the sums are the same. */
conv_blocks conv_block_weights(conv_form form, int64_t cells, const conv_groups &g, int depth,
    int columns, int unit, bool units);
conv_blocks conv_blocks_part(conv_blocks b, int first);
size_t conv_blocks_bytes(const conv_blocks &b);
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

/* MVMR on the matrix unit, where this program has it for this GPU, or there is none to ask, and the set is not too fine;
   `work` holds the weights. */
bool conv_fast_serves(const conv_set &s);
size_t conv_fast_work(const conv_set &s, const conv_groups &g, enum pnet_precision precision);
void conv_fast_mvmr(const conv_product &p, enum pnet_precision precision, void *work);
/* MVMR of sets that have tiles, and dense products. */
bool conv_tiles_serves(const conv_set &s);
size_t conv_tiles_work(const conv_set &s, const conv_groups &g, enum pnet_precision precision);
void conv_tiles_mvmr(const conv_product &p, enum pnet_precision precision, void *work);
/* Dense products of features in 16 bits, by a kernel that keeps the weights. */
bool conv_dense_serves(const conv_product &p, enum pnet_precision precision);
void conv_dense_mvmr(const conv_product &p, enum pnet_precision precision);
/* MVMR where tiles would leave most of the GPU idle; `work` holds partial sums. */
bool conv_few_serves(const conv_set &s, const conv_groups &g, enum pnet_precision precision);
size_t conv_few_work(const conv_set &s, const conv_groups &g, enum pnet_precision precision);
void conv_few_mvmr(const conv_product &p, enum pnet_precision precision, void *work);

#endif
