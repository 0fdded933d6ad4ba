/* What the files that build a slot share. */
#ifndef PNET_RUNTIME_SLOT_BUILD_H
#define PNET_RUNTIME_SLOT_BUILD_H

#include "runtime/run/slot.h"

/* A walk that sizes adds up here. */
struct pnet_geo_sizes {
    size_t part[PNET_GEO_PARTS];  /* of a slot */
    size_t passing, scratch;      /* of what the slots share */
    size_t set[PNET_GEO_BUFFERS]; /* what passes from item to item: the largest */
    size_t idle;                  /* the largest field, which is scratch until it comes */
};

/* Scratch beside the fields, in what the slots share. NULL: no memory, or the walk sizes. */
void *pnet_slot_shared_scratch(struct pnet_geo_walk *w, size_t bytes);

#endif
