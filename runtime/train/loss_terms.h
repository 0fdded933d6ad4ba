/* The values that the losses of a plan are sums of, and whether a batch has something that they count. */
#ifndef PNET_RUNTIME_LOSS_TERMS_H
#define PNET_RUNTIME_LOSS_TERMS_H

#include "runtime/plan/plan.h"

/* objective += factor * tensor */
struct pnet_loss_term {
    int objective, tensor;
    double factor;
};

/* Owns `items`. */
struct pnet_loss_terms {
    struct pnet_loss_term *items; /* [count], by objective */
    int count;
};

/* Lists the terms of all losses. The caller frees them. PNET_NO_MEMORY. */
enum pnet_status pnet_loss_terms_find(
    const struct pnet_plan *p, struct pnet_loss_terms *t, struct pnet_error *e);
void pnet_loss_terms_free(struct pnet_loss_terms *t);

/* Returns a bit 1 << objective for each loss that finds nothing to count in a batch, so that its value is 0 and says nothing:
   none of its terms has a labelled point or cloud, or a match of two points. `counts` are those of the batch on a slot. */
uint64_t pnet_loss_terms_idle(const struct pnet_plan *p, const struct pnet_loss_terms *t,
    const struct pnet_batch *b, const struct pnet_counts *counts);

#endif
