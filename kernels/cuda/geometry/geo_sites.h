/* What sets of voxels and of lists share: the least of numbers that threads find, in a word of a workspace. For .cu files
   alone. */
#ifndef PNET_KERNELS_CUDA_GEO_SITES_H
#define PNET_KERNELS_CUDA_GEO_SITES_H

#include <stdint.h>

/* Sets the word to 2^64 - 1, for atomicMin. */
void pnet_cuda_geo_least_begin(void *work);
/* Reads it; waits. -1: no thread found a number. */
int64_t pnet_cuda_geo_least(const void *work);

/* The bits of the numbers 0 .. end - 1. */
static inline int bits_below(int64_t end)
{
    int bits = 0;
    while ((int64_t)1 << bits < end) bits++;
    return bits;
}

#endif
