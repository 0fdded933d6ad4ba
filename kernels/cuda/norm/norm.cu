extern "C" {
#include "kernels/act.h"
}
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/norm/norm.cuh"

extern "C" void pnet_cuda_segment_sums(struct pnet_segments s, int32_t c, const float *a,
    const float *b, double *sum, double *sum_ab, void *work)
{
    column_sums m = {
        {s, {}, sum_chunks_of(c)}, c, a, b, nullptr, sum, b ? sum_ab : nullptr, (double *)work, {}};
    sum_columns(m, 1, leave_sums{});
}

extern "C" void pnet_cuda_norm_statistics(
    const struct pnet_norm *n, double eps, float *mean, float *inverse, void *work)
{
    make_statistics s = {eps, mean, inverse, {}};
    norm_work w = norm_work_of(n, work);
    if (n->groups == n->c)
        pnet_cuda_norm_many_forward(n, s, nullptr, w);
    else
        sum_columns(sums_of(n, n->x, n->x, w), n->groups, s);
}

static __global__ void running_kernel(
    int32_t c, double eps, pnet_running running, float *mean, float *inverse)
{
    int32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= c) return;
    mean[i] = running.mean[i];
    inverse[i] = inverse_of((double)running.var[i], eps);
}

extern "C" void pnet_cuda_batchnorm_statistics(const struct pnet_norm *n, double eps, bool training,
    struct pnet_running running, float *mean, float *inverse, void *work)
{
    unsigned blocks = (unsigned)divide_up(n->c, THREADS);
    if (training)
        pnet_cuda_norm_many_forward(
            n, {eps, mean, inverse, running}, nullptr, norm_work_of(n, work));
    else
        running_kernel<<<blocks, THREADS, 0, pnet_cuda_stream()>>>(
            n->c, eps, running, mean, inverse);
}

/* The next two kernels go through the chunks of rows from the last one to the first, because the nearer cache still holds the
   rows summed last. Each thread keeps the coefficients of its columns in registers, and reads a few rows before it writes
   any; the compiler cannot reorder that, since the result may be the same memory. */
static __device__ chunk_rows mapped_rows(const pnet_norm &n, int rows)
{
    row_segments r = {n.segments, {}, MAP_CHUNKS};
    return chunk_rows(r, gridDim.x - 1 - blockIdx.x, r.chunk_size(rows));
}

template <class T, int V, bool SUM>
static __global__ void __launch_bounds__(THREADS)
    forward_kernel(pnet_norm n, tiling t, activated_norm of, T *y)
{
    const int ROWS = 4;
    column_place p(t, n.c / V);
    chunk_rows at = mapped_rows(n, ROWS * t.lanes);
    int32_t packs = n.c / V;
    if (!p.active) return;
    for (; at.begin < at.last; at.next()) {
        norm_columns<V> norm(of, n.c, at.segment, p.column);
        for (int64_t row = at.begin + p.lane; row < at.end; row += ROWS * t.lanes) {
            fetched<T, V> x[ROWS], added[ROWS];
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                int64_t from = row + r * t.lanes < at.end ? row + r * t.lanes : row;
                x[r] = fetch<V>((const T *)n.x, from * packs + p.column);
                if (SUM) added[r] = fetch<V>((const T *)n.added, from * packs + p.column);
            }
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                if (row + r * t.lanes >= at.end) break;
                pack<V> v = opened(x[r]), more = {};
                if (SUM) more = opened(added[r]);
                for (int i = 0; i < V; i++)
                    v.at[i] = SUM ? activated(norm.normal(i, v.at[i]) + more.at[i], of.below)
                                  : norm.of(i, v.at[i], of.below);
                store<V>(y, (row + r * t.lanes) * packs + p.column, v);
            }
        }
    }
}

extern "C" void pnet_cuda_norm_forward(
    const struct pnet_norm *n, const float *mean, const float *inverse, float *y, void *work)
{
    (void)work;
    unsigned chunks = (unsigned)chunks_of(n->segments.rows, MAP_CHUNKS);
    if (n->segments.rows == 0 || n->segments.count == 0) return;
    by_form(
        n->segments.storage, n->c,
        [&](auto form) {
            using T = typename decltype(form)::T;
            const int V = decltype(form)::V;
            tiling t = tile(n->c / V);
            dim3 grid(chunks, (unsigned)t.tiles);
            auto kernel = n->sum ? forward_kernel<T, V, true> : forward_kernel<T, V, false>;
            kernel<<<grid, THREADS, 0, pnet_cuda_stream()>>>(
                *n, t, activated_norm_of(n, mean, inverse), as<T>(y));
        },
        n->x, y, n->sum ? n->added : y);
}

extern "C" void pnet_cuda_norm(
    const struct pnet_norm *n, double eps, float *mean, float *inverse, float *y, void *work)
{
    make_statistics s = {eps, mean, inverse, {}};
    if (pnet_cuda_norm_few_forward(n, s, true, y)) return;
    if (n->groups == n->c) {
        pnet_cuda_norm_many_forward(n, s, y, norm_work_of(n, work));
        return;
    }
    pnet_cuda_norm_statistics(n, eps, mean, inverse, work);
    pnet_cuda_norm_forward(n, mean, inverse, y, work);
}

extern "C" void pnet_cuda_batchnorm(const struct pnet_norm *n, double eps, bool training,
    struct pnet_running running, float *mean, float *inverse, float *y, void *work)
{
    make_statistics s = {eps, mean, inverse, running};
    if (pnet_cuda_norm_few_forward(n, s, training, y)) return;
    if (training) {
        pnet_cuda_norm_many_forward(n, s, y, norm_work_of(n, work));
        return;
    }
    pnet_cuda_batchnorm_statistics(n, eps, training, running, mean, inverse, work);
    pnet_cuda_norm_forward(n, mean, inverse, y, work);
}

static __device__ void add_segments(
    const column_sums &m, const double *sum, bool add, float *result, int32_t channel)
{
    double total = 0;
    for (int32_t segment = 0; segment < m.at.s.count; segment++)
        total += sum[(int64_t)segment * m.c + channel];
    write_sum(result + channel, add, total);
}

static __device__ void finish_channel(
    const column_sums &m, const pnet_norm_gradient &g, int32_t channel)
{
    if (g.gweight) add_segments(m, m.sum_ab, g.gweight_add, g.gweight, channel);
    if (g.gbias) add_segments(m, m.sum, g.gbias_add, g.gbias, channel);
}

static __global__ void __launch_bounds__(THREADS) finish_kernel(column_sums m, pnet_norm_gradient g)
{
    int32_t channel = blockIdx.x * THREADS + threadIdx.x;
    if (channel < m.c) finish_channel(m, g, channel);
}

void pnet_cuda_norm_finish(const column_sums &m, const pnet_norm_gradient &g)
{
    if (g.gweight || g.gbias)
        finish_kernel<<<(unsigned)divide_up(m.c, THREADS), THREADS, 0, pnet_cuda_stream()>>>(m, g);
}

/* Makes coefficients for a single segment, whose sums are also the gradients of weight and bias. */
struct make_coefficients {
    const float *weight, *mean, *inverse;
    pnet_norm_gradient g;
    float *k2, *k3;
    __device__ void operator()(
        const column_sums &m, int32_t segment, int32_t group, int32_t groups, int lane) const
    {
        int32_t per = m.c / groups;
        int64_t rows = m.at.rows_of(segment), at = (int64_t)segment * groups + group;
        bool constant = rows <= g.constant_rows;
        double count = constant ? 1 : (double)rows * per, a = 0, b = 0;
        double center = (double)mean[at], v = (double)inverse[at];
        for (int32_t i = group * per + lane; i < (group + 1) * per; i += WARP) {
            int64_t k = (int64_t)segment * m.c + i;
            m.sum_ab[k] = centred(m.sum_ab[k], m.sum[k], center, v);
            a += m.sum[k] * (double)weight[i];
            b += m.sum_ab[k] * (double)weight[i];
        }
        a = constant ? 0 : group_sum(a, WARP);
        b = constant ? 0 : group_sum(b, WARP);
        for (int32_t i = group * per + lane; i < (group + 1) * per; i += WARP) {
            int64_t k = (int64_t)segment * m.c + i;
            norm_coefficients of(v, (double)weight[i], a, b, count);
            k2[k] = of.k2;
            k3[k] = of.k3;
            if (m.at.s.count == 1) finish_channel(m, g, i);
        }
    }
};

/* UNDO: goes back through the activation, whose result is computed again from x, since that reads less than the result does. */
template <class T, int V, bool UNDO>
static __global__ void __launch_bounds__(THREADS, 2) backward_kernel(
    pnet_norm n, tiling t, norm_work w, activated_norm made, const T *gout, bool add, T *gx)
{
    const int ROWS = 3;
    column_place p(t, n.c / V);
    chunk_rows at = mapped_rows(n, ROWS * t.lanes);
    int32_t packs = n.c / V;
    if (!p.active) return;
    for (; at.begin < at.last; at.next()) {
        norm_columns<V> norm(made, n.c, at.segment, p.column);
        norm_coefficients of[V];
        for (int i = 0; i < V; i++) {
            int64_t k = (int64_t)at.segment * n.c + p.column * V + i;
            of[i].k1 =
                norm.k[i]; /* a product of two floats is exact in double: rounded once either way */
            of[i].k2 = w.k2[k];
            of[i].k3 = w.k3[k];
        }
        for (int64_t row = at.begin + p.lane; row < at.end; row += ROWS * t.lanes) {
            fetched<T, V> x[ROWS], g[ROWS], old[ROWS];
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                int64_t from = row + r * t.lanes < at.end ? row + r * t.lanes : row,
                        place = from * packs + p.column;
                x[r] = fetch<V>((const T *)n.x, place);
                g[r] = fetch<V>(gout, place);
                if (add) old[r] = fetch<V>((const T *)gx, place);
            }
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                if (row + r * t.lanes >= at.end) break;
                pack<V> v = opened(x[r]), before = {},
                        u = UNDO ? norm.before(g[r], v, made.below) : opened(g[r]);
                if (add) before = opened(old[r]);
                for (int i = 0; i < V; i++) {
                    float w = of[i].gradient(u.at[i], v.at[i], norm.mean[i]);
                    u.at[i] = add ? before.at[i] + w : w;
                }
                store<V>(gx, (row + r * t.lanes) * packs + p.column, u);
            }
        }
    }
}

/* The gradient that remains for the norm once the residual's gradient is written. The sign of the activation's result depends
   on the residual too, and so cannot be computed from x. */
static pnet_norm_gradient before_sum(const pnet_norm *n, pnet_norm_gradient g)
{
    const pnet_segments &s = n->segments;
    const int64_t *live =
        s.splits ? s.splits + (int64_t)s.count * (s.stride > 1 ? s.stride : 1) : nullptr;
    struct pnet_count all = {s.rows * n->c, live, n->c, s.storage};
    enum pnet_activation act = g.out ? n->act : PNET_ACT_NONE;
    if (g.gadded && !g.gadded_add) {
        pnet_cuda_act_gradient(all, act, n->slope, g.out, g.gout, false, g.gadded);
        g.gout = g.gadded;
    } else {
        pnet_cuda_act_backward(all, act, n->slope, g.out, g.gout);
        if (g.gadded) pnet_cuda_scale(all, 1, g.gout, true, g.gadded);
    }
    g.out = nullptr;
    return g;
}

extern "C" void pnet_cuda_norm_backward(const struct pnet_norm *n, const float *mean,
    const float *inverse, const struct pnet_norm_gradient *gradient, void *work)
{
    norm_work w = norm_work_of(n, work);
    activated_norm made = activated_norm_of(n, mean, inverse);
    if (pnet_cuda_norm_few_backward(n, mean, inverse, gradient, w)) return;
    if (n->groups == n->c) {
        pnet_cuda_norm_many_backward(n, mean, inverse, gradient, w);
        return;
    }
    pnet_norm_gradient rest = n->sum ? before_sum(n, *gradient) : *gradient, *g = &rest;
    bool undo = g->out && n->act != PNET_ACT_NONE;
    column_sums m = sums_of(n, g->gout, n->x, w);
    if (undo) m.norm = made;
    unsigned chunks = (unsigned)chunks_of(n->segments.rows, MAP_CHUNKS);
    sum_columns(m, n->groups, make_coefficients{n->weight, mean, inverse, *g, w.k2, w.k3});
    if (n->segments.count != 1) pnet_cuda_norm_finish(m, *g);
    if (!g->gx || n->segments.rows == 0 || n->segments.count == 0) return;
    by_form(
        n->segments.storage, n->c,
        [&](auto form) {
            using T = typename decltype(form)::T;
            const int V = decltype(form)::V;
            tiling t = tile(n->c / V);
            dim3 grid(chunks, (unsigned)t.tiles);
            auto kernel = undo ? backward_kernel<T, V, true> : backward_kernel<T, V, false>;
            kernel<<<grid, THREADS, 0, pnet_cuda_stream()>>>(
                *n, t, w, made, as<T>(g->gout), g->gx_add, as<T>(g->gx));
        },
        n->x, g->gout, g->gx);
}
