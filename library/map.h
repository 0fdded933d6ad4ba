/* What a map between points holds. */
#ifndef PNET_LIBRARY_MAP_H
#define PNET_LIBRARY_MAP_H

#include "library/points.h"

#include "kernels/corners.h"
#include "kernels/pool.h"

/* Lists of rows of the other side, with weights. */
struct pnet_map_lists {
    int64_t *start;
    int32_t *other;
    float *weight; /* NULL: all are 1 */
};

/* All rows are the caller's. Nothing changes a map. */
struct pnet_map {
    enum pnet_map_kind kind;
    int64_t rows_in, rows_out;
    /* MEAN, MAX, SUM, PARENT: */
    struct pnet_cells cells; /* with the memory of these: */
    int64_t *start;
    int32_t *child, *parent;
    /* INVERSE_DISTANCE: [rows_out, k] */
    int32_t k, *index;
    float *distance2;
    /* TRILINEAR, NEAREST */
    struct pnet_map_lists by_out, by_in;
};

#endif
