/* MVMR from triplets, on the matrix unit. A block of threads has a row block. It stages the distinct neighbours of its
   rows in shared memory, some channels at a time. A warpgroup gathers the runs of its 64 rows from there, cell by cell,
   into the registers that the matrix unit reads, while the product of the cell before is under way. All warpgroups share
   the packed weights, which the copy engine brings. Sums stay in registers until rows are written. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/conv_fast.cuh"
#include "kernels/cuda/base/hopper.cuh"
#include "kernels/cuda/conv/triplets/conv_row_block.cuh"
#include "kernels/cuda/base/cuda.h"

/* T: what features are stored as; float32, or what operands are multiplied as. */
template <conv_form FORM_, class T_, int GROUPS_, int DEPTH_, int COLUMNS_, int RING_>
struct config {
    using T = T_;
    static constexpr conv_form FORM = FORM_;
    static constexpr int GROUPS = GROUPS_;   /* warpgroups that multiply */
    static constexpr int DEPTH = DEPTH_;     /* channels at a time */
    static constexpr int COLUMNS = COLUMNS_; /* output channels of a tile */
    static constexpr int RING = RING_;       /* blocks of weights in flight */
    static constexpr int ROWS = GROUPS * 64, THREADS = GROUPS * 128;
    static constexpr bool SPLIT = FORM == CONV_SPLIT, SCALED = SPLIT || FORM == CONV_SCALED;
    static constexpr int PLANES = SPLIT ? 2 : 1;
    static constexpr int PLANE = DEPTH * COLUMNS * 2, BLOCK = PLANE * PLANES; /* bytes */
    static constexpr int STEPS = DEPTH / 16;                                  /* products deep */
};

/* Capacities in shared memory: slots of neighbours, entries of triplets, words of a set of cells. */
struct limits {
    int slots, entries, words;
};

enum { TOP = 7, LONG = 256 /* sums of so many stay below 2^(TOP + 8) */ };

/* Shared memory behind the ring of weights. */
struct layout {
    int stage, entry, neighbour, row, cells, bytes;
};

static __host__ __device__ layout make_layout(int ring, int depth, int rows, const limits &l)
{
    layout o;
    int stage = l.slots * depth * 4, hash = CONV_HASH * 6;
    o.stage = ring;
    o.entry = o.stage + (stage > hash ? stage : hash);
    o.neighbour = o.entry + l.entries * 4;
    o.row = o.neighbour + l.slots * 4;
    o.cells = o.row + (rows + 1) * 4;
    o.bytes = o.cells + (rows / 64 + 1) * l.words * 4;
    return o;
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* Channels first to first + 3 of a row of `in`; channels beyond the group are zero. */
template <class T>
static __device__ __forceinline__ float4 load4(const T *row, int first, int width, bool aligned)
{
    float v[4] = {};
    if (aligned && first + 4 <= width) {
        load_wide<4>(row + first, v);
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (first + i < width) v[i] = widen(row[first + i]);
    }
    return {v[0], v[1], v[2], v[3]};
}

static __device__ __forceinline__ float size4(float most, float4 v)
{
    return fmaxf(fmaxf(fmaxf(most, conv_finite_size(v.x)), conv_finite_size(v.y)),
        fmaxf(conv_finite_size(v.z), conv_finite_size(v.w)));
}

/* One row's way through its triplets. */
struct cursor {
    int at, end;
    uint32_t entry;
};

template <class T> struct source {
    const T *in;  /* of the group */
    int64_t base; /* the tile's first triplet */
    int stride, width, first;
    bool aligned;
};

static __device__ __forceinline__ uint32_t entry_at(
    const conv_row_block &t, const conv_set &s, int64_t base, int n, int end)
{
    if (n >= end) return CONV_NO_TRIPLET;
    if (n < t.entries) return t.entry[n];
    return (uint32_t)conv_cell(s, base + n) << 16 | CONV_NO_SLOT;
}

/* Adds one triplet: the lane's four channels of each 16. Rows of odd number take 64-byte pieces in swapped order, so
   that the rows of a quarter warp fall into different banks. */
template <int DEPTH, class T>
static __device__ __forceinline__ void add_triplet(float (&sum)[DEPTH / 4], cursor &c,
    const conv_row_block &t, const float *stage, const conv_set &s, const source<T> &from, int lane)
{
    constexpr int PIECES = DEPTH / 16;
    int odd = PIECES > 1 ? lane / 4 % 2 : 0, quarter = lane % 4 * 4;
    uint32_t slot = c.entry & 0xFFFF;
    int n = c.at++;
    c.entry = entry_at(t, s, from.base, c.at, c.end);
    float4 v[PIECES];
    if (slot != CONV_NO_SLOT) {
        const float *row = stage + slot * DEPTH + quarter;
#pragma unroll
        for (int i = 0; i < PIECES; i++) v[i] = *(const float4 *)(row + (i ^ odd) * 16);
    } else {
        const T *row = from.in + conv_other(s, from.base + n) * from.stride;
#pragma unroll
        for (int i = 0; i < PIECES; i++)
            v[i] = load4(row, from.first + (i ^ odd) * 16 + quarter, from.width, from.aligned);
    }
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
        sum[4 * i] += v[i].x;
        sum[4 * i + 1] += v[i].y;
        sum[4 * i + 2] += v[i].z;
        sum[4 * i + 3] += v[i].w;
    }
}

template <bool BFLOAT> static __device__ __forceinline__ uint32_t pack2(float x, float y)
{
    if constexpr (BFLOAT) {
        __nv_bfloat162 v = __floats2bfloat162_rn(x, y);
        return *(uint32_t *)&v;
    } else {
        __half2 v = __floats2half2_rn(x, y);
        return *(uint32_t *)&v;
    }
}

static __device__ __forceinline__ float2 unpack2(uint32_t x)
{
    return __half22float2(*(__half2 *)&x);
}

/* Converts the sums of two rows to operands: a[plane][step] as `product` takes them. */
template <class C>
static __device__ __forceinline__ void make_operands(
    uint32_t (&a)[C::PLANES][C::STEPS][4], float (&sum)[2][C::DEPTH / 4], float scale, bool odd)
{
#pragma unroll
    for (int i = 0; i < C::STEPS; i++) {
#pragma unroll
        for (int r = 0; r < 2; r++) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                float x = sum[r][4 * i + 2 * h], y = sum[r][4 * i + 2 * h + 1];
                if constexpr (C::SCALED) {
                    x *= scale;
                    y *= scale;
                }
                uint32_t high = pack2<C::FORM == CONV_BFLOAT>(x, y);
                a[0][i][r + 2 * h] = high;
                if constexpr (C::SPLIT) {
                    float2 was = unpack2(high);
                    a[C::PLANES - 1][i][r + 2 * h] = pack2<false>(x - was.x, y - was.y);
                }
            }
        }
    }
    if constexpr (C::STEPS > 1) {
#pragma unroll
        for (int p = 0; p < C::PLANES; p++)
#pragma unroll
            for (int i = 0; i < C::STEPS; i += 2)
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    uint32_t x = a[p][i][j], y = a[p][i + 1][j];
                    a[p][i][j] = odd ? y : x;
                    a[p][i + 1][j] = odd ? x : y;
                }
    }
}

/* Issues the products of one block of weights; small terms first, to lose little where sums are rounded. */
template <class C>
static __device__ __forceinline__ void multiply(float (&sum)[C::COLUMNS / 2],
    const uint32_t (&a)[C::PLANES][C::STEPS][4], const unsigned char *block, int fresh)
{
    constexpr bool BFLOAT = C::FORM == CONV_BFLOAT;
    uint64_t high = product_matrix<C::DEPTH * 2>(block);
    if constexpr (C::SPLIT) {
        uint64_t low = product_matrix<C::DEPTH * 2>(block + C::PLANE);
#pragma unroll
        for (int i = 0; i < C::STEPS; i++) {
            product<C::COLUMNS, BFLOAT>(sum, a[0][i], low + 2 * i, i == 0 ? fresh : 0);
            product<C::COLUMNS, BFLOAT>(sum, a[C::PLANES - 1][i], high + 2 * i, 0);
        }
        fresh = 0;
    }
#pragma unroll
    for (int i = 0; i < C::STEPS; i++)
        product<C::COLUMNS, BFLOAT>(sum, a[0][i], high + 2 * i, i == 0 ? fresh : 0);
}

template <class C>
static __device__ __forceinline__ void write_rows(const conv_product &p,
    const float (&sum)[C::COLUMNS / 2], int64_t row0, int64_t live, int group, int column0)
{
    using T = typename C::T;
    int quad = threadIdx.x % 4,
        row = threadIdx.x / 128 * 64 + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
    int first = group * p.groups.cout;
    bool pairs = (p.cout | first) % 2 == 0;
#pragma unroll
    for (int j = 0; j < C::COLUMNS / 8; j++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int64_t place = row0 + row + 8 * h;
            int c = column0 + 8 * j + 2 * quad;
            if (place >= live || c >= p.groups.cout) continue;
            int64_t r = conv_row(p.set, place);
            float x = sum[4 * j + 2 * h], y = sum[4 * j + 2 * h + 1];
            if (pairs && c + 1 < p.groups.cout) {
                const conv_end &e = p.end;
                T *to = (T *)e.out + r * p.cout + first + c;
                float v[2] = {x, y}, old[2];
                if (e.bias) {
                    v[0] += e.bias[first + c];
                    v[1] += e.bias[first + c + 1];
                }
                if (e.add) load_wide<2>(to, old);
#pragma unroll
                for (int i = 0; i < 2; i++)
                    v[i] = e.add ? old[i] + v[i] : conv_activate(v[i], e.act, e.slope);
                store_wide<2>(to, v);
                continue;
            }
            conv_finish<T>(p.end, r, p.cout, first + c, x);
            if (c + 1 < p.groups.cout) conv_finish<T>(p.end, r, p.cout, first + c + 1, y);
        }
    }
}

/* The ring of packed weights: blocks in the order of the row block's cells, for one chunk of channels after the other.
   One thread of the block keeps it and starts copies. `full` counts their bytes, `empty` the warps that have finished
   with a place. */
template <class C> struct ring {
    unsigned char *memory;
    uint64_t *full, *empty;
    const char *blocks;
    const uint32_t *cells;
    int words, groups, group, deep, wide, deeps, wides;
    int k, turn; /* of the next copy */
};

template <class C> static __device__ __forceinline__ bool ring_done(const ring<C> &g)
{
    return g.deep == g.deeps;
}

/* Starts copy `turn` if all warps have finished with what was in its place; with `wait` waits for them. */
template <class C> static __device__ __forceinline__ bool ring_start(ring<C> &g, bool wait)
{
    int at = g.turn % C::RING;
    if (g.turn >= C::RING) {
        int parity = (g.turn / C::RING - 1) & 1;
        if (wait)
            barrier_wait(g.empty + at, parity);
        else if (!barrier_test(g.empty + at, parity))
            return false;
    }
    int64_t block = (((int64_t)g.k * g.groups + g.group) * g.deeps + g.deep) * g.wides + g.wide;
    barrier_expect(g.full + at, C::BLOCK);
    copy_bulk(g.memory + at * C::BLOCK, g.blocks + block * C::BLOCK, C::BLOCK, g.full + at);
    g.turn++;
    g.k = conv_next_cell(g.cells, g.words, g.k + 1);
    if (g.k == g.words * 32) {
        g.k = conv_next_cell(g.cells, g.words, 0);
        g.deep++;
    }
    return true;
}

/* Starts copies as far as the ring has room, and waits for room for the one of `turn`. */
template <class C> static __device__ __forceinline__ void ring_feed(ring<C> &g, int turn)
{
    while (!ring_done(g) && g.turn < turn + C::RING)
        if (!ring_start(g, g.turn <= turn)) break;
}

/* Stages channels [first, first + DEPTH) of the neighbours. Returns the largest size of a number that this thread has
   seen, 0 where operands have no scale. */
template <class C>
static __device__ float stage_neighbours(const conv_row_block &t, const conv_row_block_state &state,
    const conv_set &s, const source<typename C::T> &from, float *stage)
{
    constexpr int QUARTERS = C::DEPTH / 4;
    constexpr bool AS_THEY_ARE = sizeof(typename C::T) == sizeof(float);
    float most = 0;
    int n = min(state.staged, t.slots) * QUARTERS;
    if (AS_THEY_ARE && from.aligned && from.first + C::DEPTH <= from.width) {
        for (int i = threadIdx.x; i < n; i += C::THREADS)
            copy16(stage + i * 4, from.in + (int64_t)t.neighbour[i / QUARTERS] * from.stride +
                                      from.first + i % QUARTERS * 4);
        copies_wait();
    } else {
        for (int i = threadIdx.x; i < n; i += C::THREADS)
            *(float4 *)(stage + i * 4) =
                load4(from.in + (int64_t)t.neighbour[i / QUARTERS] * from.stride,
                    from.first + i % QUARTERS * 4, from.width, from.aligned);
    }
    if (C::SCALED) {
#pragma unroll 4
        for (int i = threadIdx.x; i < n; i += C::THREADS)
            most = size4(most, *(const float4 *)(stage + i * 4));
    }
    if (C::SCALED && state.spilled) {
        int total = t.row[C::ROWS];
        for (int i = threadIdx.x; i < total; i += C::THREADS) {
            if (i < t.entries && (t.entry[i] & 0xFFFF) != CONV_NO_SLOT) continue;
            const auto *row = from.in + conv_other(s, from.base + i) * from.stride;
            for (int c = 0; c < C::DEPTH; c += 4)
                most = size4(most, load4(row, from.first + c, from.width, from.aligned));
        }
    }
    return most;
}
#endif

template <class C>
static __global__ __launch_bounds__(C::THREADS, 1) void mvmr(
    conv_product p, conv_blocks b, const void *blocks, limits l)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ uint64_t full[C::RING], empty[C::RING];
    __shared__ conv_row_block_state state;
    __shared__ ring<C> weights;
    __shared__ float sizes[C::GROUPS * 4];
    int64_t live = pnet_live(p.set.rows), row0 = (int64_t)blockIdx.x * C::ROWS;
    if (row0 >= live) return;
    layout o = make_layout(C::RING * C::BLOCK, C::DEPTH, C::ROWS, l);
    float *stage = (float *)(memory + o.stage);
    conv_row_block t = {l.slots, l.entries, l.words, (uint32_t *)(memory + o.entry),
        (int32_t *)(memory + o.neighbour), (int *)(memory + o.row), (uint32_t *)(memory + o.cells),
        (int32_t *)stage, (uint16_t *)(memory + o.stage + CONV_HASH * 4)};
    if (threadIdx.x == 0) {
        for (int i = 0; i < C::RING; i++) {
            barrier_init(full + i, 1);
            barrier_init(empty + i, C::GROUPS * 4);
        }
        fence_async();
    }
    conv_row_block_load<C::GROUPS, C::THREADS>(
        t, state, p.set, row0, (int)(live - row0 < C::ROWS ? live - row0 : C::ROWS));
    int group = blockIdx.y / b.wide, wide = blockIdx.y % b.wide;
    const uint32_t *all = t.cells + C::GROUPS * t.words;
    bool feeds = threadIdx.x == 0;
    if (feeds) {
        int first = conv_next_cell(all, t.words, 0);
        bool none = first == t.words * 32; /* rows without triplets */
        weights = {memory, full, empty, (const char *)blocks, all, t.words, p.groups.count, group,
            none ? b.deep : 0, wide, b.deep, b.wide, first, 0};
        ring_feed(weights, 0);
    }
    int warpgroup = threadIdx.x / 128, lane = threadIdx.x % 32;
    int row = warpgroup * 64 + threadIdx.x % 128 / 32 * 16 + lane / 4;
    const uint32_t *mine = t.cells + warpgroup * t.words;
    const float *scales = conv_block_scales(b, blocks);
    source<typename C::T> from = {(const typename C::T *)p.in + (int64_t)group * p.groups.cin,
        conv_start(p.set, row0), p.cin, p.groups.cin, 0, (p.cin | p.groups.cin) % 4 == 0};
    float sum[C::COLUMNS / 2] = {}, part[C::SCALED ? C::COLUMNS / 2 : 1] = {};
    uint32_t a[C::PLANES][C::STEPS][4];
    int turn = 0, pending = -1;
    float factor = 0;
    /* Ends the products that were issued last, if any. */
    auto finish = [&]() {
        product_wait();
        if constexpr (C::SCALED) {
            product_touch(part);
#pragma unroll
            for (int i = 0; i < C::COLUMNS / 2; i++) sum[i] += part[i] * factor;
            factor = 0;
        } else {
            product_touch(sum);
        }
        if (lane == 0 && pending >= 0) barrier_arrive(empty + pending);
        pending = -1;
    };
    /* Gives back the blocks that only other warpgroups need: all before cell `k`. */
    int seen = 0;
    auto release_until = [&](int k) {
        while (true) {
            int next = __shfl_sync(~0u, conv_next_cell(all, t.words, seen), 0);
            if (next >= k) break;
            if (feeds) ring_feed(weights, turn);
            barrier_wait(full + turn % C::RING, turn / C::RING & 1);
            if (lane == 0) barrier_arrive(empty + turn % C::RING);
            turn++;
            seen = next + 1;
        }
        seen = k + 1;
    };
    for (int deep = 0; deep < b.deep; deep++) {
        from.first = deep * C::DEPTH;
        __syncthreads();
        float most = stage_neighbours<C>(t, state, p.set, from, stage), scale = 1, unscale = 1;
        if constexpr (C::SCALED) {
            most = __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(most)));
            if (lane == 0) sizes[threadIdx.x / 32] = most;
        }
        __syncthreads();
        if constexpr (C::SCALED) {
            for (int w = 0; w < C::GROUPS * 4; w++) most = fmaxf(most, sizes[w]);
            int top = TOP;
            for (int n = state.longest / LONG; n > 0; n /= 2) top--;
            scale = conv_scale(most, top);
            unscale = 1 / scale;
        }
        cursor c0 = {t.row[row], t.row[row + 1], 0}, c1 = {t.row[row + 8], t.row[row + 9], 0};
        c0.entry = entry_at(t, p.set, from.base, c0.at, c0.end);
        c1.entry = entry_at(t, p.set, from.base, c1.at, c1.end);
        seen = 0;
        for (int k = 0;; k++) {
            k = __shfl_sync(~0u, conv_next_cell(mine, t.words, k), 0);
            if (k >= t.words * 32) break;
            float runs[2][C::DEPTH / 4] = {};
            while (true) {
                bool go0 = c0.entry >> 16 == (uint32_t)k, go1 = c1.entry >> 16 == (uint32_t)k;
                if (!__any_sync(~0u, go0 || go1)) break;
                if (go0) add_triplet<C::DEPTH>(runs[0], c0, t, stage, p.set, from, lane);
                if (go1) add_triplet<C::DEPTH>(runs[1], c1, t, stage, p.set, from, lane);
            }
            finish();
            release_until(k);
            make_operands<C>(a, runs, scale, lane / 4 % 2);
            if constexpr (C::SCALED) {
                int64_t block =
                    (((int64_t)k * p.groups.count + group) * b.deep + deep) * b.wide + wide;
                factor = unscale * __ldg(scales + block);
            }
            if (feeds) ring_feed(weights, turn);
            __syncwarp();
            pending = turn % C::RING;
            barrier_wait(full + pending, turn / C::RING & 1);
            turn++;
            if constexpr (C::SCALED) {
                product_touch(part);
                product_fence();
                multiply<C>(part, a, memory + pending * C::BLOCK, 1);
            } else {
                product_touch(sum);
                product_fence();
                multiply<C>(sum, a, memory + pending * C::BLOCK, 0);
            }
            product_commit();
        }
        finish();
        release_until(t.words * 32);
    }
    write_rows<C>(p, sum, row0, live, group, (b.first + wide) * C::COLUMNS);
#endif
}

enum { SHARED_BYTES = 227 << 10, SHARED_STATIC = 1024 };

template <class C> static limits limits_of(int cells)
{
    limits l = {0, C::ROWS * 32, (cells + 31) / 32};
    int left =
        SHARED_BYTES - SHARED_STATIC - make_layout(C::RING * C::BLOCK, C::DEPTH, C::ROWS, l).bytes;
    l.slots = left / (C::DEPTH * 4 + 4);
    if (l.slots > C::ROWS * 4) l.slots = C::ROWS * 4;
    return l;
}

template <class C> static void launch(const conv_product &p, void *work)
{
    conv_blocks all = pnet_cuda_conv_block_weights(
        C::FORM, p.set.cells, &p.groups, C::DEPTH, C::COLUMNS, 4, false);
    limits l = limits_of<C>(p.set.cells);
    int bytes = make_layout(C::RING * C::BLOCK, C::DEPTH, C::ROWS, l).bytes;
    cudaFuncSetAttribute(mvmr<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    for (int first = 0; first < all.whole; first += all.wide) {
        conv_blocks b = pnet_cuda_conv_blocks_part(all, first);
        dim3 grid((unsigned)((p.set.rows.most + C::ROWS - 1) / C::ROWS),
            (unsigned)(p.groups.count * b.wide));
        pnet_cuda_conv_pack_weights(b, p, work);
        mvmr<C><<<grid, C::THREADS, (size_t)bytes, pnet_cuda_stream()>>>(p, b, work, l);
    }
}

template <conv_form FORM, class T, int GROUPS, int DEPTH, int RING>
static void launch_columns(const conv_product &p, void *work)
{
    if (p.groups.cout > 64)
        launch<config<FORM, T, GROUPS, DEPTH, 128, RING>>(p, work);
    else if (p.groups.cout > 32)
        launch<config<FORM, T, GROUPS, DEPTH, 64, RING>>(p, work);
    else
        launch<config<FORM, T, GROUPS, DEPTH, 32, RING>>(p, work);
}

/* As many warpgroups as registers allow. */
template <conv_form FORM, class T>
static void launch_depth(const conv_product &p, int depth, void *work)
{
    if constexpr (FORM == CONV_SPLIT) {
        if (depth == 32)
            launch_columns<FORM, T, 2, 32, 4>(p, work);
        else
            launch_columns<FORM, T, 2, 16, 4>(p, work);
    } else {
        constexpr int GROUPS = FORM == CONV_SCALED ? 2 : 3;
        if (depth == 64)
            launch_columns<FORM, T, GROUPS, 64, 3>(p, work);
        else if (depth == 32)
            launch_columns<FORM, T, GROUPS, 32, 4>(p, work);
        else
            launch_columns<FORM, T, GROUPS, 16, 4>(p, work);
    }
}

bool pnet_cuda_conv_has_warpgroup(void)
{
    cudaFuncAttributes a;
    return cudaFuncGetAttributes(&a, mvmr<config<CONV_SPLIT, float, 2, 32, 128, 4>>) ==
               cudaSuccess &&
           a.sharedSizeBytes > 0;
}

void pnet_cuda_conv_triplets_mvmr(
    const struct conv_product *sum, enum pnet_precision precision, void *work)
{
    const conv_product &p = *sum;
    conv_form form = pnet_cuda_conv_form_of(precision);
    int depth = pnet_cuda_conv_triplets_depth(form, &p.groups);
    bool stored = p.set.rows.storage != PNET_STORE_F32; /* as operands are */
    if (p.set.rows.most == 0) return;
    switch (form) {
    case CONV_SPLIT: launch_depth<CONV_SPLIT, float>(p, depth, work); break;
    case CONV_SCALED: launch_depth<CONV_SCALED, float>(p, depth, work); break;
    case CONV_BFLOAT:
        stored ? launch_depth<CONV_BFLOAT, __nv_bfloat16>(p, depth, work)
               : launch_depth<CONV_BFLOAT, float>(p, depth, work);
        break;
    case CONV_HALF:
        stored ? launch_depth<CONV_HALF, __half>(p, depth, work)
               : launch_depth<CONV_HALF, float>(p, depth, work);
        break;
    case CONV_TILE_SCALED: break; /* of sets with tiles alone */
    }
}
