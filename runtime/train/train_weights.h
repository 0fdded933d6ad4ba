/* Fine-tuning: the weights a training starts from, and factors of their learning rates. */
#ifndef PNET_RUNTIME_TRAIN_WEIGHTS_H
#define PNET_RUNTIME_TRAIN_WEIGHTS_H

#include "runtime/run/runner.h"
#include "runtime/train/train.h"

/* Loads the tensors that fit by name, after config->weights_map, and by shape; the other parameters keep their initial values.
   A notice lists the tensors that were loaded, those that did not fit, and those that the model lacks. PNET_BAD_MODEL: no
   tensor fits; PNET_USAGE: the map gives two tensors one name. */
enum pnet_status pnet_train_load(
    const struct pnet_train_options *o, struct pnet_runner *s, struct pnet_error *e);

/* Sets *rates: factors of the learning rate by `freeze` (0) and `rates` of the config, [plan->param_count], freed by the
   caller; NULL: the config has neither. PNET_USAGE: a pattern matches no parameter. */
enum pnet_status pnet_train_rates(
    const struct pnet_config *c, const struct pnet_plan *p, float **rates, struct pnet_error *e);

/* A copy on the host of the running statistics of frozen norms, because each batch changes them on the device. */
struct pnet_held {
    float *params; /* [plan->param_elements]; NULL: nothing is held */
    const float *rates;
};
/* Copies the statistics from the runner. */
enum pnet_status pnet_held_take(
    struct pnet_held *h, struct pnet_runner *s, const float *rates, struct pnet_error *e);
/* Writes the copied statistics back. */
enum pnet_status pnet_held_put(
    const struct pnet_held *h, struct pnet_runner *s, struct pnet_error *e);
void pnet_held_free(struct pnet_held *h);

#endif
