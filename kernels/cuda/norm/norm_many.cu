/* Batch and instance norm of any number of rows in one launch each way. All blocks run at the same time: they sum chunks of
   rows, tile by tile of their channels, and wait for each other. Then each block adds the chunks' sums that it needs, and
   goes through its own rows again, backwards: the last rows are still in registers, the others in a nearer cache. Sums
   follow the order of norm.cuh. */
extern "C" {
#include "kernels/cuda/base/cuda.h"
}
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/norm/norm.cuh"

#include <cooperative_groups.h>

enum {
    MANY_WARPS = 16,
    MANY_THREADS = MANY_WARPS * WARP,
    JOINING = MANY_THREADS / TILE_SUMS, /* threads that join a column's sums */
    JOIN_STEPS = FEW_CHUNKS / JOINING,  /* chunks of each thread */
    LANES_EACH = JOIN_LANES / JOINING,  /* how many of JOIN_LANES lanes each thread stands for */
};
static_assert(MANY_WARPS == 2 * JOINING && WARP % JOINING == 0, "a thread joins two warps");

/* A thread's place when sums are added: the threads of a column are neighbours in a warp. */
struct join_place {
    int column, lane;
    __device__ join_place()
    {
        const int COLUMNS = WARP / JOINING;
        int in_warp = (int)threadIdx.x % WARP;
        column = (int)threadIdx.x / WARP * COLUMNS + in_warp % COLUMNS;
        lane = in_warp / COLUMNS;
    }
    __device__ double joined(double v) const
    {
#pragma unroll
        for (int o = WARP / 2; o >= WARP / JOINING; o /= 2) v += __shfl_xor_sync(~0u, v, o);
        return v;
    }
};

struct row_range {
    int64_t begin, end;
};

/* The rows that a segment and a chunk have in common. int counts them, because a chunk is small. */
struct stretch {
    int rows, mine; /* mine: rows of the thread; 0 without a column */
    int64_t at;     /* offset of the thread's column, in packs */
};

/* A block's work, tile after tile of chunk after chunk, and a thread's place in it: a column of packs of V channels, and
   every LANES-th row. The lanes of a warp have neighbouring packs of a row, and rows that are MANY_WARPS apart. */
template <int V> struct many_place {
    static constexpr int COLUMNS = TILE_CHANNELS / V, LANES = MANY_THREADS / COLUMNS;
    pnet_segments s;
    int32_t packs, tiles;
    int64_t total, size;
    int items, item, tile; /* item: the present one; -1: there are no more */
    int chunk;
    int64_t begin, last;
    /* segments that have rows in the chunk, or are empty within it */
    int32_t first_segment, last_segment;
    int32_t column;
    int pack, lane;

    __device__ explicit many_place(const pnet_norm &n)
        : s(n.segments), packs(n.c / V), tiles(norm_tiles(n.c)),
          total(pnet_segment_split(s, s.count)), size(norm_chunk_size(total, n.c)), item(-1),
          pack((int)threadIdx.x % COLUMNS),
          lane((int)threadIdx.x % WARP / COLUMNS * MANY_WARPS + (int)threadIdx.x / WARP)
    {
        int chunks = (int)((total + size - 1) / size);
        items = tiles * (chunks > 0 ? chunks : 1);
    }
    __device__ void enter(int i)
    {
        if (i == item) return;
        item = i;
        tile = i % tiles;
        chunk = i / tiles;
        column = tile * COLUMNS + pack;
        begin = (int64_t)chunk * size;
        last = begin + size < total ? begin + size : total;
        first_segment = last_segment = 0;
        if (s.count == 1) return;
        first_segment = pnet_segment_of(s, begin);
        while (first_segment > 0 && pnet_segment_split(s, first_segment - 1) == begin)
            first_segment--;
        last_segment = last == total ? s.count - 1 : pnet_segment_of(s, last - 1);
    }
    __device__ row_range segment_rows(int32_t segment) const
    {
        if (s.count == 1) return {0, total};
        return {pnet_segment_split(s, segment), pnet_segment_split(s, segment + 1)};
    }
    __device__ stretch in_chunk(row_range of) const
    {
        int64_t from = of.begin > begin ? of.begin : begin, to = of.end < last ? of.end : last;
        int rows = to > from ? (int)(to - from) : 0;
        return {rows, column < packs ? rows : 0, from * packs + column};
    }
    __device__ bool has(const stretch &of, int row, int r) const
    {
        return row + r * LANES + lane < of.mine;
    }
    /* Returns an offset in packs. */
    __device__ int64_t place(const stretch &of, int row, int r) const
    {
        return of.at + (int64_t)(row + r * LANES + lane) * packs;
    }
    /* Returns the place of the sums of a stretch; stretches have the numbers of columns.cuh. */
    __device__ int64_t part(int64_t chunk_at, int32_t segment) const
    {
        return ((chunk_at + segment) * tiles + tile) * TILE_SUMS;
    }
};

/* A thread's rows of a matrix, from `row` on; zeros for rows beyond the end. */
template <class T, int V, int ROWS>
static __device__ __forceinline__ void ask(
    const many_place<V> &p, const stretch &of, const T *x, int row, fetched<T, V> *to)
{
#pragma unroll
    for (int r = 0; r < ROWS; r++) to[r] = fetch_if<V>(p.has(of, row, r), x, p.place(of, row, r));
}

/* Writes the block's sums of a stretch. */
template <int V>
static __device__ __forceinline__ void tell(
    const many_place<V> &p, const double (&sum)[2 * V], double *part)
{
    /* so that columns lie in different banks */
    __shared__ double sums[MANY_WARPS][TILE_SUMS + 1];
    const int COLUMNS = many_place<V>::COLUMNS, warp = (int)threadIdx.x / WARP;
    join_place j;
    add_lanes<V, WARP / COLUMNS / 2, COLUMNS>(sum, 0, [&](int i, double total) {
        sums[warp][p.pack * V + (i < V ? i : TILE_CHANNELS + i - V)] = total;
    });
    __syncthreads();
    double all = j.joined(sums[j.lane][j.column] + sums[j.lane + JOINING][j.column]);
    if (j.lane == 0) part[j.column] = all;
    __syncthreads();
}

/* Adds the sums of a segment's chunks for the block's channels. */
template <int V>
static __device__ __forceinline__ void join(
    const many_place<V> &p, int32_t segment, row_range rows, const double *part, double *joined)
{
    join_place j;
    bool any = rows.begin < rows.end;
    int64_t first = any ? rows.begin / p.size : 0, last = any ? (rows.end - 1) / p.size : -1;
    double v[JOIN_STEPS], sum[LANES_EACH] = {};
#pragma unroll
    for (int i = 0; i < JOIN_STEPS; i++) {
        int64_t chunk = first + j.lane + i * JOINING;
        v[i] = chunk <= last ? part[p.part(chunk, segment) + j.column] : 0;
    }
#pragma unroll
    for (int i = 0; i < JOIN_STEPS; i++) sum[i % LANES_EACH] += v[i];
    double all = j.joined(add_pairs(sum));
    if (j.lane == 0) joined[j.column] = all;
}

/* Makes the compiler load `shared` here instead of earlier, since registers are needed for rows and sums. */
template <class S> static __device__ __forceinline__ const S &read_again(const S &shared)
{
    asm volatile("" ::: "memory");
    return shared;
}

/* The values of a channel that a norm needs besides its sums. */
struct channel_given {
    float weight, bias, mean, inverse;
    float2 old;
};

template <class T, int V, bool SUM> struct many_forward {
    static constexpr int ROWS = 4, STEP = ROWS * many_place<V>::LANES;
    static constexpr int WIDTH = V;
    static constexpr bool PREPARES = false, AHEAD = true;
    using place = many_place<V>;
    struct kept {
        fetched<T, V> x[ROWS];
    };
    struct shared {
        norm_columns<V> norms[place::COLUMNS];
    };
    make_statistics s;
    T *y;

    __device__ bool writes() const
    {
        return y;
    }
    __device__ __forceinline__ void ask(
        const pnet_norm &n, const place &p, const stretch &of, int row, bool, kept &k) const
    {
        ::ask<T, V, ROWS>(p, of, (const T *)n.x, row, k.x);
    }
    __device__ void open(
        const pnet_norm &, const shared &, const place &, const stretch &, int, bool, kept &) const
    {
    }
    __device__ __forceinline__ void add(
        const stretch &of, int row, const kept &k, double *sum) const
    {
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            if (row + r * place::LANES >= of.rows) break;
            pack<V> v = opened(k.x[r]);
            for (int i = 0; i < V; i++) {
                double a = (double)v.at[i];
                sum[i] += a;
                sum[V + i] += a * a;
            }
        }
    }
    __device__ channel_given given(const pnet_norm &n, int32_t, int32_t channel, bool old) const
    {
        return {n.weight[channel], n.bias[channel], 0, 0, old ? s.old(channel) : float2{0, 0}};
    }
    __device__ void prepare(const pnet_norm &, const channel_given &, int, shared &) const {}
    __device__ void finish(const pnet_norm &n, int64_t at, const channel_given &c, int i,
        int64_t rows, double sum, double squares, bool owner, shared &to) const
    {
        moments m = s.of(sum, squares, (double)rows, (double)rows, c.old);
        norm_columns<V> &norm = to.norms[i / V];
        norm.mean[i % V] = m.mean;
        norm.k[i % V] = m.inverse * c.weight;
        norm.bias[i % V] = c.bias;
        if (owner) s.write(at, m, (double)rows, c.old);
    }
    __device__ __forceinline__ void write(const pnet_norm &n, const shared &shared, const place &p,
        const stretch &of, int row, const kept &k) const
    {
        const norm_columns<V> norm = read_again(shared.norms[p.pack]);
        float below = norm_below(n);
        fetched<T, V> added[SUM ? ROWS : 1];
        if constexpr (SUM) ::ask<T, V, ROWS>(p, of, (const T *)n.added, row, added);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            if (!p.has(of, row, r)) break;
            pack<V> u = opened(k.x[r]), more = {};
            if constexpr (SUM) more = opened(added[r]);
            for (int i = 0; i < V; i++) {
                float v = norm.normal(i, u.at[i]);
                u.at[i] = activated(SUM ? v + more.at[i] : v, below);
            }
            store<V>(y, p.place(of, row, r), u);
        }
    }
};

/* What follows the norm whose gradient is computed: nothing; an activation, whose result is computed again from x; or a residual
   sum with its activation. */
enum behind { PLAIN_NORM, ACTIVATION, ADDITION };

template <class T, int V, behind KIND> struct many_backward {
    static constexpr int ROWS = 2, STEP = ROWS * many_place<V>::LANES;
    static constexpr int WIDTH = V;
    static constexpr bool PREPARES = KIND == ACTIVATION, AHEAD = KIND != ADDITION;
    using place = many_place<V>;
    struct kept {
        fetched<T, V> u[ROWS], v[ROWS]; /* before the activation; x */
        fetched<T, V> out[KIND == ADDITION ? ROWS : 1], old[KIND == ADDITION ? ROWS : 1];
    };
    struct shared {
        norm_columns<V> norms[place::COLUMNS];
        norm_coefficients coefficients[TILE_CHANNELS];
    };
    const float *mean, *inverse;
    pnet_norm_gradient g;
    double *sums, *sums_ab;

    __device__ bool writes() const
    {
        return g.gx;
    }
    /* Tells whether gadded holds the gradients before the activation once they have been added. */
    __device__ bool has_made() const
    {
        return KIND == ADDITION && g.gadded && !g.gadded_add;
    }
    __device__ __forceinline__ void ask(
        const pnet_norm &n, const place &p, const stretch &of, int row, bool again, kept &k) const
    {
        bool made = again && has_made();
        ::ask<T, V, ROWS>(p, of, (const T *)(made ? g.gadded : g.gout), row, k.u);
        ::ask<T, V, ROWS>(p, of, (const T *)n.x, row, k.v);
        if constexpr (KIND == ADDITION)
            if (g.out && !made) ::ask<T, V, ROWS>(p, of, (const T *)g.out, row, k.out);
        if constexpr (KIND == ADDITION)
            if (g.gadded && g.gadded_add && !again)
                ::ask<T, V, ROWS>(p, of, (const T *)g.gadded, row, k.old);
    }
    __device__ __forceinline__ void open(const pnet_norm &n, const shared &shared, const place &p,
        const stretch &of, int row, bool again, kept &k) const
    {
        if constexpr (KIND == ADDITION) {
            float below = norm_below(n);
            T *gadded = (T *)g.gadded;
            if (again && has_made()) return;
#pragma unroll
            for (int r = 0; r < ROWS && g.out; r++) {
                pack<V> y = opened(k.out[r]);
                k.u[r] = closed<T, V>(
                    gradient_before(k.u[r], below, [&](int i) { return y.at[i] > 0; }));
            }
            if (again || !gadded) return;
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                if (!p.has(of, row, r)) break;
                pack<V> u = opened(k.u[r]), old = {};
                if (g.gadded_add) old = opened(k.old[r]);
                for (int i = 0; i < V && g.gadded_add; i++) u.at[i] = old.at[i] + u.at[i];
                store<V>(gadded, p.place(of, row, r), u);
            }
        } else if constexpr (KIND == ACTIVATION) {
            const int Q = V > 1 ? 2 : 1, WORDS = sizeof(fetched<T, Q>) / 4;
            const norm_columns<V> &norm = read_again(shared.norms[p.pack]);
            float below = norm_below(n);
#pragma unroll
            for (int i = 0; i < V / Q; i++) {
                norm_columns<Q> made;
                for (int j = 0; j < Q; j++) {
                    made.mean[j] = norm.mean[i * Q + j];
                    made.k[j] = norm.k[i * Q + j];
                    made.bias[j] = norm.bias[i * Q + j];
                }
#pragma unroll
                for (int r = 0; r < ROWS; r++) {
                    fetched<T, Q> u, v;
                    for (int j = 0; j < WORDS; j++) {
                        u.word[j] = k.u[r].word[i * WORDS + j];
                        v.word[j] = k.v[r].word[i * WORDS + j];
                    }
                    u = closed<T, Q>(made.before(u, opened(v), below));
                    for (int j = 0; j < WORDS; j++) k.u[r].word[i * WORDS + j] = u.word[j];
                }
            }
        }
    }
    __device__ __forceinline__ void add(
        const stretch &of, int row, const kept &k, double *sum) const
    {
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            if (row + r * place::LANES >= of.rows) break;
            pack<V> a = opened(k.u[r]), b = opened(k.v[r]);
            for (int i = 0; i < V; i++) {
                double d = (double)a.at[i];
                sum[i] += d;
                sum[V + i] += d * (double)b.at[i];
            }
        }
    }
    __device__ channel_given given(const pnet_norm &n, int32_t segment, int32_t channel, bool) const
    {
        int64_t at = (int64_t)segment * n.c + channel;
        return {n.weight[channel], n.bias[channel], mean[at], inverse[at], {0, 0}};
    }
    __device__ void prepare(const pnet_norm &, const channel_given &c, int i, shared &to) const
    {
        norm_columns<V> &norm = to.norms[i / V];
        norm.mean[i % V] = c.mean;
        norm.k[i % V] = c.inverse * c.weight;
        norm.bias[i % V] = c.bias;
    }
    __device__ void finish(const pnet_norm &n, int64_t at, const channel_given &c, int i,
        int64_t rows, double sum, double sum_gx, bool owner, shared &to) const
    {
        bool constant = rows <= g.constant_rows;
        double inv = (double)c.inverse, w = (double)c.weight;
        double sum_ab = centred(sum_gx, sum, (double)c.mean, inv);
        prepare(n, c, i, to);
        /* sums of groups begin with 0, and 0 + -0 is 0 */
        to.coefficients[i] = norm_coefficients(inv, w, constant ? 0 : 0 + sum * w,
            constant ? 0 : 0 + sum_ab * w, constant ? 1 : (double)rows);
        if (!owner) return;
        if (n.segments.count > 1) {
            sums[at] = sum;
            sums_ab[at] = sum_ab;
        } else {
            if (g.gweight) write_sum(g.gweight + at, g.gweight_add, sum_ab);
            if (g.gbias) write_sum(g.gbias + at, g.gbias_add, sum);
        }
    }
    __device__ __forceinline__ void write(const pnet_norm &, const shared &shared, const place &p,
        const stretch &at, int row, const kept &k) const
    {
        float mean[V];
        norm_coefficients of[V];
        T *gx = (T *)g.gx;
        fetched<T, V> old[ROWS];
        if (g.gx_add) ::ask<T, V, ROWS>(p, at, gx, row, old);
        read_again(shared);
        for (int i = 0; i < V; i++) {
            mean[i] = shared.norms[p.pack].mean[i];
            of[i] = shared.coefficients[p.pack * V + i];
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            if (!p.has(at, row, r)) break;
            pack<V> a = opened(k.u[r]), b = opened(k.v[r]), before = {};
            if (g.gx_add) before = opened(old[r]);
            for (int i = 0; i < V; i++) {
                float w = of[i].gradient(a.at[i], b.at[i], mean[i]);
                a.at[i] = g.gx_add ? before.at[i] + w : w;
            }
            store<V>(gx, p.place(at, row, r), a);
        }
    }
};

/* `way`: forward or backward; decides which values are read, summed and written. */
template <class W>
static __global__ void __launch_bounds__(MANY_THREADS, 1)
    many_kernel(pnet_norm n, W way, double *part)
{
    const int V = W::WIDTH;
    __shared__ typename W::shared shared;
    __shared__ double joined[TILE_SUMS];
    many_place<V> p(n);
    typename W::kept rows;
    int i = (int)threadIdx.x, blocks = (int)gridDim.x, block = (int)blockIdx.x;
    for (int item = block; item < p.items; item += blocks) {
        p.enter(item);
        int32_t channel = p.tile * TILE_CHANNELS + i;
        for (int32_t segment = p.first_segment; segment <= p.last_segment; segment++) {
            stretch at = p.in_chunk(p.segment_rows(segment));
            double sum[2 * V] = {};
            typename W::kept next;
            if (W::AHEAD && at.rows > 0) way.ask(n, p, at, 0, false, next);
            for (int row = 0; row < at.rows; row += W::STEP) {
                if constexpr (W::AHEAD) {
                    rows = next;
                    if (row + W::STEP < at.rows) way.ask(n, p, at, row + W::STEP, false, next);
                } else {
                    way.ask(n, p, at, row, false, rows);
                }
                if (W::PREPARES && row == 0) {
                    if (i < TILE_CHANNELS && channel < n.c)
                        way.prepare(n, way.given(n, segment, channel, false), i, shared);
                    __syncthreads();
                }
                way.open(n, shared, p, at, row, false, rows);
                way.add(at, row, rows, sum);
            }
            if (at.rows > 0) tell(p, sum, part + p.part(p.chunk, segment));
        }
    }
    cooperative_groups::this_grid().sync();
    bool kept = true;
    int last = block < p.items ? block + (p.items - 1 - block) / blocks * blocks : -1;
    for (int item = last; item >= 0; item -= blocks) {
        p.enter(item);
        int32_t channel = p.tile * TILE_CHANNELS + i;
        for (int32_t segment = p.last_segment; segment >= p.first_segment; segment--) {
            row_range all = p.segment_rows(segment);
            stretch at = p.in_chunk(all);
            bool owner = all.begin >= p.begin, there = at.rows > 0 && way.writes();
            int64_t count = all.end - all.begin;
            channel_given given = {};
            if (!owner && !there) continue;
            bool mine = i < TILE_CHANNELS && channel < n.c;
            if (mine) given = way.given(n, segment, channel, owner || count <= 1);
            join(p, segment, all, part, joined);
            __syncthreads();
            if (mine)
                way.finish(n, (int64_t)segment * n.c + channel, given, i, count, joined[i],
                    joined[TILE_CHANNELS + i], owner, shared);
            __syncthreads();
            if (!there) continue;
            int row = (at.rows - 1) / W::STEP * W::STEP;
            typename W::kept next;
            if (W::AHEAD && !kept) way.ask(n, p, at, row, true, next);
            for (; row >= 0; row -= W::STEP) {
                if constexpr (W::AHEAD) {
                    if (!kept) rows = next;
                    if (row > 0) way.ask(n, p, at, row - W::STEP, true, next);
                } else if (!kept) {
                    way.ask(n, p, at, row, true, rows);
                }
                if (!kept) way.open(n, shared, p, at, row, true, rows);
                way.write(n, shared, p, at, row, rows);
                kept = false;
            }
        }
    }
}

template <class W> static void launch_many(const pnet_norm &n, const W &way, double *part)
{
    auto *kernel = many_kernel<W>;
    int device = 0, processors = 1, each = 1;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, MANY_THREADS, 0);
    int64_t rows = n.segments.rows, chunks = divide_up(rows, norm_chunk_size(rows, n.c));
    int64_t items = (chunks > 0 ? chunks : 1) * norm_tiles(n.c), most = (int64_t)processors * each;
    cudaLaunchAttribute cooperative = {};
    cooperative.id = cudaLaunchAttributeCooperative;
    cooperative.val.cooperative = 1;
    cudaLaunchConfig_t launch = {};
    launch.gridDim = dim3((unsigned)(items < most ? items : most));
    launch.blockDim = dim3(MANY_THREADS);
    launch.stream = pnet_cuda_stream();
    launch.attrs = &cooperative;
    launch.numAttrs = 1;
    pnet_cuda_alone_begin();
    cudaLaunchKernelEx(&launch, kernel, n, way, part);
    pnet_cuda_alone_end();
}

void pnet_cuda_norm_many_forward(
    const pnet_norm *n, const make_statistics &s, float *y, const norm_work &w)
{
    if (n->segments.count == 0) return;
    by_form(
        n->segments.storage, n->c,
        [&](auto form) {
            using T = typename decltype(form)::T;
            const int V = decltype(form)::V;
            if (y && n->sum)
                launch_many(*n, many_forward<T, V, true>{s, as<T>(y)}, w.part);
            else
                launch_many(*n, many_forward<T, V, false>{s, as<T>(y)}, w.part);
        },
        n->x, y, y && n->sum ? n->added : y);
}

void pnet_cuda_norm_many_backward(const pnet_norm *n, const float *mean, const float *inverse,
    const pnet_norm_gradient *g, const norm_work &w)
{
    if (n->segments.count == 0) return;
    const float *gout = g->gout, *gx = g->gx, *out = n->sum ? g->out : gx,
                *gadded = n->sum ? g->gadded : gx;
    by_form(
        n->segments.storage, n->c,
        [&](auto form) {
            using T = typename decltype(form)::T;
            const int V = decltype(form)::V;
            auto launch = [&](auto kind) {
                many_backward<T, V, decltype(kind)::value> way = {
                    mean, inverse, *g, w.sum, w.sum_ab};
                launch_many(*n, way, w.part);
            };
            if (n->sum)
                launch(std::integral_constant<behind, ADDITION>());
            else if (g->out && n->act != PNET_ACT_NONE)
                launch(std::integral_constant<behind, ACTIVATION>());
            else
                launch(std::integral_constant<behind, PLAIN_NORM>());
        },
        n->x, gout, gx, out, gadded);
    if (n->segments.count > 1) pnet_cuda_norm_finish(sums_of(n, gout, n->x, w), *g);
}
