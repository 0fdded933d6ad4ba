/* Gradients of functions of nearest distances, without atomics: the rows of b are sorted by their nearest row of a first, which
   keeps those of each in order. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/sort.h"
#include "kernels/cuda/base/levels.cuh"
#include "kernels/sets.h"

/* Rows that do not count go behind the last row of a. */
__global__ static void __launch_bounds__(THREADS)
    make_keys(struct pnet_count b, const int32_t *near, int64_t behind, uint64_t *key)
{
    const int64_t live = pnet_live(b);
    for (int64_t row = FLAT_BEGIN; row < b.most; row += FLAT_STEP) {
        int32_t to = row < live ? near[row] : -1;
        key[row] = (uint64_t)(to < 0 ? behind : to) << 32 | (uint32_t)row;
    }
}

/* Where the list of each row of a begins; it ends where that of the next one begins. start [a + 1]. */
__global__ static void __launch_bounds__(THREADS)
    find_starts(struct pnet_count a, int64_t keys, const uint64_t *key, int64_t *start)
{
    const int64_t rows = pnet_live(a);
    for (int64_t row = FLAT_BEGIN; row <= rows; row += FLAT_STEP) {
        int64_t low = 0, high = keys;
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            if ((int64_t)(key[middle] >> 32) < row)
                low = middle + 1;
            else
                high = middle;
        }
        start[row] = low;
    }
}

enum {
    SHORT = 16,  /* rows of a list up to which one thread adds it up */
    LONG = 2048, /* and a warp; a longer one is added up by a block */
};

struct pull {
    double of[3];
};

static __device__ __forceinline__ void add_pull(
    struct pull &sum, float pull, const float *from, const float *to)
{
    for (int c = 0; c < 3; c++) sum.of[c] += (double)pull * ((double)from[c] - (double)to[c]);
}

/* The rows of a list `first`, first + step .. of `count`. */
static __device__ __forceinline__ struct pull list_pull(const struct pnet_set_pull &p,
    const uint64_t *list, int64_t first, int64_t count, int step, const float *at)
{
    struct pull sum = {};
    for (int64_t k = first; k < count; k += step) {
        int64_t row = (int64_t)(uint32_t)list[k];
        add_pull(sum, p.b_pull[row], at, p.b.xyz + 3 * row);
    }
    return sum;
}

static __device__ __forceinline__ void write_row(
    const struct pnet_set_pull &p, int64_t row, struct pull list, float gloss, bool add, float *ga)
{
    struct pull sum = {};
    const float *at = p.a.xyz + 3 * row;
    const int64_t near = p.a_near[row];
    if (near >= 0)
        add_pull(sum, p.a_pull[row], at, p.b.xyz + 3 * near);
    else if (isnan(p.a_pull[row]))
        sum = {{nan(""), nan(""), nan("")}};
    for (int c = 0; c < 3; c++) {
        float g = (float)((sum.of[c] + list.of[c]) * (double)gloss), *to = ga + 3 * row + c;
        *to = add ? *to + g : g;
    }
}

/* A block has THREADS rows of a, one a thread. Who adds up a list depends on its length alone. */
__global__ static void __launch_bounds__(THREADS)
    add_lists(const __grid_constant__ struct pnet_set_pull p, const uint64_t *key,
        const int64_t *start, const float *gloss, bool add, float *ga)
{
    const int64_t rows = pnet_live(p.a.rows);
    const int lane = (int)threadIdx.x % WARP;
    const float scale = *gloss;
    for (int64_t base = (int64_t)blockIdx.x * THREADS; base < rows;
         base += (int64_t)gridDim.x * THREADS) {
        const int64_t own = base + threadIdx.x, begin = own < rows ? start[own] : 0,
                      count = own < rows ? start[own + 1] - begin : -1;
        if (count >= 0 && count <= SHORT)
            write_row(
                p, own, list_pull(p, key + begin, 0, count, 1, p.a.xyz + 3 * own), scale, add, ga);
        for (unsigned rest = __ballot_sync(~0u, count > SHORT && count <= LONG); rest;
             rest &= rest - 1) {
            int from = __ffs((int)rest) - 1;
            int64_t row = own - lane + from, first = __shfl_sync(~0u, begin, from);
            struct pull sum = list_pull(
                p, key + first, lane, __shfl_sync(~0u, count, from), WARP, p.a.xyz + 3 * row);
            for (int c = 0; c < 3; c++) sum.of[c] = lanes_sum(sum.of[c], WARP);
            if (lane == 0) write_row(p, row, sum, scale, add, ga);
        }
        if (!__syncthreads_or(count > LONG)) continue;
        for (int64_t row = base; row < rows && row < base + THREADS; row++) {
            int64_t first = start[row], entries = start[row + 1] - first;
            if (entries <= LONG) continue; /* in all threads alike */
            struct pull sum =
                list_pull(p, key + first, threadIdx.x, entries, THREADS, p.a.xyz + 3 * row);
            for (int c = 0; c < 3; c++) sum.of[c] = block_sum(sum.of[c]);
            if (threadIdx.x == 0) write_row(p, row, sum, scale, add, ga);
        }
    }
}

void pnet_cuda_set_pull(
    const struct pnet_set_pull *p, const float *gloss, bool add, float *ga, void *work)
{
    struct carver room = {(char *)work};
    const int64_t n = p->a.rows.most, m = p->b.rows.most;
    uint64_t *key = room.take<uint64_t>(m), *spare = room.take<uint64_t>(m);
    int64_t *start = room.take<int64_t>(n + 1);
    cudaStream_t stream = pnet_cuda_stream();
    if (n <= 0) return;
    if (m > 0) make_keys<<<element_blocks(m), THREADS, 0, stream>>>(p->b.rows, p->b_near, n, key);
    const uint64_t *sorted =
        pnet_cuda_sort_keys(m, key, spare, 32, 32 + pnet_cuda_sort_bits(n), room.at);
    find_starts<<<element_blocks(n + 1), THREADS, 0, stream>>>(p->a.rows, m, sorted, start);
    add_lists<<<blocks_for(n, THREADS), THREADS, 0, stream>>>(*p, sorted, start, gloss, add, ga);
}
