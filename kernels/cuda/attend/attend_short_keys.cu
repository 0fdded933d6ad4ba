/* The gradients of keys and values on features in 16 bits: keys and values stay, queries and the result's gradients come by. */
extern "C" {
#include "kernels/attend.h"
}
#include "kernels/cuda/attend/attend_kernels.h"
#include "kernels/cuda/attend/attend_group.cuh"
#include "kernels/cuda/base/launch.cuh"

enum { PAIR_BYTES = 2 * PASSING * (int)sizeof(float) };

/* A stage has queries, gradients, and their pairs: log_sum, then -D; infinity and 0 of queries that are not there. */
template <class F> struct key_stage {
    static const int BYTES = 2 * F::STAGE + (F::GROUP ? 1024 : PAIR_BYTES);
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

/* The same for all passing queries, by a group of warps. */
template <class F, class S, class O>
static __device__ __forceinline__ void add_by_group(const O &key, const O &value, S &turn, int rows,
    float factor, const char *stages, typename F::sums &of_keys, typename F::sums &of_values)
{
    typename F::products p, d;
    typename F::shares share[2] = {};
    const float *pair = NULL; /* of the lane's columns */
    step_through<F>(
        turn, rows,
        [&](uint32_t stage, int first) {
            begin_rows<F>(key, stage, first, p);
            begin_rows<F>(value, stage + F::STAGE, first, d);
            pair = reinterpret_cast<const float *>(stages + (stage - turn.base) + 2 * F::STAGE) +
                   first + (int)threadIdx.x % 4 * 2;
        },
        [&](int) {
            products_done(p);
            products_done(d);
#pragma unroll
            for (int n = 0; n < F::PARTS; n++) {
                float2 a = *reinterpret_cast<const float2 *>(pair + 8 * n);
                float2 b = *reinterpret_cast<const float2 *>(pair + PASSING + 8 * n);
                float less[2] = {a.x, a.y}, mean[2] = {b.x, b.y};
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    p[0][n][i] =
                        power2_of<F::EVERY>(4 * n + i, fmaf(p[0][n][i], factor, -less[i % 2]));
                    d[0][n][i] = (d[0][n][i] + mean[i % 2]) * p[0][n][i];
                }
            }
        },
        [&]() {
            products_done(of_keys);
            products_done(of_values);
            products_done(share[0]);
            products_done(share[1]);
            narrow_shares<F>(p, share[0]);
            narrow_shares<F>(d, share[1]);
        },
        [&](uint32_t stage, int first) {
            begin_sums<F>(share[0], stage + F::STAGE, first, of_values);
            begin_sums<F>(share[1], stage, first, of_keys);
        });
    products_done(of_keys);
    products_done(of_values);
}

template <class F>
static __device__ __forceinline__ void keys_tile(
    const struct attend_launch &l, const struct attend_gradient &g)
{
    using T = typename F::T;
    extern __shared__ __align__(1024) char stages[]; /* [STAGES], own keys, values */
    __shared__ struct scope_rows scope;
    if (!find_scope(l, SHORT_TILE, &scope)) return;
    struct head_channels o = channels_of(l, l.head + (int)blockIdx.y);
    float factor = (float)((double)l.a.scale * LOG2_E);
    uint32_t base = shared_at(stages);
    const T *qkv = stored_at<T>(g.qkv);
    const float *pair =
        g.pair + ((int64_t)blockIdx.y * gridDim.x + blockIdx.x - scope.tile) * 2 * SHORT_TILE;
    struct own_rows<F> own(scope, l.a.order);
    typename F::own key, value;
    typename F::sums of_keys = {}, of_values = {};
    for (int s = 0; s < F::STAGES; s++) fill_up<F>(stages + s * key_stage<F>::BYTES, 2);
    auto turn = stages_of<F, key_stage<F>::BYTES>(base, scope, l.a.order,
        passing_rows<T>{
            qkv + o.q, stored_at<T>(g.gout) + o.q, (int32_t)o.in, (int32_t)o.out, pair});
    if (turn.copies_only()) {
        turn.copy_all();
        return;
    }
    turn.begin();
    uint32_t kept_key = base + F::STAGES * key_stage<F>::BYTES,
             kept_value = kept_key + 2 * F::STAGE;
    if constexpr (F::KEPT) {
        copy_own<F>(kept_key, scope, l.a.order, qkv + o.k, (int32_t)o.in);
        copy_own<F>(kept_value, scope, l.a.order, qkv + o.v, (int32_t)o.in);
        kept_key += threadIdx.x / 128 * F::STAGE;
        kept_value += threadIdx.x / 128 * F::STAGE;
        own_wait<F>();
    } else {
        own.fetch(qkv + o.k, o.in, key);
        own.fetch(qkv + o.v, o.in, value);
    }
    if constexpr (F::KEPT) {
        add_by_group<F>(kept_key, kept_value, turn, scope.rows, factor, stages, of_keys, of_values);
    } else if constexpr (F::GROUP) {
        add_by_group<F>(key, value, turn, scope.rows, factor, stages, of_keys, of_values);
    } else {
        for (int left = scope.rows; left > 0; left -= PASSING) {
            turn.wait();
            const float *passing =
                reinterpret_cast<const float *>(stages + (turn.now - base) + 2 * F::STAGE);
#pragma unroll
            for (int first = 0; first < PASSING; first += F::COLUMNS) {
                if (left <= first) break;
                add_part<F>(key, value, turn.now, first, factor, passing, of_keys, of_values);
            }
            turn.next();
        }
        turn.end_all();
    }
    own.write(of_keys, l.a.scale, g.add, o.in, stored_at<T>(g.gqkv) + o.k);
    own.write(of_values, 1, g.add, o.in, stored_at<T>(g.gqkv) + o.v);
}

template <class F, int BLOCKS>
static __global__ void __launch_bounds__(F::BLOCK, BLOCKS)
    keys(const __grid_constant__ struct attend_launch l,
        const __grid_constant__ struct attend_gradient g)
{
    if constexpr (F::HERE) keys_tile<F>(l, g);
}

/* False: this GPU has no such kernel. */
template <class F, int BLOCKS>
static bool launch(const struct attend_launch *l, dim3 grid, const struct attend_gradient *g)
{
    const int bytes = F::STAGES * key_stage<F>::BYTES + (F::KEPT ? 4 * F::STAGE : 0);
    auto *kernel = keys<F, BLOCKS>;
    if (!runs_here<F>(kernel)) return false;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    kernel<<<grid, F::BLOCK, bytes, pnet_cuda_stream()>>>(*l, *g);
    return true;
}

template <class T>
static void by_width(const struct attend_launch *l, dim3 grid, const struct attend_gradient *g)
{
    switch (l->a.width) {
    case 8: launch<short_form<T, 8, 2, 16>, 4>(l, grid, g); break;
    case 16: launch<short_form<T, 16, 2, 16>, 4>(l, grid, g); break;
    case 32: launch<short_form<T, 32, 2, 16>, 2>(l, grid, g); break;
    case 64:
        if (!launch<group_form<T, 64, 64, 1>, 1>(l, grid, g))
            launch<short_form<T, 64, 2, 16>, 1>(l, grid, g);
        break;
    default:
        if (!launch<group_form<T, 128, 32, 1, true>, 1>(l, grid, g))
            launch<short_form<T, 128, 1, 16>, 1>(l, grid, g);
        break;
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
