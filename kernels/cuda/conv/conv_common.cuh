/* What the kernels of convolution share: access to sets, merged groups and weights, and what is done to a finished sum.
   */
#ifndef PNET_KERNELS_CUDA_CONV_COMMON_CUH
#define PNET_KERNELS_CUDA_CONV_COMMON_CUH

#include "kernels/cuda/conv/conv_launch.h"
#include "kernels/cuda/conv/conv_work.h"
#include "kernels/cuda/base/storage.cuh"

#include "kernels/conv.h"

static __device__ __forceinline__ int64_t conv_start(const conv_set &s, int64_t place)
{
    return s.start ? s.start[place] : place;
}

/* The row at a place that is there. */
static __device__ __forceinline__ int64_t conv_row(const conv_set &s, int64_t place)
{
    return s.row ? __ldg(s.row + place) : place;
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

/* gweight (+)= the partial sums [splits][elements], in order, as `o` wants them stored. */
void pnet_cuda_conv_reduce(const conv_outer &o, const float *partial, int splits);

#endif
