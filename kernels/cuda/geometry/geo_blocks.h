/* Voxels of a level that holds at most one point each, in the order of keys: 4 x 4 x 4 of them are a
   block, whose points are neighbours in the level. A block is its first row and 64 bits that tell
   which voxels hold a point; the row of a voxel is the first one plus the bits below its own. For
   .cu files alone. */
#ifndef PNET_KERNELS_CUDA_GEO_BLOCKS_H
#define PNET_KERNELS_CUDA_GEO_BLOCKS_H

#include "kernels/cuda/geometry/geo_set.h"

enum { BLOCK_KERNEL = 5 /* a window of so many voxels an axis meets at most two blocks there */ };

/* Finds the blocks; *b.missing becomes 0, or 1 where the level is not of that kind. */
void pnet_cuda_geo_blocks_build(const struct block_table *b, const struct pnet_level *level);

/* Can a set be found from blocks, if its level is of that kind? */
bool pnet_cuda_geo_blocks_serve(
    const struct pnet_level *out, const struct pnet_level *in, const struct pnet_neighbourhood *nb);
/* The same as pnet_cuda_geo_window_count and pnet_cuda_geo_window_write, where there are blocks; else nothing. */
void pnet_cuda_geo_blocks_count(const struct geo_set *s, int64_t *count);
void pnet_cuda_geo_blocks_write(const struct geo_set *s, const struct geo_results *to);

#endif
