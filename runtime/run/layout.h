/* Offsets of everything in the arena, for one class of counts. */
#ifndef PNET_RUNTIME_LAYOUT_H
#define PNET_RUNTIME_LAYOUT_H

#include "runtime/run/bound.h"

/* Owns its arrays. */
struct pnet_layout {
    size_t *offset; /* [tensor_count]; of those with first >= 0 and no memory of another role */
    size_t *bytes;  /* [tensor_count] */
    size_t *work;   /* [step_count]: offset of the workspace */
    size_t *work_bytes;
    size_t total;  /* of the arena */
    size_t live;   /* largest sum of what is alive at one step: no layout can be smaller */
    int peak_step; /* where that is */
};

/* Sizes are taken from the capacity classes of `counts`, so that every batch of the class fits. `beside`: on a GPU steps
   that have nothing to do with each other may run at once, as long as that does not cost much: memory is not handed on
   to them. */
enum pnet_status pnet_layout_make(const struct pnet_bound *b, const struct pnet_counts *counts,
    bool beside, struct pnet_layout *l, struct pnet_error *e);
void pnet_layout_free(struct pnet_layout *l);
/* Puts behind the message of `e` what is alive at the peak, largest first; the status becomes
 * PNET_NO_MEMORY. */
void pnet_layout_name_peak(
    const struct pnet_plan *p, const struct pnet_layout *l, struct pnet_error *e);

#endif
