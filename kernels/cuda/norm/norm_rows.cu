/* L2 norm and softmax, row by row. */
extern "C" {
#include "kernels/norm.h"
}
#include "kernels/cuda/norm/norm_rows.cuh"

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
