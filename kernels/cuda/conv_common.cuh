/* What the kernels of convolution share: where rows and runs come from, merged groups, weights, the end of a row. */
#ifndef PNET_KERNELS_CUDA_CONV_COMMON_CUH
#define PNET_KERNELS_CUDA_CONV_COMMON_CUH

#include "kernels/cuda/storage.cuh"

extern "C" {
#include "kernels/cuda/conv.h"
}

/* The triplets of a convolution, or, without `start`, the one triplet (i, i, 0) of every row: a dense product. */
struct conv_set {
    struct pnet_count rows;
    int32_t cells;
    const int64_t *start;
    const int32_t *other;
    const uint16_t *cell;
    struct pnet_tiles tiles;
    int64_t count; /* of triplets: those of the capacity class */
};

/* `storage`: of the features that are gathered. */
static inline conv_set conv_set_of(const struct pnet_triplets *t, enum pnet_storage storage)
{
    return {
        {t->rows, t->live, 1, storage}, t->cells, t->start, t->other, t->cell, t->tiles, t->count};
}

static inline conv_set conv_dense_set(struct pnet_count n)
{
    return {n, 1, nullptr, nullptr, nullptr, {}, n.most};
}

static __device__ __forceinline__ int64_t conv_start(const conv_set &s, int64_t row)
{
    return s.start ? s.start[row] : row;
}

static __device__ __forceinline__ int64_t conv_other(const conv_set &s, int64_t n)
{
    return s.other ? s.other[n] : n;
}

static __device__ __forceinline__ int conv_cell(const conv_set &s, int64_t n)
{
    return s.cell ? s.cell[n] : 0;
}

/* Narrow groups are merged into one block-diagonal group, so that tiles are filled. */
struct conv_groups {
    int count;       /* merged groups */
    int cin, cout;   /* widths of a merged group */
    int cin1, cout1; /* widths of a single group */
};

static inline conv_groups conv_merge(struct pnet_conv_shape s, int width)
{
    int cin1 = s.cin / s.groups, cout1 = s.cout / s.groups, merged = 1;
    for (int p = 2; p <= s.groups && p * cout1 <= width && p * cin1 <= width; p++)
        if (s.groups % p == 0) merged = p;
    return {s.groups / merged, merged * cin1, merged * cout1, cin1, cout1};
}

static inline bool conv_depthwise(struct pnet_conv_shape s)
{
    return s.groups > 1 && s.groups == s.cin && s.groups == s.cout;
}

/* Element (a, b) of merged group `group` in a weight [V, cin1, cout], or [V, cout1, cin] with `transposed`; zero
   between the groups that were merged. */
static __device__ __forceinline__ float conv_weight(const float *weight, const conv_groups &g,
    int cin, int cout, bool transposed, int64_t k, int group, int a, int b)
{
    if (a >= g.cin || b >= g.cout || a / g.cin1 != b / g.cout1) return 0;
    return transposed ? weight[(k * g.cout1 + b % g.cout1) * cin + group * g.cin + a]
                      : weight[(k * g.cin1 + a % g.cin1) * cout + group * g.cout + b];
}

/* What becomes of a sum. */
struct conv_end {
    const float *bias; /* or NULL */
    float *out;        /* stored as the features that are gathered */
    bool add;
    enum pnet_activation act;
    float slope;
};

static __device__ __forceinline__ float conv_activate(
    float x, enum pnet_activation act, float slope)
{
    /* Comparing this way lets NaN through. */
    if (act == PNET_ACT_RELU) return x < 0 ? 0 : x;
    if (act == PNET_ACT_LEAKY) return x < 0 ? slope * x : x;
    return x;
}

/* T: what the output is stored as. */
template <class T>
static __device__ __forceinline__ void conv_finish(
    const conv_end &e, int64_t row, int width, int column, float sum)
{
    T *to = (T *)e.out + row * width + column;
    if (e.bias) sum += e.bias[column];
    narrow(e.add ? widen(*to) + sum : conv_activate(sum, e.act, e.slope), to);
}

/* A product of gathered rows with one matrix a kernel cell. */
struct conv_product {
    conv_set set;
    conv_groups groups;
    int cin, cout;
    const float *in, *weight;
    bool transposed;
    conv_end end;
};

/* A sum of outer products of rows and gathered rows, a matrix a kernel cell. */
struct conv_outer {
    conv_set set;
    conv_groups groups;
    int cin, cout;
    const float *in, *gout;
    const float *gout_matrix; /* as gout, or where the matrix begins that gout has columns of */
    float *gweight;
    bool swapped;    /* the set's rows are those of `in` */
    bool transposed; /* gweight is [V, cout1, cin] */
    bool add;
};

/* Plain float32 kernels: the ones that others are checked against. */
void conv_plain_mvmr(const conv_product &p);
size_t conv_plain_vvor_work(const conv_set &s, struct pnet_conv_shape shape);
void conv_plain_vvor(const conv_outer &o, struct pnet_conv_shape shape, void *work);
/* One matrix of channels a kernel cell. */
void conv_depthwise_mvmr(const conv_product &p);
size_t conv_depthwise_vvor_work(const conv_set &s, int channels);
void conv_depthwise_vvor(const conv_outer &o, void *work);

/* gweight (+)= the partial sums [splits][elements], in order, as `o` wants them stored. */
void conv_reduce(const conv_outer &o, const float *partial, int splits);

#endif
