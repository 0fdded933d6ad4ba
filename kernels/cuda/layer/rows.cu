extern "C" {
#include "kernels/rows.h"
}
#include "kernels/cuda/base/dense.cuh"
#include "kernels/cuda/base/launch.cuh"

/* `packs` packs of each row, from a matrix of from_width packs a row, to another. */
template <class T, int V, bool ADD>
static __global__ void __launch_bounds__(THREADS) columns_kernel(struct pnet_count count,
    int32_t packs, int width, const T *from, int32_t from_width, T *to, int32_t to_width)
{
    int64_t rows = pnet_live(count);
    for (group g(width); g.row() < rows; g.next())
        for (int32_t i = g.lane; i < packs; i += width) {
            pack<V> v = load<V>(from, g.row() * from_width + i);
            if (ADD) {
                pack<V> old = load<V>(to, g.row() * to_width + i);
                for (int k = 0; k < V; k++) v.at[k] += old.at[k];
            }
            store<V>(to, g.row() * to_width + i, v);
        }
}

template <bool ADD>
static void columns(struct pnet_count rows, int32_t c, const float *from, int32_t from_width,
    float *to, int32_t to_width)
{
    int32_t all = c | from_width | to_width; /* a multiple of 4 or 8 where they are */
    if (rows.most == 0) return;
    by_form(
        rows.storage, all,
        [&](auto form) {
            using T = typename decltype(form)::T;
            const int V = decltype(form)::V;
            int lanes = group_width(c / V);
            unsigned blocks = group_blocks(rows.most, lanes);
            columns_kernel<T, V, ADD><<<blocks, THREADS, 0, pnet_cuda_stream()>>>(
                rows, c / V, lanes, as<T>(from), from_width / V, as<T>(to), to_width / V);
        },
        from, to);
}

extern "C" void pnet_cuda_columns_move(struct pnet_count rows, int32_t c, const float *x,
    int32_t x_width, int32_t x_at, bool add, float *y, int32_t y_width, int32_t y_at)
{
    const float *from = skip(x, x_at, rows.storage);
    float *to = skip(y, y_at, rows.storage);
    if (add)
        columns<true>(rows, c, from, x_width, to, y_width);
    else
        columns<false>(rows, c, from, x_width, to, y_width);
}

extern "C" void pnet_cuda_columns_put(
    struct pnet_count rows, int32_t c, const float *x, int32_t width, int32_t at, float *y)
{
    pnet_cuda_columns_move(rows, c, x, c, 0, false, y, width, at);
}

extern "C" void pnet_cuda_columns_take(struct pnet_count rows, int32_t c, const float *x,
    int32_t width, int32_t at, bool add, float *y)
{
    pnet_cuda_columns_move(rows, c, x, width, at, add, y, c, 0);
}

template <class T, class U>
static __global__ void __launch_bounds__(THREADS)
    convert_kernel(struct pnet_count n, const T *x, bool add, U *y)
{
    int64_t live = pnet_live(n), step = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < live; i += step) {
        float v = widen(x[i]);
        narrow(add ? widen(y[i]) + v : v, y + i);
    }
}

extern "C" void pnet_cuda_convert(
    struct pnet_count n, const float *x, enum pnet_storage to, bool add, float *y)
{
    if (n.most == 0) return;
    by_storage(n.storage, [&](auto from_form) {
        by_storage(to, [&](auto to_form) {
            using T = typename decltype(from_form)::T;
            using U = typename decltype(to_form)::T;
            convert_kernel<T, U>
                <<<blocks_for(divide_up(n.most, THREADS)), THREADS, 0, pnet_cuda_stream()>>>(
                    n, as<T>(x), add, as<U>(y));
        });
    });
}
