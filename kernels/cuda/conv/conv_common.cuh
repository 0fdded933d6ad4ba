/* What the kernels of convolution share: access to sets, merged groups and weights, and what is done to a finished sum.
   */
#ifndef PNET_KERNELS_CUDA_CONV_COMMON_CUH
#define PNET_KERNELS_CUDA_CONV_COMMON_CUH

#include "kernels/cuda/conv/conv_work.h"
#include "kernels/cuda/base/storage.cuh"

#include "kernels/conv.h"

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

/* Element (a, b) of merged group `group` in a weight [V, cin1, cout], or [V, cout1, cin] with `transposed`; zero
   between the groups that were merged. */
static __device__ __forceinline__ float conv_weight(const float *weight, const conv_groups &g,
    int cin, int cout, bool transposed, int64_t k, int group, int a, int b)
{
    if (a >= g.cin || b >= g.cout || a / g.cin1 != b / g.cout1) return 0;
    return transposed ? weight[(k * g.cout1 + b % g.cout1) * cin + group * g.cin + a]
                      : weight[(k * g.cin1 + a % g.cin1) * cout + group * g.cout + b];
}

/* What is done to a finished sum before it is stored. */
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
    bool transposed; /* of a dense product: gweight is [cout, cin] */
    bool add;
};

/* Plain float32 kernels: the ones that others are checked against. */
void pnet_cuda_conv_plain_mvmr(const conv_product &p);
void pnet_cuda_conv_plain_vvor(const conv_outer &o, struct pnet_conv_shape shape, void *work);
/* Dense products between few channels in float32 and features in 16 bits: the features are `in`, unless `exact_in`, and then the
   output. */
void pnet_cuda_conv_slim_mvmr(const conv_product &p, bool exact_in);
void pnet_cuda_conv_slim_vvor(const conv_outer &o, void *work);
/* One matrix of channels a kernel cell. */
void pnet_cuda_conv_depthwise_mvmr(const conv_product &p);
void pnet_cuda_conv_depthwise_vvor(const conv_outer &o, void *work);

/* gweight (+)= the partial sums [splits][elements], in order, as `o` wants them stored. */
void pnet_cuda_conv_reduce(const conv_outer &o, const float *partial, int splits);

#endif
