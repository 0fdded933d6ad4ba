#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/vvor/conv_sort.cuh"

#include <algorithm>

enum {
    THREADS = 256,
    WARPS = THREADS / 32,
    SCAN_THREADS = 1024,
    BLOCKS = 8 * 132,
    PAIRS = PNET_TILE_SLABS / 2, /* of slabs: a lane a row */
    VIEW_WORDS = 9 << 10
};

/* A tile as a block of threads reads it: its list, in shared memory where it fits, and for each cell and slab the first
   round. */
struct tile_view {
    alignas(16) uint32_t words[VIEW_WORDS];
    int first, end; /* of its cells, those of the window */
    uint32_t begin[SORT_CELLS][PNET_TILE_SLABS];
    int32_t row[PNET_TILE_ROWS]; /* by place; -1: it is not there */
};

struct tile_list {
    const uint32_t *words;
    const pnet_tile_cell *entries; /* of the window */
    const uint16_t *slots;         /* of the 16 rows of each round */
};

/* Does a tile list its triplets? Sets with too many kernel cells have no tiles. */
static __device__ __forceinline__ bool is_listed(const conv_set &s, int tile)
{
    return s.tiles.tile && s.tiles.tile[tile].neighbours >= 0;
}

/* All threads of a block, which meets here. Of a tile that is not listed the list has nothing. */
static __device__ tile_list view_tile(const conv_set &s, sort_window w, int tile, tile_view &v)
{
    if (!is_listed(s, tile)) return {nullptr, nullptr, nullptr};
    const pnet_tile &t = s.tiles.tile[tile];
    enum { CELL_WORDS = sizeof(pnet_tile_cell) / 4, ROUND_WORDS = 8 };
    int first = (t.neighbours + 3) / 4 * 4;
    int64_t words = first + t.cells * CELL_WORDS + (int64_t)t.rounds * ROUND_WORDS;
    const uint32_t *list = s.tiles.list + t.at;
    if (words <= VIEW_WORDS) {
#pragma unroll 8
        for (int i = threadIdx.x; i < words / 4; i += THREADS)
            ((uint4 *)v.words)[i] = __ldg((const uint4 *)list + i);
        list = v.words;
    }
    int64_t place = (int64_t)tile * PNET_TILE_ROWS + t.row[threadIdx.x];
    v.row[threadIdx.x] = place < pnet_live(s.rows) ? (int32_t)conv_row(s, place) : -1;
    __syncthreads();
    const pnet_tile_cell *entries = (const pnet_tile_cell *)(list + first);
    if ((int)threadIdx.x < PNET_TILE_SLABS) {
        uint32_t at = t.first[threadIdx.x];
        int e = 0, begin = 0;
        for (; e < t.cells && (int)entries[e].cell < w.first + w.count; e++) {
            if ((int)entries[e].cell < w.first)
                begin = e + 1;
            else
                v.begin[e - begin][threadIdx.x] = at;
            at += entries[e].rounds[threadIdx.x];
        }
        if (threadIdx.x == 0) {
            v.first = begin;
            v.end = e;
        }
    }
    __syncthreads();
    return {list, entries + v.first, (const uint16_t *)(entries + t.cells)};
}

/* Counts the slots, of 8, that hold a triplet. */
static __device__ __forceinline__ uint32_t count_slots(uint4 v)
{
    uint32_t ones = __vminu2(v.x, 0x00010001) + __vminu2(v.y, 0x00010001) +
                    __vminu2(v.z, 0x00010001) + __vminu2(v.w, 0x00010001);
    return (ones & 0xFFFF) + (ones >> 16);
}

/* Counts the triplets of entry e of a tile. A warp calls it; two lanes share a slab. */
static __device__ __forceinline__ uint32_t count_listed(
    const tile_list &l, const tile_view &v, int e)
{
    int lane = threadIdx.x % 32, rounds = l.entries[e].rounds[lane / 2];
    const uint4 *from = (const uint4 *)l.slots + 2 * (int64_t)v.begin[e][lane / 2] + lane % 2;
    uint32_t n = 0;
#pragma unroll 4
    for (int i = 0; i < rounds; i++) n += count_slots(from[2 * i]);
    return __reduce_add_sync(~0u, n);
}

/* Writes triplets one after the other. Places count from the first triplet of the chunk; triplets before the chunk get a
   place beyond any count, and are not written. */
struct pair_writer {
    int2 *pairs;
    uint32_t at, count;

    __device__ __forceinline__ void put(bool there, int row, int32_t other)
    {
        unsigned has = __ballot_sync(~0u, there);
        uint32_t place = at + __popc(has & ((1u << threadIdx.x % 32) - 1));
        if (there && place < count) pairs[place] = int2{row, other};
        at += __popc(has);
    }
};

/* Writes the triplets of entry e of a tile, the rounds of two slabs at a time. A warp calls it; a lane has a row. */
static __device__ __forceinline__ void write_listed(
    const tile_list &l, const tile_view &v, int e, pair_writer &w)
{
    int lane = threadIdx.x % 32, row = lane % 16;
    const uint16_t *slots = l.slots + row % 8 * 2 + row / 8;
    const int32_t *others = (const int32_t *)l.words - 1;
#pragma unroll 4
    for (int i = 0; i < PAIRS; i++) {
        int slab = 2 * i + lane / 16, rounds = l.entries[e].rounds[slab];
        int most = max(rounds, __shfl_xor_sync(~0u, rounds, 16));
        const uint16_t *from = slots + (int64_t)v.begin[e][slab] * 16;
        int own = v.row[slab * 16 + row];
#pragma unroll 2
        for (int n = 0; n < most; n++) {
            int slot = n < rounds ? from[n * 16] : 0;
            w.put(slot > 0, own, slot > 0 ? others[slot] : 0);
        }
    }
}

/* Visits the triplets of a cell where the tile lists nothing, in a warp with a row a lane: f(there, row, number of the
   triplet). */
template <class F>
static __device__ __forceinline__ void visit_plain(
    const conv_set &s, int64_t row0, int cell, const F &f)
{
    for (int r = 0; r < PNET_TILE_ROWS; r += 32) {
        int64_t place = row0 + r + threadIdx.x % 32, n = 0, end = 0, row = 0;
        if (place < pnet_live(s.rows)) {
            n = s.start[place];
            end = s.start[place + 1];
            row = conv_row(s, place);
        }
        for (int64_t high = end; n < high;) { /* cells ascend */
            int64_t middle = n + (high - n) / 2;
            if (s.cell[middle] < cell)
                n = middle + 1;
            else
                high = middle;
        }
        for (;; n++) {
            bool there = n < end && s.cell[n] == cell;
            if (!__any_sync(~0u, there)) break;
            f(there, (int)row, n);
        }
    }
}

static __device__ __forceinline__ int tiles_of(const conv_set &s)
{
    return (int)((pnet_live(s.rows) + PNET_TILE_ROWS - 1) / PNET_TILE_ROWS);
}

/* within[tile][k]: the tile's triplets of cells of the window below its k-th. */
static __global__ __launch_bounds__(THREADS) void count_kernel(
    const conv_set s, sort_window window, uint32_t *within)
{
    __shared__ tile_view view;
    __shared__ uint32_t count[SORT_CELLS];
    int warp = threadIdx.x / 32, tiles = tiles_of(s);
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        int64_t row0 = (int64_t)tile * PNET_TILE_ROWS;
        if ((int)threadIdx.x < window.count) count[threadIdx.x] = 0;
        bool plain = !is_listed(s, tile);
        tile_list l = view_tile(s, window, tile, view);
        if (plain) __syncthreads();
        int entries = plain ? window.count : view.end - view.first;
        for (int e = warp; e < entries; e += WARPS) {
            uint32_t n = 0;
            int cell = e;
            if (plain) {
                visit_plain(s, row0, window.first + e,
                    [&](bool there, int, int64_t) { n += __popc(__ballot_sync(~0u, there)); });
            } else {
                cell = (int)l.entries[e].cell - window.first;
                n = count_listed(l, view, e);
            }
            if (threadIdx.x % 32 == 0) count[cell] = n;
        }
        __syncthreads();
        if ((int)threadIdx.x <= window.count) {
            uint32_t sum = 0;
            for (int k = 0; k < (int)threadIdx.x; k++) sum += count[k];
            within[(int64_t)tile * (window.count + 1) + threadIdx.x] = sum;
        }
        __syncthreads();
    }
}

/* before[tile][k]: the triplets of cell k in the tiles before this one; with k = cells, of all cells. A block of threads
   has a cell. */
static __global__ __launch_bounds__(SCAN_THREADS) void scan_kernel(
    const conv_set s, int cells, const uint32_t *within, uint32_t *before)
{
    __shared__ uint32_t sums[SCAN_THREADS / 32];
    int tiles = tiles_of(s), cell = blockIdx.x, thread = threadIdx.x, lane = thread % 32;
    int each = (tiles + SCAN_THREADS - 1) / SCAN_THREADS;
    int first = min(thread * each, tiles), end = min(first + each, tiles);
    auto count = [&](int tile) {
        const uint32_t *w = within + (int64_t)tile * (cells + 1);
        return cell < cells ? w[cell + 1] - w[cell] : w[cell];
    };
    uint32_t own = 0;
    for (int tile = first; tile < end; tile++) own += count(tile);
    uint32_t sum = own;
    for (int step = 1; step < 32; step *= 2) {
        uint32_t other = __shfl_up_sync(~0u, sum, step);
        if (lane >= step) sum += other;
    }
    if (lane == 31) sums[thread / 32] = sum;
    __syncthreads();
    if (thread < 32) {
        uint32_t part = sums[thread];
        for (int step = 1; step < 32; step *= 2) {
            uint32_t other = __shfl_up_sync(~0u, part, step);
            if (thread >= step) part += other;
        }
        sums[thread] = part;
    }
    __syncthreads();
    uint32_t at = sum - own + (thread >= 32 ? sums[thread / 32 - 1] : 0);
    for (int tile = first; tile < end; tile++) {
        before[(int64_t)tile * (cells + 1) + cell] = at;
        at += count(tile);
    }
    if (thread == SCAN_THREADS - 1) before[(int64_t)tiles * (cells + 1) + cell] = at;
}

/* The tile that has the triplet with number x; `tiles` where there are fewer triplets. */
static __device__ int find_tile(const uint32_t *before, int cells, int tiles, uint64_t x)
{
    int low = 0, high = tiles; /* before[low] <= x, or low is 0 */
    if (x >= before[(int64_t)tiles * (cells + 1) + cells]) return tiles;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (before[(int64_t)middle * (cells + 1) + cells] <= x)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The triplets of cell k among the first x of all. `tile` is the one that has triplet x. */
static __device__ uint32_t count_below(const uint32_t *within, const uint32_t *before, int cells,
    int tiles, int tile, uint64_t x, int k)
{
    int64_t at = (int64_t)tile * (cells + 1);
    uint32_t sum = before[at + k];
    if (tile == tiles) return sum;
    uint64_t into = x - before[at + cells];
    uint32_t first = within[at + k], end = within[at + k + 1];
    return sum + (uint32_t)(into <= first ? 0 : into >= end ? end - first : into - first);
}

/* A block a chunk. */
static __global__ __launch_bounds__(SORT_CELLS) void share_kernel(const conv_set s, int cells,
    const sort_plan p, const uint32_t *within, const uint32_t *before, sort_chunk *share)
{
    __shared__ int tile[2];
    sort_chunk &to = share[blockIdx.x];
    int tiles = tiles_of(s), k = threadIdx.x;
    uint64_t edge[2] = {
        (uint64_t)blockIdx.x * (uint64_t)p.chunk, ((uint64_t)blockIdx.x + 1) * p.chunk};
    if (k < 2) tile[k] = find_tile(before, cells, tiles, edge[k]);
    __syncthreads();
    if (k < cells) {
        uint32_t skip = count_below(within, before, cells, tiles, tile[0], edge[0], k);
        to.skip[k] = skip;
        to.count[k] = count_below(within, before, cells, tiles, tile[1], edge[1], k) - skip;
    }
    __syncthreads();
    if (k > 0) return;
    to.first = tile[0];
    to.end = min(tile[1] + 1, tiles);
    uint32_t step = 0;
    for (int i = 0; i <= cells; i++) {
        to.step[i] = step;
        if (i < cells) step += (to.count[i] + SORT_STEP - 1) / SORT_STEP;
    }
}

static __global__ __launch_bounds__(THREADS) void write_kernel(const conv_set s, sort_window window,
    const uint32_t *before, const sort_chunk *share, int2 *pairs)
{
    __shared__ tile_view view;
    int warp = threadIdx.x / 32, end = share->end;
    for (int k = blockIdx.x; k < window.count; k += gridDim.x) { /* what steps are filled up with */
        int64_t at = (int64_t)share->step[k] * SORT_STEP + share->count[k] + threadIdx.x;
        if (at < (int64_t)share->step[k + 1] * SORT_STEP) pairs[at] = int2{-1, -1};
    }
    for (int tile = share->first + blockIdx.x; tile < end; tile += gridDim.x) {
        int64_t row0 = (int64_t)tile * PNET_TILE_ROWS;
        bool plain = !is_listed(s, tile);
        tile_list l = view_tile(s, window, tile, view);
        int entries = plain ? window.count : view.end - view.first;
        for (int e = warp; e < entries; e += WARPS) {
            int k = plain ? e : (int)l.entries[e].cell - window.first;
            pair_writer w = {pairs + (int64_t)share->step[k] * SORT_STEP,
                before[(int64_t)tile * (window.count + 1) + k] - share->skip[k], share->count[k]};
            if (plain)
                visit_plain(s, row0, window.first + e, [&](bool there, int row, int64_t n) {
                    w.put(there, row, there ? s.other[n] : 0);
                });
            else
                write_listed(l, view, e, w);
        }
        __syncthreads();
    }
}

void pnet_cuda_sort_count(const conv_set &s, sort_window w, const sort_plan &p, void *work)
{
    char *to = (char *)work;
    uint32_t *within = (uint32_t *)(to + p.within), *before = (uint32_t *)(to + p.before);
    int blocks = (int)std::min(std::max(p.tiles, (int64_t)1), (int64_t)BLOCKS);
    count_kernel<<<(unsigned)blocks, THREADS, 0, pnet_cuda_stream()>>>(s, w, within);
    scan_kernel<<<(unsigned)w.count + 1, SCAN_THREADS, 0, pnet_cuda_stream()>>>(
        s, w.count, within, before);
    share_kernel<<<(unsigned)p.chunks, SORT_CELLS, 0, pnet_cuda_stream()>>>(
        s, w.count, p, within, before, (sort_chunk *)(to + p.share));
}

sorted_triplets pnet_cuda_sort_one_chunk(
    const conv_set &s, sort_window w, const sort_plan &p, int chunk, void *work)
{
    char *to = (char *)work;
    const sort_chunk *share = (const sort_chunk *)(to + p.share) + chunk;
    int2 *pair = (int2 *)(to + p.pair);
    int blocks = (int)std::min(std::max(p.tiles, (int64_t)w.count), (int64_t)BLOCKS);
    write_kernel<<<(unsigned)blocks, THREADS, 0, pnet_cuda_stream()>>>(
        s, w, (const uint32_t *)(to + p.before), share, pair);
    return {share, pair};
}
