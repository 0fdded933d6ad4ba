/* Optimisers: their settings in a training config, and one step on the parameter block. */
#ifndef PNET_RUNTIME_OPTIM_H
#define PNET_RUNTIME_OPTIM_H

#include "kernels/optim.h"
#include "runtime/device/device.h"
#include "runtime/base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum pnet_optim_kind { PNET_SGD, PNET_ADAM, PNET_ADAMW, PNET_OPTIMS };
extern const char *const pnet_optim_names[]; /* by kind: "sgd", "adam", "adamw"; then NULL */

/* Formulas: kernels/optim.h. */
struct pnet_optim {
    enum pnet_optim_kind kind;
    double momentum;          /* sgd: from 0 up to, but not including, 1 */
    bool nesterov;            /* sgd, with momentum */
    double beta1, beta2, eps; /* adam, adamw: from 0 up to, but not including, 1; eps > 0 */
    double weight_decay;      /* sgd, adam: added to the gradient; adamw: separate from it */
    bool decay_all;           /* decay also applies to biases and norms, whose parts say no */
};

/* Returns the default settings: momentum 0.9 without nesterov, betas 0.9 and 0.999, eps 1e-8; no decay, but 0.01 for adamw. */
struct pnet_optim pnet_optim_default(enum pnet_optim_kind kind);

/* Returns PNET_USAGE if a value is out of range; the message names it. */
enum pnet_status pnet_optim_check(const struct pnet_optim *o, struct pnet_error *e);

/* Returns how many arrays of state the optimiser keeps, 0, 1 or 2, each as long as the parameters. They start as zeros. */
int pnet_optim_state_count(const struct pnet_optim *o);
/* Returns the name of state `i` in a checkpoint: "momentum", or "mean" and "square". */
const char *pnet_optim_state_name(const struct pnet_optim *o, int i);

/* A tensor in the block: elements [offset, offset + count). */
struct pnet_optim_part {
    int64_t offset, count;
    bool decay; /* weight decay applies */
    float rate; /* factor of the learning rate */
};

/* Converts the settings to the form that kernels take. */
struct pnet_optim_rule pnet_optim_rule(const struct pnet_optim *o);

/* Cuts parts, which are in the order of their offsets, into chunks and returns their number. `chunks` may be NULL to count
   them. */
int64_t pnet_optim_chunks(const struct pnet_optim *o, const struct pnet_optim_part *parts,
    int part_count, struct pnet_optim_chunk *chunks);

/* Runs one step on the device that holds `u` and `work`. `work` has pnet_optim_work bytes, aligned to 8. */
size_t pnet_optim_work(enum pnet_device_kind device, int64_t chunk_count);
/* Before the step: computes the squares of the chunks whose gradients are ready; u->squared is their number. */
void pnet_optim_squares(enum pnet_device_kind device, const struct pnet_optim_update *u,
    int64_t first, int64_t count, void *work);
void pnet_optim_step(enum pnet_device_kind device, const struct pnet_optim_update *u, void *work);

#endif
