/* Batch and instance norm of few rows in one launch each way. A block, or a cluster of them, has V channels of a segment:
   a thread loads all of its rows at once and keeps them, blocks exchange the sums of their chunks, and each thread writes results
   from the rows it kept. Sums follow the order of norm.cuh, so the bits do not depend on the capacity of a launch. */
#include "kernels/cuda/base/early.cuh"
#include "kernels/cuda/norm/norm.cuh"

#include <cooperative_groups.h>

enum {
    MOST_BLOCKS = 8,                      /* of a cluster, on every GPU that has clusters */
    FEW_SLOTS = FEW_CHUNKS / MOST_BLOCKS, /* chunks of a block, at most */
    MOST_THREADS = FEW_SLOTS * WARP,      /* of a block */
    ROWS = CHUNK_ROWS / WARP,             /* of a thread: a warp has a chunk */
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

namespace cg = cooperative_groups;

/* A thread's rows: every WARP-th row from `first` on, in one of the `all` chunks that have rows of the segment. The blocks
   of a cluster take chunks in turn. */
struct few_place {
    int begin, end, first, last; /* rows of the segment; rows of the thread */
    int blocks, rank, all, chunk, column, segment;
    __device__ explicit few_place(const pnet_segments &s)
        : blocks((int)gridDim.x), rank((int)blockIdx.x), column((int)blockIdx.y),
          segment((int)blockIdx.z)
    {
        begin = (int)pnet_segment_split(s, segment);
        end = (int)pnet_segment_split(s, segment + 1);
        int lane = (int)threadIdx.x % WARP;
        int whole = begin / CHUNK_ROWS;
        all = begin < end ? (end - 1) / CHUNK_ROWS - whole + 1 : 0;
        chunk = (int)threadIdx.x / WARP * blocks + rank;
        int start = (whole + chunk) * CHUNK_ROWS;
        first = (start > begin ? start : begin) + lane;
        last = start + CHUNK_ROWS < end ? start + CHUNK_ROWS : end;
        if (chunk >= all) last = first;
    }
    __device__ int rows() const
    {
        return end - begin;
    }
    __device__ bool has(int r) const
    {
        return first + r * WARP < last;
    }
    /* Returns a row's offset in packs; a row has `packs` packs. */
    __device__ int64_t place(int r, int packs) const
    {
        return (int64_t)(first + r * WARP) * packs + column;
    }
};

/* The thread's rows of a matrix; zeros for rows beyond the end. */
template <class T, int V>
static __device__ __forceinline__ void ask(
    const few_place &p, const T *x, int32_t packs, fetched<T, V> *rows)
{
#pragma unroll
    for (int r = 0; r < ROWS; r++) rows[r] = fetch_if<V>(p.has(r), x, p.place(r, packs));
}

/* Adds a lane's sums of a and of a b. */
template <class T, int V>
static __device__ __forceinline__ void add_few(
    const fetched<T, V> (&a)[ROWS], const fetched<T, V> (&b)[ROWS], double (&sum)[2 * V])
{
    static_assert(ROWS == 2, "a pair, as lanes are joined pair by pair");
    pack<V> u[ROWS], v[ROWS];
    for (int r = 0; r < ROWS; r++) u[r] = opened(a[r]), v[r] = opened(b[r]);
    for (int i = 0; i < V; i++) {
        sum[i] = (double)u[0].at[i] + (double)u[1].at[i] + 0; /* no -0 */
        sum[V + i] = (double)u[0].at[i] * (double)v[0].at[i];
        sum[V + i] += (double)u[1].at[i] * (double)v[1].at[i];
        sum[V + i] += 0;
    }
}

/* Sums of chunks, of a, then of a b. Every block of a cluster has the sums of all chunks. */
template <int V> struct few_parts {
    double at[FEW_CHUNKS][2 * V];
};

/* Waits until all blocks of the cluster run, before any of them writes to another's memory. */
static __device__ __forceinline__ void few_begin(const few_place &p)
{
    if (p.blocks > 1) cg::this_cluster().barrier_arrive();
}

/* Sends the sums of this warp's chunk to all blocks, and waits for theirs. */
template <int V>
static __device__ __forceinline__ void tell(
    const few_place &p, few_parts<V> &parts, const double (&sum)[2 * V])
{
    double *mine = parts.at[p.chunk];
    bool there = p.chunk < p.all;
    add_lanes<V, WARP / 2, 1>(sum, 0, [&](int i, double total) {
        if (there) mine[i] = total;
    });
    if (p.blocks == 1) {
        __syncthreads();
        return;
    }
    cg::cluster_group cluster = cg::this_cluster();
    __syncwarp();
    cluster.barrier_wait();
#pragma unroll 1
    for (int i = (int)threadIdx.x % WARP; i < 2 * V * p.blocks && there; i += WARP) {
        int block = i / (2 * V);
        if (block != p.rank)
            *cluster.map_shared_rank(mine + i % (2 * V), (unsigned)block) = mine[i % (2 * V)];
    }
    cluster.sync();
}

/* Adds the sums of all chunks of a column, with as many lanes as there are chunks; calls f(i, sums) once for column i. */
template <int V, class F>
static __device__ __forceinline__ void join_few(const few_place &p, const few_parts<V> &parts, F f)
{
    static_assert(JOIN_LANES == WARP, "chunks go to the lanes of a warp");
    int shift = p.all > WARP ? 5 : p.all > 1 ? 32 - __clz(p.all - 1) : 0, width = 1 << shift;
    int i = (int)threadIdx.x >> shift, lane = (int)threadIdx.x & (width - 1);
    double2 sum = {0, 0};
    for (int chunk = lane; chunk < p.all && i < V; chunk += WARP) {
        sum.x += parts.at[chunk][i];
        sum.y += parts.at[chunk][V + i];
    }
    sum.x = group_sum(sum.x, width);
    sum.y = group_sum(sum.y, width);
    if (i < V && lane == 0) f(i, sum);
}

template <class T, int V>
static __global__ void __launch_bounds__(MOST_THREADS)
    few_forward_kernel(pnet_norm n, make_statistics s, bool training, T *y)
{
    __shared__ few_parts<V> parts;
    __shared__ float2 old[V];
    __shared__ float weight[V];
    __shared__ norm_columns<V> norm;
    few_place p(n.segments);
    int32_t packs = n.c / V;
    few_begin(p);
    let_next_come();
    wait_for_earlier();
    if (threadIdx.x < V) {
        int32_t i = (int32_t)threadIdx.x, channel = p.column * V + i;
        old[i] = s.old(channel);
        weight[i] = n.weight[channel];
        norm.bias[i] = n.bias[channel];
    }
    fetched<T, V> x[ROWS], added[ROWS];
    ask<T, V>(p, (const T *)n.x, packs, x);
    if (n.sum) ask<T, V>(p, (const T *)n.added, packs, added);
    double sum[2 * V] = {};
    if (training) add_few<T, V>(x, x, sum);
    tell<V>(p, parts, sum);
    double rows = training ? (double)p.rows() : 0;
    join_few<V>(p, parts, [&](int i, double2 total) {
        moments m = s.of(total.x, total.y, rows, rows, old[i]);
        norm.mean[i] = m.mean;
        norm.k[i] = m.inverse * weight[i];
        if (p.rank == 0) s.write((int64_t)p.segment * n.c + p.column * V + i, m, rows, old[i]);
    });
    __syncthreads();
    float below = norm_below(n);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        if (!p.has(r)) break;
        pack<V> u = opened(x[r]), more = {};
        if (n.sum) more = opened(added[r]);
        for (int i = 0; i < V; i++) {
            float v = norm.normal(i, u.at[i]);
            u.at[i] = activated(n.sum ? v + more.at[i] : v, below);
        }
        store<V>(y, p.place(r, packs), u);
    }
}

/* Takes the gradients u back through the activation of a residual sum, if it has one. They are then the gradient of the
   residual. */
template <class T, int V>
static __device__ __forceinline__ void end_sum(
    const few_place &p, const pnet_norm_gradient &g, float below, int32_t packs, fetched<T, V> *u)
{
    T *gadded = (T *)g.gadded;
    if (g.out) {
        fetched<T, V> out[ROWS];
        ask<T, V>(p, (const T *)g.out, packs, out);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            pack<V> y = opened(out[r]);
            u[r] = closed<T, V>(gradient_before(u[r], below, [&](int i) { return y.at[i] > 0; }));
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS && gadded; r++) {
        if (!p.has(r)) break;
        pack<V> v = opened(u[r]), old = {};
        if (g.gadded_add) old = load<V>(gadded, p.place(r, packs));
        for (int i = 0; i < V && g.gadded_add; i++) v.at[i] = old.at[i] + v.at[i];
        store<V>(gadded, p.place(r, packs), v);
    }
}

template <class T, int V>
static __global__ void __launch_bounds__(MOST_THREADS) few_backward_kernel(
    pnet_norm n, activated_norm made, pnet_norm_gradient g, double *sums, double *sums_ab)
{
    __shared__ few_parts<V> parts;
    __shared__ float inverse[V], weight[V];
    __shared__ norm_columns<V> norm;
    __shared__ norm_coefficients coefficients[V];
    few_place p(n.segments);
    int32_t packs = n.c / V;
    few_begin(p);
    let_next_come();
    wait_for_earlier();
    if (threadIdx.x < V) {
        int32_t i = (int32_t)threadIdx.x, channel = p.column * V + i;
        int64_t at = (int64_t)p.segment * n.c + channel;
        weight[i] = n.weight[channel];
        inverse[i] = made.inverse[at];
        norm.mean[i] = made.mean[at];
        norm.k[i] = inverse[i] * weight[i];
        norm.bias[i] = n.bias[channel];
    }
    fetched<T, V> u[ROWS], v[ROWS];
    ask<T, V>(p, (const T *)g.gout, packs, u);
    ask<T, V>(p, (const T *)n.x, packs, v);
    if (n.sum) end_sum<T, V>(p, g, made.below, packs, u);
    __syncthreads();
    bool undo = g.out && !n.sum;
#pragma unroll
    for (int r = 0; r < ROWS && undo; r++)
        u[r] = closed<T, V>(norm.before(u[r], opened(v[r]), made.below));
    double sum[2 * V];
    add_few<T, V>(u, v, sum);
    tell<V>(p, parts, sum);
    join_few<V>(p, parts, [&](int i, double2 total) {
        int32_t channel = p.column * V + i;
        int64_t at = (int64_t)p.segment * n.c + channel;
        bool constant = p.rows() <= g.constant_rows;
        double inv = (double)inverse[i], w = (double)weight[i];
        double sum_ab = centred(total.y, total.x, (double)norm.mean[i], inv);
        /* sums of groups begin with 0, and 0 + -0 is 0 */
        coefficients[i] = norm_coefficients(inv, w, constant ? 0 : 0 + total.x * w,
            constant ? 0 : 0 + sum_ab * w, constant ? 1 : (double)p.rows());
        if (p.rank > 0) return;
        if (n.segments.count > 1) {
            sums[at] = total.x;
            sums_ab[at] = sum_ab;
        } else {
            if (g.gweight) write_sum(g.gweight + channel, g.gweight_add, sum_ab);
            if (g.gbias) write_sum(g.gbias + channel, g.gbias_add, total.x);
        }
    });
    __syncthreads();
    if (!g.gx) return;
    T *gx = (T *)g.gx;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        if (!p.has(r)) break;
        int64_t place = p.place(r, packs);
        pack<V> a = opened(u[r]), b = opened(v[r]), before = {};
        if (g.gx_add) before = load<V>(gx, place);
        for (int i = 0; i < V; i++) {
            float w = coefficients[i].gradient(a.at[i], b.at[i], norm.mean[i]);
            a.at[i] = g.gx_add ? before.at[i] + w : w;
        }
        store<V>(gx, place, a);
    }
}

#else /* without clusters: never launched */

template <class T, int V>
static __global__ void few_forward_kernel(pnet_norm, make_statistics, bool, T *)
{
}
template <class T, int V>
static __global__ void few_backward_kernel(
    pnet_norm, activated_norm, pnet_norm_gradient, double *, double *)
{
}

#endif

template <class K, class... A>
static bool launch_few(const pnet_norm &n, int V, K *kernel, A... arguments)
{
    int chunks = (int)divide_up(n.segments.rows, CHUNK_ROWS), blocks = 1, joining = 1;
    while (chunks > blocks * FEW_SLOTS) blocks *= 2;
    while (joining < chunks && joining < WARP) joining *= 2;
    int threads = (int)divide_up(chunks, blocks) * WARP;
    if (threads < V * joining) threads = V * joining;
    if (!comes_early(kernel)) return false; /* it has no clusters either */
    launch_early(kernel, dim3((unsigned)blocks, (unsigned)(n.c / V), (unsigned)n.segments.count),
        dim3((unsigned)(divide_up(threads, WARP) * WARP)), 0, blocks, arguments...);
    return true;
}

/* Calls f(form) if the kernels of this file can run the norm. Returns whether it did. */
template <class F, class... P> static bool by_few(const pnet_norm &n, F f, const P *...p)
{
    const int32_t most = 65535; /* blocks of a grid along y and z */
    bool done = false;
    if (n.segments.rows <= 0 || n.segments.rows > FEW_ROWS || n.groups != n.c ||
        n.segments.count <= 0 || n.segments.count > most)
        return false;
    by_form(
        n.segments.storage, n.c,
        [&](auto form) {
            const int V = decltype(form)::V;
            if constexpr (V > 1) done = n.c / V <= most && f(form);
        },
        p...);
    return done;
}

bool pnet_cuda_norm_few_forward(
    const pnet_norm *n, const make_statistics &s, bool training, float *y)
{
    return by_few(
        *n,
        [&](auto form) {
            using T = typename decltype(form)::T;
            const int V = decltype(form)::V;
            auto *kernel = few_forward_kernel<T, V>;
            return launch_few(*n, V, kernel, *n, s, training, as<T>(y));
        },
        n->x, y, n->sum ? n->added : y);
}

bool pnet_cuda_norm_few_backward(const pnet_norm *n, const float *mean, const float *inverse,
    const pnet_norm_gradient *g, const norm_work &w)
{
    const float *gx = g->gx, *gout = g->gout, *gadded = g->gadded;
    bool done = by_few(
        *n,
        [&](auto form) {
            using T = typename decltype(form)::T;
            const int V = decltype(form)::V;
            auto *kernel = few_backward_kernel<T, V>;
            return launch_few(
                *n, V, kernel, *n, activated_norm_of(n, mean, inverse), *g, w.sum, w.sum_ab);
        },
        n->x, gout, gx, gadded, n->sum ? g->out : gx);
    if (done && n->segments.count > 1) pnet_cuda_norm_finish(sums_of(n, gout, n->x, w), *g);
    return done;
}
