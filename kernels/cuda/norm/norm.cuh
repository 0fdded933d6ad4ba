/* Batch, instance and group norm: the order in which all kernels add, and the statistics and coefficients computed from sums. */
#ifndef PNET_KERNELS_CUDA_NORM_CUH
#define PNET_KERNELS_CUDA_NORM_CUH

extern "C" {
#include "kernels/norm.h"
}
#include "kernels/cuda/norm/columns.cuh"

/* The order in which batch and instance norm add, in every kernel. Up to FEW_ROWS rows are cut into chunks of CHUNK_ROWS; more
   rows into so many chunks that chunks times tiles of TILE_CHANNELS channels are FEW_CHUNKS. The rows of a chunk go to 64
   lanes or more in turn, and lanes are added pair by pair, the upper half to the lower one. The chunks of a segment go to
   JOIN_LANES lanes in turn, which are added likewise. */
/* Rows of a chunk of `rows` rows. Does not fall where rows grow, up to FEW_ROWS and above it. */
static inline __host__ __device__ int64_t norm_chunk_size(int64_t rows, int32_t c)
{
    int32_t most = FEW_CHUNKS / norm_tiles(c);
    if (most < 1) most = 1;
    return rows > FEW_ROWS ? (rows + most - 1) / most : (int64_t)CHUNK_ROWS;
}

/* Workspace: two sums and two coefficients for each segment and channel, then the sums of chunks. */
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
    w.k2 = (float *)(w.part + norm_parts(n));
    w.k3 = w.k2 + m;
    return w;
}

/* Returns the factor by which an activation multiplies numbers below 0. */
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

/* Returns 1 / the standard deviation. */
static __device__ __forceinline__ float inverse_of(double variance, double eps)
{
    return (float)rsqrt(variance + eps);
}

struct moments {
    float mean, inverse;
    double variance; /* biased */
};

/* Computes mean and inverse from the sums of `count` numbers in `rows` rows and of their squares; for batch norm
   (running.mean is not NULL) also the other results that kernels/norm.h lists. `old` are the running statistics. */
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
        if (variance < 0) variance = 0; /* rounding can make it negative; a NaN stays */
        return {(float)first, inverse_of(variance, eps), variance};
    }
    /* Rounds both products, as the CPU does: the compiler could fuse either one, and sums half-way between two floats are
       not rare. */
    __device__ float moved(double old, double to) const
    {
        double momentum = running.momentum;
        return (float)__dadd_rn(__dmul_rn(1 - momentum, old), __dmul_rn(momentum, to));
    }
    __device__ void write(int64_t at, const moments &m, double rows, float2 old) const
    {
        mean[at] = m.mean;
        inverse[at] = m.inverse;
        if (!running.mean || rows <= 1) return;
        double unbiased = m.variance * rows / (rows - 1);
        running.mean[at] = moved((double)old.x, (double)m.mean);
        running.var[at] = moved((double)old.y, unbiased);
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

/* The coefficients of a channel, as in kernels/cpu/norm/norm.c; a and b are the group's sums. */
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

/* Returns the sum of g x^, from the sums of g x and of g. */
static __device__ __forceinline__ double centred(
    double sum_ab, double sum, double center, double inverse)
{
    return (sum_ab - center * sum) * inverse;
}

/* Writes the sum over segments, in order, or adds it to the result. */
static __device__ __forceinline__ void write_sum(float *result, bool add, double total)
{
    *result = add ? *result + (float)total : (float)total;
}

/* Adds pair by pair, the upper half to the lower one. Each step is a template, because a loop left the numbers in memory. */
template <int N> static __device__ __forceinline__ double add_pairs(const double (&v)[N])
{
    if constexpr (N == 1) {
        return v[0];
    } else {
        double sum[N / 2];
#pragma unroll
        for (int i = 0; i < N / 2; i++) sum[i] = v[i] + v[i + N / 2];
        return add_pairs(sum);
    }
}

/* Adds 2 N numbers, from `first` on, over 2 HALF lanes of a warp that are PIECES apart, pair by pair: two lanes exchange halves,
   and each continues with one half. Calls keep(i, sum) for each sum that a lane has at the end. */
template <int N, int HALF, int PIECES, class F>
static __device__ __forceinline__ void add_lanes(const double (&v)[2 * N], int first, F keep)
{
    if constexpr (HALF == 0) {
#pragma unroll
        for (int i = 0; i < 2 * N; i++) keep(first + i, v[i]);
    } else {
        bool up = threadIdx.x & (HALF * PIECES);
        double sum[N];
#pragma unroll
        for (int i = 0; i < N; i++) {
            double low = v[i], high = v[i + N];
            sum[i] = (up ? high : low) + __shfl_xor_sync(~0u, up ? low : high, HALF * PIECES);
        }
        if constexpr (N > 1) {
            add_lanes<N / 2, HALF / 2, PIECES>(sum, up ? first + N : first, keep);
        } else {
#pragma unroll
            for (int half = HALF / 2; half > 0; half /= 2)
                sum[0] += __shfl_xor_sync(~0u, sum[0], half * PIECES);
            keep(up ? first + 1 : first, sum[0]);
        }
    }
}

/* Computes gweight and gbias from the sums of all segments. */
void pnet_cuda_norm_finish(const column_sums &m, const pnet_norm_gradient &g);

/* Runs the norm of few rows, channel by channel, in one launch. Returns false, and does nothing, if there are too many rows
   or the GPU has no clusters. Without `training` the statistics are the running ones. */
bool pnet_cuda_norm_few_forward(
    const pnet_norm *n, const make_statistics &s, bool training, float *y);
bool pnet_cuda_norm_few_backward(const pnet_norm *n, const float *mean, const float *inverse,
    const pnet_norm_gradient *g, const norm_work &w);

/* Runs the norm of any number of rows in one launch, where groups == c; computes only statistics if y is NULL. */
void pnet_cuda_norm_many_forward(
    const pnet_norm *n, const make_statistics &s, float *y, const norm_work &w);
void pnet_cuda_norm_many_backward(const pnet_norm *n, const float *mean, const float *inverse,
    const pnet_norm_gradient *g, const norm_work &w);

#endif
