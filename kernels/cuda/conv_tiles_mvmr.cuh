/* MVMR on tiles (kernels/geometry.h). A block of threads goes from tile to tile. One warp starts copies of the weights that
   the tile's cells need, three more stage its distinct neighbours, some channels at a time and one step ahead, while two
   warpgroups sum the runs of cell after cell straight into the registers that the matrix unit reads. A warpgroup has
   two blocks of 64 rows (one where sums must be taken out of the matrix unit): it gathers for one while the other is
   multiplied. */
#ifndef PNET_KERNELS_CUDA_CONV_TILES_MVMR_CUH
#define PNET_KERNELS_CUDA_CONV_TILES_MVMR_CUH

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

/* Issues the products of one block of weights; small ones first, so that little is lost when sums are cut off. */
template <class C>
static __device__ __forceinline__ void multiply_tile(
    float (&sum)[C::COLUMNS / 2], const uint32_t (&a)[C::PLANES][C::STEPS][4], uint32_t block)
{
    constexpr int FRESH = C::SCALED;
    uint64_t high = product_matrix<C::DEPTH * 2>(block);
    if constexpr (C::SPLIT) {
        uint64_t low = product_matrix<C::DEPTH * 2>(block + C::PLANE);
#pragma unroll
        for (int i = 0; i < C::STEPS; i++) {
            product<C::COLUMNS, C::BFLOAT>(sum, a[0][i], low + 2 * i, i == 0 ? FRESH : 0);
            product<C::COLUMNS, C::BFLOAT>(sum, a[1][i], high + 2 * i, 0);
        }
    }
#pragma unroll
    for (int i = 0; i < C::STEPS; i++)
        product<C::COLUMNS, C::BFLOAT>(sum, a[0][i], high + 2 * i, i == 0 && !C::SPLIT ? FRESH : 0);
}

/* Makes of sums what belongs into the output at `at`, and writes it; the storage is looked at here, not outside, for the
   sake of the size of the code. */
static __device__ __forceinline__ void write_one(const conv_product &p, int64_t at, float v)
{
    const conv_end &e = p.end;
    switch (p.set.rows.storage) {
    case PNET_STORE_F32:
        e.out[at] = e.add ? e.out[at] + v : conv_activate(v, e.act, e.slope);
        break;
    case PNET_STORE_BF16: {
        __nv_bfloat16 *to = (__nv_bfloat16 *)e.out + at;
        narrow(e.add ? widen(*to) + v : conv_activate(v, e.act, e.slope), to);
        break;
    }
    case PNET_STORE_FP16: {
        __half *to = (__half *)e.out + at;
        narrow(e.add ? widen(*to) + v : conv_activate(v, e.act, e.slope), to);
        break;
    }
    }
}

/* The same for two that follow each other, at an even place. */
static __device__ __forceinline__ void write_two(
    const conv_product &p, int64_t at, float v, float w)
{
    const conv_end &e = p.end;
    bool wide = p.set.rows.storage == PNET_STORE_F32,
         bfloat = p.set.rows.storage == PNET_STORE_BF16;
    float2 *two = (float2 *)(e.out + at);
    uint32_t *word = (uint32_t *)((uint16_t *)e.out + at);
    if (e.add) {
        float2 old;
        if (wide)
            old = *two;
        else
            old = bfloat ? widen_pair<__nv_bfloat16>(*word) : widen_pair<__half>(*word);
        v += old.x;
        w += old.y;
    } else {
        v = conv_activate(v, e.act, e.slope);
        w = conv_activate(w, e.act, e.slope);
    }
    if (wide)
        *two = {v, w};
    else
        *word = bfloat ? narrow_pair<__nv_bfloat16>(v, w) : narrow_pair<__half>(v, w);
}

/* Writes the sums of a block of 64 rows. */
template <class C>
static __device__ __forceinline__ void write_block(const tile_launch &l, const tile_item &item,
    const float (&sum)[C::COLUMNS / 2], int block, int64_t live)
{
    const conv_product &p = l.p;
    int lane = threadIdx.x % 32, first = item.group * p.groups.cout;
    int64_t row0 = item.tile * PNET_TILE_ROWS + block * 64 + threadIdx.x % 128 / 32 * 16 + lane / 4;
    if ((p.cout | p.groups.cout) % 2) { /* from local memory, where registers have an index */
        float copy[C::COLUMNS / 2];
#pragma unroll
        for (int i = 0; i < C::COLUMNS / 2; i++) copy[i] = sum[i];
#pragma unroll 1
        for (int i = 0; i < C::COLUMNS / 2; i++) {
            int c = item.wide * C::COLUMNS + i / 4 * 8 + lane % 4 * 2 + i % 2;
            int64_t row = row0 + i / 2 % 2 * 8;
            if (row >= live || c >= p.groups.cout) continue;
            float bias = p.end.bias ? p.end.bias[first + c] : 0;
            write_one(p, row * p.cout + first + c, copy[i] + bias);
        }
        return;
    }
#pragma unroll
    for (int j = 0; j < C::COLUMNS / 8; j++) {
        int c = item.wide * C::COLUMNS + 8 * j + lane % 4 * 2;
        if (c >= p.groups.cout) continue;
        float2 bias = {0, 0};
        if (p.end.bias) bias = {p.end.bias[first + c], p.end.bias[first + c + 1]};
#pragma unroll
        for (int h = 0; h < 2; h++)
            if (row0 + 8 * h < live)
                write_two(p, (row0 + 8 * h) * p.cout + first + c, sum[4 * j + 2 * h] + bias.x,
                    sum[4 * j + 2 * h + 1] + bias.y);
    }
}

/* The rows of an item whose tile lists nothing. */
template <class C>
static __device__ void write_plain(const tile_launch &l, const tile_item &item, int64_t live)
{
    const conv_product &p = l.p;
    int64_t row0 = item.tile * PNET_TILE_ROWS + item.half * C::ROWS;
    tile_source from = source_at<C>(l, item, 0);
#pragma unroll 1
    for (int i = threadIdx.x; i < C::ROWS * C::COLUMNS; i += TILE_CONSUMERS) {
        int64_t row = row0 + i / C::COLUMNS;
        int column = item.wide * C::COLUMNS + i % C::COLUMNS,
            to = item.group * p.groups.cout + column;
        if (row >= live || column >= p.groups.cout) continue;
        double sum = p.end.bias ? p.end.bias[to] : 0;
#pragma unroll 1
        for (int64_t n = p.set.start[row]; n < p.set.start[row + 1]; n++)
#pragma unroll 1
            for (int c = 0; c < p.groups.cin; c++)
                sum += (double)source_value(from, p.set.other[n], c) *
                       (double)conv_weight(p.weight, p.groups, p.cin, p.cout, p.transposed,
                           p.set.cell[n], item.group, c, column);
        write_one(p, row * p.cout + to, (float)sum);
    }
}

/* What a warp of the consumers knows of an item; cells 32 at a time, one a lane. */
template <class C> struct tile_view {
    tile_item item;
    int block, count, neighbours, longest;
    const pnet_tile_cell *cells;
    tile_gather gather;
    uint32_t blocks,
        runs[C::BLOCKS]; /* of the lane's cell: which blocks have it; rounds of the warp's slabs */
};

template <class C>
static __device__ __forceinline__ void view_cells(tile_view<C> &v, const tile_launch &l, int first)
{
    int c = first + threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
    bool here = c < v.count, dense = here && is_dense(l);
    v.blocks = dense ? 15 : here ? v.cells[c].blocks : 0;
#pragma unroll
    for (int i = 0; i < C::BLOCKS; i++)
        v.runs[i] = dense ? 1 : here ? v.cells[c].rounds[(v.block + i) * 4 + warp] : 0;
}

/* The one round of a slab of a dense product, `row0` of the item's rows being its first. It stays in the ring's first
   place, and of the others none is ever read: ready is never fallen short of. */
static __device__ __forceinline__ void write_dense_round(const tile_rounds &r, int row0, int rows)
{
    int lane = threadIdx.x % 32, row = row0 + lane;
    uint32_t low = row < rows ? row + 1 : 0, high = row + 8 < rows ? row + 9 : 0;
    if (lane < 8) shared_store(r.ring + lane * 4, low | high << 16);
    __syncwarp();
}

/* Looks at an item and sends for its first rounds. */
template <class C>
static __device__ __forceinline__ void view_item(
    tile_view<C> &v, tile_rounds (&rounds)[C::BLOCKS], const tile_launch &l, int64_t at)
{
    int warpgroup = threadIdx.x / 128, warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
    v.item = item_at<C>(l, at);
    tile_list list = list_at<C>(l, v.item);
    v.block = C::BLOCKS == 2 ? 2 * warpgroup : 2 * v.item.half + warpgroup;
    v.count = list.count;
    v.neighbours = list.neighbours;
    v.cells = list.cells;
    int odd = C::PIECES > 1 ? lane / 4 % 2 : 0;
    v.gather = {list.words, list.neighbour, staged_count(l, list.neighbours),
        list.neighbours >= 2 * l.slots, 0, 64 - 128 * odd};
    const pnet_tile *t = is_dense(l) ? nullptr : l.p.set.tiles.tile + v.item.tile;
    v.longest = t ? t->longest : 1;
#pragma unroll
    for (int i = 0; i < C::BLOCKS; i++) {
        int slab = (v.block + i) * 4 + warp;
        uint32_t first = 0, end = 0;
        if (t) {
            first = t->first[slab];
            end = slab + 1 < PNET_TILE_SLABS ? t->first[slab + 1] : t->rounds;
        }
        /* the same in all lanes, which the compiler cannot know */
        rounds[i].first = __shfl_sync(~0u, first, 0);
        rounds[i].count = __shfl_sync(~0u, end - first, 0);
        if (is_dense(l))
            write_dense_round(rounds[i], slab * 16 - v.item.half * C::ROWS, list.neighbours);
        rounds_begin(rounds[i], v.gather);
    }
    view_cells(v, l, 0);
}

/* By how much to scale what is gathered. */
static __device__ __forceinline__ float stage_scale(uint32_t shared, uint32_t place, int longest)
{
    uint4 sizes = shared_load(shared + AT_SIZES + place * 16);
    float most =
        fmaxf(fmaxf(__uint_as_float(sizes.x), __uint_as_float(sizes.y)), __uint_as_float(sizes.z));
    int top = TILE_TOP;
    for (int n = longest / TILE_TOP_RUN; n > 0; n /= 2) top--;
    return conv_scale(most, top);
}

/* Two warpgroups gather and multiply. */
template <class C> static __device__ void consume(const tile_launch &l, uint32_t shared)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int odd = C::PIECES > 1 ? lane / 4 % 2 : 0;
    int64_t items = item_count<C>(l), live = pnet_live(l.p.set.rows);
    const float *scales = conv_block_scales(l.b, l.blocks);
    /* sums; of those that must be taken out of the matrix unit, what it has now */
    float sum[C::BLOCKS][C::COLUMNS / 2], part[C::SCALED ? C::COLUMNS / 2 : 1] = {};
    float factor = 0;
    uint32_t a[C::PLANES][C::STEPS][4];
    uint32_t turn = 0, chunk = 0, pending = 0; /* the barrier of the weights in use */
    tile_rounds rounds[C::BLOCKS];
#pragma unroll
    for (int i = 0; i < C::BLOCKS; i++)
        rounds[i] = {shared + AT_ROUNDS + (warp * 2 + i) * ROUNDS_RING * ROUND_BYTES,
            shared + AT_ROUNDS_FULL + (warp * 2 + i) * 32, 0, 0, 0, 0, 0, 0};
    auto finish = [&]() {
        product_wait();
        if constexpr (C::SCALED) {
            product_touch(part);
#pragma unroll
            for (int i = 0; i < C::COLUMNS / 2; i++) sum[0][i] += part[i] * factor;
            factor = 0;
        } else {
#pragma unroll
            for (int i = 0; i < C::BLOCKS; i++) product_touch(sum[i]);
        }
    };
    auto release = [&]() {
        if (pending && lane == 0) barrier_arrive(pending);
        pending = 0;
    };
    tile_view<C> v;
    int64_t at = blockIdx.x;
    if (at < items) view_item<C>(v, rounds, l, at);
    while (at < items) {
#pragma unroll
        for (int i = 0; i < C::BLOCKS; i++)
#pragma unroll
            for (int j = 0; j < C::COLUMNS / 2; j++) sum[i][j] = 0;
        for (int deep = 0; deep < l.b.deep; deep++, chunk++) {
            uint32_t place = chunk % 2;
            v.gather.stage = stage_at<C>(l, shared, chunk, takes_both(l, v.neighbours)) +
                             lane % 4 * 16 + odd * 64;
            if (deep > 0) {
#pragma unroll
                for (int i = 0; i < C::BLOCKS; i++) rounds_begin(rounds[i], v.gather);
            }
            tile_source from = source_at<C>(l, v.item, deep);
            barrier_wait(shared + AT_STAGED + place * 8, chunk / 2 & 1);
            float scale = 1, unscale = 1;
            if constexpr (C::SCALED) {
                barrier_wait(shared + AT_SIZED + place * 8, chunk / 2 & 1);
                scale = stage_scale(shared, place, v.longest);
                unscale = 1 / scale;
            }
            for (int c0 = 0; c0 < v.count; c0 += 32) {
                if (c0 + deep > 0 && v.count > 32) view_cells(v, l, c0);
                uint32_t has[C::BLOCKS];
#pragma unroll
                for (int i = 0; i < C::BLOCKS; i++)
                    has[i] = __ballot_sync(~0u, v.blocks >> (v.block + i) & 1);
                for (uint32_t left = __ballot_sync(~0u, v.blocks & item_blocks<C>(v.item)); left;
                     left &= left - 1, turn++) {
                    int c = __ffs(left) - 1;
                    uint32_t slot = turn % C::RING, weights = shared + AT_RING + slot * C::BLOCK;
                    float next = 0;
                    if constexpr (C::SCALED)
                        next = __ldg(scales + weights_at(l, v.item,
                                                  is_dense(l) ? 0 : v.cells[c0 + c].cell, deep));
#pragma unroll
                    for (int i = 0; i < C::BLOCKS; i++) {
                        bool mine = has[i] >> c & 1;
                        tile_portion<C> x = {};
                        if (mine)
                            gather_runs<C>(
                                x, v.gather, from, rounds[i], __shfl_sync(~0u, v.runs[i], c));
                        finish();
                        if (i == 0) {
                            release();
                            barrier_wait(shared + AT_FULL + slot * 8, turn / C::RING & 1);
                        }
                        if (!mine) continue;
                        make_operands<C>(a, x, scale);
                        if constexpr (C::SCALED) {
                            factor = next * unscale;
                            product_touch(part);
                            product_fence();
                            multiply_tile<C>(part, a, weights);
                        } else {
                            product_touch(sum[i]);
                            product_fence();
                            multiply_tile<C>(sum[i], a, weights);
                        }
                        product_commit();
                    }
                    pending = shared + AT_EMPTY + slot * 8;
                }
            }
            barrier_arrive(shared + AT_FREE + place * 8);
        }
        finish();
        release();
        tile_item item = v.item;
        int block = v.block;
        bool plain = v.neighbours < 0;
        at += gridDim.x;
        if (at < items) view_item<C>(v, rounds, l, at);
        if (plain) {
            write_plain<C>(l, item, live);
            continue;
        }
#pragma unroll
        for (int i = 0; i < C::BLOCKS; i++) write_block<C>(l, item, sum[i], block + i, live);
    }
}
#endif

template <class C>
static __global__ __launch_bounds__(TILE_THREADS, 1) void mvmr_tiles(tile_launch l)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    extern __shared__ __align__(1024) unsigned char memory[];
    uint32_t shared = shared_base(memory);
    if (threadIdx.x == 0) {
        uint64_t *full = (uint64_t *)(memory + AT_FULL), *empty = (uint64_t *)(memory + AT_EMPTY);
        for (int i = 0; i < C::RING; i++) {
            barrier_init(full + i, 1);
            barrier_init(empty + i, TILE_CONSUMERS / 32);
        }
        for (int i = 0; i < 2; i++) {
            barrier_init((uint64_t *)(memory + AT_STAGED) + i, TILE_STAGERS);
            barrier_init((uint64_t *)(memory + AT_SIZED) + i, TILE_STAGERS);
            barrier_init((uint64_t *)(memory + AT_FREE) + i, TILE_CONSUMERS);
        }
        for (int i = 0; i < TILE_CONSUMERS / 32 * 8; i++)
            barrier_init((uint64_t *)(memory + AT_ROUNDS_FULL) + i, 1);
        fence_async();
    }
    __syncthreads();
    if (threadIdx.x < TILE_CONSUMERS) {
        registers_more<232>();
        consume<C>(l, shared);
    } else {
        registers_fewer<40>();
        if (threadIdx.x < TILE_CONSUMERS + 32)
            feed_weights<C>(l, shared);
        else
            stage_neighbours<C>(l, shared);
    }
#else
    (void)l;
#endif
}

template <class C> static void launch_tiles(const conv_product &p, void *work)
{
    int processors = 0, device = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    conv_blocks b =
        conv_block_weights(C::FORM, p.set.cells, p.groups, C::DEPTH, C::COLUMNS, C::UNIT);
    conv_pack_weights(b, p, work);
    int size = pnet_storage_bytes(p.set.rows.storage), many = 16 / size;
    enum pnet_storage staged = C::SCALED   ? PNET_STORE_F32
                               : C::BFLOAT ? PNET_STORE_BF16
                                           : PNET_STORE_FP16;
    bool wide = (p.cin | p.groups.cin) % many == 0 && (uintptr_t)p.in % 16 == 0;
    tile_launch l = {p, b, (const unsigned char *)work,
        (TILE_SHARED - AT_RING - C::RING * C::BLOCK) / (2 * C::STAGED), wide,
        wide && p.set.rows.storage == staged && p.groups.cin % C::DEPTH == 0};
    int64_t items = (p.set.rows.most + C::ROWS - 1) / C::ROWS * p.groups.count * b.wide;
    size_t bytes = (size_t)(AT_RING + C::RING * C::BLOCK + 2 * l.slots * C::STAGED);
    cudaFuncSetAttribute(mvmr_tiles<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    mvmr_tiles<C><<<(unsigned)(items < processors ? items : processors), TILE_THREADS, bytes,
        cudaStreamPerThread>>>(l);
}

/* Channels in pieces of 64 bytes: two at a time, unless half of the last two would be empty. */
static inline int tile_pieces(conv_form form, int channels)
{
    int piece = form == CONV_SPLIT || form == CONV_SCALED ? 16 : 32;
    return (channels + piece - 1) / piece % 2 ? 1 : 2;
}

static inline int tile_columns(int channels)
{
    return channels > 64 ? 128 : channels > 32 ? 64 : 32;
}

template <conv_form FORM, int PIECES>
static void launch_tile_columns(const conv_product &p, void *work)
{
    switch (tile_columns(p.groups.cout)) {
    case 128: launch_tiles<tile_config<FORM, PIECES, 128>>(p, work); break;
    case 64: launch_tiles<tile_config<FORM, PIECES, 64>>(p, work); break;
    default: launch_tiles<tile_config<FORM, PIECES, 32>>(p, work); break;
    }
}

/* A file each. */
void conv_tiles_split(const conv_product &p, void *work);
void conv_tiles_scaled(const conv_product &p, void *work);
void conv_tiles_bfloat(const conv_product &p, void *work);
void conv_tiles_half(const conv_product &p, void *work);

template <conv_form FORM> static void launch_tile_form(const conv_product &p, void *work)
{
    if (tile_pieces(FORM, p.groups.cin) == 2)
        launch_tile_columns<FORM, 2>(p, work);
    else
        launch_tile_columns<FORM, 1>(p, work);
}

#endif
