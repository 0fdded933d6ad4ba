/* The geometry stage: levels, orders, triplet sets and nearest points from coordinates. kernels/geometry.h has the structs.

   The results are the same bits on either device, for any number of threads, and on any instruction set (pnet_cpu_isa). Rows
   number less than 2^31; coordinates are finite. Workspaces are upper bounds for any coordinates, linear in the rows; they
   depend on the rows and samples of levels alone. A function that returns a number waits for the thread's stream on a GPU once.

   Rows of a level may be in any order within their sample. Searches are fast where rows are in the order of `key`, or where `key`
   is NULL: then points are put along a curve first. Rows with keys that they do not follow are searched correctly, on a GPU at
   a cost that grows with the square of their number. */
#ifndef PNET_KERNELS_GEOMETRY_STAGE_H
#define PNET_KERNELS_GEOMETRY_STAGE_H

#include "kernels/both.h"
#include "kernels/geometry.h"

/* Keys of n points on a grid. Returns the number of points outside of the key range (their key is
   clamped), so that the caller can refuse the cloud. */
PNET_BOTH(int64_t, keys, int64_t n, const float *xyz, struct pnet_grid grid, uint64_t *key);

/* CPU: order[n] := the permutation that sorts each sample's rows by key, stable: equal keys stay in the order of rows. */
size_t pnet_cpu_order_work(int64_t n);
void pnet_cpu_order(int64_t n, int32_t samples, const int64_t *row_splits, const uint64_t *key,
    int32_t *order, void *work);

/* The same on either device, for points whose keys are not needed afterwards; returns the result of `keys`. room: 12 bytes a
   point, aligned to 4, that may be overwritten; `xyz` does not lie there, but points in the new order can be put there. */
PNET_BOTH(size_t, order_points_work, int64_t n);
PNET_BOTH(int64_t, order_points, int64_t n, int32_t samples, const int64_t *row_splits,
    const float *xyz, struct pnet_grid grid, int32_t *order, void *room, void *work);

/* Samples `fine` on `grid`: each non-empty voxel keeps the point nearest to its centre, which is
   (index + 0.5) * cell an axis in float32, by (dx*dx + dy*dy) + dz*dz, then the lowest row.

     keep[<= fine->rows]      rows of `fine` that are kept, ordered by sample, then key on `grid`
     parent[fine->rows]       the coarse row of each fine row
     row_splits[samples + 1]  of the coarse level

   Returns the number of coarse rows. Points outside of the key range are clamped. `ordered`: each sample's rows are in
   the order of their keys on `grid` as they are (pnet_grid_follows), and need no sorting. */
PNET_BOTH(size_t, sample_work, int64_t n, bool ordered);
PNET_BOTH(int64_t, sample, const struct pnet_level *fine, struct pnet_grid grid, bool ordered,
    int32_t *keep, int32_t *parent, int64_t *row_splits, void *work);

/* parent[i] = i / each for i < n: rows in blocks of equal length. */
PNET_BOTH(void, block_parents, int64_t n, int64_t each, int32_t *parent);
/* to[i] = from[i] * each for i < n: where segments begin, each row of which became `each` rows. */
PNET_BOTH(void, scale_splits, int64_t n, int64_t each, const int64_t *from, int64_t *to);

/* children of each coarse row, ascending: start[coarse_rows + 1], child[fine_rows]. A NULL child is for parents that
   ascend, and every coarse row is one: child[n] would be n. */
PNET_BOTH(void, children, int64_t fine_rows, int64_t coarse_rows, const int32_t *parent,
    int64_t *start, int32_t *child);

/* Triplets in two steps with the same arguments. `out` holds the centres i, `in` the neighbours j.
   They are one level (the same pointer, parent NULL), or `out` is the coarser one and
   parent[in->rows] leads to it: the pair of a fine point and its coarse point is always in the
   set, its cell clamped, unless `neighbour` is on; knn does not count it.

     count: start[out->rows + 1] gets the prefix sums; returns T
     write: other[T], cell[T], each row sorted by (cell, other)

   Any `degrade` needs grids of one chain: in->grid.base == out->grid.base, and out->grid.factor a
   multiple of in->grid.factor. knn is at most PNET_KNN_LIMIT, and native. K^3 is at most 65536.

   Work on the CPU: 4 bytes an input row, and for a coarser `out` 12 bytes an output and 4 more an input row;
   on top of that the larger of
     - 24 bytes a row of the larger level, and 256 KiB
     - 17.6 bytes an input row and 256 a sample, with 12 more an input row where `neighbour` and
       `kernel` differ. */
PNET_BOTH(size_t, triplets_work, const struct pnet_level *out, const struct pnet_level *in,
    const struct pnet_neighbourhood *nb);
PNET_BOTH(int64_t, triplets_count, const struct pnet_level *out, const struct pnet_level *in,
    const struct pnet_neighbourhood *nb, const int32_t *parent, int64_t *start, void *work);
PNET_BOTH(void, triplets_write, const struct pnet_level *out, const struct pnet_level *in,
    const struct pnet_neighbourhood *nb, const int32_t *parent, const int64_t *start,
    int32_t *other, uint16_t *cell, void *work);

/* The same set sorted by the other side: start[t->others + 1], other[T] (= rows of t), cell[T],
   each row sorted by (cell, other). Applied twice it gives the set back. Work on the CPU: a
   sixteenth of a byte a row. */
PNET_BOTH(size_t, transpose_work, const struct pnet_triplets *t);
PNET_BOTH(void, transpose, const struct pnet_triplets *t, int64_t *start, int32_t *other,
    uint16_t *cell, void *work);

/* The k <= PNET_KNN_LIMIT nearest rows of `in` (same sample) for each row of `out`, by (distance^2,
   row), nearest first: index[out->rows * k], distance2 likewise; missing ones (fewer than k in the
   sample) are -1 and infinity. */
PNET_BOTH(
    size_t, nearest_work, const struct pnet_level *out, const struct pnet_level *in, int32_t k);
PNET_BOTH(void, nearest, const struct pnet_level *out, const struct pnet_level *in, int32_t k,
    int32_t *index, float *distance2, void *work);

/* The number of distinct (row, cell) of a set: U. */
PNET_BOTH(int64_t, cell_runs, const struct pnet_triplets *t);

/* Tiles (struct pnet_tiles), for sets of at most PNET_TILE_CELLS kernel cells. A GPU makes them; the CPU, which reads none, says
   how many words their lists have, for plans.

   Words of the lists; 0 for a set that is not laid out. *unlisted (or NULL): is there a tile that lists nothing? */
int64_t pnet_cpu_tiles_words(const struct pnet_triplets *t, bool *unlisted);

#ifdef __cplusplus
extern "C" {
#endif

/* `count` writes all headers, tile[(rows + 255) / 256], and returns the words of the lists; `write` writes the lists. With `live`
   in the set, rows behind the true number have nothing in their tiles. Neighbours ascend. */
size_t pnet_cuda_tiles_work(int64_t rows);
int64_t pnet_cuda_tiles_count(const struct pnet_triplets *t, struct pnet_tile *tile, void *work);
/* `count` that does not wait: returns the place of the number in `work`, NULL for a set without rows. */
const int64_t *pnet_cuda_tiles_measure(
    const struct pnet_triplets *t, struct pnet_tile *tile, void *work);
/* Of tiles that were counted: those that list nothing. */
int64_t pnet_cuda_tiles_unlisted(int64_t rows, const struct pnet_tile *tile);
void pnet_cuda_tiles_write(
    const struct pnet_triplets *t, const struct pnet_tile *tile, uint32_t *list);

/* GPU: a faster way to the transposed form. On one level most neighbourhoods are mutual: with (i, j) in the set (j, i) is too,
   though not always in the mirrored cell. Then the transposed form has the same row starts, and a second search, which asks
   for nothing but the arguments of the first, is faster than pnet_cuda_transpose. */
bool pnet_cuda_triplets_mutual(const struct pnet_neighbourhood *nb);
void pnet_cuda_triplets_back(const struct pnet_level *level, const struct pnet_neighbourhood *nb,
    const int64_t *start, int32_t *other, uint16_t *cell, void *work);

#ifdef __cplusplus
}
#endif

#endif
