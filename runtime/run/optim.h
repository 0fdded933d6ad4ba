/* Optimisers: what a training config says, and one step on the parameter block. */
#ifndef PNET_RUNTIME_OPTIM_H
#define PNET_RUNTIME_OPTIM_H

#include "kernels/optim.h"
#include "runtime/device/device.h"
#include "runtime/base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum pnet_optim_kind { PNET_SGD, PNET_ADAM, PNET_ADAMW, PNET_OPTIMS };
extern const char *const pnet_optim_names[PNET_OPTIMS]; /* "sgd", "adam", "adamw" */

/* Formulas: kernels/optim.h. */
struct pnet_optim {
    enum pnet_optim_kind kind;
    double momentum;          /* sgd: 0 .. 1, 1 excluded */
    bool nesterov;            /* sgd, with momentum */
    double beta1, beta2, eps; /* adam, adamw: 0 .. 1, 1 excluded; eps > 0 */
    double weight_decay;      /* sgd, adam: added to the gradient; adamw: apart from it */
    bool decay_all;           /* also for parameters whose part says no: biases, norms */
};

/* The usual defaults: momentum 0.9 without nesterov, betas 0.9 and 0.999, eps 1e-8, no decay; adamw
   decays by 0.01. */
struct pnet_optim pnet_optim_default(enum pnet_optim_kind kind);

/* PNET_USAGE, naming the value at fault. */
enum pnet_status pnet_optim_check(const struct pnet_optim *o, struct pnet_error *e);

/* Arrays of state, each as long as the parameters: 0, 1 or 2. They start as zeros. */
int pnet_optim_state_count(const struct pnet_optim *o);
/* The name of state `i` in a checkpoint: "momentum", or "mean" and "square". */
const char *pnet_optim_state_name(const struct pnet_optim *o, int i);

/* A tensor in the block: elements offset .. offset + count. */
struct pnet_optim_part {
    int64_t offset, count;
    bool decay; /* weight decay applies */
    float rate; /* factor of the learning rate */
};

/* What the kernels are told of it. */
struct pnet_optim_rule pnet_optim_rule(const struct pnet_optim *o);

/* Cuts parts, in the order of their offsets, into chunks; returns how many. chunks may be NULL, to
   be counted first. */
int64_t pnet_optim_chunks(const struct pnet_optim *o, const struct pnet_optim_part *parts,
    int part_count, struct pnet_optim_chunk *chunks);

/* One step on the device whose memory `u` and `work` lead to; there `work` has that many bytes,
   aligned to 8. */
size_t pnet_optim_work(enum pnet_device_kind device, int64_t chunk_count);
/* Before that, once their gradients are there: the squares of some chunks; u->squared says of how many. */
void pnet_optim_squares(enum pnet_device_kind device, const struct pnet_optim_update *u,
    int64_t first, int64_t count, void *work);
void pnet_optim_step(enum pnet_device_kind device, const struct pnet_optim_update *u, void *work);

#endif
