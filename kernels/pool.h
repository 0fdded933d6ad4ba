/* Going between levels without weights: cells of a grid, samples of a batch, nearest points. All matrices have c channels.
   `add`: add to the result instead of writing it. */
#ifndef PNET_KERNELS_POOL_H
#define PNET_KERNELS_POOL_H

#include "kernels/both.h"
#include "kernels/count.h"
#include "kernels/geometry.h"
#include "kernels/segments.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which fine rows lie in which coarse row. */
struct pnet_cells {
    struct pnet_count fine_rows, coarse_rows;
    const int32_t *parent; /* [fine_rows]; NULL with a NULL child, for labels alone */
    const int64_t *start;  /* [coarse_rows + 1] */
    const int32_t *child;  /* [fine_rows], of coarse row r from start[r], ascending; NULL: the row
                              itself, cells are stretches of rows */
    /* [coarse_rows], for the sum and the maximum: the coarse row whose fine rows begin at start[r],
       instead of r; NULL: r */
    const int32_t *row;
    /* [fine_rows], for spreading and the gradient of the maximum: the fine row whose coarse row is
       parent[r], instead of r; NULL: r */
    const int32_t *fine;
};

/* y = x, n elements of 4 bytes: a value or labels that stay on their level. */
PNET_BOTH(void, copy_elements, struct pnet_count n, const void *x, void *y);

enum pnet_pool { PNET_POOL_MEAN, PNET_POOL_MAX, PNET_POOL_SUM };

/* y[coarse] (+)= mean or sum of x[fine] over the cell; 0 where it is empty. */
PNET_BOTH(size_t, cells_sum_work, int32_t c);
PNET_BOTH(void, cells_sum, const struct pnet_cells *cells, int32_t c, const float *x, bool mean,
    bool add, float *y, void *work);
/* y[fine] (+)= x[coarse], divided by the number of fine rows in the cell where `mean` (then `start`
   is read): the gradient of the above, and nearest upsampling. */
PNET_BOTH(void, cells_spread, const struct pnet_cells *cells, int32_t c, const float *x, bool mean,
    bool add, float *y);

/* y[coarse] = the largest x[fine] of the cell by channel, argmax (unless NULL) its fine row, the
   lowest one among equals; an empty cell has 0 and -1. */
PNET_BOTH(void, cells_max, const struct pnet_cells *cells, int32_t c, const float *x, float *y,
    int32_t *argmax);
/* gx[fine] (+)= g[coarse] where argmax names the fine row, else 0. */
PNET_BOTH(void, cells_max_backward, const struct pnet_cells *cells, int32_t c,
    const int32_t *argmax, const float *g, bool add, float *gx);

#ifdef __cplusplus
extern "C" {
#endif

/* GPU. Pools over triplets: rows are cells, and a row of the other side may lie in several. Features are stored as `storage`.

   y[row] = the largest x[other] by channel, argmax (unless NULL) that other, of the first triplet among equals; a row without
   triplets has 0 and -1. */
void pnet_cuda_triplets_max(const struct pnet_triplets *t, int32_t c, enum pnet_storage storage,
    const float *x, float *y, int32_t *argmax);
/* The gradients, by the transposed form: gx[row] = the sum of g[other] where argmax names the row; `several`: a row may meet
   another one several times, which counts once. And of means, gx[row] = the sum of g[other] / the triplets of `other`, which the
   other form, `to`, counts. */
void pnet_cuda_triplets_max_back(const struct pnet_triplets *back, bool several, int32_t c,
    enum pnet_storage storage, const int32_t *argmax, const float *g, float *gx);
void pnet_cuda_triplets_mean_back(const struct pnet_triplets *back, const struct pnet_triplets *to,
    int32_t c, enum pnet_storage storage, const float *g, float *gx);

#ifdef __cplusplus
}
#endif

/* y[coarse] = the label most frequent in the cell, the lowest one among equals; negative labels do
   not count; -1 where none does. */
PNET_BOTH(size_t, cells_majority_work, const struct pnet_cells *cells); /* reads counts alone */
PNET_BOTH(void, cells_majority, const struct pnet_cells *cells, const int32_t *label, int32_t *y,
    void *work);

/* The same for segments (samples): few of them, with many rows each. */
PNET_BOTH(size_t, segments_pool_work, struct pnet_segments s, int32_t c);
PNET_BOTH(void, segments_sum, struct pnet_segments s, int32_t c, const float *x, bool mean,
    bool add, float *y, void *work);
PNET_BOTH(void, segments_spread, struct pnet_segments s, int32_t c, const float *x, bool mean,
    bool add, float *y);
PNET_BOTH(void, segments_max, struct pnet_segments s, int32_t c, const float *x, float *y,
    int32_t *argmax, void *work);
PNET_BOTH(void, segments_max_backward, struct pnet_segments s, int32_t c, const int32_t *argmax,
    const float *g, bool add, float *gx);

/* k nearest coarse rows of each fine row: index and squared distance, [fine_rows, k]; -1: none. */
struct pnet_nearest {
    struct pnet_count fine_rows, coarse_rows;
    int32_t k;
    const int32_t *index;
    const float *distance2;
    /* [fine_rows]: the fine row that the k entries from r k on belong to, instead of r; NULL: r */
    const int32_t *row;
};

/* y[fine] = sum of w x[coarse] over the nearest ones, w = 1 / (distance^2 + 1e-8), normalised to 1
   (Qi, Yi, Su, Guibas, PointNet++, 2017); 0 where there is none. */
PNET_BOTH(void, interpolate, const struct pnet_nearest *n, int32_t c, const float *x, float *y);
/* gx[coarse] (+)= sum of w g[fine] over the pairs of the coarse row, in the order of their entries. */
PNET_BOTH(size_t, interpolate_backward_work, const struct pnet_nearest *n, int32_t c);
PNET_BOTH(void, interpolate_backward, const struct pnet_nearest *n, int32_t c, const float *g,
    bool add, float *gx, void *work);

#endif
