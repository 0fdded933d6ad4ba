/* What the calls of a loss share. */
#ifndef PNET_LIBRARY_LOSS_H
#define PNET_LIBRARY_LOSS_H

#include "library/points.h"

#include "kernels/apml.h"
#include "kernels/emd.h"
#include "kernels/sets.h"
#include "kernels/sinkhorn.h"

/* What the backward reads of the forward, by the rows inside; which of it is there depends on the kind. */
struct pnet_loss_kept {
    int32_t *x_near, *y_near, *partner;
    float *x_pull, *y_pull, *x_potential, *y_potential;
    struct pnet_apml_plan plan;
};

/* Checked options of a call, and both sets, which lie on `device`. */
struct pnet_loss_call {
    enum pnet_device_kind device;
    struct pnet_loss_options o;
    const struct pnet_points *x, *y;
    struct pnet_set_pair sets;
    struct pnet_loss_kept kept;
};

/* Sets *c to options and points that fit each other, without what is kept. */
enum pnet_status pnet_loss_begin(struct pnet_loss_call *c, const struct pnet_points *x,
    const struct pnet_points *y, const struct pnet_loss_options *o, struct pnet_error *e);
/* Lays out what is kept in memory, or NULL. Returns its bytes. */
size_t pnet_loss_lay_out(struct pnet_loss_call *c, void *memory);

/* The arguments of kernels. */
struct pnet_dcd pnet_loss_dcd(const struct pnet_loss_call *c);
struct pnet_infocd pnet_loss_infocd(const struct pnet_loss_call *c);
struct pnet_emd pnet_loss_emd(const struct pnet_loss_call *c);
struct pnet_sinkhorn pnet_loss_sinkhorn(const struct pnet_loss_call *c);
struct pnet_apml pnet_loss_apml(const struct pnet_loss_call *c);

/* Of x, of y: pulls on the points of the side by both directions. */
struct pnet_set_pull pnet_loss_pull(const struct pnet_loss_call *c, bool of_y);

#endif
