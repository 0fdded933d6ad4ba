/* Normalisations of single rows: layer norm, l2 norm, softmax. A group of lanes has a row; it reads the row again
   rather than keep it, which the cache answers. */
extern "C" {
#include "kernels/cuda/norm.h"
}
#include "kernels/cuda/columns.cuh"

/* How a kernel over rows is launched. */
struct row_launch {
    bool packed;
    int32_t packs;
    int width;
    unsigned blocks;
};

template <class... P> static row_launch launch_of(struct pnet_count rows, int32_t c, const P *...p)
{
    row_launch l = {fits_packs(c, p...), 0, 0, 0};
    l.packs = l.packed ? c / 4 : c;
    l.width = group_width(l.packs);
    l.blocks = group_blocks(rows.most, l.width);
    return l;
}

/* Calls f(column, pack) for the lane's packs of a row. */
template <int V, class F>
static __device__ __forceinline__ void each_pack(const group &g, int32_t packs, const float *x, F f)
{
    for (int32_t i = g.lane; i < packs; i += g.width) f(i, load<V>(x, g.row() * packs + i));
}

/* Writes v to the row, or adds it. */
template <int V>
static __device__ __forceinline__ void put(float *y, int64_t place, pack<V> v, bool add)
{
    if (add) {
        pack<V> old = load<V>(y, place);
        for (int k = 0; k < V; k++) v.at[k] += old.at[k];
    }
    store<V>(y, place, v);
}

template <int V>
static __device__ __forceinline__ float2 moments_of(
    const group &g, bool there, int32_t packs, double eps, const float *x)
{
    double sum = 0, squares = 0, c = (double)packs * V;
    if (there)
        each_pack<V>(g, packs, x, [&](int32_t, pack<V> p) {
            for (int k = 0; k < V; k++) {
                sum += (double)p.at[k];
                squares += (double)p.at[k] * (double)p.at[k];
            }
        });
    double mean = group_sum(sum, g.width) / c;
    double variance = group_sum(squares, g.width) / c - mean * mean;
    if (variance < 0) variance = 0;
    return {(float)mean, (float)(1 / sqrt(variance + eps))};
}

template <int V>
static __global__ void __launch_bounds__(THREADS)
    layernorm_kernel(struct pnet_count count, int32_t packs, int width, double eps, const float *x,
        const float *weight, const float *bias, float below, float *y)
{
    int64_t rows = pnet_live(count);
    for (group g(width); g.base < rows; g.next()) {
        bool there = g.row() < rows;
        float2 m = moments_of<V>(g, there, packs, eps, x);
        if (!there) continue;
        each_pack<V>(g, packs, x, [&](int32_t i, pack<V> p) {
            for (int k = 0; k < V; k++) {
                float v = (p.at[k] - m.x) * m.y * weight[i * V + k] + bias[i * V + k];
                p.at[k] = v < 0 ? below * v : v;
            }
            store<V>(y, g.row() * packs + i, p);
        });
    }
}

extern "C" void pnet_cuda_layernorm(struct pnet_count rows, int32_t c, double eps, const float *x,
    const float *weight, const float *bias, enum pnet_activation act, float slope, float *y)
{
    float below = act == PNET_ACT_NONE ? 1 : act == PNET_ACT_LEAKY ? slope : 0;
    row_launch l = launch_of(rows, c, x, y);
    auto *kernel = l.packed ? layernorm_kernel<4> : layernorm_kernel<1>;
    if (rows.most)
        kernel<<<l.blocks, THREADS, 0, cudaStreamPerThread>>>(
            rows, l.packs, l.width, eps, x, weight, bias, below, y);
}

template <int V>
static __global__ void __launch_bounds__(THREADS) moments_kernel(
    struct pnet_count count, int32_t packs, int width, double eps, const float *x, float2 *moments)
{
    int64_t rows = pnet_live(count);
    for (group g(width); g.base < rows; g.next()) {
        bool there = g.row() < rows;
        float2 m = moments_of<V>(g, there, packs, eps, x);
        if (there && g.lane == 0) moments[g.row()] = m;
    }
}

/* gx = inverse (g weight - A - x^ B), A and B the means of g weight and g weight x^ over the row. */
template <int V>
static __global__ void __launch_bounds__(THREADS)
    layernorm_backward_kernel(struct pnet_count count, int32_t packs, int width, const float *x,
        const float *weight, const float2 *moments, const float *gout, bool add, float *gx)
{
    int64_t rows = pnet_live(count);
    for (group g(width); g.base < rows; g.next()) {
        bool there = g.row() < rows;
        float2 m = there ? moments[g.row()] : float2{0, 0};
        double a = 0, b = 0, c = (double)packs * V;
        if (there)
            each_pack<V>(g, packs, x, [&](int32_t i, pack<V> p) {
                pack<V> u = load<V>(gout, g.row() * packs + i);
                for (int k = 0; k < V; k++) {
                    double v = (double)u.at[k] * (double)weight[i * V + k];
                    a += v;
                    b += v * (double)((p.at[k] - m.x) * m.y);
                }
            });
        float mean_a = (float)(group_sum(a, width) / c), mean_b = (float)(group_sum(b, width) / c);
        if (!there) continue;
        each_pack<V>(g, packs, x, [&](int32_t i, pack<V> p) {
            pack<V> u = load<V>(gout, g.row() * packs + i);
            for (int k = 0; k < V; k++)
                p.at[k] =
                    m.y * (u.at[k] * weight[i * V + k] - mean_a - (p.at[k] - m.x) * m.y * mean_b);
            put<V>(gx, g.row() * packs + i, p, add);
        });
    }
}

/* Sums for weight and bias: [c] each. */
struct finish_layernorm {
    pnet_norm_gradient g;
    __device__ void operator()(
        const column_sums &m, int32_t, int32_t channel, int32_t, int lane) const
    {
        if (lane > 0) return;
        float weight = (float)m.sum_ab[channel], bias = (float)m.sum[channel];
        if (g.gweight) g.gweight[channel] = (g.gweight_add ? g.gweight[channel] : 0) + weight;
        if (g.gbias) g.gbias[channel] = (g.gbias_add ? g.gbias[channel] : 0) + bias;
    }
};

/* The moments of each row, the two sums of each channel, the sums of chunks. */
extern "C" size_t pnet_cuda_layernorm_backward_work(struct pnet_count rows, int32_t c)
{
    return (size_t)rows.most * sizeof(float2) +
           ((size_t)c * 2 + column_parts(rows.most, 1, c)) * sizeof(double);
}

extern "C" void pnet_cuda_layernorm_backward(struct pnet_count rows, int32_t c, double eps,
    const float *x, const float *weight, const struct pnet_norm_gradient *g, void *work)
{
    float2 *moments = (float2 *)work;
    double *sum = (double *)(moments + rows.most);
    row_launch l = launch_of(rows, c, x);
    auto *before = l.packed ? moments_kernel<4> : moments_kernel<1>;
    if (rows.most)
        before<<<l.blocks, THREADS, 0, cudaStreamPerThread>>>(
            rows, l.packs, l.width, eps, x, moments);
    if (g->gweight || g->gbias) {
        pnet_segments all = {rows.most, 1, nullptr, 1, rows.storage};
        column_sums m = {{all, rows, sum_chunks_of(c)}, c, g->gout, x, moments, sum, sum + c,
            sum + 2 * (int64_t)c};
        sum_columns(m, c, finish_layernorm{*g});
    }
    if (!g->gx || rows.most == 0) return;
    l = launch_of(rows, c, x, g->gout, g->gx);
    auto *kernel = l.packed ? layernorm_backward_kernel<4> : layernorm_backward_kernel<1>;
    kernel<<<l.blocks, THREADS, 0, cudaStreamPerThread>>>(
        rows, l.packs, l.width, x, weight, moments, g->gout, g->gx_add, g->gx);
}

template <int V>
static __global__ void __launch_bounds__(THREADS) l2norm_kernel(
    struct pnet_count count, int32_t packs, int width, double eps, const float *x, float *y)
{
    int64_t rows = pnet_live(count);
    for (group g(width); g.base < rows; g.next()) {
        bool there = g.row() < rows;
        double squares = 0;
        if (there)
            each_pack<V>(g, packs, x, [&](int32_t, pack<V> p) {
                for (int k = 0; k < V; k++) squares += (double)p.at[k] * (double)p.at[k];
            });
        double length = sqrt(group_sum(squares, width)), factor = 1 / (length < eps ? eps : length);
        if (!there) continue;
        each_pack<V>(g, packs, x, [&](int32_t i, pack<V> p) {
            for (int k = 0; k < V; k++) p.at[k] = (float)((double)p.at[k] * factor);
            store<V>(y, g.row() * packs + i, p);
        });
    }
}

extern "C" void pnet_cuda_l2norm(
    struct pnet_count rows, int32_t c, double eps, const float *x, float *y)
{
    row_launch l = launch_of(rows, c, x, y);
    auto *kernel = l.packed ? l2norm_kernel<4> : l2norm_kernel<1>;
    if (rows.most)
        kernel<<<l.blocks, THREADS, 0, cudaStreamPerThread>>>(rows, l.packs, l.width, eps, x, y);
}

/* gx = (g - y (y . g)) / |x|; below eps the divisor is constant: gx = g / eps. */
template <int V>
static __global__ void __launch_bounds__(THREADS) l2norm_backward_kernel(struct pnet_count count,
    int32_t packs, int width, double eps, const float *x, const float *gout, bool add, float *gx)
{
    int64_t rows = pnet_live(count);
    for (group g(width); g.base < rows; g.next()) {
        bool there = g.row() < rows;
        double squares = 0, dot = 0;
        if (there)
            each_pack<V>(g, packs, x, [&](int32_t i, pack<V> p) {
                pack<V> u = load<V>(gout, g.row() * packs + i);
                for (int k = 0; k < V; k++) {
                    squares += (double)p.at[k] * (double)p.at[k];
                    dot += (double)p.at[k] * (double)u.at[k];
                }
            });
        double length = sqrt(group_sum(squares, width));
        bool constant = length < eps;
        double factor = 1 / (constant ? eps : length);
        dot = group_sum(dot, width) * factor * factor;
        if (constant) dot = 0;
        if (!there) continue;
        each_pack<V>(g, packs, x, [&](int32_t i, pack<V> p) {
            pack<V> u = load<V>(gout, g.row() * packs + i);
            for (int k = 0; k < V; k++)
                p.at[k] = (float)(((double)u.at[k] - (double)p.at[k] * dot) * factor);
            put<V>(gx, g.row() * packs + i, p, add);
        });
    }
}

extern "C" void pnet_cuda_l2norm_backward(struct pnet_count rows, int32_t c, double eps,
    const float *x, const float *g, bool add, float *gx)
{
    row_launch l = launch_of(rows, c, x, g, gx);
    auto *kernel = l.packed ? l2norm_backward_kernel<4> : l2norm_backward_kernel<1>;
    if (rows.most)
        kernel<<<l.blocks, THREADS, 0, cudaStreamPerThread>>>(
            rows, l.packs, l.width, eps, x, g, add, gx);
}

template <int V>
static __global__ void __launch_bounds__(THREADS)
    softmax_kernel(struct pnet_count count, int32_t packs, int width, const float *x, float *y)
{
    int64_t rows = pnet_live(count);
    for (group g(width); g.base < rows; g.next()) {
        bool there = g.row() < rows;
        float top = -INFINITY;
        double sum = 0;
        if (there)
            each_pack<V>(g, packs, x, [&](int32_t, pack<V> p) {
                for (int k = 0; k < V; k++) top = fmaxf(top, p.at[k]);
            });
        top = group_max(top, width);
        if (there)
            each_pack<V>(g, packs, x, [&](int32_t, pack<V> p) {
                for (int k = 0; k < V; k++) sum += (double)expf(p.at[k] - top);
            });
        float factor = (float)(1 / group_sum(sum, width));
        if (!there) continue;
        each_pack<V>(g, packs, x, [&](int32_t i, pack<V> p) {
            for (int k = 0; k < V; k++) p.at[k] = expf(p.at[k] - top) * factor;
            store<V>(y, g.row() * packs + i, p);
        });
    }
}

extern "C" void pnet_cuda_softmax(struct pnet_count rows, int32_t c, const float *x, float *y)
{
    row_launch l = launch_of(rows, c, x, y);
    auto *kernel = l.packed ? softmax_kernel<4> : softmax_kernel<1>;
    if (rows.most)
        kernel<<<l.blocks, THREADS, 0, cudaStreamPerThread>>>(rows, l.packs, l.width, x, y);
}

template <int V>
static __global__ void __launch_bounds__(THREADS) softmax_backward_kernel(struct pnet_count count,
    int32_t packs, int width, const float *y, const float *gout, bool add, float *gx)
{
    int64_t rows = pnet_live(count);
    for (group g(width); g.base < rows; g.next()) {
        bool there = g.row() < rows;
        double sum = 0;
        if (there)
            each_pack<V>(g, packs, y, [&](int32_t i, pack<V> p) {
                pack<V> u = load<V>(gout, g.row() * packs + i);
                for (int k = 0; k < V; k++) sum += (double)p.at[k] * (double)u.at[k];
            });
        float dot = (float)group_sum(sum, width);
        if (!there) continue;
        each_pack<V>(g, packs, y, [&](int32_t i, pack<V> p) {
            pack<V> u = load<V>(gout, g.row() * packs + i);
            for (int k = 0; k < V; k++) p.at[k] = p.at[k] * (u.at[k] - dot);
            put<V>(gx, g.row() * packs + i, p, add);
        });
    }
}

extern "C" void pnet_cuda_softmax_backward(
    struct pnet_count rows, int32_t c, const float *y, const float *g, bool add, float *gx)
{
    row_launch l = launch_of(rows, c, y, g, gx);
    auto *kernel = l.packed ? softmax_backward_kernel<4> : softmax_backward_kernel<1>;
    if (rows.most)
        kernel<<<l.blocks, THREADS, 0, cudaStreamPerThread>>>(
            rows, l.packs, l.width, y, g, add, gx);
}
