/* A thread that builds the geometry of the next batch while the present one is computed. */
#ifndef PNET_RUNTIME_PIPELINE_H
#define PNET_RUNTIME_PIPELINE_H

#include "runtime/data/loader.h"
#include "runtime/run/runner.h"

/* A batch in a slot of the runner, with its geometry built. */
struct pnet_ready {
    int slot;       /* -1: the epoch is over */
    uint32_t epoch; /* of the batch */
    int64_t batch;  /* its position in the epoch */
    int32_t samples;
    int64_t points; /* of all inputs */
    uint64_t idle;  /* losses that find nothing to count: pnet_loss_terms_idle */
    struct pnet_frame frame;
};

struct pnet_pipeline;

/* Takes over the loader and both slots of the runner until it is stopped. */
enum pnet_status pnet_pipeline_start(
    struct pnet_runner *s, struct pnet_loader *l, struct pnet_pipeline **p, struct pnet_error *e);
/* Waits for the next batch, and hands the previous slot back. An error of loading or geometry is returned in place of its
   batch. `stop`, or NULL, is asked some ten times a second while it waits; true: PNET_INTERRUPTED. */
enum pnet_status pnet_pipeline_next(
    struct pnet_pipeline *p, bool (*stop)(void), struct pnet_ready *r, struct pnet_error *e);
/* Ends the thread and drops the batches it has prepared. To continue, call pnet_loader_start with the position after the last
   batch taken. */
void pnet_pipeline_stop(struct pnet_pipeline *p);

#endif
