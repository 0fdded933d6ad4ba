/* The optimiser of a training, beside its session: state, record and workspace live in the session's extra memory, on
   its device. */
#ifndef PNET_RUNTIME_UPDATER_H
#define PNET_RUNTIME_UPDATER_H

#include "runtime/run/optim.h"
#include "runtime/run/session.h"

struct pnet_updater {
    struct pnet_session *session;
    int states;
    struct pnet_optim_update update;
    double *losses; /* [objective_count], in the session's memory; of metrics: 0 */
    void *work;
    struct pnet_optim_chunk *chunks; /* those of `update`, on the host; owned */
    int64_t squared;                 /* of them a backward that is watched leaves the squares */
    bool watches;
};

/* Bytes of the session's extra memory for that. They begin with the optimiser's state: pnet_optim_state_count arrays of
   plan->trained_elements float32. */
size_t pnet_updater_bytes(const struct pnet_bound *b, const struct pnet_optim *o);

/* `s` has pnet_updater_bytes of extra memory. `steps`: how many have been made. */
enum pnet_status pnet_updater_open(struct pnet_updater *u, struct pnet_session *s,
    const struct pnet_optim *o, double steps, struct pnet_error *e);
/* The same with a factor of the learning rate for each parameter, [param_count]; one that has 0 is frozen: not changed,
   and no part of the gradient's norm. NULL: all have 1. PNET_USAGE: all are frozen. */
enum pnet_status pnet_updater_open_with(struct pnet_updater *u, struct pnet_session *s,
    const struct pnet_optim *o, const float *rates, double steps, struct pnet_error *e);

void pnet_updater_close(struct pnet_updater *u);

/* Before backward: is it the last one of a step? Then squares of gradients are added up as soon as these are there. */
void pnet_updater_watch(struct pnet_updater *u, bool last);

/* After backward: adds `weight` times the losses to those of the step; the first micro-batch writes them. */
void pnet_updater_note_losses(struct pnet_updater *u, double weight, bool add);

/* One step with the gradients of the session, and what came of it, after a wait: `losses` [objective_count] as noted.
   Where record->skipped is set the parameters are as they were. */
enum pnet_status pnet_updater_step(struct pnet_updater *u, double lr, double clip,
    double loss_scale, struct pnet_optim_record *record, double *losses, struct pnet_error *e);

/* Asks for the update alone, by the record as it stands; `squared`: behind a backward that was watched. */
void pnet_updater_apply(struct pnet_updater *u, bool squared);

#endif
