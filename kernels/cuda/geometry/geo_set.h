/* The parameters of a triplet set that counting and writing share. The device's form of kernels/cpu/geometry/geo_set.h. For
   .cu files alone.

   A pair (i, j) is found in one space and its kernel cell in one space: metres, or voxels of the finer level. Positions in
   either are float32, and d = j - i. */
#ifndef PNET_KERNELS_CUDA_GEO_SET_H
#define PNET_KERNELS_CUDA_GEO_SET_H

#include <cfloat>

#include "kernels/cuda/geometry/geo_tree.h"

enum { ROW_LIMIT = 1024 }; /* triplets of a row that are sorted where they are found */

/* The kernel cell of a pair: clamp(floor(d * scale + shift)) on each axis, or `fixed` if that is not negative. */
struct geo_cells {
    int32_t kernel;
    float scale, shift;
    int32_t fixed;
};

struct geo_set {
    struct geo_points out, in;
    struct geo_tree tree; /* over `in`, in the space of pairs */
    /* [in.rows]: the pair of a row and its parent always belongs to the set; or NULL */
    const int32_t *parent;
    int32_t knn;
    bool pair_in_voxels, cell_in_voxels;
    bool snap;    /* centres are the centres of voxels */
    int32_t step; /* the finer voxel of a coarse voxel is step * index */

    /* the pair test: |d|^2 <= radius2, or low <= d <= high on every axis */
    bool ball;
    float radius2, low, high;
    float slack; /* how far the coordinates of a pair can lie outside of low and high */

    struct geo_cells cells;
    struct block_table blocks;
    bool backward; /* sorted by j: `out` equals `in`, and pairs are symmetric */

    /* with a parent: by radius [out.rows, 6] ranks of low[3], high[3]; by knn the children */
    const uint32_t *child_box;
    const int64_t *child_start; /* [out.rows + 1] */
    const int32_t *child;       /* [in.rows] */
};

/* Where results go: the number of triplets of row i to count[i + 1], or the triplets from start[i] on. */
struct geo_results {
    int64_t *count;
    const int64_t *start;
    int32_t *other;
    uint16_t *cell;
};

/* Computes the box around each row's children. */
void pnet_cuda_geo_child_boxes(
    int64_t fine_rows, const float *xyz, const int32_t *parent, int64_t coarse_rows, uint32_t *box);
/* By radius or window. Rows longer than ROW_LIMIT are left unsorted. */
void pnet_cuda_geo_window_count(const struct geo_set *s, int64_t *count);
void pnet_cuda_geo_window_write(const struct geo_set *s, const struct geo_results *to);
/* By knn. Rows longer than the returned number are left unsorted. */
void pnet_cuda_geo_nearest_count(const struct geo_set *s, int64_t *count);
int64_t pnet_cuda_geo_nearest_write(const struct geo_set *s, const struct geo_results *to);
/* By knn for at most FEW_LIMIT points and no parent; and the nearest points themselves. */
enum { FEW_LIMIT = 32 };
void pnet_cuda_geo_few_write(const struct geo_set *s, const struct geo_results *to);
void pnet_cuda_geo_few_list(const struct geo_set *s, int32_t k, int32_t *index, float *distance2);

/* Returns the cells for radius r, in metres, with K cells an axis. If the scale of the radius is not finite, every pair is
   in the centre cell. */
static __host__ __device__ __forceinline__ struct geo_cells cells_of(int32_t kernel, float radius)
{
    float scale = (float)((double)kernel / (2 * (double)radius));
    struct geo_cells c = {kernel, scale, (float)kernel / 2, -1};
    if (!(radius > 0) || !(fabsf(scale) <= FLT_MAX)) {
        c.scale = 0;
        c.fixed = kernel / 2 * (kernel * kernel + kernel + 1);
    }
    return c;
}

/* Returns the kernel cell of d; a NaN gives 0 on its axis. */
static __device__ __forceinline__ int32_t cell_of(const struct geo_cells &c, const float d[3])
{
    float last = (float)(c.kernel - 1);
    int32_t cell = 0;
    if (c.fixed >= 0) return c.fixed;
    for (int a = 0; a < 3; a++) {
        float x = fmaxf(d[a] * c.scale + c.shift, 0.0f);
        cell = cell * c.kernel + (int32_t)fminf(x, last);
    }
    return cell;
}

/* Sets the position of row i of `out`, in metres or voxels. */
static __device__ __forceinline__ void centre_of(
    const struct geo_set &s, int64_t row, bool in_voxels, float at[3])
{
    bool inside = true;
    for (int a = 0; a < 3; a++) {
        at[a] = s.out.xyz[3 * row + a];
        if (!in_voxels && !s.snap) continue;
        at[a] = (float)((int64_t)s.step * voxel_index(at[a], s.out.grid, inside));
        if (!in_voxels) at[a] = (at[a] + 0.5f) * grid_cell(s.in.grid);
    }
}

#endif
