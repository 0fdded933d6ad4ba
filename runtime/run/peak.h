/* What a run takes in memory, from counts alone. */
#ifndef PNET_RUNTIME_PEAK_H
#define PNET_RUNTIME_PEAK_H

#include "runtime/run/layout.h"
#include "runtime/run/slot.h"

struct pnet_peak {
    size_t parameters, gradients, optimizer;
    struct pnet_slot_sizes geometry; /* of one batch: `kept`; and `shared`, once */
    int slots;       /* batches at a time: this one, and the next where it is prepared ahead */
    size_t features; /* the arena: values, gradients and workspace of the feature stage */
    size_t session;  /* GPU: what changes from batch to batch, a few bytes */
    size_t total;    /* equal to the peak of the session's memory */
};

/* `extra` bytes of optimiser state. */
struct pnet_peak pnet_peak_of(const struct pnet_bound *b, const struct pnet_counts *c,
    const struct pnet_layout *l, int slots, size_t extra);

/* The layout that a session with `limit` bytes of memory has, and its peak: one whose steps run beside each other, or, where
   there is no room for that, one whose steps run in a row. 0: no limit. The layout is the caller's, to be freed. */
enum pnet_status pnet_peak_plan(const struct pnet_bound *b, const struct pnet_counts *c, int slots,
    size_t extra, size_t limit, struct pnet_layout *l, struct pnet_peak *k, struct pnet_error *e);

#endif
