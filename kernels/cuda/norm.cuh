/* What the kernels of batch, instance and group norm make of sums, and where they keep it. */
#ifndef PNET_KERNELS_CUDA_NORM_CUH
#define PNET_KERNELS_CUDA_NORM_CUH

extern "C" {
#include "kernels/cuda/norm.h"
}
#include "kernels/cuda/columns.cuh"

/* Two sums and two coefficients for each segment and channel, then the sums of chunks. */
struct norm_work {
    double *sum, *sum_ab, *part;
    float *k2, *k3;
};

static inline norm_work norm_work_of(const pnet_norm *n, void *work)
{
    size_t m = (size_t)n->segments.count * (size_t)n->c;
    norm_work w = {};
    w.sum = (double *)work;
    w.sum_ab = w.sum + m;
    w.part = w.sum_ab + m;
    w.k2 = (float *)(w.part + column_parts(n->segments.rows, n->segments.count, n->c));
    w.k3 = w.k2 + m;
    return w;
}

/* Below 0 an activation multiplies by this. */
static inline __host__ __device__ float norm_below(const pnet_norm &n)
{
    return n.act == PNET_ACT_NONE ? 1 : n.act == PNET_ACT_LEAKY ? n.slope : 0;
}

static inline activated_norm activated_norm_of(
    const pnet_norm *n, const float *mean, const float *inverse)
{
    return {mean, inverse, n->weight, n->bias, n->groups, norm_below(*n)};
}

static inline column_sums sums_of(
    const pnet_norm *n, const float *a, const float *b, const norm_work &w)
{
    return {
        {n->segments, {}, sum_chunks_of(n->c)}, n->c, a, b, nullptr, w.sum, w.sum_ab, w.part, {}};
}

/* 1 / the standard deviation. */
static __device__ __forceinline__ float inverse_of(double variance, double eps)
{
    return (float)rsqrt(variance + eps);
}

struct moments {
    float mean, inverse;
    double variance; /* biased */
};

/* Mean and inverse from the sums of `count` numbers in `rows` rows and of their squares; for batch norm (running.mean
   there) the rest of what its header says. `old` are the running ones. */
struct make_statistics {
    double eps;
    float *mean, *inverse;
    pnet_running running;

    __device__ float2 old(int64_t at) const
    {
        return running.mean ? float2{running.mean[at], running.var[at]} : float2{0, 0};
    }
    __device__ moments of(double sum, double squares, double rows, double count, float2 old) const
    {
        if (running.mean && rows <= 1) return {old.x, inverse_of((double)old.y, eps), 0};
        double first = count > 0 ? sum / count : 0;
        double variance = count > 0 ? squares / count - first * first : 0;
        if (variance < 0) variance = 0; /* rounding; a NaN stays one */
        return {(float)first, inverse_of(variance, eps), variance};
    }
    __device__ void write(int64_t at, const moments &m, double rows, float2 old) const
    {
        double momentum = running.momentum;
        mean[at] = m.mean;
        inverse[at] = m.inverse;
        if (!running.mean || rows <= 1) return;
        double unbiased = m.variance * rows / (rows - 1);
        running.mean[at] = (float)((1 - momentum) * (double)old.x + momentum * (double)m.mean);
        running.var[at] = (float)((1 - momentum) * (double)old.y + momentum * unbiased);
    }
    __device__ void operator()(
        const column_sums &m, int32_t segment, int32_t group, int32_t groups, int lane) const
    {
        int32_t per = m.c / groups;
        double rows = (double)m.at.rows_of(segment), sum = 0, squares = 0;
        for (int32_t i = group * per + lane; i < (group + 1) * per; i += WARP) {
            sum += m.sum[(int64_t)segment * m.c + i];
            squares += m.sum_ab[(int64_t)segment * m.c + i];
        }
        sum = group_sum(sum, WARP);
        squares = group_sum(squares, WARP);
        if (lane > 0) return;
        int64_t at = (int64_t)segment * groups + group;
        write(at, of(sum, squares, rows, rows * per, old(at)), rows, old(at));
    }
};

/* The coefficients of kernels/cpu/norm.c, of a channel; a and b are the group's sums. */
struct norm_coefficients {
    float k1, k2, k3;
    norm_coefficients() = default;
    __device__ norm_coefficients(double inverse, double weight, double a, double b, double count)
        : k1((float)(inverse * weight)), k2((float)(inverse * inverse * b / count)),
          k3((float)(inverse * a / count))
    {
    }
    __device__ __forceinline__ float gradient(float g, float x, float mean) const
    {
        return k1 * g - k2 * (x - mean) - k3;
    }
};

/* The sum of g x^ from those of g x and g. */
static __device__ __forceinline__ double centred(
    double sum_ab, double sum, double center, double inverse)
{
    return (sum_ab - center * sum) * inverse;
}

/* (+)= the sum over segments, in order. */
static __device__ __forceinline__ void write_sum(float *result, bool add, double total)
{
    *result = add ? *result + (float)total : (float)total;
}

/* gweight and gbias from the sums of all segments. */
void norm_finish(const column_sums &m, const pnet_norm_gradient &g);

/* One launch for few rows, channel by channel: the same bits as the kernels for many. false: not done, as the rows are
   too many, or the GPU is none for it. Not `training`: statistics are the running ones. */
bool norm_few_forward(const pnet_norm *n, const make_statistics &s, bool training, float *y);
bool norm_few_backward(const pnet_norm *n, const float *mean, const float *inverse,
    const pnet_norm_gradient *g, const norm_work &w);

#endif
