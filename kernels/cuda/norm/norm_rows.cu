/* Norms of single rows: layer norm, l2 norm, softmax. A group of lanes has a row. It reads the row again, from the cache,
   instead of keeping it. */
extern "C" {
#include "kernels/norm.h"
}
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/norm/columns.cuh"

/* Parameters of a launch of a kernel over rows of packs. */
struct row_launch {
    int32_t packs;
    int width;
    unsigned blocks;
};

/* Calls f(form, launch) for rows of c numbers at these places. */
template <class F, class... P>
static void by_rows(struct pnet_count rows, int32_t c, F f, const P *...p)
{
    if (rows.most == 0) return;
    by_form(
        rows.storage, c,
        [&](auto form) {
            row_launch l = {c / decltype(form)::V, 0, 0};
            l.width = group_width(l.packs);
            l.blocks = group_blocks(rows.most, l.width);
            f(form, l);
        },
        p...);
}

/* Calls f(column, pack) for the lane's packs of a row. */
template <int V, class T, class F>
static __device__ __forceinline__ void each_pack(const group &g, int32_t packs, const T *x, F f)
{
    for (int32_t i = g.lane; i < packs; i += g.width) f(i, load<V>(x, g.row() * packs + i));
}

/* Writes v to the row, or adds it. */
template <int V, class T>
static __device__ __forceinline__ void put(T *y, int64_t place, pack<V> v, bool add)
{
    if (add) {
        pack<V> old = load<V>(y, place);
        for (int k = 0; k < V; k++) v.at[k] += old.at[k];
    }
    store<V>(y, place, v);
}

template <int V, class T>
static __device__ __forceinline__ float2 moments_of(
    const group &g, bool there, int32_t packs, double eps, const T *x)
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

template <class T, int V>
static __global__ void __launch_bounds__(THREADS)
    layernorm_kernel(struct pnet_count count, int32_t packs, int width, double eps, const T *x,
        const float *weight, const float *bias, float below, T *y)
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
    by_rows(
        rows, c,
        [&](auto form, const row_launch &l) {
            using T = typename decltype(form)::T;
            layernorm_kernel<T, decltype(form)::V><<<l.blocks, THREADS, 0, pnet_cuda_stream()>>>(
                rows, l.packs, l.width, eps, as<T>(x), weight, bias, below, as<T>(y));
        },
        x, y);
}

template <class T, int V>
static __global__ void __launch_bounds__(THREADS) moments_kernel(
    struct pnet_count count, int32_t packs, int width, double eps, const T *x, float2 *moments)
{
    int64_t rows = pnet_live(count);
    for (group g(width); g.base < rows; g.next()) {
        bool there = g.row() < rows;
        float2 m = moments_of<V>(g, there, packs, eps, x);
        if (there && g.lane == 0) moments[g.row()] = m;
    }
}

/* gx = inverse (g weight - A - x^ B), A and B the means of g weight and g weight x^ over the row. */
template <class T, int V>
static __global__ void __launch_bounds__(THREADS)
    layernorm_backward_kernel(struct pnet_count count, int32_t packs, int width, const T *x,
        const float *weight, const float2 *moments, const T *gout, bool add, T *gx)
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

/* Computes the gradients of weight and bias, [c] each, from sums. */
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

extern "C" void pnet_cuda_layernorm_backward(struct pnet_count rows, int32_t c, double eps,
    const float *x, const float *weight, const struct pnet_norm_gradient *g, void *work)
{
    float2 *moments = (float2 *)work;
    double *sum = (double *)(moments + rows.most);
    by_rows(
        rows, c,
        [&](auto form, const row_launch &l) {
            using T = typename decltype(form)::T;
            moments_kernel<T, decltype(form)::V><<<l.blocks, THREADS, 0, pnet_cuda_stream()>>>(
                rows, l.packs, l.width, eps, as<T>(x), moments);
        },
        x);
    if (g->gweight || g->gbias) {
        pnet_segments all = {rows.most, 1, nullptr, 1, rows.storage};
        column_sums m = {{all, rows, sum_chunks_of(c)}, c, g->gout, x, moments, sum, sum + c,
            sum + 2 * (int64_t)c, {}};
        sum_columns(m, c, finish_layernorm{*g});
    }
    if (!g->gx) return;
    by_rows(
        rows, c,
        [&](auto form, const row_launch &l) {
            using T = typename decltype(form)::T;
            layernorm_backward_kernel<T, decltype(form)::V>
                <<<l.blocks, THREADS, 0, pnet_cuda_stream()>>>(rows, l.packs, l.width, as<T>(x),
                    weight, moments, as<T>(g->gout), g->gx_add, as<T>(g->gx));
        },
        x, g->gout, g->gx);
}

template <class T, int V>
static __global__ void __launch_bounds__(THREADS)
    l2norm_kernel(struct pnet_count count, int32_t packs, int width, double eps, const T *x, T *y)
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
    by_rows(
        rows, c,
        [&](auto form, const row_launch &l) {
            using T = typename decltype(form)::T;
            l2norm_kernel<T, decltype(form)::V><<<l.blocks, THREADS, 0, pnet_cuda_stream()>>>(
                rows, l.packs, l.width, eps, as<T>(x), as<T>(y));
        },
        x, y);
}

/* gx = (g - y (y . g)) / |x|. Where |x| is below eps the divisor is constant: gx = g / eps. */
template <class T, int V>
static __global__ void __launch_bounds__(THREADS) l2norm_backward_kernel(struct pnet_count count,
    int32_t packs, int width, double eps, const T *x, const T *gout, bool add, T *gx)
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
    by_rows(
        rows, c,
        [&](auto form, const row_launch &l) {
            using T = typename decltype(form)::T;
            l2norm_backward_kernel<T, decltype(form)::V>
                <<<l.blocks, THREADS, 0, pnet_cuda_stream()>>>(
                    rows, l.packs, l.width, eps, as<T>(x), as<T>(g), add, as<T>(gx));
        },
        x, g, gx);
}

template <class T, int V>
static __global__ void __launch_bounds__(THREADS)
    softmax_kernel(struct pnet_count count, int32_t packs, int width, const T *x, T *y)
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
    by_rows(
        rows, c,
        [&](auto form, const row_launch &l) {
            using T = typename decltype(form)::T;
            softmax_kernel<T, decltype(form)::V><<<l.blocks, THREADS, 0, pnet_cuda_stream()>>>(
                rows, l.packs, l.width, as<T>(x), as<T>(y));
        },
        x, y);
}

template <class T, int V>
static __global__ void __launch_bounds__(THREADS) softmax_backward_kernel(
    struct pnet_count count, int32_t packs, int width, const T *y, const T *gout, bool add, T *gx)
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
    by_rows(
        rows, c,
        [&](auto form, const row_launch &l) {
            using T = typename decltype(form)::T;
            softmax_backward_kernel<T, decltype(form)::V>
                <<<l.blocks, THREADS, 0, pnet_cuda_stream()>>>(
                    rows, l.packs, l.width, as<T>(y), as<T>(g), add, as<T>(gx));
        },
        y, g, gx);
}
