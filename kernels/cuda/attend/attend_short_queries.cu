/* The gradients of queries on features in 16 bits: queries stay, keys and values come by. */
extern "C" {
#include "kernels/attend.h"
}
#include "kernels/cuda/attend/attend_kernels.h"
#include "kernels/cuda/attend/attend_group.cuh"
#include "kernels/cuda/base/launch.cuh"

/* log_sum and -D of own rows. */
template <class F> struct own_pairs {
    float less[F::M][2], mean[F::M][2];
};

/* D from the gradient, which is there as an operand, and the result. */
template <class F>
static __device__ void find_pairs(const struct attend_launch &l, const struct attend_gradient &g,
    int head, const struct own_rows<F> &own, const typename F::own &grad,
    struct own_pairs<F> &pairs)
{
    using T = typename F::T;
    struct head_channels o = channels_of(l, head);
    float *pair = g.pair + ((int64_t)blockIdx.y * gridDim.x + blockIdx.x) * 2 * SHORT_TILE;
    typename F::own out;
    own.fetch(stored_at<T>(g.out) + o.q, o.out, out);
#pragma unroll
    for (int m = 0; m < F::M; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float sum = 0;
#pragma unroll
            for (int k = 0; k < F::STEPS; k++)
#pragma unroll
                for (int i = h; i < 4; i += 2) {
                    float2 a = widen_pair<T>(grad[m][k][i]), b = widen_pair<T>(out[m][k][i]);
                    sum = fmaf(a.x, b.x, fmaf(a.y, b.y, sum));
                }
            int32_t row = own.row[m][h];
            pairs.mean[m][h] = -quad_sum(sum);
            pairs.less[m][h] = row < 0 ? INFINITY : g.log_sum[(int64_t)row * l.a.heads + head];
            if (threadIdx.x % 4 == 0) {
                pair[own.place(m, h)] = pairs.less[m][h];
                pair[SHORT_TILE + own.place(m, h)] = pairs.mean[m][h];
            }
        }
}

/* Adds what COLUMNS passing rows give, of which `left` are there. */
template <class F>
static __device__ __forceinline__ void add_part(const typename F::own &query,
    const typename F::own &grad, uint32_t stage, int first, int left, float factor,
    const struct own_pairs<F> &pairs, typename F::sums &total)
{
    typename F::products p, d;
    int t = (int)threadIdx.x % 4;
    auto less_mean = [&](int m, int) {
        return four{{pairs.mean[m][0], pairs.mean[m][0], pairs.mean[m][1], pairs.mean[m][1]}};
    };
    multiply_rows<F>(query, stage, first, from_zero, p);
    multiply_rows<F>(grad, stage + F::STAGE, first, less_mean, d);
#pragma unroll
    for (int m = 0; m < F::M; m++)
#pragma unroll
        for (int n = 0; n < F::PARTS; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                p[m][n][i] = power2_of<F::EVERY>(
                                 4 * n + i, fmaf(p[m][n][i], factor, -pairs.less[m][i / 2])) *
                             d[m][n][i];
    if (left < F::COLUMNS) { /* rows that are not there */
#pragma unroll
        for (int m = 0; m < F::M; m++)
#pragma unroll
            for (int n = 0; n < F::PARTS; n++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    if (8 * n + 2 * t + i % 2 >= left) p[m][n][i] = 0;
    }
    add_rows<F>(p, stage, first, total);
}

/* The same for all passing rows, by a group of warps. */
template <class F, class S>
static __device__ __forceinline__ void add_by_group(const typename F::own &query,
    const typename F::own &grad, S &turn, int rows, float factor, const struct own_pairs<F> &pairs,
    typename F::sums &total)
{
    typename F::products p, d;
    typename F::shares share = {};
    int t = (int)threadIdx.x % 4;
    step_through<F>(
        turn, rows,
        [&](uint32_t stage, int first) {
            begin_rows<F>(query, stage, first, p);
            begin_rows<F>(grad, stage + F::STAGE, first, d);
        },
        [&](int left) {
            products_done(p);
            products_done(d);
#pragma unroll
            for (int n = 0; n < F::PARTS; n++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    p[0][n][i] = power2_of<F::EVERY>(
                                     4 * n + i, fmaf(p[0][n][i], factor, -pairs.less[0][i / 2])) *
                                 (d[0][n][i] + pairs.mean[0][i / 2]);
            if (left < F::COLUMNS) /* rows that are not there */
#pragma unroll
                for (int n = 0; n < F::PARTS; n++)
#pragma unroll
                    for (int i = 0; i < 4; i++)
                        if (8 * n + 2 * t + i % 2 >= left) p[0][n][i] = 0;
        },
        [&]() {
            products_done(total);
            products_done(share);
            narrow_shares<F>(p, share);
        },
        [&](uint32_t stage, int first) { begin_sums<F>(share, stage, first, total); });
    products_done(total);
}

template <class F>
static __device__ __forceinline__ void queries_tile(
    const struct attend_launch &l, const struct attend_gradient &g)
{
    using T = typename F::T;
    extern __shared__ __align__(1024) char stages[]; /* [STAGES][keys, values] */
    __shared__ struct scope_rows scope;
    if (!find_scope(l, SHORT_TILE, &scope)) return;
    int head = l.head + (int)blockIdx.y;
    struct head_channels o = channels_of(l, head);
    float factor = (float)((double)l.a.scale * LOG2_E);
    uint32_t base = shared_at(stages);
    const T *qkv = stored_at<T>(g.qkv);
    struct own_rows<F> own(scope, l.a.order);
    struct own_pairs<F> pairs;
    typename F::own query, grad;
    typename F::sums total = {};
    fill_up<F>(stages, 2 * F::STAGES);
    auto turn = stages_of<F, 2 * F::STAGE>(base, scope, l.a.order,
        passing_rows<T>{qkv + o.k, qkv + o.v, (int32_t)o.in, (int32_t)o.in, NULL});
    if (turn.copies_only()) {
        turn.copy_all();
        return;
    }
    turn.begin();
    own.fetch(qkv + o.q, o.in, query);
    own.fetch(stored_at<T>(g.gout) + o.q, o.out, grad);
    find_pairs<F>(l, g, head, own, grad, pairs);
    if constexpr (F::GROUP) {
        add_by_group<F>(query, grad, turn, scope.rows, factor, pairs, total);
    } else {
        for (int left = scope.rows; left > 0; left -= PASSING) {
            turn.wait();
#pragma unroll
            for (int first = 0; first < PASSING; first += F::COLUMNS) {
                if (left <= first) break;
                add_part<F>(query, grad, turn.now, first, left - first, factor, pairs, total);
            }
            turn.next();
        }
        turn.end_all();
    }
    own.write(total, l.a.scale, g.add, o.in, stored_at<T>(g.gqkv) + o.q);
}

template <class F, int BLOCKS>
static __global__ void __launch_bounds__(F::BLOCK, BLOCKS)
    queries(const __grid_constant__ struct attend_launch l,
        const __grid_constant__ struct attend_gradient g)
{
    if constexpr (F::HERE) queries_tile<F>(l, g);
}

/* False: this GPU has no such kernel. */
template <class F, int BLOCKS>
static bool launch(const struct attend_launch *l, dim3 grid, const struct attend_gradient *g)
{
    const int bytes = F::STAGES * 2 * F::STAGE;
    auto *kernel = queries<F, BLOCKS>;
    if (!runs_here<F>(kernel)) return false;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    kernel<<<grid, F::BLOCK, bytes, pnet_cuda_stream()>>>(*l, *g);
    return true;
}

template <class T>
static void by_width(const struct attend_launch *l, dim3 grid, const struct attend_gradient *g)
{
    switch (l->a.width) {
    case 8: launch<short_form<T, 8, 2, 32>, 4>(l, grid, g); break;
    case 16: launch<short_form<T, 16, 2, 32>, 4>(l, grid, g); break;
    case 32: launch<short_form<T, 32, 2, 16>, 3>(l, grid, g); break;
    case 64:
        if (!launch<group_form<T, 64, 64, 1>, 1>(l, grid, g))
            launch<short_form<T, 64, 1, 16>, 2>(l, grid, g);
        break;
    default:
        if (!launch<group_form<T, 128, 32, 1>, 1>(l, grid, g))
            launch<short_form<T, 128, 1, 16>, 1>(l, grid, g);
        break;
    }
}

void pnet_cuda_attend_short_queries(
    const struct attend_launch *l, dim3 grid, const struct attend_gradient *g)
{
    if (l->a.rows.storage == PNET_STORE_BF16)
        by_width<__nv_bfloat16>(l, grid, g);
    else
        by_width<__half>(l, grid, g);
}
