/* Triplets one by one, sorted for an algorithm. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/compare/conv_algo.cuh"
#include "kernels/cuda/base/sort.h"

enum { THREADS = 256, POSITION_BITS = 32 };

/* What a list is sorted by, above the position in the chunk; `beyond` where there is no triplet. */
static __global__ void make_keys(conv_set s, bool by_other, uint64_t beyond, int64_t first,
    int64_t most, const int64_t *live, uint64_t *key)
{
    for (int64_t n = blockIdx.x * (int64_t)THREADS + threadIdx.x; n < most;
         n += (int64_t)gridDim.x * THREADS) {
        uint64_t value = beyond;
        if (n < *live) value = by_other ? (uint64_t)s.other[first + n] : s.cell[first + n];
        key[n] = value << POSITION_BITS | (uint64_t)n;
    }
}

/* The row that triplet `at` belongs to: the first whose end lies behind it. */
static __device__ int64_t row_of(const conv_set &s, int64_t rows, int64_t at)
{
    int64_t low = 0, high = rows - 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (s.start[middle + 1] > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Triplets in the order of their keys; without keys in that of the set. */
static __global__ void write_list(conv_set s, int64_t first, const int64_t *live,
    const uint64_t *key, int32_t *row, int32_t *other, uint16_t *cell)
{
    int64_t rows = pnet_live(s.rows);
    for (int64_t n = blockIdx.x * (int64_t)THREADS + threadIdx.x; n < *live;
         n += (int64_t)gridDim.x * THREADS) {
        int64_t at = first + (key ? (int64_t)(uint32_t)key[n] : n);
        row[n] = (int32_t)row_of(s, rows, at);
        other[n] = s.other[at];
        cell[n] = s.cell[at];
    }
}

static __global__ void count_live(conv_set s, int64_t first, int64_t most, int64_t *live)
{
    int64_t n = s.start[pnet_live(s.rows)] - first;
    *live = n < 0 ? 0 : n < most ? n : most;
}

struct pnet_conv_list pnet_cuda_conv_list(const struct pnet_triplets *t, enum pnet_conv_algo algo,
    int64_t first, int64_t most, void *memory, void *work)
{
    conv_set s = pnet_cuda_conv_set_of(t, PNET_STORE_F32);
    conv_pieces list = {(char *)memory}, scratch = {(char *)work};
    int64_t *live = list.take<int64_t>(1);
    int32_t *row = list.take<int32_t>(most), *other = list.take<int32_t>(most);
    uint16_t *cell = list.take<uint16_t>(most);
    uint64_t *key = nullptr;
    count_live<<<1, 1, 0, pnet_cuda_stream()>>>(s, first, most, live);
    if (most == 0) return {most, live, row, other, cell};
    unsigned blocks = conv_algo_blocks(most, THREADS);
    if (algo != PNET_ALGO_MVMR_I) {
        bool by_other = algo == PNET_ALGO_MVMR_J;
        int64_t beyond = by_other ? t->others : (int64_t)t->cells;
        key = scratch.take<uint64_t>(most);
        uint64_t *spare = scratch.take<uint64_t>(most);
        make_keys<<<blocks, THREADS, 0, pnet_cuda_stream()>>>(
            s, by_other, (uint64_t)beyond, first, most, live, key);
        key = pnet_cuda_sort_keys(most, key, spare, POSITION_BITS,
            POSITION_BITS + pnet_cuda_sort_bits(beyond), scratch.at);
    }
    write_list<<<blocks, THREADS, 0, pnet_cuda_stream()>>>(s, first, live, key, row, other, cell);
    return {most, live, row, other, cell};
}
