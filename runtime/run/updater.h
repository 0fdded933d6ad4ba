/* The optimiser of a training: its state, record and workspace lie in the runner's extra memory, on its device. */
#ifndef PNET_RUNTIME_UPDATER_H
#define PNET_RUNTIME_UPDATER_H

#include "runtime/run/optim.h"
#include "runtime/run/runner.h"

struct pnet_updater {
    struct pnet_runner *runner;
    int states;
    struct pnet_optim_update update;
    double *losses; /* [objective_count], in the runner's memory; 0 for metrics */
    void *work;
    struct pnet_optim_chunk *chunks; /* chunks of `update`, on the host; owned */
    int64_t squared;                 /* chunks whose squares a watched backward computes */
    bool watches;
};

/* Returns the bytes of extra memory that the updater needs. They begin with the optimiser's state: pnet_optim_state_count
   arrays of plan->trained_elements float32. */
size_t pnet_updater_bytes(const struct pnet_bound *b, const struct pnet_optim *o);

/* `s` has pnet_updater_bytes of extra memory. `steps`: steps made so far. */
enum pnet_status pnet_updater_open(struct pnet_updater *u, struct pnet_runner *s,
    const struct pnet_optim *o, double steps, struct pnet_error *e);
/* As pnet_updater_open, with a factor of the learning rate for each parameter, [param_count]. A parameter with factor 0 is
   frozen: it does not change, and is not part of the gradient's norm. NULL: all factors are 1. PNET_USAGE: all are frozen. */
enum pnet_status pnet_updater_open_with(struct pnet_updater *u, struct pnet_runner *s,
    const struct pnet_optim *o, const float *rates, double steps, struct pnet_error *e);

void pnet_updater_close(struct pnet_updater *u);

/* Before backward. `last`: this is the last backward of a step; squares of gradients are then added up as soon as gradients
   are ready. */
void pnet_updater_watch(struct pnet_updater *u, bool last);

/* After backward: adds `weight` times the losses to the losses of the step; the first micro-batch overwrites them. */
void pnet_updater_note_losses(struct pnet_updater *u, double weight, bool add);
/* Instead, where the losses have no part in the gradients: the step begins without losses. */
void pnet_updater_forget_losses(struct pnet_updater *u);

/* Makes one step with the gradients of the runner, waits, and returns its result: `losses` [objective_count] as noted. If
   record->skipped is set, the parameters have not changed. */
enum pnet_status pnet_updater_step(struct pnet_updater *u, double lr, double clip,
    double loss_scale, struct pnet_optim_record *record, double *losses, struct pnet_error *e);

/* The same without a result: on a GPU it does not wait. */
void pnet_updater_launch(struct pnet_updater *u, double lr, double clip, double loss_scale);

/* Launches the update alone, with the present record. `squared`: after a watched backward. */
void pnet_updater_apply(struct pnet_updater *u, bool squared);

#endif
