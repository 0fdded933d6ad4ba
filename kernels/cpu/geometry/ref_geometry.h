/* The geometry stage once more, serial and plain: every definition is a loop over all points. For tests. It shares the
   float32 arithmetic with the fast functions, and nothing else. Callers free the results. */
#ifndef PNET_KERNELS_CPU_REF_GEOMETRY_H
#define PNET_KERNELS_CPU_REF_GEOMETRY_H

#include "kernels/corners.h"
#include "kernels/geometry.h"

struct pnet_ref_triplet {
    int32_t i, j, k; /* centre, neighbour, kernel cell */
};

/* Sets the voxel of a point (metres). */
void pnet_ref_voxel(const float p[3], struct pnet_grid grid, int32_t voxel[3]);
/* Returns the interleaved bits of three voxel indices, x highest. */
uint64_t pnet_ref_key(const int32_t voxel[3]);

/* Takes the arguments of pnet_cpu_sample without the workspace. O(rows^2). Returns the number of coarse rows. */
int64_t pnet_ref_sample(const struct pnet_level *fine, struct pnet_grid grid, int32_t *keep,
    int32_t *parent, int64_t *row_splits);

/* Cuts chunks of `size` rows: keep[coarse rows] is the row of `fine` that each has its point from; parent and row_splits are as
   for pnet_ref_sample. Returns the number of coarse rows. */
int64_t pnet_ref_chunks(const struct pnet_level *fine, int64_t size, int32_t *keep, int32_t *parent,
    int64_t *row_splits);

/* Returns all triplets of a set, sorted by (i, k, j), *count of them, for the caller to free. Takes the arguments of
   pnet_cpu_triplets_count. O(out * in), times the logarithm with knn. NULL: out of memory. */
struct pnet_ref_triplet *pnet_ref_triplets(const struct pnet_level *out,
    const struct pnet_level *in, const struct pnet_neighbourhood *nb, const int32_t *parent,
    int64_t *count);

/* Transposes triplets in place: exchanges i and j of each, then sorts by (i, k, j). */
void pnet_ref_transpose(int64_t count, struct pnet_ref_triplet *t);

/* Takes the arguments of pnet_cpu_nearest without the workspace. Returns false if memory is out. */
bool pnet_ref_nearest(const struct pnet_level *out, const struct pnet_level *in, int32_t k,
    int32_t *index, float *distance2);

/* Sets the source row of each corner of each query, row[queries * 8], -1: absent, and the weights of the present ones. Of kind
   nearest, the corners 1 .. 7 are absent. `outside`: where all are absent, corner 0 is the nearest source row. Returns false if
   memory is out. O(queries * source). */
bool pnet_ref_corners(const struct pnet_level *queries, const struct pnet_level *source,
    enum pnet_corner_kind kind, bool outside, int32_t *row, float *weight);

#endif
