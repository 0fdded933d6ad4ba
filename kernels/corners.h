/* Features of a grid level at any points, the queries: the source rows around each query with their weights, and sums of rows
   by such weights.

   Trilinear. The features of a source row count as lying on the centre of its voxel. Of a query p, in float32 without
   contraction, on each axis: q = (p * inverse_base) / factor, low = floorf(q - 0.5f). Corner e = 4 ex + 2 ey + ez is the voxel
   low + (ex, ey, ez), and its weight w = (wx * wy) * wz with w_axis = max(1 - fabsf(q - (low + e_axis) - 0.5f), 0). A corner is
   present if the sample has a source row in that voxel, and w > 0. The weight of a present corner is w / max(sum, 1e-12), with
   the sum of w over the present corners in ascending e. Nearest. The only corner is the voxel that holds the query
   (docs/geometry.md); its weight is 1.

   The method is that of grid sampling on sparse voxels in FlexGEMM (github.com/JeffreyXiang/FlexGEMM). */
#ifndef PNET_KERNELS_CORNERS_H
#define PNET_KERNELS_CORNERS_H

#include "kernels/both.h"
#include "kernels/count.h"
#include "kernels/geometry.h"
#include "kernels/philox.h" /* PNET_HD */

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PNET_CORNERS = 8 };

enum pnet_corner_kind { PNET_CORNERS_TRILINEAR, PNET_CORNERS_NEAREST };

/* Sets the lowest corner of a query and the weights of both corners of each axis. Returns false if no corner lies within the
   range of voxels; then nothing is set. */
PNET_HD bool pnet_corners_of(
    const float p[3], struct pnet_grid grid, int32_t low[3], float weight[3][2])
{
    float q[3], least[3];
    for (int a = 0; a < 3; a++) {
        q[a] = p[a] * grid.inverse_base / (float)grid.factor;
        least[a] = floorf(q[a] - 0.5f);
        if (!(least[a] >= -PNET_KEY_BIAS - 1 && least[a] < PNET_KEY_BIAS)) return false;
    }
    for (int a = 0; a < 3; a++) {
        low[a] = (int32_t)least[a];
        for (int e = 0; e < 2; e++) {
            float w = 1 - fabsf(q[a] - (least[a] + (float)e) - 0.5f);
            weight[a][e] = w > 0 ? w : 0;
        }
    }
    return true;
}

/* The weight of corner e. */
PNET_HD float pnet_corner_weight(float weight[3][2], int e)
{
    float x = e & 4 ? weight[0][1] : weight[0][0], y = e & 2 ? weight[1][1] : weight[1][0],
          z = e & 1 ? weight[2][1] : weight[2][0];
    return x * y * z;
}

/* Lists of present corners, sorted by query, are made in two calls, like triplets. `source` is a grid level: at most one row a
   voxel and sample, in the order of keys on source->grid; its keys are not read. nearest: NULL, or for each query the row of
   `source` that is listed with weight 1 where no corner is present; -1: none either.

     count: start[queries->rows + 1] gets the prefix sums; returns their number
     write: other[number] gets source rows, cell[number] their corners e, weight[number] their weights; weight may be NULL

   `write` reads the workspace as `count` left it. Work on the CPU: 8 bytes a source row, and 32 bytes a query, 4 of kind
   nearest. */
PNET_BOTH(size_t, corners_work, const struct pnet_level *queries, const struct pnet_level *source,
    enum pnet_corner_kind kind);
PNET_BOTH(int64_t, corners_count, const struct pnet_level *queries, const struct pnet_level *source,
    enum pnet_corner_kind kind, const int32_t *nearest, int64_t *start, void *work);
PNET_BOTH(void, corners_write, const struct pnet_level *queries, const struct pnet_level *source,
    enum pnet_corner_kind kind, const int32_t *nearest, const int64_t *start, int32_t *other,
    uint16_t *cell, float *weight, void *work);

/* back[count] = the weights of the transposed lists `back_of`, from those of the lists `of`. */
PNET_BOTH(void, corners_transpose, const struct pnet_triplets *of, const float *weight,
    const struct pnet_triplets *back_of, float *back);

/* Lists of rows with weights: list `row` has the entries start[row] .. start[row + 1] - 1. */
struct pnet_weighted {
    struct pnet_count rows; /* lists; `storage` is that of the features */
    const int64_t *start;   /* [rows + 1] */
    const int32_t *other;   /* row of x */
    const float *weight;    /* NULL: all are 1 */
    const int32_t *row;     /* [rows]: the row of y that a list makes; NULL: list r makes row r */
};

/* y[row] (+)= sum of weight * x[other] over its list, in float32; 0 for an empty list. x and y have c channels. */
PNET_BOTH(void, weighted_rows, const struct pnet_weighted *w, int32_t c, const float *x, bool add,
    float *y);
/* y[row] = label[other] of the first entry of its list; -1 for an empty list. */
PNET_BOTH(void, weighted_labels, const struct pnet_weighted *w, const int32_t *label, int32_t *y);

#endif
