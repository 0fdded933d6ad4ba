/* How the plain VVOR finds its operands: the runs of one kernel cell among the rows of a block. */
#ifndef PNET_KERNELS_CUDA_CONV_PAIRS_CUH
#define PNET_KERNELS_CUDA_CONV_PAIRS_CUH

#include "kernels/cuda/conv/conv_common.cuh"

struct conv_pairs {
    int64_t row[CONV_PAIR_ROWS], begin[CONV_PAIR_ROWS], end[CONV_PAIR_ROWS];
    int counts[CONV_PAIR_ROWS / 32];
};

/* The first triplet of [at, last) whose cell is k or higher. */
static __device__ __forceinline__ int64_t conv_find_cell(
    const conv_set &s, int64_t at, int64_t last, int k)
{
    while (at < last) {
        int64_t middle = at + (last - at) / 2;
        if (conv_cell(s, middle) < k)
            at = middle + 1;
        else
            last = middle;
    }
    return at;
}

/* Finds the runs of cell k among places [first, end), at most CONV_PAIR_ROWS of them, in their order. All threads of
   the block call it. Returns how many there are. */
static __device__ int conv_find_pairs(
    conv_pairs &p, const conv_set &s, int64_t first, int64_t end, int k)
{
    int64_t row = first + threadIdx.x, at = 0, last = 0;
    if (row < end) {
        last = conv_start(s, row + 1);
        at = conv_find_cell(s, conv_start(s, row), last, k);
    }
    bool found = at < last && conv_cell(s, at) == k;
    unsigned mask = __ballot_sync(~0u, found);
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0) p.counts[warp] = __popc(mask);
    __syncthreads();
    int before = 0, total = 0;
    for (int w = 0; w < CONV_PAIR_ROWS / 32; w++) {
        if (w < warp) before += p.counts[w];
        total += p.counts[w];
    }
    if (found) {
        int to = before + __popc(mask & ((1u << lane) - 1));
        p.row[to] = conv_row(s, row);
        p.begin[to] = at;
        while (at < last && conv_cell(s, at) == k) at++;
        p.end[to] = at;
    }
    __syncthreads();
    return total;
}

#endif
