/* Declarations that the files that build a slot share. */
#ifndef PNET_RUNTIME_SLOT_BUILD_H
#define PNET_RUNTIME_SLOT_BUILD_H

#include "runtime/run/slot.h"

/* Sums of a walk that only sizes. */
struct pnet_geo_sizes {
    size_t part[PNET_GEO_PARTS];  /* bytes of a slot */
    size_t passing, scratch;      /* bytes of what slots share */
    size_t set[PNET_GEO_BUFFERS]; /* the largest buffer that items pass on */
    size_t idle;                  /* the largest field, which is scratch until it arrives */
};

/* Returns scratch in the memory that slots share, outside of the fields. NULL: memory is out, or the walk only sizes. */
void *pnet_slot_shared_scratch(struct pnet_geo_walk *w, size_t bytes);

/* Once the geometry of a batch is built: checks what rows with PNET_SAME_SIZES ask for. PNET_BAD_DATA names the layer and the
   sample. */
enum pnet_status pnet_slot_check_sizes(const struct pnet_slot *s, struct pnet_error *e);

#endif
