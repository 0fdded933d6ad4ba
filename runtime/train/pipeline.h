/* The geometry of the next batch, made on a thread of its own while this one is computed. */
#ifndef PNET_RUNTIME_PIPELINE_H
#define PNET_RUNTIME_PIPELINE_H

#include "runtime/data/loader.h"
#include "runtime/run/session.h"

/* A batch that stands ready in a slot of the session. */
struct pnet_ready {
    int slot;       /* -1: the epoch is over */
    uint32_t epoch; /* of the batch */
    int64_t batch;  /* its position in the epoch */
    int32_t samples;
    int64_t points; /* of all inputs */
};

struct pnet_pipeline;

/* Takes over the loader and both slots of the session until it is stopped. */
enum pnet_status pnet_pipeline_start(
    struct pnet_session *s, struct pnet_loader *l, struct pnet_pipeline **p, struct pnet_error *e);
/* The next batch; the slot given before is handed back. Errors of loading or geometry come in the
 * place of their batch. */
enum pnet_status pnet_pipeline_next(
    struct pnet_pipeline *p, struct pnet_ready *r, struct pnet_error *e);
/* Ends the thread; what it prepared is dropped. Go on with pnet_loader_start at the position behind
 * the last batch taken. */
void pnet_pipeline_stop(struct pnet_pipeline *p);

#endif
