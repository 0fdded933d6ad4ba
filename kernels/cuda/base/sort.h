/* Stable radix sort of 64-bit keys on a range of their bits, for kernels that group rows. Launches
   on the stream of the calling thread. */
#ifndef PNET_KERNELS_CUDA_SORT_H
#define PNET_KERNELS_CUDA_SORT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of workspace for n keys, without the two buffers of keys. Makes no CUDA call. */
size_t pnet_cuda_sort_work(int64_t n);
/* Sorts keys[n] on the bits begin .. end - 1, with spare[n] to move through. Returns the one of the
   two buffers that holds the result; the other one is free. */
uint64_t *pnet_cuda_sort_keys(
    int64_t n, uint64_t *keys, uint64_t *spare, int begin, int end, void *work);
/* Number of bits that hold the numbers 0 to n. */
int pnet_cuda_sort_bits(int64_t n);

#ifdef __cplusplus
}
#endif

#endif
