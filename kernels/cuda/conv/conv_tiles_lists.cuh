/* The triplets of a set by kernel cell, made of its tiles a stretch at a time: what VVOR by lists multiplies. */
#ifndef PNET_KERNELS_CUDA_CONV_TILES_LISTS_CUH
#define PNET_KERNELS_CUDA_CONV_TILES_LISTS_CUH

#include "kernels/cuda/conv/conv_common.cuh"

/* Triplets that are listed, on the device. */
struct triplet_lists {
    const list_share *share;
    const int2 *pair; /* row, other */
};

/* Counts; then lists a stretch. */
void lists_count(const conv_set &s, const lists_plan &p, void *work);
triplet_lists lists_make(const conv_set &s, const lists_plan &p, int stretch, void *work);

#endif
