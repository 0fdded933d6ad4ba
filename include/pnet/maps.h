/* Maps: rows of points from rows of others, without learned weights. A part of pnet.h, which programs include. */
#ifndef PNET_API_MAPS_H
#define PNET_API_MAPS_H

#include "points.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How each row of an output is made of rows of an input: pooling, upsampling, interpolation, as the layers of a model have them
   (docs/layers.md of the sources). It keeps nothing of the points. At most 8 bytes a row of either side, and for
   INVERSE_DISTANCE 8 k a row of the output, for TRILINEAR 16, for NEAREST 8 for each pair of rows. */
struct pnet_map;

enum pnet_map_kind {
    /* `out` was sampled from `in`: each channel over the points of a cell. MAX: of equals, the first inside */
    PNET_MAP_MEAN = 0,
    PNET_MAP_MAX = 1,
    PNET_MAP_SUM = 2,
    /* `in` was sampled from `out`: the row of the cell that a point belongs to */
    PNET_MAP_PARENT = 3,
    /* Any points: the mean of the k nearest rows in the sample, weighted by 1 / (distance^2 + 1e-8); 0 where there are none */
    PNET_MAP_INVERSE_DISTANCE = 4,
    /* `in` is a level, `out` any points, and features of `in` lie on the centres of its cells: of the eight cells around a
       point, those that are there, weighted by 1 - distance in cells on each axis; and the cell that holds the point */
    PNET_MAP_TRILINEAR = 5,
    PNET_MAP_NEAREST = 6
};
struct pnet_map_options {
    size_t size;
    enum pnet_map_kind kind;
    int32_t k; /* INVERSE_DISTANCE: 1 to 64; 0: 3 */
    int outside_nearest; /* TRILINEAR, NEAREST: where there is no such cell, the nearest row of the sample; no: 0 */
};
/* PNET_USAGE: the points do not lie to each other as the kind says, have different numbers of samples, or lie on different
   devices. On a GPU the map lies there, in memory of `out`'s allocator, and the call waits for the stream of `out`. */
PNET_API enum pnet_status pnet_map_new(const struct pnet_points *out, const struct pnet_points *in,
    const struct pnet_map_options *o, struct pnet_map **map, struct pnet_error *e);
/* NULL is allowed. */
PNET_API void pnet_map_free(struct pnet_map *map);

struct pnet_map_run {
    size_t size;
    /* MAX: int32 [rows out, channels], the row of the input that each maximum came from, or -1: filled forward, unless NULL, and
       read backward */
    int32_t *argmax;
    int accumulate;  /* backward: add to what the result holds */
    void *workspace; /* NULL: the call takes memory and gives it back. Aligned to 16 bytes */
    size_t workspace_bytes;
    void *stream; /* GPU: as in pnet_voxel_options */
};
/* The bytes of workspace of a call, forward or backward, for so many channels, 1 to 65536. */
PNET_API enum pnet_status pnet_map_workspace(const struct pnet_map *map, int backward,
    int32_t channels, size_t *bytes, struct pnet_error *e);
/* From features of the input [rows in, channels] to those of the output, and from gradients of the output to those of the input:
   PNET_DTYPE_F32, contiguous, not overlapping. `o` may be NULL, but for MAX backward. The same bits for any number of threads,
   forward those of a model; for rows in another order as `cell` of pnet_points_options says. On a GPU both may also be
   PNET_DTYPE_BF16, or PNET_DTYPE_F16; they are aligned to 16 bytes, and a call that gets a workspace, or needs none, takes no
   memory and waits for nothing.
   PNET_USAGE: a type, a shape, or too small a workspace. */
PNET_API enum pnet_status pnet_map_forward(const struct pnet_map *map,
    const struct pnet_array *features, const struct pnet_map_run *o,
    const struct pnet_array_out *result, struct pnet_error *e);
PNET_API enum pnet_status pnet_map_backward(const struct pnet_map *map,
    const struct pnet_array *gradient, const struct pnet_map_run *o,
    const struct pnet_array_out *result, struct pnet_error *e);

#ifdef __cplusplus
}
#endif

#endif
