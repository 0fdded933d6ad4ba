/* Points and levels, and sets between them, without a model. A part of pnet.h, which programs include. */
#ifndef PNET_API_POINTS_H
#define PNET_API_POINTS_H

#include "sets.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The points of a batch, as the caller has them, or a level that was sampled from them. docs/geometry.md of the sources defines
   levels; those here have the rows that a model has, bit for bit. Row r of points is row r of `positions`, in any order. Rows of
   a level are ordered by sample, then along a Morton curve.

   Points never change once they are made. A level keeps what it was sampled from, which may be freed before it. Points take 24
   bytes a row and 8 a sample; a level likewise, and 4 bytes for each row that it was sampled from.

   With device = "cuda" all arrays are memory of that GPU, contiguous; levels, sets, maps and buckets of points have their stream
   and allocator. Calls that make one of them wait for the stream, because counts must come to the host, and no CUDA graph can
   record them. What comes behind the last count, and calls that fill an array, are put on the stream: other streams must wait for
   them. pnet_points_parents takes 4 bytes a row and gives them back. With an allocator the stream must live as long as these
   objects. All rows, triplets, orders and messages are those of the CPU. */
struct pnet_points;

struct pnet_points_options {
    size_t size;
    /* The samples: row splits, int32 or int64 [samples + 1, 1], where each begins, and the end; or the sample of each row, int32
       or int64 [rows, 1], of `batches`, which may be empty (0: 1). NULL, both: there is one. */
    const struct pnet_array *row_splits, *sample;
    int32_t batches;
    /* Inside, points lie along a curve, which decides between equals (nearest points), and the order in which sums are formed.
       Metres: along the grid with these cells, as in a model whose finest grid they are; points of one cell are in the order of
       the caller's rows. 0: as in a model without grids, along cells of 2^-19 of the largest coordinate. So rows in another order
       give the same numbers where no two points of a sample share such a cell, or where those that do follow each other as
       before. Else sums may differ in their last bits, equally near points be chosen otherwise, and points be in other buckets
       of attention. */
    double cell;
    const char *device; /* where points and their arrays lie: "cpu" (NULL), "cuda", "cuda:1" */
    void *stream;       /* GPU: a cudaStream_t; NULL: the default stream */
    const struct pnet_allocator *allocator; /* GPU: as in pnet_voxel_options */
};

/* Copies positions, float32 [rows, 3] in metres. `o` may be NULL. PNET_BAD_DATA: a coordinate is not finite or beyond 1e18, a
   sample is none of the batch, or points lie more than 2^20 cells from the origin. */
PNET_API enum pnet_status pnet_points_new(const struct pnet_array *positions,
    const struct pnet_points_options *o, struct pnet_points **points, struct pnet_error *e);
/* Samples the level with these cells, 1e-6 to 1e5 metres: each cell with points keeps the one nearest to its centre. From points
   it begins a chain of grids, from a level it goes on with the level's chain: then `cell` is a whole multiple of the level's, or
   PNET_USAGE. So v, 2 v, 4 v, each sampled from the one before, are grid(p, v * [1, 2, 4]) of a model. With the level's own cell
   it gives `of` once more, to be freed once more. PNET_BAD_DATA: points lie more than 2^20 cells from the origin. */
PNET_API enum pnet_status pnet_points_grid(
    const struct pnet_points *of, double cell, struct pnet_points **level, struct pnet_error *e);
/* NULL is allowed. On a GPU, work that reads the points is over, or their stream waits for it; so for what is made of them. */
PNET_API void pnet_points_free(struct pnet_points *points);

struct pnet_points_info {
    size_t size;
    int64_t rows;
    int32_t batches; /* samples */
    double cell;     /* edge of a cell of the level, metres; 0: these are no level */
};
PNET_API enum pnet_status pnet_points_counts(
    const struct pnet_points *points, struct pnet_points_info *info, struct pnet_error *e);
/* Fills float32 [rows, 3] with positions: those that points of a level kept, unchanged. */
PNET_API enum pnet_status pnet_points_positions(
    const struct pnet_points *points, const struct pnet_array_out *to, struct pnet_error *e);
/* Fills int32 [rows, 1] with the sample of each row. */
PNET_API enum pnet_status pnet_points_samples(
    const struct pnet_points *points, const struct pnet_array_out *to, struct pnet_error *e);
/* Fills int32 [rows, 1] with the row that each row was of the `positions` given to pnet_points_new. */
PNET_API enum pnet_status pnet_points_sources(
    const struct pnet_points *points, const struct pnet_array_out *to, struct pnet_error *e);
/* Fills int32 [rows of fine, 1] with the row of `coarse` that each row of `fine` belongs to. PNET_USAGE: `coarse` is not `fine`,
   and was not sampled from it, directly or through other levels. */
PNET_API enum pnet_status pnet_points_parents(const struct pnet_points *fine,
    const struct pnet_points *coarse, const struct pnet_array_out *to, struct pnet_error *e);

enum pnet_near_shape {
    PNET_NEAR_BALL = 0, /* by distance */
    PNET_NEAR_CUBE = 1  /* by the largest coordinate of the difference */
};
/* What a model's voxel mode changes, to be added up. Each needs levels of one chain of grids. */
enum pnet_degradation {
    PNET_DEGRADE_CENTRE = 1,    /* a centre is that of its voxel, instead of its point */
    PNET_DEGRADE_NEIGHBOUR = 2, /* neighbours are those in a window of voxels */
    PNET_DEGRADE_KERNEL = 4,    /* kernel cells are voxels of that window */
    PNET_DEGRADE_VOXEL = 7      /* all three: voxel mode */
};
struct pnet_near_options {
    size_t size;
    int32_t kernel; /* kernel cells an axis, K, 1 to 31; even ones between two levels alone. 0: 3 */
    double radius;  /* metres, 1e-6 to 1e5; 0: K / 2 cells of the finer level */
    int32_t knn;    /* so many nearest points, 1 to 1024, instead of a radius; 0: by radius */
    enum pnet_near_shape shape;
    int32_t degrade; /* sum of enum pnet_degradation; 0: native */
};

/* Makes the set of a model's convolution from `in` to `out`: the same points, or a level and what it was sampled from, in either
   direction. Its K^3 taps are kernel cells, x slowest. Several j may share i and k: points of one kernel cell are summed in the
   order in which they lie inside, so that results of rows are the bits of the model's layer, whatever the order of the caller's
   rows. With kernel 1 on one level, and neither radius nor knn, a point joins itself alone. The set has no voxels. It keeps
   nothing of the points. Of points on a GPU it lies there, with their stream and allocator. PNET_USAGE: the options are wrong, or
   do not fit the levels. */
PNET_API enum pnet_status pnet_set_points(const struct pnet_points *out,
    const struct pnet_points *in, const struct pnet_near_options *o, struct pnet_set **set,
    struct pnet_error *e);

#ifdef __cplusplus
}
#endif

#endif
