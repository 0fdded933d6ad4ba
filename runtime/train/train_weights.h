/* Fine-tuning: weights a training starts from, and which of them it changes how fast. */
#ifndef PNET_RUNTIME_TRAIN_WEIGHTS_H
#define PNET_RUNTIME_TRAIN_WEIGHTS_H

#include "runtime/run/session.h"
#include "runtime/train/train.h"

/* Loads what fits by name, after config->weights_map, and by shape; the rest stays as it was made. What was loaded, what
   was not, and what was left over is noted. PNET_BAD_MODEL: nothing fits; PNET_USAGE: two tensors get one name. */
enum pnet_status pnet_train_load(
    const struct pnet_train_options *o, struct pnet_session *s, struct pnet_error *e);

/* Factors of the learning rate by `freeze` (0) and `rates` of the config, [plan->param_count], to be freed; NULL: there
   are neither. PNET_USAGE: a pattern that is the name of nothing. */
enum pnet_status pnet_train_rates(
    const struct pnet_config *c, const struct pnet_plan *p, float **rates, struct pnet_error *e);

/* Running statistics of frozen norms, which each batch changes: kept on the host. */
struct pnet_held {
    float *params; /* [plan->param_elements]; NULL: nothing is held */
    const float *rates;
};
/* Keeps them as they are now. */
enum pnet_status pnet_held_take(
    struct pnet_held *h, struct pnet_session *s, const float *rates, struct pnet_error *e);
/* Puts them back. */
enum pnet_status pnet_held_put(
    const struct pnet_held *h, struct pnet_session *s, struct pnet_error *e);
void pnet_held_free(struct pnet_held *h);

#endif
