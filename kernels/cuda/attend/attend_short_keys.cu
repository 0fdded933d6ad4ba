/* The gradients of keys and values on features in 16 bits: keys and values stay, queries and the result's gradients come by. */
extern "C" {
#include "kernels/attend.h"
}
#include "kernels/cuda/attend/attend_kernels.h"
#include "kernels/cuda/attend/attend_short.cuh"
#include "kernels/cuda/base/launch.cuh"

enum { PAIR_BYTES = 2 * PASSING * (int)sizeof(float), PAIR_COPIES = PAIR_BYTES / 16 };

/* A stage has queries, gradients, and their pairs: log_sum, then -D; infinity and 0 of queries that are not there. */
template <class F> struct key_stage {
    static const int BYTES = 2 * F::STAGE + PAIR_BYTES;
};

/* Adds what COLUMNS passing queries give. `pair` has their pairs. */
template <class F>
static __device__ __forceinline__ void add_part(const typename F::own &key,
    const typename F::own &value, uint32_t stage, int first, float factor, const float *pair,
    typename F::sums &of_keys, typename F::sums &of_values)
{
    typename F::products p, d;
    const float *at = pair + first + (int)threadIdx.x % 4 * 2;
    auto less_mean = [&](int, int n) {
        float2 mean = *reinterpret_cast<const float2 *>(at + PASSING + 8 * n);
        return four{{mean.x, mean.y, mean.x, mean.y}};
    };
    multiply_rows<F>(key, stage, first, from_zero, p);
    multiply_rows<F>(value, stage + F::STAGE, first, less_mean, d);
#pragma unroll
    for (int n = 0; n < F::PARTS; n++) {
        float2 two = *reinterpret_cast<const float2 *>(at + 8 * n);
        float less[2] = {two.x, two.y};
#pragma unroll
        for (int m = 0; m < F::M; m++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                p[m][n][i] = power2_of<F::EVERY>(4 * n + i, fmaf(p[m][n][i], factor, -less[i % 2]));
                d[m][n][i] *= p[m][n][i];
            }
    }
    add_rows<F>(p, stage + F::STAGE, first, of_values);
    add_rows<F>(d, stage, first, of_keys);
}

template <class F, int BLOCKS>
static __global__ void __launch_bounds__(F::THREADS, BLOCKS)
    keys(const __grid_constant__ struct attend_launch l,
        const __grid_constant__ struct attend_gradient g)
{
    using T = typename F::T;
    extern __shared__ __align__(128) char stages[];
    __shared__ struct scope_rows scope;
    if (!find_scope(l, SHORT_TILE, &scope)) return;
    struct head_channels o = channels_of(l, l.head + (int)blockIdx.y);
    float factor = (float)((double)l.a.scale * LOG2_E);
    uint32_t base = shared_at(stages);
    const T *qkv = stored_at<T>(g.qkv);
    const float *pair =
        g.pair + ((int64_t)blockIdx.y * gridDim.x + blockIdx.x - scope.tile) * 2 * SHORT_TILE;
    struct own_rows<F> own(scope, l.a.order);
    struct row_copies<F> copies(scope, l.a.order);
    typename F::own key, value;
    typename F::sums of_keys = {}, of_values = {};
    for (int s = 0; s < STAGES; s++) fill_up<F>(stages + s * key_stage<F>::BYTES, 2);
    uint32_t fill = base, end = base + STAGES * key_stage<F>::BYTES;
    const T *queries = qkv + o.q + copies.channel(),
            *grads = stored_at<T>(g.gout) + o.q + copies.channel();
    /* the first threads copy pairs, four numbers each: of log_sum, then of -D */
    int part = (int)threadIdx.x % (PAIR_COPIES / 2) * 4,
        half = (int)threadIdx.x / (PAIR_COPIES / 2), at = 0;
    auto begin_copies = [&]() {
        copies.copy(fill, queries, (int32_t)o.in);
        copies.copy(fill + F::STAGE, grads, (int32_t)o.out);
        if (half < 2 && at < scope.rows) /* a tile has pairs behind the scope's end too */
            copy16(fill + 2 * F::STAGE + (half * PASSING + part) * 4,
                pair + at / SHORT_TILE * 2 * SHORT_TILE + half * SHORT_TILE + at % SHORT_TILE +
                    part);
        at += PASSING;
        copies.next_stage();
        fill = fill + key_stage<F>::BYTES == end ? base : fill + key_stage<F>::BYTES;
    };
    for (int s = 0; s < STAGES - 1; s++) begin_copies();
    own.fetch(qkv + o.k, o.in, key);
    own.fetch(qkv + o.v, o.in, value);
    int stage = 0;
    for (int left = scope.rows; left > 0; left -= PASSING) {
        copies_wait<STAGES - 2>();
        __syncthreads();
        begin_copies();
        const float *passing = reinterpret_cast<const float *>(stages + stage + 2 * F::STAGE);
#pragma unroll
        for (int first = 0; first < PASSING; first += F::COLUMNS) {
            if (left <= first) break;
            add_part<F>(key, value, base + stage, first, factor, passing, of_keys, of_values);
        }
        stage = stage + key_stage<F>::BYTES == STAGES * key_stage<F>::BYTES
                    ? 0
                    : stage + key_stage<F>::BYTES;
    }
    copies_wait<0>();
    own.write(of_keys, l.a.scale, g.add, o.in, stored_at<T>(g.gqkv) + o.k);
    own.write(of_values, 1, g.add, o.in, stored_at<T>(g.gqkv) + o.v);
}

template <class F, int BLOCKS>
static void launch(const struct attend_launch *l, dim3 grid, const struct attend_gradient *g)
{
    const int bytes = STAGES * key_stage<F>::BYTES;
    auto *kernel = keys<F, BLOCKS>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    kernel<<<grid, F::THREADS, bytes, pnet_cuda_stream()>>>(*l, *g);
}

template <class T>
static void by_width(const struct attend_launch *l, dim3 grid, const struct attend_gradient *g)
{
    switch (l->a.width) {
    case 8: launch<short_form<T, 8, 2, 16>, 4>(l, grid, g); break;
    case 16: launch<short_form<T, 16, 2, 16>, 4>(l, grid, g); break;
    case 32: launch<short_form<T, 32, 2, 16>, 2>(l, grid, g); break;
    case 64: launch<short_form<T, 64, 2, 16>, 1>(l, grid, g); break;
    default: launch<short_form<T, 128, 1, 16>, 1>(l, grid, g); break;
    }
}

void pnet_cuda_attend_short_keys(
    const struct attend_launch *l, dim3 grid, const struct attend_gradient *g)
{
    if (l->a.rows.storage == PNET_STORE_BF16)
        by_width<__nv_bfloat16>(l, grid, g);
    else
        by_width<__half>(l, grid, g);
}
