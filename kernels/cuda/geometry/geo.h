/* kernels/cpu/geometry/geo.h on a GPU: all pointers lead to device memory, those inside of levels and sets as
   well, and so do `row_splits`. The structs themselves are the host's. The results are the same bits.

   Functions that return a number wait for the thread's stream, once. The others return at once.
   Workspaces are aligned to 16 bytes; their sizes are formulas that ask no GPU.

   Searches are fast where the rows of a level follow its `key`, or where `key` is NULL: then points
   are put along a curve first. Rows with keys that they do not follow are searched correctly, but at
   a cost that grows with the square of their number. */
#ifndef PNET_KERNELS_CUDA_GEO_H
#define PNET_KERNELS_CUDA_GEO_H

#include "kernels/geometry.h"

#ifdef __cplusplus
extern "C" {
#endif

int64_t pnet_cuda_keys(int64_t n, const float *xyz, struct pnet_grid grid, uint64_t *key);

size_t pnet_cuda_order_points_work(int64_t n);
int64_t pnet_cuda_order_points(int64_t n, int32_t samples, const int64_t *row_splits,
    const float *xyz, struct pnet_grid grid, int32_t *order, void *room, void *work);

size_t pnet_cuda_sample_work(int64_t n, bool ordered);
int64_t pnet_cuda_sample(const struct pnet_level *fine, struct pnet_grid grid, bool ordered,
    int32_t *keep, int32_t *parent, int64_t *row_splits, void *work);

void pnet_cuda_children(
    int64_t fine_rows, int64_t coarse_rows, const int32_t *parent, int64_t *start, int32_t *child);

size_t pnet_cuda_triplets_work(
    const struct pnet_level *out, const struct pnet_level *in, const struct pnet_neighbourhood *nb);
int64_t pnet_cuda_triplets_count(const struct pnet_level *out, const struct pnet_level *in,
    const struct pnet_neighbourhood *nb, const int32_t *parent, int64_t *start, void *work);
void pnet_cuda_triplets_write(const struct pnet_level *out, const struct pnet_level *in,
    const struct pnet_neighbourhood *nb, const int32_t *parent, const int64_t *start,
    int32_t *other, uint16_t *cell, void *work);

/* On one level most neighbourhoods are mutual: with (i, j) in the set (j, i) is too, though not always
   in the mirrored cell. Then the transposed form has the same row starts, and a second search, which
   asks for nothing but the arguments of the first, makes it faster than pnet_cuda_transpose. */
bool pnet_cuda_triplets_mutual(const struct pnet_neighbourhood *nb);
void pnet_cuda_triplets_back(const struct pnet_level *level, const struct pnet_neighbourhood *nb,
    const int64_t *start, int32_t *other, uint16_t *cell, void *work);

size_t pnet_cuda_transpose_work(const struct pnet_triplets *t);
void pnet_cuda_transpose(
    const struct pnet_triplets *t, int64_t *start, int32_t *other, uint16_t *cell, void *work);

size_t pnet_cuda_nearest_work(const struct pnet_level *out, const struct pnet_level *in, int32_t k);
void pnet_cuda_nearest(const struct pnet_level *out, const struct pnet_level *in, int32_t k,
    int32_t *index, float *distance2, void *work);

/* A set of at most PNET_TILE_CELLS kernel cells laid out as tiles (kernels/geometry.h). The first writes all headers,
   tile[(rows + 255) / 256], and returns the words of the lists; the second writes the lists. With `live` in the set,
   rows behind the true number have nothing in their tiles. The same bits each time: neighbours ascend. */
size_t pnet_cuda_tiles_work(int64_t rows);
int64_t pnet_cuda_tiles_count(const struct pnet_triplets *t, struct pnet_tile *tile, void *work);
/* Of tiles that were counted: those that list nothing. */
int64_t pnet_cuda_tiles_unlisted(int64_t rows, const struct pnet_tile *tile);
void pnet_cuda_tiles_write(
    const struct pnet_triplets *t, const struct pnet_tile *tile, uint32_t *list);

int64_t pnet_cuda_cell_runs(const struct pnet_triplets *t);

#ifdef __cplusplus
}
#endif

#endif
