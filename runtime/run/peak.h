/* The memory that a run takes, from counts alone. */
#ifndef PNET_RUNTIME_PEAK_H
#define PNET_RUNTIME_PEAK_H

#include "runtime/run/layout.h"
#include "runtime/run/slot.h"

struct pnet_peak {
    size_t parameters, gradients, optimizer;
    /* one batch: `kept` for each slot, `shared` once; with one slot without the scratch, which lies in the arena */
    struct pnet_slot_sizes geometry;
    /* batches in memory: the present one, and the next one if it is prepared ahead */
    int slots;
    size_t features; /* the arena: values, gradients and workspace of the feature stage */
    size_t runner;   /* GPU: values that change from batch to batch, a few bytes */
    size_t total;    /* equal to the peak of the runner's memory */
};

/* `extra`: bytes of optimiser state. */
struct pnet_peak pnet_peak_of(const struct pnet_bound *b, const struct pnet_counts *c,
    const struct pnet_layout *l, int slots, size_t extra);

/* Computes the layout that a runner with `limit` bytes of memory uses, and its peak. Steps are concurrent, or in sequence
   if memory does not suffice for that. limit 0: no limit. The caller frees the layout. PNET_BAD_DATA: a level has more than
   PNET_MAX_ROWS rows. */
enum pnet_status pnet_peak_plan(const struct pnet_bound *b, const struct pnet_counts *c, int slots,
    size_t extra, size_t limit, struct pnet_layout *l, struct pnet_peak *k, struct pnet_error *e);

/* Sets the counts of a batch of one sample with `points` points in each cloud that the plan reads, without a cloud: a level is
   assumed to hold a third of the points of a level with half its cell, and sets the triplets of such levels. */
void pnet_counts_assume(const struct pnet_bound *b, struct pnet_counts *c, int64_t points);

#endif
