/* Kernels over single rows: a group of lanes has a row. It reads the row again, from the cache, instead of keeping it. */
#ifndef PNET_KERNELS_CUDA_NORM_ROWS_CUH
#define PNET_KERNELS_CUDA_NORM_ROWS_CUH

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/dense.cuh"
#include "kernels/count.h"

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

#endif
