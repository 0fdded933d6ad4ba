/* Attention on features in 16 bits, forward: queries stay, keys and values come by. */
extern "C" {
#include "kernels/attend.h"
}
#include "kernels/cuda/attend/attend_kernels.h"
#include "kernels/cuda/attend/attend_group.cuh"
#include "kernels/cuda/base/launch.cuh"

/* A row's powers are relative to the largest product at an earlier time, and are made anew where a lane's sum of them reaches
   this: 16 bits hold what is below, and most steps need not look for the largest. */
template <class T>
static constexpr float LIMIT = std::is_same<T, __half>::value ? 0x1p15f : 0x1p40f;

template <class F> struct softened {
    float top[F::M][2], sum[F::M][2]; /* `sum` of this lane alone */
    typename F::sums total;
};

/* Powers of 2 of factor * product, relative to the row's top, and the sums of this lane. `power` may be p. Returns whether all
   sums are below the limit. */
template <class F>
static __device__ __forceinline__ bool raise(float factor, const struct softened<F> &run,
    const typename F::products &p, typename F::products &power, float (&sum)[F::M][2])
{
    bool below = true;
#pragma unroll
    for (int m = 0; m < F::M; m++) {
        sum[m][0] = sum[m][1] = 0;
#pragma unroll
        for (int n = 0; n < F::PARTS; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                power[m][n][i] =
                    power2_of<F::EVERY>(4 * n + i, fmaf(p[m][n][i], factor, -run.top[m][i / 2]));
                sum[m][i / 2] += power[m][n][i];
            }
        below = below && sum[m][0] < LIMIT<typename F::T> && sum[m][1] < LIMIT<typename F::T>;
    }
    return below;
}

/* Brings rows whose sum reached the limit to their largest product. */
template <class F>
static __device__ __forceinline__ void bring_up(float factor, const typename F::products &p,
    const float (&sum)[F::M][2], struct softened<F> &run)
{
#pragma unroll
    for (int m = 0; m < F::M; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float top = p[m][0][2 * h] * factor;
#pragma unroll
            for (int n = 0; n < F::PARTS; n++)
                top = fmaxf(top, fmaxf(p[m][n][2 * h] * factor, p[m][n][2 * h + 1] * factor));
            top = quad_max(top);
            if (quad_max(sum[m][h] < LIMIT<typename F::T> ? 0 : 1) == 0) continue;
            float scale = power2(run.top[m][h] - top);
            run.top[m][h] = top;
            run.sum[m][h] *= scale;
#pragma unroll
            for (int n = 0; n < F::TILES; n++) {
                run.total[m][n][2 * h] *= scale;
                run.total[m][n][2 * h + 1] *= scale;
            }
        }
}

/* Products with rows that are not there become those whose power is 0. */
template <class F>
static __device__ __forceinline__ void leave_out(int left, float factor, typename F::products &p)
{
    int t = (int)threadIdx.x % 4;
    float least = factor < 0 ? INFINITY : -INFINITY;
#pragma unroll
    for (int m = 0; m < F::M; m++)
#pragma unroll
        for (int n = 0; n < F::PARTS; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (8 * n + 2 * t + i % 2 >= left) p[m][n][i] = least;
}

/* Takes COLUMNS passing rows, of which `left` are there. */
template <class F>
static __device__ __forceinline__ void attend_to(const typename F::own &query, uint32_t stage,
    int first, int left, float factor, struct softened<F> &run)
{
    typename F::products p;
    float sum[F::M][2];
    multiply_rows<F>(query, stage, first, from_zero, p);
    if (left < F::COLUMNS) leave_out<F>(left, factor, p);
    if (!__all_sync(~0u, raise<F>(factor, run, p, p, sum))) {
        multiply_rows<F>(query, stage, first, from_zero, p);
        if (left < F::COLUMNS) leave_out<F>(left, factor, p);
        bring_up<F>(factor, p, sum, run);
        raise<F>(factor, run, p, p, sum);
    }
#pragma unroll
    for (int m = 0; m < F::M; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) run.sum[m][h] += sum[m][h];
    add_rows<F>(p, stage + F::STAGE, first, run.total);
}

/* The same for all passing rows, by a group of warps. */
template <class F, class S>
static __device__ __forceinline__ void attend_by_group(
    const typename F::own &query, S &turn, int rows, float factor, struct softened<F> &run)
{
    typename F::products p, power;
    typename F::shares share = {};
    float sum[F::M][2];
    bool below = true;
    step_through<F>(
        turn, rows, [&](uint32_t stage, int first) { begin_rows<F>(query, stage, first, p); },
        [&](int left) {
            products_done(p);
            if (left < F::COLUMNS) leave_out<F>(left, factor, p);
            below = __all_sync(~0u, raise<F>(factor, run, p, power, sum));
        },
        [&]() {
            products_done(run.total);
            products_done(share);
            if (!below) {
                bring_up<F>(factor, p, sum, run);
                raise<F>(factor, run, p, power, sum);
            }
#pragma unroll
            for (int h = 0; h < 2; h++) run.sum[0][h] += sum[0][h];
            narrow_shares<F>(power, share);
        },
        [&](uint32_t stage, int first) {
            begin_sums<F>(share, stage + F::STAGE, first, run.total);
        });
    products_done(run.total);
}

template <class F>
static __device__ void finish(const struct attend_launch &l, int head,
    const struct own_rows<F> &own, struct softened<F> &run, typename F::T *out, float *log_sum)
{
#pragma unroll
    for (int m = 0; m < F::M; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float sum = quad_sum(run.sum[m][h]), part = 1 / sum;
#pragma unroll
            for (int n = 0; n < F::TILES; n++) {
                run.total[m][n][2 * h] *= part;
                run.total[m][n][2 * h + 1] *= part;
            }
            if (log_sum && threadIdx.x % 4 == 0 && own.row[m][h] >= 0)
                log_sum[(int64_t)own.row[m][h] * l.a.heads + head] = run.top[m][h] + log2f(sum);
        }
    own.write(run.total, 1, false, (int64_t)l.a.heads * F::D, out + (int64_t)head * F::D);
}

template <class F>
static __device__ __forceinline__ void attend_tile(
    const struct attend_launch &l, const typename F::T *qkv, typename F::T *out, float *log_sum)
{
    using T = typename F::T;
    extern __shared__ __align__(1024) char stages[]; /* [STAGES][keys, values] */
    __shared__ struct scope_rows scope;
    if (!find_scope(l, SHORT_TILE, &scope)) return;
    int head = l.head + (int)blockIdx.y;
    struct head_channels o = channels_of(l, head);
    float factor = (float)((double)l.a.scale * LOG2_E);
    uint32_t base = shared_at(stages);
    struct own_rows<F> own(scope, l.a.order);
    typename F::own query;
    struct softened<F> run = {
    };
    for (int m = 0; m < F::M; m++) run.top[m][0] = run.top[m][1] = -INFINITY;
    fill_up<F>(stages, 2 * F::STAGES);
    auto turn = stages_of<F, 2 * F::STAGE>(base, scope, l.a.order,
        passing_rows<T>{qkv + o.k, qkv + o.v, (int32_t)o.in, (int32_t)o.in, NULL});
    if (turn.copies_only()) {
        turn.copy_all();
        return;
    }
    turn.begin();
    own.fetch(qkv + o.q, o.in, query);
    if constexpr (F::GROUP) {
        attend_by_group<F>(query, turn, scope.rows, factor, run);
    } else {
        for (int left = scope.rows; left > 0; left -= PASSING) {
            turn.wait();
#pragma unroll
            for (int first = 0; first < PASSING; first += F::COLUMNS) {
                if (left <= first) break;
                attend_to<F>(query, turn.now, first, left - first, factor, run);
            }
            turn.next();
        }
        turn.end_all();
    }
    finish<F>(l, head, own, run, out, log_sum);
}

template <class F, int BLOCKS>
static __global__ void __launch_bounds__(F::BLOCK, BLOCKS)
    forward(const __grid_constant__ struct attend_launch l, const typename F::T *qkv,
        typename F::T *out, float *log_sum)
{
    if constexpr (F::HERE) attend_tile<F>(l, qkv, out, log_sum);
}

/* False: this GPU has no such kernel. */
template <class F, int BLOCKS>
static bool launch(
    const struct attend_launch *l, dim3 grid, const float *qkv, float *out, float *log_sum)
{
    const int bytes = F::STAGES * 2 * F::STAGE;
    auto *kernel = forward<F, BLOCKS>;
    if (!runs_here<F>(kernel)) return false;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    kernel<<<grid, F::BLOCK, bytes, pnet_cuda_stream()>>>(
        *l, as<typename F::T>(qkv), as<typename F::T>(out), log_sum);
    return true;
}

template <class T>
static void by_width(
    const struct attend_launch *l, dim3 grid, const float *qkv, float *out, float *log_sum)
{
    switch (l->a.width) {
    case 8: launch<short_form<T, 8, 2, 32, 8>, 4>(l, grid, qkv, out, log_sum); break;
    case 16: launch<short_form<T, 16, 2, 32, 8>, 4>(l, grid, qkv, out, log_sum); break;
    case 32: launch<short_form<T, 32, 2, 32>, 3>(l, grid, qkv, out, log_sum); break;
    case 64:
        if (!launch<group_form<T, 64, 32, 2>, 2>(l, grid, qkv, out, log_sum))
            launch<short_form<T, 64, 1, 32>, 2>(l, grid, qkv, out, log_sum);
        break;
    default:
        if (!launch<group_form<T, 128, 32, 1>, 1>(l, grid, qkv, out, log_sum))
            launch<short_form<T, 128, 1, 32>, 1>(l, grid, qkv, out, log_sum);
        break;
    }
}

void pnet_cuda_attend_short(
    const struct attend_launch *l, dim3 grid, const float *qkv, float *out, float *log_sum)
{
    if (l->a.rows.storage == PNET_STORE_BF16)
        by_width<__nv_bfloat16>(l, grid, qkv, out, log_sum);
    else
        by_width<__half>(l, grid, qkv, out, log_sum);
}
