/* Losses between two sets of points, x (what is predicted) and y. A part of pnet.h, which programs include. */
#ifndef PNET_API_LOSSES_H
#define PNET_API_LOSSES_H

#include "points.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The losses of a model with the same names (docs/layers.md of the sources): the mean over the samples; a sample of which either
   set is empty adds 0. Both have the same number of samples. */
enum pnet_loss_kind {
    PNET_LOSS_CHAMFER = 0,
    PNET_LOSS_DCD = 1,
    PNET_LOSS_HYPERCD = 2,
    PNET_LOSS_INFOCD = 3,
    PNET_LOSS_EMD = 4, /* samples have as many points in y as in x, or PNET_BAD_DATA */
    PNET_LOSS_SINKHORN = 5,
    PNET_LOSS_APML = 6
};
/* pnet_loss_default fills all that the kind reads; 0 is a value here. Lengths are in the units of the positions. */
struct pnet_loss_options {
    size_t size;
    enum pnet_loss_kind kind;
    int squares;      /* CHAMFER: of distances */
    int at_least_one; /* DCD */
    int sums;         /* INFOCD: over the points of a sample, instead of means */
    int32_t rounds;   /* EMD: 1 to 100000. APML: 0 to 1000 */
    double alpha;     /* DCD, HYPERCD: 1e-6 to 1e9 */
    double lambda;    /* DCD: 0 to 8. INFOCD: 0 to 1e6 */
    double tau;       /* INFOCD: 1e-6 to 1e6. APML: 1e-30 to 0.1 */
    double eps;       /* EMD: 1e-9 to 1e9 */
    double blur;      /* SINKHORN: 0.005 to 1 */
    double scaling;   /* SINKHORN: 0.01 to 0.99 */
    double p;         /* APML: between 0.5 and 1 */
    int32_t most;     /* APML: 2 to 1024 */
    int32_t entries;  /* APML: 2 to 1024 */
};
PNET_API enum pnet_status pnet_loss_default(
    enum pnet_loss_kind kind, struct pnet_loss_options *o, struct pnet_error *e);

struct pnet_loss_bytes {
    size_t size;
    size_t kept;              /* what the backward reads of the forward */
    size_t forward, backward; /* workspaces */
};
PNET_API enum pnet_status pnet_loss_workspace(const struct pnet_points *x,
    const struct pnet_points *y, const struct pnet_loss_options *o, struct pnet_loss_bytes *bytes,
    struct pnet_error *e);

struct pnet_loss_run {
    size_t size;
    void *
        kept; /* filled forward, unless NULL, and read backward; aligned to 16 bytes, as the workspace is */
    size_t kept_bytes;
    int accumulate;  /* backward: add to what the results hold */
    void *workspace; /* NULL: the call takes memory and gives it back */
    size_t workspace_bytes;
    const float *factor; /* backward: the gradient is multiplied by this number; NULL: by 1 */
    void *stream;        /* GPU: as in pnet_voxel_options */
};
/* Sets *loss. `r` may be NULL. The bits of a model, for any number of threads; for rows in another order as
   `cell` of pnet_points_options says. Of points on a GPU, `loss`, `kept`, `factor`, the workspace and gradients are memory of
   that GPU, aligned to 16 bytes (`loss`, `factor`: to 4); a call that gets a workspace takes no memory and waits for nothing. */
PNET_API enum pnet_status pnet_loss_forward(const struct pnet_points *x,
    const struct pnet_points *y, const struct pnet_loss_options *o, const struct pnet_loss_run *r,
    float *loss, struct pnet_error *e);
/* Fills float32 [rows, 3] with the gradients of gradient * loss by the positions of x and of y, in the caller's rows; NULL: not
   wanted. Points, options and `kept` are those of the forward. */
PNET_API enum pnet_status pnet_loss_backward(const struct pnet_points *x,
    const struct pnet_points *y, const struct pnet_loss_options *o, const struct pnet_loss_run *r,
    float gradient, const struct pnet_array_out *to_x, const struct pnet_array_out *to_y,
    struct pnet_error *e);

#ifdef __cplusplus
}
#endif

#endif
