/* Offsets of everything in the arena, for one capacity class. */
#ifndef PNET_RUNTIME_LAYOUT_H
#define PNET_RUNTIME_LAYOUT_H

#include "runtime/run/bound.h"

/* Owns its arrays. */
struct pnet_layout {
    size_t *offset; /* [tensor_count]; set if first >= 0 and the tensor shares no memory */
    size_t *bytes;  /* [tensor_count] */
    size_t *work;   /* [step_count]: offset of the workspace */
    size_t *work_bytes;
    size_t total;  /* of the arena */
    size_t live;   /* bytes alive at the peak step: no layout can be smaller */
    int peak_step; /* the step at which most bytes are alive */
};

/* Computes a layout from the capacity classes of `counts`, so that every batch of the class fits. `concurrent`: on a GPU,
   independent steps may be concurrent if that costs little; they then get separate memory. The caller frees the layout.
   PNET_NO_MEMORY. */
enum pnet_status pnet_layout_make(const struct pnet_bound *b, const struct pnet_counts *counts,
    bool concurrent, struct pnet_layout *l, struct pnet_error *e);
void pnet_layout_free(struct pnet_layout *l);
/* Appends what is alive at the peak, largest first, to the message of `e`, and sets its status to PNET_NO_MEMORY. */
void pnet_layout_name_peak(
    const struct pnet_plan *p, const struct pnet_layout *l, struct pnet_error *e);

#endif
