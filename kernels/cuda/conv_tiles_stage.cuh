/* What a block of threads that multiplies tiles has to do, and the warps that bring what is needed for it: weights, and
   the neighbours of a tile. */
#ifndef PNET_KERNELS_CUDA_CONV_TILES_STAGE_CUH
#define PNET_KERNELS_CUDA_CONV_TILES_STAGE_CUH

#include "kernels/cuda/conv_tiles_gather.cuh"

enum {
    TILE_CONSUMERS = 256,
    TILE_STAGERS = 96,
    TILE_THREADS = TILE_CONSUMERS + 32 + TILE_STAGERS,
    TILE_SHARED = 227 << 10,
    TILE_TOP = 7,
    TILE_TOP_RUN = 256 /* sums of so many stay below 2^(TILE_TOP + 8) */
};

/* What a launch knows. */
struct tile_launch {
    conv_product p;
    conv_blocks b;
    const unsigned char *blocks; /* packed weights */
    int slots;                   /* rows of a stage, that of zeros among them */
    bool wide, bulk;             /* units can be read at once; whole rows can be copied */
};

/* A piece of work: some rows of a tile, a group, some output channels. */
struct tile_item {
    int64_t tile;
    int half, group, wide;
};

template <class C>
static __device__ __forceinline__ tile_item item_at(const tile_launch &l, int64_t i)
{
    constexpr int HALVES = PNET_TILE_ROWS / C::ROWS;
    int ways = l.p.groups.count * l.b.wide;
    int64_t part = ways == 1 ? i : i / ways;
    int way = (int)(i - part * ways);
    return {part / HALVES, (int)(part % HALVES), way / l.b.wide, way % l.b.wide};
}

template <class C> static __device__ __forceinline__ int64_t item_count(const tile_launch &l)
{
    int64_t parts = (pnet_live(l.p.set.rows) + C::ROWS - 1) / C::ROWS;
    return parts * l.p.groups.count * l.b.wide;
}

template <class C> static __device__ __forceinline__ uint32_t item_blocks(const tile_item &i)
{
    return C::BLOCKS == 2 ? 15 : 3u << 2 * i.half;
}

/* Shared memory: barriers and sizes, the ring of weights, two stages. */
enum {
    AT_FULL = 0, /* [8] and [8]: the ring */
    AT_EMPTY = 64,
    AT_STAGED = 128, /* [2] each: the stages */
    AT_SIZED = 144,
    AT_FREE = 160,
    AT_SIZES = 176,       /* float [2][TILE_STAGERS / 32] */
    AT_ROUNDS_FULL = 256, /* [8 warps][2 slabs][4] */
    AT_ROUNDS = 1024,     /* [8][2]: rings of rounds */
    AT_RING = AT_ROUNDS + 16 * ROUNDS_RING * ROUND_BYTES
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

static __device__ __forceinline__ bool is_dense(const tile_launch &l)
{
    return !l.p.set.start;
}

/* What an item's tile lists. In a dense product, where a row's one neighbour is itself, nothing is listed: the
   neighbours are the item's rows in their order, from `first` on, and all have cell 0. */
struct tile_list {
    const int32_t *neighbour;
    const pnet_tile_cell *cells;
    const uint32_t *words; /* of the rounds */
    int64_t first;
    int neighbours, count;
};

template <class C>
static __device__ __forceinline__ tile_list list_at(const tile_launch &l, const tile_item &i)
{
    const conv_set &s = l.p.set;
    if (is_dense(l)) {
        int64_t first = i.tile * PNET_TILE_ROWS + i.half * C::ROWS, live = pnet_live(s.rows);
        return {nullptr, nullptr, nullptr, first,
            (int)(live - first < C::ROWS ? live - first : C::ROWS), 1};
    }
    const pnet_tile &t = s.tiles.tile[i.tile];
    const uint32_t *list = s.tiles.list + t.at;
    const pnet_tile_cell *cells =
        (const pnet_tile_cell *)(list + (t.neighbours + 3) / 4 * 4); /* none with neighbours = -1 */
    return {(const int32_t *)list, cells, (const uint32_t *)(cells + t.cells), 0, t.neighbours,
        t.cells};
}

/* Few tiles have more neighbours than a stage holds: those take both, one behind the other. What goes beyond is read
   from global memory. */
static __device__ __forceinline__ bool takes_both(const tile_launch &l, int neighbours)
{
    return neighbours >= l.slots;
}

static __device__ __forceinline__ int staged_count(const tile_launch &l, int neighbours)
{
    return max(0, min(neighbours, 2 * l.slots - 1));
}

/* Slot 0. */
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
        width - deep * C::DEPTH, l.wide};
}

/* Which block of weights. */
static __device__ __forceinline__ int64_t weights_at(
    const tile_launch &l, const tile_item &i, int64_t cell, int deep)
{
    return ((cell * l.p.groups.count + i.group) * l.b.deep + deep) * l.b.wide + i.wide;
}

/* One warp brings the weights: a block for each cell of an item and DEPTH channels. */
template <class C> static __device__ void feed_weights(const tile_launch &l, uint32_t shared)
{
    int lane = threadIdx.x % 32;
    uint32_t turn = 0;
    int64_t items = item_count<C>(l);
    for (int64_t at = blockIdx.x; at < items; at += gridDim.x) {
        tile_item item = item_at<C>(l, at);
        tile_list t = list_at<C>(l, item);
        for (int deep = 0; deep < l.b.deep; deep++) {
            for (int c0 = 0; c0 < t.count; c0 += 32) {
                bool any = false;
                int64_t cell = 0;
                if (c0 + lane < t.count) {
                    any = is_dense(l) || t.cells[c0 + lane].blocks & item_blocks<C>(item);
                    cell = is_dense(l) ? 0 : t.cells[c0 + lane].cell;
                }
                int64_t block = weights_at(l, item, cell, deep);
                uint32_t before = __popc(__ballot_sync(~0u, any) & ((1u << lane) - 1)),
                         all = __popc(__ballot_sync(~0u, any));
                /* in order: a lane waits for the one before it */
#pragma unroll 1
                for (uint32_t i = 0; i < all; i++) {
                    uint32_t now = turn + i, place = now % C::RING;
                    if (any && before == i) {
                        if (now >= C::RING)
                            barrier_wait(shared + AT_EMPTY + place * 8, (now / C::RING - 1) & 1);
                        barrier_expect(shared + AT_FULL + place * 8, C::BLOCK);
                        copy_bulk(shared + AT_RING + place * C::BLOCK, l.blocks + block * C::BLOCK,
                            C::BLOCK, shared + AT_FULL + place * 8);
                    }
                    __syncwarp();
                }
                turn += all;
            }
        }
    }
}

static __device__ __forceinline__ int64_t neighbour_at(const tile_list &t, int i)
{
    return t.neighbour ? __ldg(t.neighbour + i) : t.first + i; /* of none, none is asked for */
}

/* The largest number that is gathered of the rows of a stage; sums of a tile's runs stay in half's range when it is
   scaled by what consumers make of it. */
template <class C>
static __device__ __forceinline__ float stage_size(
    uint32_t stage, int staged, const tile_source &from, const tile_list &t)
{
    int thread = threadIdx.x - TILE_CONSUMERS - 32;
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
            most = fmaxf(most,
                conv_finite_size(source_value(from, neighbour_at(t, i / C::UNITS), channel + j)));
    }
    return __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(most)));
}

/* Three warps stage neighbours, from slot 1 on, into two stages in turn. */
template <class C> static __device__ void stage_neighbours(const tile_launch &l, uint32_t shared)
{
    constexpr int AT_ONCE = 4;
    int thread = threadIdx.x - TILE_CONSUMERS - 32;
    uint32_t turn = 0;
    bool before = false; /* the chunk before takes both */
    int64_t items = item_count<C>(l);
    for (int64_t at = blockIdx.x; at < items; at += gridDim.x) {
        tile_item item = item_at<C>(l, at);
        tile_list t = list_at<C>(l, item);
        int units = staged_count(l, t.neighbours) * C::UNITS;
        bool both = takes_both(l, t.neighbours);
        if (thread == 0 && t.count > 0 && !is_dense(l))
            prefetch_bulk(t.cells, (uint32_t)(t.count * sizeof(pnet_tile_cell) +
                                              l.p.set.tiles.tile[item.tile].rounds * ROUND_BYTES));
        for (int deep = 0; deep < l.b.deep; deep++, turn++) {
            uint32_t place = turn % 2, barrier = shared + AT_STAGED + place * 8;
            tile_source from = source_at<C>(l, item, deep);
            uint32_t zeros = stage_at<C>(l, shared, turn, both), stage = zeros + C::STAGED;
            if (turn >= 2) barrier_wait(shared + AT_FREE + place * 8, (turn / 2 - 1) & 1);
            if (turn >= 1 && (both || before))
                barrier_wait(shared + AT_FREE + (1 - place) * 8, (turn - 1) / 2 & 1);
            before = both;
            if (l.bulk) {
                int64_t bytes = (int64_t)from.stride * source_bytes(from);
                const char *in = (const char *)from.in + (int64_t)from.first * source_bytes(from) +
                                 thread % C::UNITS * 16;
                /* several at a time, since their rows must be read first */
                for (int i0 = thread; i0 < units; i0 += TILE_STAGERS * AT_ONCE) {
                    int64_t row[AT_ONCE];
#pragma unroll
                    for (int j = 0; j < AT_ONCE; j++) {
                        int i = min(i0 + j * TILE_STAGERS, units - 1);
                        row[j] = neighbour_at(t, i / C::UNITS);
                    }
#pragma unroll
                    for (int j = 0; j < AT_ONCE; j++) {
                        int i = i0 + j * TILE_STAGERS;
                        if (i < units) copy16(stage + i * 16, in + row[j] * bytes);
                    }
                }
                if (thread < C::UNITS) copy16_zeros(zeros + thread * 16, l.p.in);
                barrier_arrive_copies(barrier);
            } else {
#pragma unroll 1
                for (int i = thread; i < units; i += TILE_STAGERS)
                    shared_store(stage + i * 16, source_unit<C>(from, neighbour_at(t, i / C::UNITS),
                                                     i % C::UNITS * C::UNIT));
                if (thread < C::UNITS) shared_store(zeros + thread * 16, uint4{0, 0, 0, 0});
                barrier_arrive(barrier);
            }
            if constexpr (C::SCALED) {
                barrier_wait(barrier, turn / 2 & 1);
                float most = stage_size<C>(stage, units / C::UNITS, from, t);
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
