/* Batch and instance norm of few rows in one launch each way. A block, or a cluster of them, has V channels of a segment:
   a thread asks for all of its rows at once and keeps them, blocks tell each other the sums of their chunks, and what was
   kept is written. Everything is added as columns.cuh adds it: how many rows a launch has room for must not show in the
   bits. */
#include "kernels/cuda/norm.cuh"

#include <cooperative_groups.h>

enum {
    FEW_ROWS = 8192,                      /* at most: what a cluster's registers hold */
    FEW_CHUNKS = FEW_ROWS / CHUNK_ROWS,   /* at most */
    MOST_BLOCKS = 8,                      /* of a cluster, on every GPU that has clusters */
    FEW_SLOTS = FEW_CHUNKS / MOST_BLOCKS, /* chunks of a block, at most */
    MOST_THREADS = FEW_SLOTS * WARP,      /* of a block */
};
static_assert(FEW_CHUNKS <= SUM_CHUNKS / 8, "chunks would have more than CHUNK_ROWS rows");

/* The rows of a chunk go to `lanes` threads in turn, `rows` each at most; `width`, a power of 2, holds them. */
struct few_lanes {
    int lanes, width, rows;
};

/* No lanes: not for this kernel. From 64 lanes on each has a row, and the first step that adds them leaves 32 with two. */
static few_lanes few_lanes_of(int32_t packs)
{
    int lanes = tile(packs).lanes;
    if (lanes >= CHUNK_ROWS) lanes = WARP;
    if (lanes > WARP) return {0, 0, 0};
    few_lanes l = {lanes, 1, (int)divide_up(CHUNK_ROWS, lanes)};
    while (l.width < lanes) l.width *= 2;
    return l;
}

/* Threads of a block with rows in R registers each. */
template <int R> constexpr int few_threads = R > 4 ? MOST_THREADS / 2 : MOST_THREADS;

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

namespace cg = cooperative_groups;

/* A thread's rows: every lanes-th from `first` on, in one of the `all` chunks that a segment meets. Chunks go to a
   cluster's blocks in turn. */
struct few_place {
    int begin, end, first, last; /* the segment's rows, the thread's */
    int blocks, rank, all, chunk, column, segment;
    __device__ few_place(const pnet_segments &s, few_lanes l)
        : blocks((int)gridDim.x), rank((int)blockIdx.x), column((int)blockIdx.y),
          segment((int)blockIdx.z)
    {
        begin = (int)pnet_segment_split(s, segment);
        end = (int)pnet_segment_split(s, segment + 1);
        int lane = (int)threadIdx.x % l.width;
        int whole = begin / CHUNK_ROWS;
        all = begin < end ? (end - 1) / CHUNK_ROWS - whole + 1 : 0;
        chunk = (int)threadIdx.x / l.width * blocks + rank;
        int start = (whole + chunk) * CHUNK_ROWS;
        first = (start > begin ? start : begin) + lane;
        last = start + CHUNK_ROWS < end ? start + CHUNK_ROWS : end;
        if (chunk >= all || lane >= l.lanes) last = first;
    }
    __device__ int rows() const
    {
        return end - begin;
    }
    __device__ bool has(int r, few_lanes l) const
    {
        return first + r * l.lanes < last;
    }
    __device__ int64_t place(int r, few_lanes l, int packs) const
    {
        return (int64_t)(first + r * l.lanes) * packs + column;
    }
};

/* The thread's rows of a matrix; zeros for those that are not there. */
template <class T, int V, int R>
static __device__ __forceinline__ void ask(
    const few_place &p, few_lanes l, const T *x, int32_t packs, fetched<T, V> *rows)
{
#pragma unroll
    for (int r = 0; r < R; r++) rows[r] = fetch_if<V>(p.has(r, l), x, p.place(r, l, packs));
}

/* Sums of chunks, of a, then of a b. Every block of a cluster has them all. */
template <int V> struct few_parts {
    double at[FEW_CHUNKS][2 * V];
};

/* Adds 2 V numbers over `width` lanes, pair by pair: lanes hand each other the half that the other goes on with. Calls
   keep(i, sum) for what a lane ends up with. */
template <int V, class F>
static __device__ __forceinline__ void add_lanes(int width, double *v, F keep)
{
    int half = width / 2, first = 0, left = 2 * V;
#pragma unroll
    for (int n = V; n > 0; n /= 2) {
        if (half == 0) continue;
        bool up = threadIdx.x & half;
        for (int i = 0; i < n; i++) {
            double give = up ? v[i] : v[i + n];
            v[i] = (up ? v[i + n] : v[i]) + __shfl_xor_sync(~0u, give, half);
        }
        if (up) first += n;
        left = n;
        half /= 2;
    }
    for (; half > 0; half /= 2) v[0] += __shfl_xor_sync(~0u, v[0], half);
#pragma unroll
    for (int i = 0; i < V; i++)
        if (i < left) keep(first + i, v[i]);
}

/* Before anything is written to another block's memory: is it there? */
static __device__ __forceinline__ void few_begin(const few_place &p)
{
    if (p.blocks > 1) cg::this_cluster().barrier_arrive();
}

/* Tells all blocks the sums of this thread's chunk, and waits for theirs. */
template <int V>
static __device__ __forceinline__ void tell(
    const few_place &p, few_lanes l, few_parts<V> &parts, double *sum)
{
    cg::cluster_group cluster = cg::this_cluster();
    if (p.blocks > 1) cluster.barrier_wait();
    add_lanes<V>(l.width, sum, [&](int i, double total) {
        if (p.chunk >= p.all) return;
        if (p.blocks == 1) parts.at[p.chunk][i] = total;
        for (int block = 0; block < p.blocks && p.blocks > 1; block++)
            *cluster.map_shared_rank(&parts.at[p.chunk][i], (unsigned)block) = total;
    });
    if (p.blocks > 1)
        cluster.sync();
    else
        __syncthreads();
}

/* The sums of all chunks of a column each, by as many lanes as there are chunks; f(i, sums) is called once for column i. */
template <int V, class F>
static __device__ __forceinline__ void join_few(const few_place &p, const few_parts<V> &parts, F f)
{
    static_assert(JOIN_LANES == WARP, "a lane joins as a thread of join_chunks does");
    int width = 1;
    while (width < p.all && width < WARP) width *= 2;
    int i = (int)threadIdx.x / width, lane = (int)threadIdx.x % width;
    double2 sum = {0, 0};
    for (int chunk = lane; chunk < p.all && i < V; chunk += WARP) {
        sum.x += parts.at[chunk][i];
        sum.y += parts.at[chunk][V + i];
    }
    sum.x = group_sum(sum.x, width);
    sum.y = group_sum(sum.y, width);
    if (i < V && lane == 0) f(i, sum);
}

template <class T, int V, int R>
static __global__ void __launch_bounds__(few_threads<R>, 1)
    few_forward_kernel(pnet_norm n, few_lanes l, make_statistics s, bool training, T *y)
{
    __shared__ few_parts<V> parts;
    __shared__ float2 old[V];
    __shared__ float mean[V], k[V], weight[V], bias[V];
    few_place p(n.segments, l);
    int32_t packs = n.c / V;
    few_begin(p);
    if (threadIdx.x < V) {
        int32_t channel = p.column * V + (int32_t)threadIdx.x;
        old[threadIdx.x] = s.old(channel);
        weight[threadIdx.x] = n.weight[channel];
        bias[threadIdx.x] = n.bias[channel];
    }
    fetched<T, V> x[R], added[R];
    ask<T, V, R>(p, l, (const T *)n.x, packs, x);
    if (n.sum) ask<T, V, R>(p, l, (const T *)n.added, packs, added);
    double sum[2 * V] = {};
#pragma unroll
    for (int r = 0; r < R; r++) {
        if (r >= l.rows || !training) break;
        pack<V> v = opened(x[r]);
        for (int i = 0; i < V; i++) {
            double a = (double)v.at[i];
            sum[i] += a;
            sum[V + i] += a * a;
        }
    }
    tell<V>(p, l, parts, sum);
    double rows = training ? (double)p.rows() : 0;
    join_few<V>(p, parts, [&](int i, double2 total) {
        moments m = s.of(total.x, total.y, rows, rows, old[i]);
        mean[i] = m.mean;
        k[i] = m.inverse * weight[i];
        if (p.rank == 0) s.write((int64_t)p.segment * n.c + p.column * V + i, m, rows, old[i]);
    });
    __syncthreads();
    float below = norm_below(n);
#pragma unroll
    for (int r = 0; r < R; r++) {
        if (!p.has(r, l)) break;
        pack<V> u = opened(x[r]), more = {};
        if (n.sum) more = opened(added[r]);
        for (int i = 0; i < V; i++) {
            float v = normal_of(u.at[i], mean[i], k[i], bias[i]);
            u.at[i] = activated(n.sum ? v + more.at[i] : v, below);
        }
        store<V>(y, p.place(r, l, packs), u);
    }
}

/* Undoes a sum's activation, if there is one, in the gradients u, which are those of what was added. */
template <class T, int V, int R>
static __device__ __forceinline__ void end_sum(const few_place &p, few_lanes l,
    const pnet_norm_gradient &g, float below, int32_t packs, fetched<T, V> *u)
{
    T *gadded = (T *)g.gadded;
    if (g.out) {
        fetched<T, V> out[R];
        ask<T, V, R>(p, l, (const T *)g.out, packs, out);
#pragma unroll
        for (int r = 0; r < R; r++) {
            pack<V> y = opened(out[r]);
            u[r] = closed<T, V>(gradient_before(u[r], below, [&](int i) { return y.at[i] > 0; }));
        }
    }
#pragma unroll
    for (int r = 0; r < R && gadded; r++) {
        if (!p.has(r, l)) break;
        pack<V> v = opened(u[r]), old = {};
        if (g.gadded_add) old = load<V>(gadded, p.place(r, l, packs));
        for (int i = 0; i < V && g.gadded_add; i++) v.at[i] = old.at[i] + v.at[i];
        store<V>(gadded, p.place(r, l, packs), v);
    }
}

template <class T, int V, int R>
static __global__ void __launch_bounds__(few_threads<R>, 1) few_backward_kernel(pnet_norm n,
    few_lanes l, activated_norm made, pnet_norm_gradient g, double *sums, double *sums_ab)
{
    __shared__ few_parts<V> parts;
    __shared__ norm_columns<V> norm;
    __shared__ float inverse[V], weight[V];
    __shared__ norm_coefficients of[V];
    few_place p(n.segments, l);
    int32_t packs = n.c / V;
    few_begin(p);
    if (threadIdx.x < V) {
        int32_t i = (int32_t)threadIdx.x, channel = p.column * V + i;
        int64_t at = (int64_t)p.segment * n.c + channel;
        weight[i] = n.weight[channel];
        inverse[i] = made.inverse[at];
        norm.mean[i] = made.mean[at];
        norm.k[i] = inverse[i] * weight[i];
        norm.bias[i] = n.bias[channel];
    }
    fetched<T, V> u[R], v[R];
    ask<T, V, R>(p, l, (const T *)g.gout, packs, u);
    ask<T, V, R>(p, l, (const T *)n.x, packs, v);
    if (n.sum) end_sum<T, V, R>(p, l, g, made.below, packs, u);
    __syncthreads();
    bool undo = g.out && !n.sum;
    double sum[2 * V] = {};
#pragma unroll
    for (int r = 0; r < R; r++) {
        if (r >= l.rows) break;
        pack<V> b = opened(v[r]);
        if (undo) u[r] = closed<T, V>(norm.before(u[r], b, made.below));
        pack<V> a = opened(u[r]);
        for (int i = 0; i < V; i++) {
            double d = (double)a.at[i];
            sum[i] += d;
            sum[V + i] += d * (double)b.at[i];
        }
    }
    tell<V>(p, l, parts, sum);
    join_few<V>(p, parts, [&](int i, double2 total) {
        int32_t channel = p.column * V + i;
        int64_t at = (int64_t)p.segment * n.c + channel;
        bool constant = p.rows() <= g.constant_rows;
        double inv = (double)inverse[i], w = (double)weight[i];
        double sum_ab = centred(total.y, total.x, (double)norm.mean[i], inv);
        /* 0 + -0 is 0: where sums of groups begin */
        of[i] = norm_coefficients(inv, w, constant ? 0 : 0 + total.x * w,
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
    for (int r = 0; r < R; r++) {
        if (!p.has(r, l)) break;
        int64_t place = p.place(r, l, packs);
        pack<V> a = opened(u[r]), b = opened(v[r]), before = {};
        if (g.gx_add) before = load<V>(gx, place);
        for (int i = 0; i < V; i++) {
            float w = of[i].gradient(a.at[i], b.at[i], norm.mean[i]);
            a.at[i] = g.gx_add ? before.at[i] + w : w;
        }
        store<V>(gx, place, a);
    }
}

#else /* without clusters: never launched */

template <class T, int V, int R>
static __global__ void few_forward_kernel(pnet_norm, few_lanes, make_statistics, bool, T *)
{
}
template <class T, int V, int R>
static __global__ void few_backward_kernel(
    pnet_norm, few_lanes, activated_norm, pnet_norm_gradient, double *, double *)
{
}

#endif

/* Has the kernel been compiled for a GPU with clusters, and is this one? */
template <class K> static bool has_clusters(K *kernel)
{
    cudaFuncAttributes a;
    return cudaFuncGetAttributes(&a, kernel) == cudaSuccess && a.ptxVersion >= 90 &&
           a.binaryVersion >= 90;
}

template <class K, class... A>
static bool launch_few(const pnet_norm &n, int V, few_lanes l, K *kernel, A... arguments)
{
    int chunks = (int)divide_up(n.segments.rows, CHUNK_ROWS), blocks = 1, joining = 1;
    while (chunks > blocks * FEW_SLOTS) blocks *= 2;
    while (joining < chunks && joining < WARP) joining *= 2;
    int threads = (int)divide_up(chunks, blocks) * l.width;
    if (threads < V * joining) threads = V * joining;
    if (!has_clusters(kernel)) return false;
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {(unsigned)blocks, 1, 1};
    cudaLaunchConfig_t launch = {};
    launch.gridDim = dim3((unsigned)blocks, (unsigned)(n.c / V), (unsigned)n.segments.count);
    launch.blockDim = dim3((unsigned)(divide_up(threads, WARP) * WARP));
    launch.stream = cudaStreamPerThread;
    launch.attrs = &cluster;
    launch.numAttrs = blocks > 1;
    cudaLaunchKernelEx(&launch, kernel, arguments...);
    return true;
}

/* Calls f(form, R, lanes) where the kernels of this file can do it, R as a type; is it done? */
template <class F, class... P> static bool by_few(const pnet_norm &n, F f, const P *...p)
{
    const int32_t most_segments = 65535; /* of a grid */
    bool done = false;
    if (n.segments.rows <= 0 || n.segments.rows > FEW_ROWS || n.groups != n.c ||
        n.segments.count <= 0 || n.segments.count > most_segments)
        return false;
    by_form(
        n.segments.storage, n.c,
        [&](auto form) {
            const int V = decltype(form)::V;
            few_lanes l = few_lanes_of(n.c / V);
            if constexpr (V > 1) {
                if (l.lanes == 0) return;
                if (l.rows > 4)
                    done = f(form, std::integral_constant<int, 8>(), l);
                else
                    done = f(form, std::integral_constant<int, 4>(), l);
            }
        },
        p...);
    return done;
}

bool norm_few_forward(const pnet_norm *n, const make_statistics &s, bool training, float *y)
{
    return by_few(
        *n,
        [&](auto form, auto rows, few_lanes l) {
            using T = typename decltype(form)::T;
            const int V = decltype(form)::V;
            auto *kernel = few_forward_kernel<T, V, decltype(rows)::value>;
            return launch_few(*n, V, l, kernel, *n, l, s, training, as<T>(y));
        },
        n->x, y, n->sum ? n->added : y);
}

bool norm_few_backward(const pnet_norm *n, const float *mean, const float *inverse,
    const pnet_norm_gradient *g, const norm_work &w)
{
    const float *gx = g->gx, *gout = g->gout, *gadded = g->gadded;
    bool done = by_few(
        *n,
        [&](auto form, auto rows, few_lanes l) {
            using T = typename decltype(form)::T;
            const int V = decltype(form)::V;
            auto *kernel = few_backward_kernel<T, V, decltype(rows)::value>;
            return launch_few(
                *n, V, l, kernel, *n, l, activated_norm_of(n, mean, inverse), *g, w.sum, w.sum_ab);
        },
        n->x, gout, gx, gadded, n->sum ? g->out : gx);
    if (done && n->segments.count > 1) norm_finish(sums_of(n, gout, n->x, w), *g);
    return done;
}
