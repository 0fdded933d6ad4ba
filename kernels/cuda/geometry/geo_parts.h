/* Host code that the files of the geometry stage share: workspaces, scans, sorts, reading results back. For .cu files alone. */
#ifndef PNET_KERNELS_CUDA_GEO_PARTS_H
#define PNET_KERNELS_CUDA_GEO_PARTS_H

#include "kernels/cuda/geometry/geo_work.h"

#include <cuda_runtime.h>

enum { GEO_THREADS = 256, GEO_PARTIALS = 1024 };

/* Returns the number of blocks of GEO_THREADS for n elements; a thread has one element, or several by strides. */
static inline unsigned geo_blocks(int64_t n)
{
    int64_t blocks = (n + GEO_THREADS - 1) / GEO_THREADS, most = 1 << 20;
    return (unsigned)(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

/* Returns the number of blocks for a kernel in which each block writes one number to the readback. */
static inline int geo_few_blocks(int64_t n)
{
    unsigned blocks = geo_blocks(n), most = GEO_PARTIALS;
    return (int)(blocks < most ? blocks : most);
}

/* Computes inclusive prefix sums in place. `sums` has room for pnet_cuda_geo_scan_sums(n) numbers; NULL if that is 0. */
void pnet_cuda_geo_scan(int64_t n, int64_t *at, int64_t *sums);
void pnet_cuda_geo_scan(int64_t n, int32_t *at, int64_t *sums);

/* Returns host memory of the calling thread to which kernels can write, GEO_PARTIALS numbers. NULL: there is none, and the
   error sticks. */
int64_t *pnet_cuda_geo_readback(void);
/* Return the number at a device address, and the sum of the first `count` partial numbers. Both wait for the stream. */
int64_t pnet_cuda_geo_read(const int64_t *device);
int64_t pnet_cuda_geo_read_partials(int count);

/* Sorts rows by the lowest `bits` of their items; the sort is stable. `room` [CURVE_BYTES * n] begins with the items, of 64 bits,
   and is scratch. Takes pnet_cuda_geo_sorter_bytes(n) of the purse. */
void pnet_cuda_geo_sort_items(int64_t n, int bits, int32_t *order, void *room, geo_purse *purse);
/* Finds the order of a level's rows along a curve through the box of all its points. */
void pnet_cuda_geo_curve(const struct pnet_level *level, int32_t *order, void *work);

/* Sorts the rows with more than `limit` triplets by (cell, other), in place. */
void pnet_cuda_geo_sort_long(
    int64_t rows, const int64_t *start, int64_t limit, int32_t *other, uint16_t *cell);
/* Sorts the rows list[0 .. count[0] - 1], at most `most`, of pairs of words by the lower word, in place. */
void pnet_cuda_geo_sort_pairs(
    int64_t most, const int64_t *start, uint64_t *pair, const int32_t *count, const int32_t *list);
/* Sorts all rows ascending, in place. */
void pnet_cuda_geo_sort_children(int64_t rows, const int64_t *start, int32_t *child);

#endif
