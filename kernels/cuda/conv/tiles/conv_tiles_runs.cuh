/* MVMR from tiles: how warps sum the runs of a slab, cell by cell, from the staged neighbours. */
#ifndef PNET_KERNELS_CUDA_CONV_TILES_RUNS_CUH
#define PNET_KERNELS_CUDA_CONV_TILES_RUNS_CUH

#include "kernels/cuda/conv/tiles/conv_tiles_stage.cuh"

/* A run: the lower bits are its number of rounds; the flags say that the block of 64 rows has the cell, that some neighbours
   are not staged, and that some run of the block needs the slow path. */
enum { TILE_ROUNDS = 0xFFFF, TILE_MINE = 1 << 16, TILE_SPILLED = 1 << 17, TILE_WAITS = 1 << 18 };

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* A warp's slab of an item. The warp reads cells 32 at a time, one a lane. It requests words of rounds one cell ahead: lane
   4 g + q has word g of rounds q and q + 4. */
struct tile_view {
    uint32_t item;         /* address in shared memory */
    uint32_t stage;        /* the lane's first unit of slot 0 */
    int slab;              /* number of the slab in its tile */
    const uint32_t *words; /* the lane's word of the next run */
    uint32_t next;         /* value of that word */
    uint32_t blocks,
        runs; /* of the lane's cell: the blocks that have it, and the run of the slab */
};

/* The runs of a slab's rows in one cell. */
struct tile_run {
    uint32_t rounds;
    bool mine;              /* the warp's block of 64 rows has the cell */
    bool slow;              /* the run needs the slow path */
    bool waits;             /* some run of the block needs the slow path */
    const uint32_t *words;  /* the lane's words */
    uint32_t first, second; /* first words of the run, up to TILE_LONG rounds */
};

/* Tells whether any run of these four slabs is longer than TILE_LONG. */
static __device__ __forceinline__ bool any_long(uint2 rounds)
{
    uint32_t most = __vmaxu2(rounds.x, rounds.y);
    return (most & TILE_ROUNDS) > TILE_LONG || most >> 16 > TILE_LONG;
}

/* Reads 32 cells of the tile, from the c-th on, one a lane. */
static __device__ __forceinline__ void view_cells(tile_view &v, const tile_launch &l, int c)
{
    tile_list list = list_load(l, v.item);
    c += threadIdx.x % 32;
    v.blocks = v.runs = 0;
    if (c >= list.count) return;
    v.blocks = is_dense(l) ? (1 << PNET_TILE_BLOCKS) - 1 : list.cells[c].blocks;
    v.runs = is_dense(l) ? 1 : list.cells[c].rounds[v.slab];
    if (v.blocks >> v.slab / 4 & 1) v.runs |= TILE_MINE;
    if (list.neighbours >= 2 * l.slots) v.runs |= TILE_SPILLED | TILE_WAITS;
    const uint16_t *of_block = list.cells[c].rounds + v.slab / 4 * 4;
    if (!is_dense(l) && any_long(*(const uint2 *)of_block)) v.runs |= TILE_WAITS;
}

/* Returns which of these 32 cells the item has, a bit each. */
template <class C> static __device__ __forceinline__ uint32_t view_left(const tile_view &v)
{
    return __ballot_sync(~0u, v.blocks & item_blocks<C>(item_load(v.item)));
}

/* Requests the words of the next run. `left` has a bit for each cell that remains. */
static __device__ __forceinline__ void view_ahead(tile_view &v, uint32_t left)
{
    uint32_t rounds = left ? __shfl_sync(~0u, v.runs, __ffs(left) - 1) & TILE_ROUNDS : 0;
    v.next = threadIdx.x % 4 < rounds ? __ldg(v.words) : 0;
}

/* Moves the view to the first round of the slab. The first 32 cells have been read. A dense product has one round, which is
   made up here. */
template <class C>
static __device__ __forceinline__ void view_rounds(tile_view &v, const tile_launch &l)
{
    int lane = threadIdx.x % 32;
    tile_list list = list_load(l, v.item);
    if (is_dense(l)) {
        int row = v.slab * 16 % C::ROWS + lane / 4;
        uint32_t low = row < list.neighbours ? row + 1 : 0,
                 high = row + 8 < list.neighbours ? row + 9 : 0;
        v.next = low | high << 16;
        v.words = nullptr;
        return;
    }
    uint32_t first = shared_load_word(v.item + ITEM_FIRST + v.slab * 4);
    v.words = list.words + ((int64_t)first + lane % 4) * 8 + lane / 4;
    view_ahead(v, view_left<C>(v));
}

/* Takes cell c's run; `left`: the cells after it. */
static __device__ __forceinline__ tile_run view_take(tile_view &v, int c, uint32_t left)
{
    uint32_t what = __shfl_sync(~0u, v.runs, c), rounds = what & TILE_ROUNDS,
             lane = threadIdx.x % 4;
    tile_run run = {rounds, (what & TILE_MINE) != 0, what & TILE_SPILLED || rounds > TILE_LONG,
        (what & TILE_WAITS) != 0, v.words, v.next, 0};
    v.words += rounds * 8;
    view_ahead(v, left);
    if (lane + 4 < rounds && !run.slow) run.second = __ldg(run.words + 32);
    return run;
}

/* Sums a run of 1 to TILE_LONG rounds. The address of a round is computed while earlier ones are being loaded. */
template <class C>
static __device__ __forceinline__ void sum_run(
    tile_portion<C> &sum, const tile_run &run, uint32_t stage)
{
    uint32_t low, high;
    auto look = [&](uint32_t i) {
        uint32_t word = __shfl_sync(~0u, i < 4 ? run.first : run.second, i % 4, 4);
        low = stage + (word & 0xFFFF) * C::STAGED;
        high = stage + (word >> 16) * C::STAGED;
    };
    look(0);
    load_row<C>(sum[0], low);
    load_row<C>(sum[1], high);
    if (run.rounds == 1) return;
    tile_portion<C> x;
    look(1);
    load_row<C>(x[0], low);
    load_row<C>(x[1], high);
    look(2);
#pragma unroll 1
    for (uint32_t i = 2; i < run.rounds; i++) {
        add_row<C>(sum[0], x[0]);
        load_row<C>(x[0], low);
        add_row<C>(sum[1], x[1]);
        load_row<C>(x[1], high);
        look(i + 1);
    }
    add_row<C>(sum[0], x[0]);
    add_row<C>(sum[1], x[1]);
}

/* The slow path: sums a run in float, and reads neighbours that are not staged from global memory. The result is sum[2 piece
   + row]. `words`: the lane's word of the first round; `deep`: the block of channels. It is a function of its own, so that
   the fast path keeps its registers. */
template <class C>
static __device__ __noinline__ void sum_slowly(uint4 (&sum)[2 * C::PIECES], const tile_launch &l,
    uint32_t item, uint32_t stage, int deep, const uint32_t *words, int rounds)
{
    int lane = threadIdx.x % 32, odd = C::PIECES > 1 ? lane / 4 % 2 : 0;
    tile_list t = list_load(l, item);
    tile_source from = source_at<C>(l, item_load(item), deep);
    int staged = staged_count(l, t.neighbours);
#pragma unroll 1
    for (int p = 0; p < 2 * C::PIECES; p++) {
        float f[C::UNIT] = {};
#pragma unroll 1
        for (int i = 0; i < rounds; i++) {
            uint32_t word = __ldg(words + (int64_t)i * 8),
                     slot = p % 2 ? word >> 16 : word & 0xFFFF;
            uint4 x;
            if ((int)slot <= staged)
                x = shared_load((stage + slot * C::STAGED) ^ p / 2 * 64);
            else
                x = source_unit<C>(
                    from, t.neighbour[slot - 1], ((p / 2 ^ odd) * 4 + lane % 4) * C::UNIT);
            widen_add<C>(f, x);
        }
        sum[p] = narrow_unit<C>(f);
    }
}

/* Sums a run of any length, whether its neighbours are staged or not. */
template <class C>
static __device__ __forceinline__ void sum_any_run(
    tile_portion<C> &sum, const tile_run &run, const tile_view &v, const tile_launch &l, int deep)
{
    uint4 x[2 * C::PIECES];
    sum_slowly<C>(x, l, v.item, v.stage, deep, run.words - threadIdx.x % 4 * 8, (int)run.rounds);
#pragma unroll
    for (int i = 0; i < 2 * C::PIECES; i++) {
        uint32_t(&to)[4] = sum[i % 2][i / 2];
        to[0] = x[i].x;
        to[1] = x[i].y;
        to[2] = x[i].z;
        to[3] = x[i].w;
    }
}

#endif
#endif
