/* VVOR from tiles by kernel cell, in float32: how the work is divided, and the scouts that list it. */
#ifndef PNET_KERNELS_CUDA_CONV_TILES_VVOR_CELLS_CUH
#define PNET_KERNELS_CUDA_CONV_TILES_VVOR_CELLS_CUH

#include "kernels/cuda/conv/vvor/conv_vvor_fast.cuh"

enum {
    SIDE = VVOR_CELL_SIDE, /* channels of either side that a block of threads sums */
    PIECE = 8,             /* triplets of a run that are summed together */
    LISTS = 8,             /* steps listed ahead */
    PIECES = 4,            /* pieces of a lane in a step */
    SCOUTS = 128,          /* threads: four warps, each lists a quarter of a step */
    QUARTERS = SCOUTS / 32,
    /* rows that could be gathered in the time in which a scout visits a tile */
    VISIT = 40,
    MULTIPLIERS = 256, /* two warpgroups, 64 channels of the rows each */
    MOST_CELLS = VVOR_MOST_CELLS,
    PUT_ASIDE =
        256, /* steps until sums are written to memory, so that rounding errors do not grow */
    CELL_THREADS = 256 /* threads of a block of the small kernels */
};

/* Operands are split into two halves each (CONV_SPLIT). Features are stored in float32. */
struct cell_config {
    static constexpr bool SPLIT = true, SCALED = true, BFLOAT = false;
    static constexpr int PLANES = 2, ROWS = 32, QUARTER = ROWS / QUARTERS; /* pieces of a step */
    static constexpr int GATHERERS = 256, THREADS_ALL = MULTIPLIERS + GATHERERS + SCOUTS;
    static constexpr int BLOCK = ROWS * 128, PANEL = 2 * BLOCK, BUFFER = 2 * PLANES * PANEL;
    static constexpr int AHEAD = 3,
                         /* steps in flight; each holds a piece's row and first triplets */
        KEPT = 3;
    static_assert(KEPT == 3, "further triplets are read in pairs");
    static constexpr int BUFFERS = 2,
                         BYTES = BUFFERS * BUFFER + AHEAD * PIECES * KEPT * GATHERERS * 16;
    static_assert(GATHERERS / 32 * PIECES == ROWS, "a warp takes a lane's pieces of every step");
};

/* A step's pieces. */
template <class C> struct __align__(16) cell_list
{
    int32_t other[C::ROWS][PIECE];
    int32_t row[C::ROWS], count[C::ROWS]; /* row -1: no piece */
    /* 0: no more steps; slot of sums that end with this step */
    int32_t there, slot;
};

template <class C> struct cell_control {
    cell_list<C> list[LISTS];
    int32_t finished[2 * LISTS][QUARTERS]; /* not 0: the scout has listed all of a cell */
    uint64_t ready[LISTS], free[LISTS], full[C::BUFFERS], empty[C::BUFFERS];
};

/* A launch. A kind of block of threads has 128 channels of either side, and a group. The blocks of a kind share the cells by
   weight: the weights of all cells, in order, are cut into `blocks` equal parts, and block b has part b. Each of the blocks
   that share a cell has some of its tiles, scattered over the whole set. */
struct cell_job {
    conv_set set;
    const float *gathered, *rows;
    int gathered_stride, rows_stride, gathered_width, rows_width; /* widths of a group */
    int tiles_n, tiles_m, blocks;
    const vvor_measures *measures;
    const unsigned long long *weight; /* [cells + 1] sum of the weights of earlier cells */
    float *slots;                     /* [kinds][blocks + cells - 1][sums of a block] */
};

/* A block's share of a cell: the tiles whose scrambled number lies in [low, high). */
struct cell_share {
    uint64_t low, high;
};

/* Returns where the share of block `block` of a cell begins, as a fraction of 2^32. The share of the block before ends
   there. */
static __device__ __forceinline__ uint64_t cell_edge(
    const unsigned long long *weight, int cells, int blocks, int block, int cell)
{
    double begin = (double)weight[cell], own = (double)weight[cell + 1] - begin;
    double at = (double)block * (double)weight[cells] / (double)blocks - begin;
    if (own <= 0 || at <= 0) return 0;
    return at >= own ? (uint64_t)1 << 32 : (uint64_t)(at / own * 4294967296.0);
}

static __device__ __forceinline__ cell_share cell_share_of(
    const unsigned long long *weight, int cells, int blocks, int block, int cell)
{
    return {cell_edge(weight, cells, blocks, block, cell),
        cell_edge(weight, cells, blocks, block + 1, cell)};
}

/* Returns the slot of a block's sums of a cell. Cells ascend with blocks, so no two pairs of block and cell have the same
   slot. */
static __device__ __forceinline__ int cell_slot(
    int blocks, int cells, int kind, int block, int cell)
{
    return kind * (blocks + cells - 1) + block + cell;
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* A scout, and the lists that it writes. */
template <class C> struct cell_scout {
    cell_control<C> &c;
    int quarter, slot = 0, fill = 0, step = 0;

    __device__ __forceinline__ cell_list<C> &list() const
    {
        return c.list[step % LISTS];
    }
    __device__ __forceinline__ void acquire() const
    {
        if (step >= LISTS) barrier_wait(&c.free[step % LISTS], (step / LISTS + 1) % 2);
    }
    __device__ __forceinline__ void publish(int there, int finished)
    {
        if (threadIdx.x % 32 == 0) {
            c.finished[step % (2 * LISTS)][quarter] = finished;
            if (quarter == 0) {
                list().there = there;
                list().slot = slot;
            }
        }
        barrier_arrive(&c.ready[step % LISTS]);
        step++;
        fill = 0;
    }
    __device__ __forceinline__ void write(
        int at, int row, int count, const int (&other)[PIECE]) const
    {
        cell_list<C> &l = list();
        at += quarter * C::QUARTER;
        l.row[at] = row;
        l.count[at] = count;
#pragma unroll
        for (int i = 0; i < PIECE; i += 4)
            *(int4 *)&l.other[at][i] = int4{other[i], other[i + 1], other[i + 2], other[i + 3]};
    }
    /* Appends a piece for each lane whose count is not 0. */
    __device__ __forceinline__ void add(int row, int count, const int (&other)[PIECE])
    {
        unsigned has = __ballot_sync(~0u, count > 0);
        int at = fill + __popc(has & ((1u << threadIdx.x % 32) - 1)), end = fill + __popc(has);
#pragma unroll 1
        while (fill < end) {
            if (fill == 0) acquire();
            if (count > 0 && at >= 0 && at < C::QUARTER) write(at, row, count, other);
            fill = end;
            if (end < C::QUARTER) return;
            publish(1, 0);
            at -= C::QUARTER;
            end -= C::QUARTER;
        }
    }
    /* Ends a cell: appends empty pieces until all scouts have seen, at the same step, that each has reached the end of the
       cell. */
    __device__ __forceinline__ void finish()
    {
        const int none[PIECE] = {};
        int begin = step;
#pragma unroll 1
        for (;; fill = 0) {
            if (fill == 0) acquire();
            int before = step - LISTS;
            if (before >= begin && fill == 0) {
                int4 f = *(const int4 *)c.finished[before % (2 * LISTS)];
                if (f.x & f.y & f.z & f.w) return;
            }
            for (int at = fill + threadIdx.x % 32; at < C::QUARTER; at += 32)
                write(at, -1, 0, none);
            publish(1, 1);
        }
    }
    __device__ __forceinline__ void end()
    {
        acquire();
        publish(0, 0);
    }
};

/* The head of a tile's list; `first`: first word of slab lane % 16. */
struct cell_head {
    int64_t at;
    int neighbours, cells;
    uint32_t first;
};

static __device__ __forceinline__ cell_head cell_head_of(const conv_set &set, int tile, int tiles)
{
    if (tile >= tiles) return {};
    const pnet_tile &t = set.tiles.tile[tile];
    return {t.at, t.neighbours, t.cells, t.first[threadIdx.x % PNET_TILE_SLABS]};
}

/* The rounds of a cell in a tile; lanes s and s + 16 have those of slab s. */
struct cell_rounds {
    const int32_t *list;
    const uint16_t *slots; /* slots of the tile's first round, row lane % 16 */
    uint32_t begin, rounds;
};

static __device__ __forceinline__ cell_rounds cell_rounds_of(
    const conv_set &set, const cell_head &t, int cell)
{
    enum { EACH = 8 };
    int lane = threadIdx.x % 32, row = lane % 16;
    int64_t entries = t.at + (t.neighbours + 3) / 4 * 4;
    const pnet_tile_cell *entry = (const pnet_tile_cell *)(set.tiles.list + entries);
    uint32_t begin = 0, rounds = 0;
#pragma unroll 1
    for (int first = lane / 16; first < t.cells; first += 2 * EACH) {
        int q[EACH];
        uint32_t n[EACH];
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            bool there = first + 2 * i < t.cells;
            q[i] = there ? (int)entry[first + 2 * i].cell : INT32_MAX;
            n[i] = there ? entry[first + 2 * i].rounds[row] : 0;
        }
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            if (q[i] < cell) begin += n[i];
            if (q[i] == cell) rounds = n[i];
        }
    }
    begin += __shfl_xor_sync(~0u, begin, 16);
    rounds += __shfl_xor_sync(~0u, rounds, 16);
    const uint32_t *words =
        set.tiles.list + entries + (int64_t)t.cells * (int64_t)(sizeof *entry / 4);
    return {(const int32_t *)set.tiles.list + t.at, (const uint16_t *)words + row % 8 * 2 + row / 8,
        begin + t.first, rounds};
}

/* Up to 8 triplets of each lane's run in a pair of slabs, as slots of the tile; 0: none. */
struct cell_unit {
    int row;
    int slot[PIECE];
    const int32_t *list;
};

/* A walk through a tile by pairs of slabs, 8 rounds at a time. */
struct cell_walk {
    unsigned slabs; /* slabs that are left, including the present pair */
    int done;       /* rounds of the present pair that are done */

    __device__ __forceinline__ cell_unit next(const cell_rounds &t, const conv_set &set,
        const pnet_tile &tile, int64_t row0, int64_t live)
    {
        int lane = threadIdx.x % 32, low = __ffs(slabs) - 1;
        unsigned rest = slabs & (slabs - 1);
        int high = rest ? __ffs(rest) - 1 : low, slab = lane < 16 ? low : high;
        uint32_t begin = __shfl_sync(~0u, t.begin, slab);
        int rounds = (int)__shfl_sync(~0u, t.rounds, slab);
        int most = max(rounds, (int)__shfl_xor_sync(~0u, rounds, 16));
        if (lane >= 16 && !rest) rounds = 0;
        cell_unit u;
        int64_t place = row0 + __ldg(&tile.row[slab * 16 + lane % 16]);
        u.row = place < live ? (int)conv_row(set, place) : -1;
        u.list = t.list;
        const uint16_t *from = t.slots + ((int64_t)begin + done) * 16;
#pragma unroll
        for (int i = 0; i < PIECE; i++) u.slot[i] = done + i < rounds ? from[i * 16] : 0;
        done += PIECE;
        if (done >= most) {
            done = 0;
            slabs = rest & (rest - 1);
        }
        return u;
    }
};

struct cell_piece {
    int row, count;
    int other[PIECE];
};

static __device__ __forceinline__ cell_piece cell_piece_of(const cell_unit &u)
{
    cell_piece p;
    p.row = u.row;
    p.count = 0;
#pragma unroll
    for (int i = 0; i < PIECE; i++) {
        p.other[i] = u.slot[i] > 0 ? u.list[u.slot[i] - 1] : 0;
        p.count += u.slot[i] > 0;
    }
    return p;
}

/* Lists the pieces of a tile without a list, from the triplets. */
template <class C>
static __device__ __noinline__ void scout_plain(
    const conv_set &set, int tile, int cell, cell_scout<C> &s)
{
    for (int r = 0; r < PNET_TILE_ROWS; r += 32) {
        int64_t place = (int64_t)tile * PNET_TILE_ROWS + r + threadIdx.x % 32, n = 0, end = 0,
                row = 0;
        if (place < pnet_live(set.rows)) {
            n = conv_start(set, place);
            end = conv_start(set, place + 1);
            row = conv_row(set, place);
        }
        while (n < end && conv_cell(set, n) < cell) n++;
        for (;;) {
            int other[PIECE], count = 0;
#pragma unroll
            for (int i = 0; i < PIECE; i++) {
                bool more = n < end && conv_cell(set, n) == cell;
                other[i] = more ? (int)conv_other(set, n) : 0;
                count += more;
                n += more;
            }
            if (!__any_sync(~0u, count > 0)) break;
            s.add((int)row, count, other);
        }
    }
}

/* Returns the first tile of the share from `tile` on, or `tiles` if there is none. */
static __device__ __forceinline__ int cell_next_tile(const cell_share &w, int tile, int tiles)
{
    for (; tile < tiles; tile += 32) {
        uint32_t own = (uint32_t)tile + threadIdx.x % 32, scrambled = own * 2654435769u;
        unsigned hit = __ballot_sync(~0u, scrambled >= w.low && scrambled < w.high);
        if (hit) return min(tile + __ffs(hit) - 1, tiles);
    }
    return tiles;
}

/* Lists a block's pieces of one cell. Values are used two units after they are requested. */
template <class C>
static __device__ __forceinline__ void scout_cell(
    const conv_set &set, const cell_share &w, int cell, int tiles, cell_scout<C> &s)
{
    cell_piece waiting = {};
    cell_unit ahead = {};
    int64_t live = pnet_live(set.rows);
    int tile = cell_next_tile(w, 0, tiles);
    cell_head head = cell_head_of(set, tile, tiles);
    while (tile < tiles) {
        int now = tile;
        cell_head t = head;
        tile = cell_next_tile(w, tile + 1, tiles);
        head = cell_head_of(set, tile, tiles);
        cell_walk walk = {};
        cell_rounds rounds = {};
        if (t.neighbours > 0) {
            rounds = cell_rounds_of(set, t, cell);
            walk.slabs = __ballot_sync(~0u, rounds.rounds > 0) & 0xFFFF;
        }
#pragma unroll 1
        while (walk.slabs) {
            cell_piece p = cell_piece_of(ahead);
            ahead =
                walk.next(rounds, set, set.tiles.tile[now], (int64_t)now * PNET_TILE_ROWS, live);
            s.add(waiting.row, waiting.count, waiting.other);
            waiting = p;
        }
        if (t.neighbours < 0) scout_plain<C>(set, now, cell, s);
    }
#pragma unroll 1
    for (int i = 0; i < 2; i++) {
        cell_piece p = cell_piece_of(ahead);
        ahead = {};
        s.add(waiting.row, waiting.count, waiting.other);
        waiting = p;
    }
}

template <class C>
static __device__ __forceinline__ void scout(const cell_job &j, int tiles, cell_control<C> &c)
{
    cell_scout<C> s = {c, (int)threadIdx.x % SCOUTS / 32};
    int kind = (int)blockIdx.x / j.blocks, block = (int)blockIdx.x % j.blocks, cells = j.set.cells;
#pragma unroll 1
    for (int first = 0; first < cells; first += 32) {
        int own = first + threadIdx.x % 32;
        cell_share w = {};
        if (own < cells) w = cell_share_of(j.weight, cells, j.blocks, block, own);
        unsigned some = __ballot_sync(~0u, w.low < w.high);
#pragma unroll 1
        for (; some; some &= some - 1) {
            int lane = __ffs(some) - 1, cell = first + lane;
            uint64_t low = __shfl_sync(~0u, w.low, lane), high = __shfl_sync(~0u, w.high, lane);
            cell_share one = {low + (high - low) * s.quarter / QUARTERS,
                low + (high - low) * (s.quarter + 1) / QUARTERS};
            s.slot = cell_slot(j.blocks, cells, kind, block, cell);
            scout_cell<C>(j.set, one, cell, tiles, s);
            s.finish();
        }
    }
    s.end();
}

#endif
#endif
