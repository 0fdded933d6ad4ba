/* MVMR from tiles: the items of a block of threads, and the warps that copy weights and stage neighbours. */
#ifndef PNET_KERNELS_CUDA_CONV_TILES_STAGE_CUH
#define PNET_KERNELS_CUDA_CONV_TILES_STAGE_CUH

#include "kernels/cuda/conv/tiles/conv_tiles_gather.cuh"
#include "kernels/cuda/conv/tiles/conv_tiles_scales.cuh"

enum { TILE_SHARED = 227 << 10 };

/* Arguments of a launch. */
struct tile_launch {
    conv_product p;
    conv_blocks b;
    const unsigned char *blocks; /* packed weights */
    /* items given out, besides the first one of each block of threads */
    unsigned long long *taken;
    int slots;           /* rows of a stage, including the row of zeros */
    bool wide, words;    /* one load can read a unit of a row; 4 bytes of it */
    const float *scales; /* BY_TILE: scales of tiles, and the largest weight */
    const uint32_t *weight_size;
};

/* An item: a tile or half of it, a group, some output channels. */
struct tile_item {
    int64_t tile;          /* -1: there are no more items */
    int half, group, wide; /* wide: number of its block of columns */
};

template <class C>
static __device__ __forceinline__ tile_item item_at(const tile_launch &l, int64_t i)
{
    constexpr int HALVES = PNET_TILE_ROWS / C::ROWS / C::CLUSTER;
    int ways = l.p.groups.count * l.b.wide;
    int64_t part = ways == 1 ? i : i / ways;
    int way = (int)(i - part * ways);
    int half = C::CLUSTER > 1 ? (int)blockIdx.x % C::CLUSTER : (int)(part % HALVES);
    return {part / HALVES, half, way / l.b.wide, l.b.first + way % l.b.wide};
}

template <class C> static __device__ __forceinline__ int64_t item_count(const tile_launch &l)
{
    constexpr int ROWS = C::ROWS * C::CLUSTER;
    int64_t parts = (pnet_live(l.p.set.rows) + ROWS - 1) / ROWS;
    return parts * l.p.groups.count * l.b.wide;
}

template <class C> static __device__ __forceinline__ int64_t item_row(const tile_item &i)
{
    return i.tile * PNET_TILE_ROWS + i.half * C::ROWS;
}

/* Returns the blocks of 64 rows of the tile that the item, or its cluster, has: bit b for block b. */
template <class C> static __device__ __forceinline__ uint32_t item_blocks(const tile_item &i)
{
    if (C::CLUSTER > 1) return (1u << C::CLUSTER * C::BLOCKS) - 1;
    return ((1u << C::BLOCKS) - 1) << i.half * C::BLOCKS;
}

/* Offsets in shared memory: barriers and sizes, items, the ring of weights, two stages. */
enum {
    AT_FULL = 0, /* [8] and [8]: the ring */
    AT_EMPTY = 64,
    AT_STAGED = 128, /* [2] each: the stages */
    AT_SIZED = 144,
    AT_FREE = 160,
    AT_SIZES = 176, /* float [2][4] */
    AT_GIVEN = 208, /* [ITEMS] */
    AT_TOLD = 240,  /* clusters: AT_NEXT holds the next item; it has been read */
    AT_READ = 248,
    AT_ITEMS = 256,  /* [ITEMS] */
    AT_SCALES = 768, /* float [8]: inverse scales of the weights in the ring */
    AT_NEXT = 800,
    AT_RING = 1024
};

/* Items in flight: the tile_item, and a copy of struct pnet_tile up to its rows. The place of an item is reused once all
   threads have freed a stage of the item after it. */
enum {
    ITEMS = 4,
    ITEM_TILE = 16,
    ITEM_REST = ITEM_TILE + 16, /* longest, rounds */
    ITEM_FIRST = ITEM_TILE + 24,
    ITEM_BYTES = 128
};
static_assert(offsetof(pnet_tile, row) == 96 && offsetof(pnet_tile, neighbours) == 8 &&
                  offsetof(pnet_tile, longest) == 16 && offsetof(pnet_tile, rounds) == 20 &&
                  offsetof(pnet_tile, first) == 24,
    "tiles are read word by word");

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

static __device__ __forceinline__ bool is_dense(const tile_launch &l)
{
    return !l.p.set.start;
}

/* Waits until the n-th item is known; returns its place in shared memory. */
static __device__ __forceinline__ uint32_t item_wait(uint32_t shared, uint32_t n)
{
    barrier_wait(shared + AT_GIVEN + n % ITEMS * 8, n / ITEMS & 1);
    return shared + AT_ITEMS + n % ITEMS * ITEM_BYTES;
}

static __device__ __forceinline__ int64_t two_words(uint32_t low, uint32_t high)
{
    return (int64_t)((uint64_t)high << 32 | low);
}

static __device__ __forceinline__ tile_item item_load(uint32_t item)
{
    uint4 x = shared_load(item);
    return {two_words(x.x, x.y), (int)(x.z % 2), (int)x.w, (int)(x.z / 2)};
}

/* The list of an item's tile. A dense product has no list: the only neighbour of a row is the row itself, in cell 0. */
struct tile_list {
    const int32_t *neighbour;
    const pnet_tile_cell *cells;
    const uint32_t *words; /* words of the rounds */
    int neighbours, count; /* numbers of neighbours (-1: no list) and of cells */
};

static __device__ __forceinline__ tile_list list_load(const tile_launch &l, uint32_t item)
{
    uint4 t = shared_load(item + ITEM_TILE);
    int neighbours = (int)t.z, count = (int)t.w;
    if (is_dense(l)) return {nullptr, nullptr, nullptr, neighbours, count};
    const uint32_t *list = l.p.set.tiles.list + two_words(t.x, t.y);
    const pnet_tile_cell *cells = (const pnet_tile_cell *)(list + (neighbours + 3) / 4 * 4);
    return {(const int32_t *)list, cells, (const uint32_t *)(cells + count), neighbours, count};
}

/* Gives out an item. The first of the staging warps does it. */
template <class C>
static __device__ __forceinline__ void item_give(
    const tile_launch &l, uint32_t shared, uint32_t n, int64_t at)
{
    uint32_t to = shared + AT_ITEMS + n % ITEMS * ITEM_BYTES, lane = threadIdx.x % 32;
    bool over = at >= item_count<C>(l);
    tile_item item = item_at<C>(l, at);
    if (over) item.tile = -1;
    if (lane == 0)
        shared_store(to, uint4{(uint32_t)item.tile, (uint32_t)(item.tile >> 32),
                             (uint32_t)(item.half + 2 * item.wide), (uint32_t)item.group});
    if (!over && lane < offsetof(pnet_tile, row) / 4) {
        uint32_t word;
        if (is_dense(l)) { /* neighbours, cells, longest; the rest is 0 */
            int64_t left = pnet_live(l.p.set.rows) - item_row<C>(item);
            word = lane == 2 ? (uint32_t)min(left, (int64_t)C::ROWS) : lane == 3 || lane == 4;
        } else {
            word = __ldg((const uint32_t *)(l.p.set.tiles.tile + item.tile) + lane);
        }
        shared_store(to + ITEM_TILE + lane * 4, word);
    }
    barrier_arrive(shared + AT_GIVEN + n % ITEMS * 8);
}

/* Tells whether a tile takes both stages: few tiles have more neighbours than one stage holds. Neighbours that do not fit
   both stages are read from global memory. */
static __device__ __forceinline__ bool takes_both(const tile_launch &l, int neighbours)
{
    return neighbours >= l.slots;
}

static __device__ __forceinline__ int staged_count(const tile_launch &l, int neighbours)
{
    return max(0, min(neighbours, 2 * l.slots - 1));
}

/* Returns the address of slot 0. */
template <class C>
static __device__ __forceinline__ uint32_t stage_at(
    const tile_launch &l, uint32_t shared, uint32_t turn, bool both)
{
    uint32_t first = shared + AT_RING + C::RING * C::BLOCK;
    return both || turn % 2 == 0 ? first : first + l.slots * C::STAGED;
}

template <class C>
static __device__ __forceinline__ tile_source source_at(
    const tile_launch &l, const tile_item &i, int deep)
{
    int width = l.p.groups.cin;
    return {l.p.in, l.p.set.rows.storage, l.p.cin, i.group * width + deep * C::DEPTH,
        width - deep * C::DEPTH, l.wide, C::BY_TILE ? __ldg(l.scales + i.tile) : 1.0f};
}

/* Returns the index of a block of weights. */
static __device__ __forceinline__ int64_t weights_at(
    const tile_launch &l, const tile_item &i, int64_t cell, int deep)
{
    return ((cell * l.p.groups.count + i.group) * l.b.deep + deep) * l.b.wide + i.wide - l.b.first;
}

/* Starts the copy of a block of weights. In a cluster, each block of threads copies one half of it to all blocks. */
template <class C>
static __device__ __forceinline__ void feed_block(
    const tile_launch &l, uint32_t shared, uint32_t place, int64_t block)
{
    constexpr int PART = C::BLOCK / C::CLUSTER;
    uint32_t part = C::CLUSTER > 1 ? blockIdx.x % C::CLUSTER * PART : 0,
             to = shared + AT_RING + place * C::BLOCK + part, full = shared + AT_FULL + place * 8;
    const unsigned char *from = l.blocks + block * C::BLOCK + part;
    if constexpr (C::CLUSTER > 1)
        copy_bulk_shared(to, from, PART, full, (1 << C::CLUSTER) - 1);
    else
        copy_bulk(to, from, PART, full);
}

/* Called when a warp has used a block of weights: frees its place in the ring. */
template <class C> static __device__ __forceinline__ void free_block(uint32_t empty)
{
    uint32_t lane = threadIdx.x % 32;
    if constexpr (C::CLUSTER > 1) {
        if (lane < C::CLUSTER) barrier_arrive_at(empty, lane);
    } else {
        if (lane == 0) barrier_arrive(empty);
    }
}

/* Copies weights: a block for each cell of an item and DEPTH channels. One warp does it. */
template <class C> static __device__ void feed_weights(const tile_launch &l, uint32_t shared)
{
    int lane = threadIdx.x % 32;
    uint32_t turn = 0, chunk = 0;
    for (uint32_t n = 0;; n++) {
        uint32_t here = item_wait(shared, n);
        tile_item item = item_load(here);
        if (item.tile < 0) return;
        tile_list t = list_load(l, here);
        uint32_t mine = item_blocks<C>(item);
        for (int deep = 0; deep < l.b.deep; deep++, chunk++) {
            for (int c0 = 0; c0 < t.count; c0 += 32) {
                int c = c0 + lane;
                bool any = c < t.count && (!t.cells || t.cells[c].blocks & mine);
                int64_t cell = any && t.cells ? t.cells[c].cell : 0,
                        block = weights_at(l, item, cell, deep);
                float scale = 1;
                if (C::SCALED && any) scale = __ldg(conv_block_scales(l.b, l.blocks) + block);
                    /* in order: a lane waits for the one before it */
#pragma unroll 1
                for (uint32_t left = __ballot_sync(~0u, any); left; left &= left - 1, turn++) {
                    uint32_t place = turn % C::RING;
                    if (lane == __ffs(left) - 1) {
                        if (turn >= C::RING)
                            barrier_wait(shared + AT_EMPTY + place * 8, (turn / C::RING - 1) & 1);
                        if (C::SCALED)
                            shared_store(shared + AT_SCALES + place * 4, __float_as_uint(scale));
                        barrier_expect(shared + AT_FULL + place * 8, C::BLOCK);
                        feed_block<C>(l, shared, place, block);
                    }
                    __syncwarp();
                }
            }
            /* even for an item without cells: the item's place is reused when its stage is free. Without the wait this warp
               could arrive twice in one phase of the barrier */
            if (chunk >= 2) barrier_wait(shared + AT_FREE + chunk % 2 * 8, (chunk / 2 - 1) & 1);
            barrier_arrive(shared + AT_FREE + chunk % 2 * 8);
        }
    }
}

/* Returns the row of neighbour i. `row0`: the first row of the item. */
static __device__ __forceinline__ int64_t neighbour_at(const tile_list &t, int64_t row0, int i)
{
    return t.neighbour ? __ldg(t.neighbour + i) : row0 + i; /* dense: no list */
}

/* Returns the largest magnitude among staged numbers. Consumers choose a scale from it, so that sums of runs stay in the
   range of half. */
template <class C>
static __device__ __forceinline__ float stage_size(
    uint32_t stage, int staged, const tile_source &from, const tile_list &t, int64_t row0)
{
    int thread = threadIdx.x - C::CONSUMERS - 32;
    float most = 0;
    for (int i = thread; i < staged * C::UNITS; i += TILE_STAGERS) {
        uint4 v = shared_load(stage + i * 16);
        most = fmaxf(fmaxf(fmaxf(most, conv_finite_size(__uint_as_float(v.x))),
                         conv_finite_size(__uint_as_float(v.y))),
            fmaxf(conv_finite_size(__uint_as_float(v.z)), conv_finite_size(__uint_as_float(v.w))));
    }
    for (int i = staged * C::UNITS + thread; i < t.neighbours * C::UNITS; i += TILE_STAGERS) {
        int channel = i % C::UNITS * C::UNIT;
        for (int j = 0; j < C::UNIT; j++)
            most = fmaxf(most, conv_finite_size(source_value(
                                   from, neighbour_at(t, row0, i / C::UNITS), channel + j)));
    }
    return __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(most)));
}

/* Stages units of any storage and alignment. */
template <class C>
static __device__ __forceinline__ void stage_units(
    uint32_t stage, int units, const tile_source &from, const tile_list &t, int64_t row0)
{
#pragma unroll 1
    for (int i = threadIdx.x - C::CONSUMERS - 32; i < units; i += TILE_STAGERS)
        shared_store(stage + i * 16,
            source_unit<C>(from, neighbour_at(t, row0, i / C::UNITS), i % C::UNITS * C::UNIT));
}

/* Starts copies of rows whose staged form equals their storage, a unit at a time. */
template <class C>
static __device__ __forceinline__ void stage_copies(
    uint32_t stage, int units, const tile_source &from, const tile_list &t, int64_t row0)
{
    constexpr int AT_ONCE = C::SCALED ? 4 : 8;
    int thread = threadIdx.x - C::CONSUMERS - 32, channel = thread % C::UNITS * C::UNIT;
    bool any = channel < from.left;
    int64_t bytes = (int64_t)from.stride * source_bytes(from);
    const char *in =
        (const char *)from.in + (int64_t)(from.first + (any ? channel : 0)) * source_bytes(from);
    /* several at a time, because the numbers of their rows must be read first */
    for (int i0 = thread; i0 < units; i0 += TILE_STAGERS * AT_ONCE) {
        int64_t row[AT_ONCE];
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            int i = min(i0 + j * TILE_STAGERS, units - 1);
            row[j] = neighbour_at(t, row0, i / C::UNITS);
        }
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            int i = i0 + j * TILE_STAGERS;
            if (i < units) copy16_any(stage + i * 16, in + row[j] * bytes, any);
        }
    }
}

/* What a lane loads to stage a word: the word itself, two numbers of 16 bits at any address, or two floats. */
enum tile_word { TILE_WORD, TILE_HALVES, TILE_FLOATS };

template <class C, tile_word WORD>
static __device__ __forceinline__ uint32_t join_word(uint32_t x, uint32_t y, float scale)
{
    if constexpr (WORD == TILE_WORD) return x;
    if constexpr (WORD == TILE_HALVES) return x | y << 16;
    return stage_pair<C>(__uint_as_float(x), __uint_as_float(y), scale);
}

/* Stages units that can be read only by words or by numbers. The neighbours of the next units are requested meanwhile. */
template <class C, tile_word WORD>
static __device__ __forceinline__ void stage_words(
    uint32_t stage, int units, const tile_source &from, const tile_list &t, int64_t row0)
{
    /* channels of a word */
    constexpr int AT_ONCE = C::FEWER > 32 ? 2 : 1, CHANNELS = C::UNIT / 4;
    using T = typename std::conditional<WORD == TILE_HALVES, uint16_t, uint32_t>::type;
    int thread = threadIdx.x - C::CONSUMERS - 32;
    if (thread >= units) return;
    int channel = thread % C::UNITS * C::UNIT, left = from.left - channel;
    int64_t bytes = (int64_t)from.stride * source_bytes(from);
    const char *in = (const char *)from.in + (int64_t)(from.first + channel) * source_bytes(from);
    int32_t row[AT_ONCE];
    auto ask = [&](int i) {
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++)
            row[j] =
                (int32_t)neighbour_at(t, row0, min(i + j * TILE_STAGERS, units - 1) / C::UNITS);
    };
    ask(thread);
#pragma unroll 1
    for (int i = thread; i < units; i += AT_ONCE * TILE_STAGERS) {
        uint32_t x[AT_ONCE][4] = {}, y[AT_ONCE][4] = {};
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            const T *at = (const T *)(in + row[j] * bytes);
#pragma unroll
            for (int k = 0; k < 4; k++) {
                if (k * CHANNELS >= left) continue;
                x[j][k] = at[WORD == TILE_WORD ? k : 2 * k];
                if (WORD != TILE_WORD && 2 * k + 1 < left) y[j][k] = at[2 * k + 1];
            }
        }
        ask(i + AT_ONCE * TILE_STAGERS);
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++)
            if (i + j * TILE_STAGERS < units)
                shared_store(stage + (i + j * TILE_STAGERS) * 16,
                    uint4{join_word<C, WORD>(x[j][0], y[j][0], from.scale),
                        join_word<C, WORD>(x[j][1], y[j][1], from.scale),
                        join_word<C, WORD>(x[j][2], y[j][2], from.scale),
                        join_word<C, WORD>(x[j][3], y[j][3], from.scale)});
    }
}

/* Stages floats as 16 bits, two units at a time. The neighbours of the next two are requested meanwhile. */
template <class C>
static __device__ __forceinline__ void stage_floats(
    uint32_t stage, int units, const tile_source &from, const tile_list &t, int64_t row0)
{
    constexpr int AT_ONCE = 2;
    int thread = threadIdx.x - C::CONSUMERS - 32;
    if (thread >= units) return;
    const float *in = (const float *)from.in + from.first + thread % C::UNITS * C::UNIT;
    int64_t row[AT_ONCE];
    auto ask = [&](int i) {
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++)
            row[j] = neighbour_at(t, row0, min(i + j * TILE_STAGERS, units - 1) / C::UNITS);
    };
    ask(thread);
#pragma unroll 1
    for (int i = thread; i < units; i += AT_ONCE * TILE_STAGERS) {
        float4 x[AT_ONCE], y[AT_ONCE];
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            const float4 *at = (const float4 *)(in + row[j] * from.stride);
            x[j] = at[0];
            y[j] = at[1];
        }
        ask(i + AT_ONCE * TILE_STAGERS);
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++)
            if (i + j * TILE_STAGERS < units)
                shared_store(
                    stage + (i + j * TILE_STAGERS) * 16, narrow_floats<C>(x[j], y[j], from.scale));
    }
}

/* Stages rows whose last units may be incomplete. */
template <class C>
static __device__ __forceinline__ void stage_uneven(const tile_launch &l, uint32_t stage, int units,
    const tile_source &from, const tile_list &t, int64_t row0)
{
    if (from.storage == C::STORED && l.words)
        return stage_words<C, TILE_WORD>(stage, units, from, t, row0);
    if constexpr (!C::SCALED) {
        if (from.storage == C::STORED)
            return stage_words<C, TILE_HALVES>(stage, units, from, t, row0);
        if (from.storage == PNET_STORE_F32)
            return stage_words<C, TILE_FLOATS>(stage, units, from, t, row0);
    }
    stage_units<C>(stage, units, from, t, row0);
}

/* Returns the n-th item of this block of threads. `then`, in lane 0: its number in the order in which items are given out.
   In a cluster the first block passes the item to the other one. */
template <class C>
static __device__ __forceinline__ int64_t item_next(
    const tile_launch &l, uint32_t shared, uint32_t n, unsigned long long then)
{
    int64_t first = blockIdx.x / C::CLUSTER, at = gridDim.x / C::CLUSTER;
    if (n == 0) return first;
    if (C::CLUSTER > 1 && blockIdx.x % C::CLUSTER) {
        barrier_wait_cluster(shared + AT_TOLD, (n - 1) & 1);
        at += shared_load_word(shared + AT_NEXT);
        __syncwarp();
        if (threadIdx.x % 32 == 0) barrier_tell(shared + AT_READ, 0);
        return at;
    }
    then = __shfl_sync(~0u, then, 0);
    if (C::CLUSTER > 1) {
        if (n > 1) barrier_wait_cluster(shared + AT_READ, n & 1);
        if (threadIdx.x % 32 == 0) {
            shared_store_at(shared + AT_NEXT, (uint32_t)then, 1);
            barrier_tell(shared + AT_TOLD, 1);
        }
    }
    return at + (int64_t)then;
}

/* Three warps stage neighbours, from slot 1 on, into two stages in turn. */
template <class C> static __device__ void stage_neighbours(const tile_launch &l, uint32_t shared)
{
    int thread = threadIdx.x - C::CONSUMERS - 32;
    uint32_t turn = 0;
    bool before = false; /* the previous chunk took both stages */
    unsigned long long then = 0;
    for (uint32_t n = 0;; n++) {
        if (thread < 32) {
            item_give<C>(l, shared, n, item_next<C>(l, shared, n, then));
            if (thread == 0 && blockIdx.x % C::CLUSTER == 0) then = atomicAdd(l.taken, 1ull);
        }
        uint32_t here = item_wait(shared, n);
        tile_item item = item_load(here);
        if (item.tile < 0) return;
        tile_list t = list_load(l, here);
        int64_t row0 = item_row<C>(item);
        int units = staged_count(l, t.neighbours) * C::UNITS;
        bool both = takes_both(l, t.neighbours);
        if (thread == 0 && t.count > 0 && !is_dense(l))
            prefetch_bulk(
                t.cells, (uint32_t)(t.count * sizeof(pnet_tile_cell) +
                                    shared_load_word(here + ITEM_REST + 4) * ROUND_BYTES));
        for (int deep = 0; deep < l.b.deep; deep++, turn++) {
            uint32_t place = turn % 2, barrier = shared + AT_STAGED + place * 8;
            tile_source from = source_at<C>(l, item, deep);
            uint32_t zeros = stage_at<C>(l, shared, turn, both), stage = zeros + C::STAGED;
            if (turn >= 2) barrier_wait(shared + AT_FREE + place * 8, (turn / 2 - 1) & 1);
            if (turn >= 1 && (both || before))
                barrier_wait(shared + AT_FREE + (1 - place) * 8, (turn - 1) / 2 & 1);
            before = both;
            if ((C::EVEN && C::SCALED) || (l.wide && from.storage == C::STORED)) {
                stage_copies<C>(stage, units, from, t, row0);
                if (thread < C::UNITS) copy16_zeros(zeros + thread * 16, l.blocks);
                barrier_arrive_copies(barrier);
            } else {
                if constexpr (C::EVEN)
                    stage_floats<C>(stage, units, from, t, row0);
                else
                    stage_uneven<C>(l, stage, units, from, t, row0);
                if (thread < C::UNITS) shared_store(zeros + thread * 16, uint4{0, 0, 0, 0});
                barrier_arrive(barrier);
            }
            if constexpr (C::SCALED) {
                barrier_wait(barrier, turn / 2 & 1);
                float most = stage_size<C>(stage, units / C::UNITS, from, t, row0);
                if (thread % 32 == 0)
                    shared_store(
                        shared + AT_SIZES + place * 16 + thread / 32 * 4, __float_as_uint(most));
                barrier_arrive(shared + AT_SIZED + place * 8);
            }
        }
    }
}
#endif
#endif
