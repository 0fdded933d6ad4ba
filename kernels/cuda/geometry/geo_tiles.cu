/* Lays sets out as tiles (kernels/geometry.h): a block of threads makes a tile, each warp one of its slabs. Counting and
   writing both go through the tile's triplets: they enter distinct neighbours into a hash table, and the longest run of each
   cell into one number a slab. If a tile has more neighbours than the table holds, the block goes through it once for each
   range of neighbours. */
#include "kernels/geometry_stage.h"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/geometry/geo_grid.h"
#include "kernels/cuda/geometry/geo_parts.h"
#include "kernels/tile_order.h"

enum {
    SLAB_ROWS = PNET_TILE_ROWS / PNET_TILE_SLABS,
    THREADS = 32 * PNET_TILE_SLABS,
    TABLE = 4096,
    MOST =
        3072, /* neighbours of a range; what all threads add before they see that it is too many still has room */
    ROOM = 96 << 10, /* shared memory that a block can have on every GPU */
    CELL_WORDS = sizeof(struct pnet_tile_cell) / 4,
    ROUND_WORDS = SLAB_ROWS / 2
};

/* Blocks that a multiprocessor can hold; the compiler assigns registers accordingly. Machine code for several GPUs is made
   from one compilation for the first of them, so that only Hopper's own knows its threads. */
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
enum { BLOCKS = 2048 / THREADS };
#else
enum { BLOCKS = 1536 / THREADS };
#endif

static const uint32_t EMPTY = ~0u; /* greater than every row and every cell */

/* 16 consecutive rows, which a warp surveys: their triplets, and where the row of the lane begins; in the lane after the
   last row, where the rows end. */
struct stretch {
    int64_t begin, end, start;
};

static __device__ __forceinline__ int lane_id()
{
    return (int)threadIdx.x % 32;
}

static __device__ __forceinline__ int warp_id()
{
    return (int)threadIdx.x / 32;
}

static __device__ __forceinline__ int64_t start_of(const struct pnet_triplets &set, int64_t row)
{
    int64_t rows = set.live ? *set.live : set.rows;
    return set.start[row < rows ? row : rows];
}

static __device__ struct stretch own_stretch(const struct pnet_triplets &set)
{
    int64_t first = (int64_t)blockIdx.x * PNET_TILE_ROWS + warp_id() * SLAB_ROWS;
    int64_t start = start_of(set, first + (lane_id() < SLAB_ROWS ? lane_id() : SLAB_ROWS));
    return {__shfl_sync(WARP_ALL, start, 0), __shfl_sync(WARP_ALL, start, SLAB_ROWS), start};
}

/* The `width` neighbours from `low` on, and how many of them the table holds. */
struct range {
    int64_t low, width;
};

/* Returns the place where a search for the key begins. */
static __device__ __forceinline__ uint32_t place_of(uint32_t key)
{
    return key * 2654435769u >> 20;
}

/* Returns the place of the key, and enters it if it is not there. Most keys are there, and are found without an atomic. */
static __device__ __forceinline__ uint32_t insert(uint32_t *table, int *found, uint32_t key)
{
    uint32_t at = place_of(key);
    for (; *(volatile int *)found <= MOST; at = (at + 1) % TABLE) {
        uint32_t old = *(volatile uint32_t *)&table[at];
        if (old == EMPTY) old = atomicCAS(&table[at], EMPTY, key);
        if (old == EMPTY) atomicAdd(found, 1);
        if (old == EMPTY || old == key) break;
    }
    return at;
}

/* Returns the row of a stretch that the lane's triplet belongs to. */
static __device__ __forceinline__ int row_of(const struct stretch &s, int64_t t)
{
    int row = 0;
#pragma unroll
    for (int step = SLAB_ROWS / 2; step > 0; step /= 2)
        if (__shfl_sync(WARP_ALL, s.start, row + step) <= t) row += step;
    return row;
}

/* Makes one step of a sort of n numbers, a power of two. The sort turns each run of `run` numbers into one that ascends, or
   descends every other time. */
static __device__ void exchange_far(uint32_t *x, int n, int run, int step)
{
    for (int i = (int)threadIdx.x; i < n / 2; i += THREADS) {
        int low = 2 * i - (i & (step - 1)), high = low + step;
        uint32_t a = x[low], b = x[high];
        if ((a > b) == !(low & run)) {
            x[low] = b;
            x[high] = a;
        }
    }
    __syncthreads();
}

/* Makes the steps from 16 on of a run, or all steps of runs up to 32, among the lanes of a warp. */
static __device__ void exchange_near(uint32_t *x, int n, int run)
{
    for (int i = (int)threadIdx.x; i < n; i += THREADS) {
        uint32_t own = x[i];
        for (int r = run > 32 ? run : 2; r <= run; r *= 2) {
            for (int step = r > 32 ? 16 : r / 2; step > 0; step /= 2) {
                uint32_t other = __shfl_xor_sync(WARP_ALL, own, step);
                bool low = !(i & step), up = !(i & r);
                own = low == up ? min(own, other) : max(own, other);
            }
        }
        x[i] = own;
    }
    __syncthreads();
}

/* Sorts in ascending order, in place; n is a power of two, at least 32. */
static __device__ void sort(uint32_t *x, int n)
{
    __syncthreads();
    exchange_near(x, n, 32);
    for (int run = 64; run <= n; run *= 2) {
        for (int step = run / 2; step >= 32; step /= 2) exchange_far(x, n, run, step);
        exchange_near(x, n, run);
    }
}

/* The keys of a tile's rows: the bits of their cells, then their places. */
struct tile_order {
    uint32_t key[PNET_TILE_ROWS];
    uint8_t place[PNET_TILE_ROWS];
    uint8_t bit[PNET_TILE_CELLS]; /* bit of each cell */
};

/* Finds which cells the rows have, and sorts the rows by their cells into o.key. */
static __device__ void order_rows(
    const struct pnet_triplets &set, const struct stretch &s, int kernel, struct tile_order &o)
{
    int64_t first = (int64_t)blockIdx.x * PNET_TILE_ROWS, live = set.live ? *set.live : set.rows;
    for (int i = (int)threadIdx.x; i < PNET_TILE_ROWS; i += THREADS) o.key[i] = 0;
    for (int i = (int)threadIdx.x; i < set.cells; i += THREADS)
        o.bit[i] = (uint8_t)pnet_tile_bit(i, kernel);
    __syncthreads();
    for (int64_t base = s.begin; base < s.end; base += 32) {
        int64_t t = base + lane_id();
        int row = warp_id() * SLAB_ROWS + row_of(s, t);
        uint32_t bits = t < s.end ? 1u << o.bit[set.cell[t]] : 0;
        uint32_t same = __match_any_sync(WARP_ALL, row);
        bits = __reduce_or_sync(same, bits);
        if (lane_id() == __ffs((int)same) - 1) atomicOr(&o.key[row], bits);
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < PNET_TILE_ROWS; i += THREADS)
        o.key[i] = first + i < live ? pnet_tile_key(o.key[i], i) : pnet_tile_no_key(i);
    sort(o.key, PNET_TILE_ROWS);
}

/* Goes through the warp's stretch, 32 triplets at a time. rounds[slabs][cells]: the longest runs of the slab that place[row]
   belongs to. entry: NULL, or gets for each triplet of the stretch its cell and the place of its neighbour. */
static __device__ void survey(const struct pnet_triplets &set, const struct stretch &s,
    const struct range &r, uint32_t *table, int *found, const uint8_t *place, uint32_t *rounds,
    uint32_t *entry)
{
    int lane = lane_id();
    int64_t head = s.begin; /* where the run of the triplet before this step begins */
    uint32_t before = EMPTY, next_cell = EMPTY, next_other = EMPTY;
    if (s.begin + lane < s.end) {
        next_cell = set.cell[s.begin + lane];
        next_other = (uint32_t)set.other[s.begin + lane];
    }
    for (int64_t base = s.begin; base < s.end; base += 32) {
        int64_t t = base + lane, offset = s.start - base;
        uint32_t cell = next_cell, other = next_other;
        next_cell = next_other = EMPTY;
        if (t + 32 < s.end) {
            next_cell = set.cell[t + 32];
            next_other = (uint32_t)set.other[t + 32];
        }
        uint32_t previous = __shfl_up_sync(WARP_ALL, cell, 1);
        if (lane == 0) previous = before;
        uint32_t begins = offset >= 0 && offset < 32 ? 1u << offset : 0;
        uint32_t heads = __ballot_sync(WARP_ALL, cell != previous);
        heads |= __reduce_or_sync(WARP_ALL, begins);
        uint32_t mine = heads & ((2u << lane) - 1);
        if (mine) head = base + 31 - __clz((int)mine);
        bool last = lane == 31 || heads >> lane >> 1 & 1;
        int slab = place[row_of(s, t)] / SLAB_ROWS;
        if (cell != EMPTY && last)
            atomicMax(&rounds[slab * set.cells + cell], (uint32_t)(t - head + 1));
        head = __shfl_sync(WARP_ALL, head, 31);
        before = __shfl_sync(WARP_ALL, cell, 31);
        if (cell == EMPTY || (uint64_t)(other - r.low) >= (uint64_t)r.width) continue;
        uint32_t at = insert(table, found, other);
        if (entry) entry[t - s.begin] = cell << 16 | at;
    }
}

/* Enters the neighbours of the range into the table. Returns their number; if it exceeds MOST, not all of them are in the
   table. */
static __device__ int collect(const struct pnet_triplets &set, const struct stretch &s,
    const struct range &r, uint32_t *table, int *found, const uint8_t *place, uint32_t *rounds,
    uint32_t *entry)
{
    __syncthreads();
    for (int i = (int)threadIdx.x; i < TABLE; i += THREADS) table[i] = EMPTY;
    if (threadIdx.x == 0) *found = 0;
    __syncthreads();
    survey(set, s, r, table, found, place + warp_id() * SLAB_ROWS, rounds, entry);
    __syncthreads();
    return *found;
}

/* Moves to the range after one with `found` neighbours. */
static __device__ void move_on(struct range &r, int found)
{
    if (found > MOST) {
        r.width /= 2;
    } else {
        r.low += r.width;
        r.width *= 2;
    }
}

static __device__ __forceinline__ void clear(uint32_t *rounds, int32_t cells)
{
    for (int i = (int)threadIdx.x; i < PNET_TILE_SLABS * cells; i += THREADS) rounds[i] = 0;
}

/* Returns the blocks of 64 rows that have a cell, a bit each. */
static __device__ uint32_t blocks_with(const uint32_t *rounds, int32_t cells, int32_t cell)
{
    uint32_t blocks = 0;
    for (int s = 0; s < PNET_TILE_SLABS; s++)
        if (rounds[s * cells + cell]) blocks |= 1u << s / (PNET_TILE_SLABS / PNET_TILE_BLOCKS);
    return blocks;
}

static __device__ int64_t padded(int64_t neighbours)
{
    return (neighbours + 3) / 4 * 4;
}

static __global__ void __launch_bounds__(THREADS, BLOCKS)
    count_tiles(const struct pnet_triplets set, int kernel, struct pnet_tile *tile, int64_t *words)
{
    extern __shared__ uint32_t room[];
    __shared__ struct tile_order order;
    __shared__ uint32_t sums[PNET_TILE_SLABS], tops[PNET_TILE_SLABS];
    __shared__ int found;
    uint32_t *table = room, *rounds = room + TABLE;
    struct stretch s = own_stretch(set);
    int neighbours = 0, cells = 0;
    clear(rounds, set.cells);
    order_rows(set, s, kernel, order);
    for (int i = (int)threadIdx.x; i < PNET_TILE_ROWS; i += THREADS) {
        order.place[(uint8_t)order.key[i]] = (uint8_t)i;
        tile[blockIdx.x].row[i] = (uint8_t)order.key[i];
    }
    for (struct range r = {0, set.others}; r.low < set.others && neighbours <= PNET_TILE_SLOTS;) {
        int n = collect(set, s, r, table, &found, order.place, rounds, nullptr);
        if (n <= MOST) neighbours += n;
        move_on(r, n);
    }
    __syncthreads();
    uint32_t sum = 0, top = 0;
    for (int c = lane_id(); c < set.cells; c += 32) {
        uint32_t n = rounds[warp_id() * set.cells + c];
        sum += n;
        top = n > top ? n : top;
    }
    sum = __reduce_add_sync(WARP_ALL, sum);
    top = __reduce_max_sync(WARP_ALL, top);
    if (lane_id() == 0) {
        sums[warp_id()] = sum;
        tops[warp_id()] = top;
    }
    for (int c = 0; c < set.cells; c += THREADS) {
        int own = c + (int)threadIdx.x;
        cells += __syncthreads_count(own < set.cells && blocks_with(rounds, set.cells, own));
    }
    if (threadIdx.x > 0) return;
    uint32_t all = 0, longest = 0;
    for (int i = 0; i < PNET_TILE_SLABS; i++) longest = max(longest, tops[i]);
    bool listed = neighbours <= PNET_TILE_SLOTS && longest <= UINT16_MAX;
    struct pnet_tile &t = tile[blockIdx.x];
    for (int i = 0; i < PNET_TILE_SLABS; i++) {
        t.first[i] = listed ? all : 0;
        all += sums[i];
    }
    t.neighbours = listed ? neighbours : -1;
    t.cells = listed ? cells : 0;
    t.longest = listed ? (int32_t)longest : 0;
    t.rounds = listed ? all : 0;
    t.spare[0] = t.spare[1] = 0;
    words[blockIdx.x] =
        listed && neighbours > 0
            ? padded(neighbours) + (int64_t)cells * CELL_WORDS + (int64_t)all * ROUND_WORDS
            : 0;
}

static __global__ void place_tiles(int64_t tiles, const int64_t *words, struct pnet_tile *tile)
{
    for (int64_t i = thread_index(); i < tiles; i += thread_count())
        tile[i].at = i > 0 ? words[i - 1] : 0;
}

/* Writes the table's `n` keys to `to`, ascending. */
static __device__ void list_found(const uint32_t *table, int n, int *taken, uint32_t *to)
{
    int rounded = 32;
    while (rounded < n) rounded *= 2;
    if (threadIdx.x == 0) *taken = 0;
    for (int i = n + (int)threadIdx.x; i < rounded; i += THREADS) to[i] = EMPTY;
    __syncthreads();
    for (int i = (int)threadIdx.x; i < TABLE; i += THREADS) {
        uint32_t key = table[i], held = __ballot_sync(WARP_ALL, key != EMPTY);
        int at = 0;
        if (lane_id() == 0 && held) at = atomicAdd(taken, __popc(held));
        at = __shfl_sync(WARP_ALL, at, 0) + __popc(held & ((1u << lane_id()) - 1));
        if (key != EMPTY) to[at] = key;
    }
    sort(to, rounded);
}

/* Replaces the table's keys by slots: `sorted` are its n keys, ascending. */
static __device__ void number(uint32_t *table, const uint32_t *sorted, int n)
{
    uint32_t place[MOST / THREADS];
#pragma unroll
    for (int k = 0; k < MOST / THREADS; k++) {
        int i = k * THREADS + (int)threadIdx.x;
        if (i >= n) continue;
        place[k] = place_of(sorted[i]);
        while (table[place[k]] != sorted[i]) place[k] = (place[k] + 1) % TABLE;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < MOST / THREADS; k++) {
        int i = k * THREADS + (int)threadIdx.x;
        if (i < n) table[place[k]] = (uint32_t)i + 1;
    }
    __syncthreads();
}

/* Returns the place of x among n ascending numbers. */
static __device__ __forceinline__ uint32_t find(const uint32_t *list, int n, uint32_t x)
{
    uint32_t at = 0;
    while (n > 1) {
        int half = n / 2;
        if (list[at + half] <= x) at += half;
        n -= half;
    }
    return at;
}

/* Writes the cells of the tile, ascending, to `present`, and their entries to `to`. Threads of the first warp find them. */
static __device__ void write_cells(
    const uint32_t *rounds, int32_t cells, int32_t count, uint16_t *present, uint32_t *to)
{
    int n = 0;
    for (int base = 0; base < cells && warp_id() == 0; base += 32) {
        int cell = base + lane_id();
        bool there = cell < cells && blocks_with(rounds, cells, cell);
        uint32_t mask = __ballot_sync(WARP_ALL, there);
        if (there) present[n + __popc(mask & ((1u << lane_id()) - 1))] = (uint16_t)cell;
        n += __popc(mask);
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < count * CELL_WORDS; i += THREADS) {
        int32_t cell = present[i / CELL_WORDS], word = i % CELL_WORDS, slab = 2 * (word - 2);
        uint32_t x = 0;
        if (word == 0) x = (uint32_t)cell;
        if (word == 1) x = blocks_with(rounds, cells, cell);
        if (slab >= 0 && slab < PNET_TILE_SLABS)
            x = rounds[slab * cells + cell] | rounds[(slab + 1) * cells + cell] << 16;
        to[i] = x;
    }
}

/* Writes the rounds of the warp's slab. A lane's row has triplets [at, end). entry(t) returns the cell of triplet t and, in
   the lower half, the argument of slot(). */
template <class Entry, class Slot>
static __device__ void write_rounds(int64_t at, int64_t end, const uint16_t *present, int32_t count,
    const uint32_t *rounds, uint32_t *word, Entry entry, Slot slot)
{
    int lane = lane_id();
    uint32_t next = at < end ? entry(at) : EMPTY;
    for (int i = 0; i < count; i++) {
        uint32_t cell = present[i];
        for (uint32_t n = rounds[cell]; n > 0; n--, word += ROUND_WORDS) {
            uint32_t own = 0;
            if (next >> 16 == cell) {
                own = slot(next & 0xFFFF);
                next = ++at < end ? entry(at) : EMPTY;
            }
            own |= __shfl_down_sync(WARP_ALL, own, ROUND_WORDS) << 16;
            if (lane < ROUND_WORDS) word[lane] = own;
        }
    }
}

/* Writes all neighbours of a tile to `to`, ascending. If there are at most MOST, they are in the table and in `sorted`
   afterwards. */
static __device__ void write_neighbours(const struct pnet_triplets &set, const struct stretch &s,
    int neighbours, uint32_t *table, uint32_t *sorted, const uint8_t *place, uint32_t *rounds,
    uint32_t *entry, uint32_t *to)
{
    __shared__ int found;
    int done = 0;
    for (struct range r = {0, set.others}; r.low < set.others;) {
        int n = collect(set, s, r, table, &found, place, rounds, entry);
        move_on(r, n);
        if (n > MOST) continue;
        __syncthreads(); /* all threads have read `found` */
        list_found(table, n, &found, sorted);
        for (int i = (int)threadIdx.x; i < n; i += THREADS) to[done + i] = sorted[i];
        done += n;
    }
    for (int64_t i = neighbours + (int)threadIdx.x; i < padded(neighbours); i += THREADS) to[i] = 0;
}

/* `stage`: how many triplets of a tile shared memory has room for. */
static __global__ void __launch_bounds__(THREADS) write_tiles(
    const struct pnet_triplets set, const struct pnet_tile *tile, uint32_t *list, int stage)
{
    extern __shared__ uint32_t room[];
    __shared__ uint16_t present[PNET_TILE_CELLS];
    __shared__ uint8_t place[PNET_TILE_ROWS];
    uint32_t *table = room, *sorted = table + TABLE, *entries = sorted + TABLE,
             *rounds = entries + stage, *own = rounds + warp_id() * set.cells;
    const struct pnet_tile &t = tile[blockIdx.x];
    struct stretch s = own_stretch(set);
    if (t.neighbours <= 0) return;
    uint32_t *neighbour = list + t.at, *cell = neighbour + padded(t.neighbours),
             *word =
                 cell + (int64_t)t.cells * CELL_WORDS + (int64_t)t.first[warp_id()] * ROUND_WORDS;
    int64_t begin = start_of(set, (int64_t)blockIdx.x * PNET_TILE_ROWS),
            end = start_of(set, ((int64_t)blockIdx.x + 1) * PNET_TILE_ROWS);
    bool staged = t.neighbours <= MOST && end - begin <= stage;
    clear(rounds, set.cells);
    for (int i = (int)threadIdx.x; i < PNET_TILE_ROWS; i += THREADS) place[t.row[i]] = (uint8_t)i;
    int64_t at = 0, stop = 0; /* triplets of the lane's row */
    if (lane_id() < SLAB_ROWS) {
        int64_t row =
            (int64_t)blockIdx.x * PNET_TILE_ROWS + t.row[warp_id() * SLAB_ROWS + lane_id()];
        at = start_of(set, row);
        stop = start_of(set, row + 1);
    }
    write_neighbours(set, s, t.neighbours, table, sorted, place, rounds,
        staged ? entries + (s.begin - begin) : nullptr, neighbour);
    if (staged) number(table, sorted, t.neighbours);
    write_cells(rounds, set.cells, t.cells, present, cell);
    if (staged) {
        write_rounds(
            at, stop, present, t.cells, own, word, [&](int64_t i) { return entries[i - begin]; },
            [&](uint32_t place) { return table[place]; });
        return;
    }
    /* the barrier makes what other threads have written visible */
    const uint32_t *known = t.neighbours <= MOST ? sorted : neighbour;
    write_rounds(
        at, stop, present, t.cells, own, word,
        [&](int64_t i) {
            return (uint32_t)set.cell[i] << 16 |
                   (find(known, t.neighbours, (uint32_t)set.other[i]) + 1);
        },
        [](uint32_t slot) { return slot; });
}

extern "C" const int64_t *pnet_cuda_tiles_measure(
    const struct pnet_triplets *t, struct pnet_tile *tile, void *work)
{
    int64_t tiles = pnet_cuda_geo_tiles_of(t->rows);
    int bytes = (TABLE + PNET_TILE_SLABS * t->cells) * (int)sizeof(uint32_t);
    if (tiles <= 0) return NULL;
    geo_purse purse(work);
    int64_t *words = purse.take<int64_t>((size_t)tiles);
    cudaFuncSetAttribute(count_tiles, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    count_tiles<<<(unsigned)tiles, THREADS, bytes, pnet_cuda_stream()>>>(
        *t, pnet_tile_kernel(t->cells), tile, words);
    pnet_cuda_geo_scan(tiles, words, purse.take<int64_t>(pnet_cuda_geo_scan_sums(tiles)));
    place_tiles<<<geo_blocks(tiles), GEO_THREADS, 0, pnet_cuda_stream()>>>(tiles, words, tile);
    return words + tiles - 1;
}

extern "C" int64_t pnet_cuda_tiles_count(
    const struct pnet_triplets *t, struct pnet_tile *tile, void *work)
{
    const int64_t *words = pnet_cuda_tiles_measure(t, tile, work);
    return words ? pnet_cuda_geo_read(words) : 0;
}

static __global__ void count_unlisted(int64_t tiles, const struct pnet_tile *tile, int64_t *partial)
{
    int own = 0;
    for (int64_t base = (int64_t)blockIdx.x * blockDim.x; base < tiles; base += thread_count()) {
        int64_t i = base + threadIdx.x;
        own += __syncthreads_count(i < tiles && tile[i].neighbours < 0);
    }
    if (threadIdx.x == 0) partial[blockIdx.x] = own;
}

extern "C" int64_t pnet_cuda_tiles_unlisted(int64_t rows, const struct pnet_tile *tile)
{
    int64_t tiles = pnet_cuda_geo_tiles_of(rows), *partial = pnet_cuda_geo_readback();
    if (tiles <= 0 || !partial) return 0;
    int blocks = geo_few_blocks(tiles);
    count_unlisted<<<(unsigned)blocks, GEO_THREADS, 0, pnet_cuda_stream()>>>(tiles, tile, partial);
    return pnet_cuda_geo_read_partials(blocks);
}

extern "C" void pnet_cuda_tiles_write(
    const struct pnet_triplets *t, const struct pnet_tile *tile, uint32_t *list)
{
    int64_t tiles = pnet_cuda_geo_tiles_of(t->rows);
    int64_t rest = 2 * TABLE + PNET_TILE_SLABS * t->cells, most = ROOM / 4 - rest;
    if (tiles <= 0) return;
    /* enough for most tiles, and for three blocks on a multiprocessor if triplets are few */
    int64_t stage = (t->count / tiles * 7 / 4 + 255) / 256 * 256;
    if (stage > most) stage = most;
    int bytes = (int)(stage + rest) * (int)sizeof(uint32_t);
    cudaFuncSetAttribute(write_tiles, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    write_tiles<<<(unsigned)tiles, THREADS, bytes, pnet_cuda_stream()>>>(
        *t, tile, list, (int)stage);
}
