extern "C" {
#include "kernels/cuda/rows.h"
}
#include "kernels/cuda/dense.cuh"

/* `packs` packs of each row, from a matrix of from_width packs a row at column from_at, to another. */
template <int V, bool ADD>
static __global__ void __launch_bounds__(THREADS) columns_kernel(struct pnet_count count,
    int32_t packs, int width, const float *from, int32_t from_width, float *to, int32_t to_width)
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

template <int V>
static void columns(struct pnet_count rows, int32_t c, const float *from, int32_t from_width,
    bool add, float *to, int32_t to_width)
{
    int lanes = group_width(c / V);
    unsigned blocks = group_blocks(rows.most, lanes);
    if (rows.most == 0) return;
    if (add)
        columns_kernel<V, true><<<blocks, THREADS, 0, cudaStreamPerThread>>>(
            rows, c / V, lanes, from, from_width / V, to, to_width / V);
    else
        columns_kernel<V, false><<<blocks, THREADS, 0, cudaStreamPerThread>>>(
            rows, c / V, lanes, from, from_width / V, to, to_width / V);
}

extern "C" void pnet_cuda_columns_put(
    struct pnet_count rows, int32_t c, const float *x, int32_t width, int32_t at, float *y)
{
    if (width % 4 == 0 && fits_packs(c, x, y + at))
        columns<4>(rows, c, x, c, false, y + at, width);
    else
        columns<1>(rows, c, x, c, false, y + at, width);
}

extern "C" void pnet_cuda_columns_take(struct pnet_count rows, int32_t c, const float *x,
    int32_t width, int32_t at, bool add, float *y)
{
    if (width % 4 == 0 && fits_packs(c, x + at, y))
        columns<4>(rows, c, x + at, width, add, y, c);
    else
        columns<1>(rows, c, x + at, width, add, y, c);
}
