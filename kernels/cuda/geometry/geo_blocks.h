/* Blocks of 4 x 4 x 4 voxels, for levels with at most one point a voxel, in the order of keys: the points of a block are
   consecutive rows. A block is its first row and 64 bits that tell which voxels hold a point; the row of a voxel is the
   first row plus the number of bits set below the voxel's own. For .cu files alone. */
#ifndef PNET_KERNELS_CUDA_GEO_BLOCKS_H
#define PNET_KERNELS_CUDA_GEO_BLOCKS_H

#include "kernels/cuda/geometry/geo_set.h"

enum { BLOCK_KERNEL = 5 /* a window of this many voxels an axis meets at most two blocks on it */ };

/* Finds the blocks of a level. *b.missing becomes 0, or 1 if some voxel holds more than one point. */
void pnet_cuda_geo_blocks_build(const struct block_table *b, const struct pnet_level *level);

/* Tells whether a set can be found from blocks, if its level has blocks. */
bool pnet_cuda_geo_blocks_serve(
    const struct pnet_level *out, const struct pnet_level *in, const struct pnet_neighbourhood *nb);
/* As pnet_cuda_geo_window_count and pnet_cuda_geo_window_write, for levels with blocks; do nothing for others. */
void pnet_cuda_geo_blocks_count(const struct geo_set *s, int64_t *count);
void pnet_cuda_geo_blocks_write(const struct geo_set *s, const struct geo_results *to);

#endif
