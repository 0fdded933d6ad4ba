/* The parameters of a triplet set that counting and writing share. */
#ifndef PNET_KERNELS_CPU_GEO_SET_H
#define PNET_KERNELS_CPU_GEO_SET_H

#include <math.h>

#include "kernels/cpu/geometry/geo_tree.h"

/* Pairs (i, j) are found in one space, and their kernel cells in the same or another one: metres, where i is the centre and
   j the point; or voxels of the finer level, where i is the voxel from which its window is placed and j the voxel of the
   point. Positions in either are float32 (voxel indices are below 2^21), and d = j - i. */
struct pnet_geo_set {
    const struct pnet_level *out, *in;
    /* [in->rows]: the pair of a row and its parent always belongs to the set; or NULL */
    const int32_t *parent;
    int32_t kernel, knn;
    bool pair_in_voxels, cell_in_voxels;
    bool snap;    /* centres are the centres of voxels */
    int32_t step; /* the finer voxel of a coarse voxel is step * index */

    /* the pair test: |d|^2 <= radius2, or low <= d <= high on every axis */
    bool ball;
    float radius2, low, high;

    /* the kernel cell: clamp(floor(d * scale + shift)) on each axis, or `fixed` if that is not negative */
    float scale, shift;
    int32_t fixed;

    struct pnet_geo_blocks queries; /* rows of `out` */
    struct pnet_geo_blocks points;  /* rows of `in` */
    struct pnet_geo_tree tree;      /* over `points`, in the space of pairs */
    float (
        *cell_at)[3]
                 [WIDE];  /* the same points in the space of cells; NULL where the spaces are one */
    int64_t *child_start; /* [out->rows + 1], where there is a parent */
    int32_t *child;       /* [in->rows] */
};

/* Sets the cells for radius r, in metres, with K cells an axis. If the scale of the radius is not finite, every pair is in
   the centre cell. */
static inline void pnet_geo_set_cells(struct pnet_geo_set *s, float radius)
{
    float scale = (float)((double)s->kernel / (2 * (double)radius));
    bool point = !(radius > 0) || !isfinite(scale);
    s->scale = point ? 0 : scale;
    s->shift = (float)s->kernel / 2;
    s->fixed = point ? s->kernel / 2 * (s->kernel * s->kernel + s->kernel + 1) : -1;
}

/* Returns max(0, min(last, floor(x))); 0 for NaN. */
static inline int32_t pnet_geo_clamp(float x, float last)
{
    x = x > 0 ? x : 0;
    return (int32_t)(x < last ? x : last);
}

/* Sets the position of row i of `out`, in metres or voxels. */
static inline void pnet_geo_set_centre(
    const struct pnet_geo_set *s, int64_t row, bool in_voxels, float at[3])
{
    const float *p = s->out->xyz + 3 * row;
    if (!in_voxels && !s->snap) {
        for (int a = 0; a < 3; a++) at[a] = p[a];
        return;
    }
    bool inside = true;
    struct pnet_voxel v = pnet_voxel_of(p, s->out->grid, &inside);
    for (int a = 0; a < 3; a++) {
        at[a] = (float)((int64_t)s->step * v.at[a]);
        if (!in_voxels) at[a] = (at[a] + 0.5f) * pnet_grid_cell(s->in->grid);
    }
}

/* Where results go. With `count`, count[i + 1] becomes the number of triplets of row i, and the other members are not used;
   without it, the triplets of row i are written from start[i] on. */
struct pnet_geo_results {
    int64_t *count;       /* [out->rows + 1] */
    const int64_t *start; /* [out->rows + 1] */
    int32_t *other;
    uint16_t *cell;
};
void pnet_geo_window_search(const struct pnet_geo_set *s, const struct pnet_geo_results *to);
void pnet_geo_nearest_search(const struct pnet_geo_set *s, const struct pnet_geo_results *to);

/* Sort one row of triplets. The first function writes them sorted by cell, triplets of one cell in their present order; its
   spare buffers hold n items, and n is below 2^16. The second function sorts by (cell, other) in place. */
void pnet_geo_row_by_cell(int n, const int32_t *from_other, const int32_t *from_cell, int32_t cells,
    int32_t *other, uint16_t *cell, int32_t *spare_other, int32_t *spare_cell);
void pnet_geo_row_sort(int64_t n, int32_t *other, uint16_t *cell);

#endif
