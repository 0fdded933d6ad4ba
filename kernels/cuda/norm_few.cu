/* Batch and instance norm of few rows in one launch each way. A cluster of blocks has V channels of a segment: its blocks
   sum chunks of rows in turn, tell each other, and write the chunks that they have summed, which the nearest cache still
   holds. Everything is added as columns.cuh adds it: how many rows a launch has room for must not show in the bits. */
#include "kernels/cuda/norm.cuh"

#include <cooperative_groups.h>

enum {
    FEW_ROWS = 8192, /* at most: behind them strided reads cost more than launches */
    MOST_BLOCKS = 8, /* of a cluster, on every GPU that has clusters */
    SLOTS = FEW_ROWS / CHUNK_ROWS / MOST_BLOCKS, /* chunks of a block */
    AT_ONCE = 4,                                 /* rows that a thread asks for before it goes on */
};
static_assert(
    FEW_ROWS / CHUNK_ROWS <= SUM_CHUNKS / 8, "chunks would have more than CHUNK_ROWS rows");

/* The rows of a chunk go to `lanes` threads in turn; `width`, a power of 2, holds them. */
struct few_lanes {
    int lanes, width;
};

/* No lanes: not for this kernel. From 64 lanes on each has a row, and the first step that adds them leaves 32 with two. */
static few_lanes few_lanes_of(int32_t packs)
{
    int lanes = tile(packs).lanes;
    if (lanes >= CHUNK_ROWS) lanes = WARP;
    if (lanes > WARP) return {0, 0};
    few_lanes l = {lanes, 1};
    while (l.width < lanes) l.width *= 2;
    return l;
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

namespace cg = cooperative_groups;

/* A block's chunks: of those that a segment meets, the rank-th of each `blocks`. */
struct few_chunks {
    int64_t begin, end; /* rows of the segment */
    int blocks, rank, count;
    __device__ few_chunks(const pnet_segments &s, int32_t segment)
        : begin(pnet_segment_split(s, segment)), end(pnet_segment_split(s, segment + 1)),
          blocks((int)gridDim.x), rank((int)blockIdx.x), count((all() - rank + blocks - 1) / blocks)
    {
    }
    __device__ int all() const
    {
        return begin < end ? (int)((end - 1) / CHUNK_ROWS - begin / CHUNK_ROWS + 1) : 0;
    }
    __device__ int64_t start(int slot) const
    {
        return (begin / CHUNK_ROWS + (int64_t)slot * blocks + rank) * CHUNK_ROWS;
    }
    __device__ int64_t first(int slot) const
    {
        return start(slot) > begin ? start(slot) : begin;
    }
    __device__ int64_t last(int slot) const
    {
        return start(slot) + CHUNK_ROWS < end ? start(slot) + CHUNK_ROWS : end;
    }
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

/* What blocks tell each other: sums of chunks. */
template <int V> struct few_parts {
    double at[SLOTS][2 * V]; /* of a, then of a b */
};

/* Sums a block's chunks: begin(r, row, there) asks for a row, end(r, a, b) then has V numbers of each of both, zeros where
   it is not there. */
template <int V, class F, class G>
static __device__ __forceinline__ void sum_few(
    const few_chunks &c, few_lanes l, few_parts<V> &parts, F begin, G end)
{
    int groups = WARP / l.width, lane = (int)threadIdx.x % l.width;
    int group = (int)(threadIdx.x % WARP) / l.width;
    for (int base = (int)(threadIdx.x / WARP) * groups; base < c.count;
         base += THREADS / WARP * groups) {
        int slot = base + group;
        bool active = slot < c.count && lane < l.lanes;
        int64_t last = active ? c.last(slot) : 0;
        double sum[2 * V] = {};
        for (int64_t row = active ? c.first(slot) + lane : 0; row < last;
             row += AT_ONCE * l.lanes) {
#pragma unroll
            for (int r = 0; r < AT_ONCE; r++) begin(r, row + r * l.lanes, row + r * l.lanes < last);
#pragma unroll
            for (int r = 0; r < AT_ONCE; r++) {
                pack<V> a, b;
                end(r, a, b);
                for (int i = 0; i < V; i++) {
                    double v = (double)a.at[i];
                    sum[i] += v;
                    sum[V + i] += v * (double)b.at[i];
                }
            }
        }
        add_lanes<V>(l.width, sum, [&](int i, double total) {
            if (slot < c.count) parts.at[slot][i] = total;
        });
    }
}

/* The sums of column i of all blocks, in every lane of a warp. */
template <int V>
static __device__ __forceinline__ double2 join_few(const few_chunks &c, few_parts<V> &parts, int i)
{
    static_assert(JOIN_LANES == WARP, "a lane joins as a thread of join_chunks does");
    cg::cluster_group cluster = cg::this_cluster();
    double2 sum = {0, 0};
    for (int chunk = (int)(threadIdx.x % WARP); chunk < c.all(); chunk += WARP) {
        const few_parts<V> *from = cluster.map_shared_rank(&parts, (unsigned)(chunk % c.blocks));
        sum.x += from->at[chunk / c.blocks][i];
        sum.y += from->at[chunk / c.blocks][V + i];
    }
    return {group_sum(sum.x, WARP), group_sum(sum.y, WARP)};
}

/* A block's rows, AT_ONCE of them together: begin(r, row, there) asks for each, then end(r, row) for those that are. */
template <class F, class G>
static __device__ __forceinline__ void each_few(const few_chunks &c, F begin, G end)
{
    for (int i = (int)threadIdx.x; i < c.count * CHUNK_ROWS; i += AT_ONCE * THREADS) {
        int64_t row[AT_ONCE];
#pragma unroll
        for (int r = 0; r < AT_ONCE; r++) {
            int at = i + r * THREADS, slot = at / CHUNK_ROWS;
            row[r] = c.start(slot) + at % CHUNK_ROWS;
            if (slot >= c.count || row[r] < c.begin || row[r] >= c.end) row[r] = -1;
        }
#pragma unroll
        for (int r = 0; r < AT_ONCE; r++) begin(r, row[r], row[r] >= 0);
#pragma unroll
        for (int r = 0; r < AT_ONCE; r++)
            if (row[r] >= 0) end(r, row[r]);
    }
}

template <class T, int V>
static __global__ void __launch_bounds__(THREADS, 2)
    few_forward_kernel(pnet_norm n, few_lanes l, make_statistics s, bool training, T *y)
{
    __shared__ few_parts<V> parts;
    __shared__ float mean[V], k[V], bias[V];
    int32_t column = (int32_t)blockIdx.y, segment = (int32_t)blockIdx.z, packs = n.c / V;
    few_chunks c(n.segments, segment);
    cg::cluster_group cluster = cg::this_cluster();
    const T *x = (const T *)n.x;
    fetched<T, V> v[AT_ONCE];
    auto ask = [&](int r, int64_t row, bool there) {
        /* read in any case: the compiler keeps loads of this kernel apart otherwise */
        v[r] = fetch<V>(x, (there ? row : c.begin) * packs + column);
        if (!there) v[r] = {};
    };
    if (training) {
        sum_few<V>(c, l, parts, ask, [&](int r, pack<V> &a, pack<V> &b) { a = b = opened(v[r]); });
        cluster.sync();
    }
    for (int i = (int)threadIdx.x / WARP; i < V; i += THREADS / WARP) {
        int32_t channel = column * V + i;
        double rows = training ? (double)(c.end - c.begin) : 0;
        double2 sum = training ? join_few<V>(c, parts, i) : double2{0, 0};
        if (threadIdx.x % WARP) continue;
        float2 of = s.of(sum.x, sum.y, rows, rows, (int64_t)segment * n.c + channel, c.rank == 0);
        mean[i] = of.x;
        k[i] = of.y * n.weight[channel];
        bias[i] = n.bias[channel];
    }
    __syncthreads();
    if (training) cluster.barrier_arrive();
    float below = norm_below(n);
    each_few(c, ask, [&](int r, int64_t row) {
        pack<V> u = opened(v[r]);
        for (int i = 0; i < V; i++)
            u.at[i] = activated(normal_of(u.at[i], mean[i], k[i], bias[i]), below);
        store<V>(y, row * packs + column, u);
    });
    if (training) cluster.barrier_wait(); /* others may be reading this block's parts */
}

template <class T, int V>
static __global__ void __launch_bounds__(THREADS) few_backward_kernel(pnet_norm n, few_lanes l,
    const float *mean, const float *inverse, pnet_norm_gradient g, double *sums, double *sums_ab)
{
    __shared__ few_parts<V> parts;
    __shared__ norm_coefficients of[V];
    int32_t column = (int32_t)blockIdx.y, segment = (int32_t)blockIdx.z, packs = n.c / V;
    few_chunks c(n.segments, segment);
    cg::cluster_group cluster = cg::this_cluster();
    float below = norm_below(n);
    bool undo = g.out;
    fetched<T, V> u[AT_ONCE], v[AT_ONCE], y[AT_ONCE];
    auto ask = [&](int r, int64_t row, bool there) {
        u[r] = fetch_if<V>(there, (const T *)g.gout, row * packs + column);
        v[r] = fetch_if<V>(there, (const T *)n.x, row * packs + column);
        y[r] = fetch_if<V>(there && undo, (const T *)g.out, row * packs + column);
    };
    auto before = [&](int r) {
        pack<V> after = opened(y[r]);
        return undo ? gradient_before(u[r], below, [&](int i) { return after.at[i] > 0; })
                    : opened(u[r]);
    };
    sum_few<V>(c, l, parts, ask, [&](int r, pack<V> &a, pack<V> &b) {
        a = before(r);
        b = opened(v[r]);
    });
    cluster.sync();
    for (int i = (int)threadIdx.x / WARP; i < V; i += THREADS / WARP) {
        int32_t channel = column * V + i;
        int64_t at = (int64_t)segment * n.c + channel, rows = c.end - c.begin;
        double2 sum = join_few<V>(c, parts, i);
        if (threadIdx.x % WARP) continue;
        bool constant = rows <= g.constant_rows;
        double v = (double)inverse[at], weight = (double)n.weight[channel];
        double sum_ab = centred(sum.y, sum.x, (double)mean[at], v);
        /* 0 + -0 is 0: where sums of groups begin */
        of[i] = norm_coefficients(v, weight, constant ? 0 : 0 + sum.x * weight,
            constant ? 0 : 0 + sum_ab * weight, constant ? 1 : (double)rows);
        if (c.rank > 0) continue;
        if (n.segments.count > 1) {
            sums[at] = sum.x;
            sums_ab[at] = sum_ab;
        } else {
            if (g.gweight) write_sum(g.gweight + channel, g.gweight_add, sum_ab);
            if (g.gbias) write_sum(g.gbias + channel, g.gbias_add, sum.x);
        }
    }
    __syncthreads();
    cluster.barrier_arrive();
    if (g.gx) {
        T *gx = (T *)g.gx;
        float m[V];
        for (int i = 0; i < V; i++) m[i] = mean[(int64_t)segment * n.c + column * V + i];
        fetched<T, V> olds[AT_ONCE];
        each_few(
            c,
            [&](int r, int64_t row, bool there) {
                ask(r, row, there);
                olds[r] = fetch_if<V>(there && g.gx_add, (const T *)gx, row * packs + column);
            },
            [&](int r, int64_t row) {
                pack<V> a = before(r), b = opened(v[r]), old = {};
                if (g.gx_add) old = opened(olds[r]);
                for (int i = 0; i < V; i++) {
                    float w = of[i].gradient(a.at[i], b.at[i], m[i]);
                    a.at[i] = g.gx_add ? old.at[i] + w : w;
                }
                store<V>(gx, row * packs + column, a);
            });
    }
    cluster.barrier_wait();
}

#else /* without clusters: never launched */

template <class T, int V>
static __global__ void few_forward_kernel(pnet_norm, few_lanes, make_statistics, bool, T *)
{
}
template <class T, int V>
static __global__ void few_backward_kernel(
    pnet_norm, few_lanes, const float *, const float *, pnet_norm_gradient, double *, double *)
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
static bool launch_few(const pnet_norm &n, int V, K *kernel, A... arguments)
{
    int64_t chunks = divide_up(n.segments.rows, CHUNK_ROWS);
    unsigned blocks = 1;
    while (blocks < MOST_BLOCKS && chunks > (int64_t)blocks * (THREADS / WARP)) blocks *= 2;
    if (!has_clusters(kernel)) return false;
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {blocks, 1, 1};
    cudaLaunchConfig_t launch = {};
    launch.gridDim = dim3(blocks, (unsigned)(n.c / V), (unsigned)n.segments.count);
    launch.blockDim = dim3(THREADS);
    launch.stream = cudaStreamPerThread;
    launch.attrs = &cluster;
    launch.numAttrs = 1;
    cudaLaunchKernelEx(&launch, kernel, arguments...);
    return true;
}

/* Calls f(form, lanes) where the kernels of this file can do it; is it done? */
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
            if constexpr (V > 1)
                if (l.lanes > 0) done = f(form, l);
        },
        p...);
    return done;
}

bool norm_few_forward(const pnet_norm *n, const make_statistics &s, bool training, float *y)
{
    return by_few(
        *n,
        [&](auto form, few_lanes l) {
            using T = typename decltype(form)::T;
            const int V = decltype(form)::V;
            return launch_few(*n, V, few_forward_kernel<T, V>, *n, l, s, training, as<T>(y));
        },
        n->x, y);
}

bool norm_few_backward(const pnet_norm *n, const float *mean, const float *inverse,
    const pnet_norm_gradient *g, const norm_work &w)
{
    const float *gx = g->gx, *gout = g->gout;
    bool done = by_few(
        *n,
        [&](auto form, few_lanes l) {
            using T = typename decltype(form)::T;
            const int V = decltype(form)::V;
            return launch_few(
                *n, V, few_backward_kernel<T, V>, *n, l, mean, inverse, *g, w.sum, w.sum_ab);
        },
        n->x, gout, gx, g->out);
    if (done && n->segments.count > 1) norm_finish(sums_of(n, gout, n->x, w), *g);
    return done;
}
