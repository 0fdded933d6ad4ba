/* A row block: the triplets of some output rows, read one by one and prepared in shared memory. The distinct neighbours
   of the rows get slots, so that each is staged once. */
#ifndef PNET_KERNELS_CUDA_CONV_ROW_BLOCK_CUH
#define PNET_KERNELS_CUDA_CONV_ROW_BLOCK_CUH

#include "kernels/cuda/conv/conv_common.cuh"

/* An entry is a triplet: its kernel cell in the upper 16 bits, the slot of its neighbour in the lower ones. */
static constexpr uint32_t CONV_NO_SLOT =
    0xFFFF; /* the neighbour is not staged, but read from global memory */
static constexpr uint32_t CONV_NO_TRIPLET = ~0u; /* behind the last triplet of a row */
enum { CONV_HASH = 2048, CONV_PROBES = 24 };

/* Arrays in shared memory. The hash table occupies the memory in which neighbours are staged later. */
struct conv_row_block {
    int slots, entries; /* how many neighbours and triplets fit */
    int words;          /* of a set of cells */
    uint32_t *entry;    /* [entries] */
    int32_t *neighbour; /* [slots] their rows */
    int *row;           /* [rows + 1] first triplet of each row, counted from the tile's */
    uint32_t *cells;    /* [warpgroups + 1][words]: cells that the rows of each have; all of them */
    int32_t *key;       /* [CONV_HASH] */
    uint16_t *slot;     /* [CONV_HASH] */
};

/* What all threads of the block know. */
struct conv_row_block_state {
    int staged;  /* neighbours; may be more than slots */
    int longest; /* triplets of a row */
    int spilled; /* some triplets have no slot */
};

/* The place of `other` in the hash table, or CONV_NO_SLOT. */
static __device__ __forceinline__ uint32_t conv_hash_insert(const conv_row_block &t, int32_t other)
{
    uint32_t at = (uint32_t)other * 2654435761u >> 21;
    for (int i = 0; i < CONV_PROBES; i++) {
        int32_t old = t.key[at];
        if (old == -1) old = atomicCAS(&t.key[at], -1, other);
        if (old == -1 || old == other) return at;
        at = (at + 1) % CONV_HASH;
    }
    return CONV_NO_SLOT;
}

/* Prepares rows row0 to row0 + rows - 1. All threads of the block call it. GROUPS: warpgroups, of 64 rows each. The slot
   of a neighbour may differ from run to run; what is gathered does not. */
template <int GROUPS, int THREADS>
static __device__ void conv_row_block_load(
    const conv_row_block &t, conv_row_block_state &state, const conv_set &s, int64_t row0, int rows)
{
    constexpr int ROWS = GROUPS * 64, AT_ONCE = 8;
    int tid = threadIdx.x;
    int64_t base = conv_start(s, row0);
    for (int r = tid; r <= ROWS; r += THREADS)
        t.row[r] = (int)(conv_start(s, row0 + min(r, rows)) - base);
    for (int i = tid; i < CONV_HASH; i += THREADS) t.key[i] = -1;
    for (int i = tid; i < (GROUPS + 1) * t.words; i += THREADS) t.cells[i] = 0;
    if (tid == 0) state = {0, 0, 0};
    __syncthreads();
    for (int r = tid; r < ROWS; r += THREADS)
        if (t.row[r + 1] - t.row[r] > state.longest)
            atomicMax(&state.longest, t.row[r + 1] - t.row[r]);
    int total = t.row[ROWS], known = min(total, t.entries);
    /* several at a time, since each of them waits for memory */
    for (int first = tid; first < total; first += THREADS * AT_ONCE) {
        uint32_t cell[AT_ONCE];
        int32_t other[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            int n = min(first + i * THREADS, total - 1);
            cell[i] = (uint32_t)conv_cell(s, base + n);
            other[i] = (int32_t)conv_other(s, base + n);
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            int n = first + i * THREADS;
            if (n >= total) break;
            uint32_t bit = 1u << cell[i] % 32;
            int group = 0;
            for (int g = 1; g < GROUPS; g++) group += n >= t.row[64 * g];
            uint32_t *word = t.cells + group * t.words + cell[i] / 32;
            if (!(*(volatile uint32_t *)word & bit)) atomicOr(word, bit);
            if (n < known) t.entry[n] = cell[i] << 16 | conv_hash_insert(t, other[i]);
        }
    }
    __syncthreads();
    for (int i = tid; i < CONV_HASH; i += THREADS) {
        int32_t other = t.key[i];
        if (other < 0) continue;
        int slot = atomicAdd(&state.staged, 1);
        t.slot[i] = (uint16_t)(slot < t.slots ? (uint32_t)slot : CONV_NO_SLOT);
        if (slot < t.slots) t.neighbour[slot] = other;
    }
    for (int w = tid; w < t.words; w += THREADS) {
        uint32_t all = 0;
        for (int g = 0; g < GROUPS; g++) all |= t.cells[g * t.words + w];
        t.cells[GROUPS * t.words + w] = all;
    }
    __syncthreads();
    bool spilled = total > known;
    for (int n = tid; n < known; n += THREADS) {
        uint32_t e = t.entry[n], at = e & 0xFFFF;
        if (at != CONV_NO_SLOT) {
            at = t.slot[at];
            t.entry[n] = (e & 0xFFFF0000) | at;
        }
        spilled |= at == CONV_NO_SLOT;
    }
    if (spilled) state.spilled = 1;
    __syncthreads();
}

/* The first cell of the set that is `from` or higher, or words * 32. */
static __device__ __forceinline__ int conv_next_cell(const uint32_t *cells, int words, int from)
{
    int word = from / 32;
    if (word >= words) return words * 32;
    uint32_t left = cells[word] >> from % 32;
    if (left) return from + __ffs(left) - 1;
    while (++word < words)
        if (cells[word]) return word * 32 + __ffs(cells[word]) - 1;
    return words * 32;
}

#endif
