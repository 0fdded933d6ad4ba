extern "C" {
#include "kernels/swiglu.h"
}
#include "kernels/cuda/base/dense.cuh"
#include "kernels/cuda/base/early.cuh"

/* Groups of `width` lanes take rows; a row of y has `packs` packs, one of x has as many gates, then as many values. */
template <class T, int V>
static __global__ void __launch_bounds__(THREADS)
    swiglu_kernel(struct pnet_count count, int32_t packs, int width, const T *x, T *y)
{
    let_next_come();
    wait_for_earlier();
    int64_t rows = pnet_live(count);
    for (group g(width); g.row() < rows; g.next())
        for (int32_t i = g.lane; i < packs; i += width) {
            pack<V> gate = load<V>(x, 2 * g.row() * packs + i),
                    value = load<V>(x, (2 * g.row() + 1) * packs + i), r;
            for (int k = 0; k < V; k++)
                r.at[k] = gate.at[k] / (1 + expf(-gate.at[k])) * value.at[k];
            store<V>(y, g.row() * packs + i, r);
        }
}

template <class T, int V, bool ADD>
static __global__ void __launch_bounds__(THREADS) swiglu_backward_kernel(
    struct pnet_count count, int32_t packs, int width, const T *x, const T *grad, T *gx)
{
    let_next_come();
    wait_for_earlier();
    int64_t rows = pnet_live(count);
    for (group g(width); g.row() < rows; g.next())
        for (int32_t i = g.lane; i < packs; i += width) {
            int64_t gate_at = 2 * g.row() * packs + i, value_at = gate_at + packs;
            pack<V> gate = load<V>(x, gate_at), value = load<V>(x, value_at),
                    from = load<V>(grad, g.row() * packs + i), to_gate = {}, to_value = {};
            if (ADD) {
                to_gate = load<V>(gx, gate_at);
                to_value = load<V>(gx, value_at);
            }
            for (int k = 0; k < V; k++) {
                float sigmoid = 1 / (1 + expf(-gate.at[k])), silu = gate.at[k] * sigmoid;
                float v = from.at[k] * value.at[k] * (sigmoid + silu * (1 - sigmoid)),
                      w = from.at[k] * silu;
                to_gate.at[k] = ADD ? to_gate.at[k] + v : v;
                to_value.at[k] = ADD ? to_value.at[k] + w : w;
            }
            store<V>(gx, gate_at, to_gate);
            store<V>(gx, value_at, to_value);
        }
}

extern "C" void pnet_cuda_swiglu(struct pnet_count rows, int32_t c, const float *x, float *y)
{
    if (rows.most == 0) return;
    by_form(
        rows.storage, c,
        [&](auto form) {
            using T = typename decltype(form)::T;
            const int V = decltype(form)::V;
            int32_t packs = c / V;
            int lanes = group_width(packs);
            launch_early(swiglu_kernel<T, V>, dim3(group_blocks(rows.most, lanes)), dim3(THREADS),
                0, 1, rows, packs, lanes, as<T>(x), as<T>(y));
        },
        x, y);
}

extern "C" void pnet_cuda_swiglu_backward(
    struct pnet_count rows, int32_t c, const float *x, const float *g, bool add, float *gx)
{
    if (rows.most == 0) return;
    by_form(
        rows.storage, c,
        [&](auto form) {
            using T = typename decltype(form)::T;
            const int V = decltype(form)::V;
            int32_t packs = c / V;
            int lanes = group_width(packs);
            auto *kernel =
                add ? swiglu_backward_kernel<T, V, true> : swiglu_backward_kernel<T, V, false>;
            launch_early(kernel, dim3(group_blocks(rows.most, lanes)), dim3(THREADS), 0, 1, rows,
                packs, lanes, as<T>(x), as<T>(g), as<T>(gx));
        },
        x, g, gx);
}
