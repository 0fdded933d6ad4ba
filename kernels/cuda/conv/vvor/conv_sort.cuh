/* The triplets of a set by kernel cell, taken from its tiles chunk by chunk: what conv_vvor_sorted.cu multiplies. */
#ifndef PNET_KERNELS_CUDA_CONV_SORT_CUH
#define PNET_KERNELS_CUDA_CONV_SORT_CUH

#include "kernels/cuda/conv/conv_common.cuh"

/* Triplets that are listed, on the device. */
struct sorted_triplets {
    const sort_chunk *share;
    const int2 *pair; /* row, other */
};

/* Kernel cells that are sorted together: at most SORT_CELLS. */
struct sort_window {
    int first, count;
};

/* Counts the triplets that all chunks have in a window; then sorts those of one of them. */
void pnet_cuda_sort_count(const conv_set &s, sort_window w, const sort_plan &p, void *work);
sorted_triplets pnet_cuda_sort_one_chunk(
    const conv_set &s, sort_window w, const sort_plan &p, int chunk, void *work);

#endif
