/* A network at work on a cloud tile by tile, in the memory of one tile. */
#ifndef PNET_RUNTIME_TILED_H
#define PNET_RUNTIME_TILED_H

#include "runtime/data/cloud_tiles.h"
#include "runtime/train/evaluate.h"

/* The work on one cloud. */
struct pnet_tiled_work {
    int64_t tiles, points; /* of the cloud */
    int64_t computed;      /* points of all tiles with their margins */
    int64_t largest;       /* points of the largest of these */
};

struct pnet_tiled_options {
    struct pnet_tiling tiling;
    /* The result of a point is the mean of those of all tiles that read it, by pnet_cloud_tile_weight; false: that of its own
       tile. */
    bool blend;
    /* Called after each tile with the points of the cloud that are done; false: PNET_INTERRUPTED. NULL: it is not called. */
    bool (*go_on)(void *context, int64_t done, int64_t points);
    void *context;
};

/* Finds the margin with which results are those of the whole cloud: the receptive field of the plan's result, or of all that its
   losses and metrics read. INFINITY: there is none; *behind is the path of the first layer without a bound, or NULL.
   PNET_NO_MEMORY. */
enum pnet_status pnet_tiled_margin(
    const struct pnet_plan *p, double *margin, const char **behind, struct pnet_error *e);

/* Computes the result of points of the input `input`, the only one that the plan reads, of a batch of one sample on the host.
   *result: [rows, width] in the order of the batch, freed by the caller. Uses slot 0. The errors of pnet_runner_prepare and
   pnet_runner_forward; PNET_INTERRUPTED. */
enum pnet_status pnet_tiled_result(struct pnet_runner *s, const struct pnet_batch *b, int input,
    const struct pnet_tiled_options *o, float **result, struct pnet_tiled_work *work,
    struct pnet_error *e);

/* Checks that all losses and metrics of a plan count points with labels, so that those of margins can be left out. PNET_USAGE
   names one that does not. */
enum pnet_status pnet_tiled_can_evaluate(const struct pnet_plan *p, struct pnet_error *e);

/* pnet_evaluate of a plan that reads the input `input` alone and that pnet_tiled_can_evaluate allows, tile by tile; points of
   margins have no labels. The loader gives batches of one sample. Uses slot 0. `work` gets the sums of all clouds. The errors of
   pnet_evaluate and pnet_tiled_result. */
enum pnet_status pnet_tiled_evaluate(struct pnet_runner *s, struct pnet_loader *l, int input,
    const struct pnet_tiled_options *o, struct pnet_evaluation *v, struct pnet_tiled_work *work,
    struct pnet_error *e);

#endif
