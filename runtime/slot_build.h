/* What the files that build a slot share with the one that sizes it. */
#ifndef PNET_RUNTIME_SLOT_BUILD_H
#define PNET_RUNTIME_SLOT_BUILD_H

#include "runtime/slot.h"

/* Buffers of an item, by kind. LEVEL: the order of an INPUT, the parents of the finer level of a GRID. */
enum { LEVEL_XYZ, LEVEL_KEY, LEVEL_ORDER, LEVEL_PARENT };
enum { /* TRIPLETS */
    SET_START,
    SET_OTHER,
    SET_CELL,
    SET_T_START,
    SET_T_OTHER,
    SET_T_CELL,
    SET_TILE, /* and the transposed form's behind it */
    SET_LIST = SET_TILE + 2
};
enum { MAP_PARENT, MAP_START, MAP_CHILD }; /* PARENT */
enum { NEAR_INDEX, NEAR_DISTANCE };        /* NEAREST */
enum { MATCH_START, MATCH_OTHER };         /* MATCHES */

/* Is the buffer read once the batch is built? What is not lies in what the slots of a session share. `forms`: of the
   item, by pnet_plan_forms. */
bool pnet_slot_keeps(const struct pnet_plan *p, int item, unsigned forms, int which);
/* A buffer that each set writes anew, and no other item reads: its triplets, where they are not kept. */
bool pnet_slot_passes(const struct pnet_plan *p, int item, unsigned forms, int which);

/* Is a level searched, so that it needs keys? */
bool pnet_slot_searched(const struct pnet_plan *p, int level);
/* Do rows of the finer level follow those of the coarser one, so that children are stretches of rows? */
bool pnet_slot_stretches(const struct pnet_plan *p, int fine, int coarse);
/* Is the transposed form of a set built at all? */
bool pnet_slot_transposes(unsigned forms);
/* Has a set that form, 0 or 1, as tiles? */
bool pnet_slot_has_tiles(unsigned forms, int form);
/* Is it written by a second search over the first one's row starts, instead of sorting it? */
bool pnet_slot_searches_back(enum pnet_device_kind device, const struct pnet_geo_request *q);
/* The bytes of a form's headers, for the capacity class of the rows that it is sorted by. */
size_t pnet_slot_tile_bytes(int64_t rows);

/* `each` elements for each of `rows`, and `more`, in the buffer's place: room for the capacity class of the rows, so
   that another batch of it fits. */
enum pnet_status pnet_slot_buffer(struct pnet_slot *s, int item, int which, int64_t rows,
    int64_t each, int64_t more, size_t size, struct pnet_error *e);
/* Where it lies. */
struct pnet_buffer *pnet_slot_place(const struct pnet_slot *s, int item, int which);
/* Memory until scratch is asked for again: in a field that is not there yet, or what the slots share. */
enum pnet_status pnet_slot_scratch(
    struct pnet_slot *s, size_t bytes, void **at, struct pnet_error *e);
/* A level with the rows of its capacity class: workspaces are sized for the class, so that another batch of it needs no
   more. */
struct pnet_level pnet_slot_roomy(const struct pnet_level *l);

/* slot_sets.c: a TRIPLETS item, its transposed form, and both as tiles. */
enum pnet_status pnet_slot_build_set(struct pnet_slot *s, int item, struct pnet_error *e);

#endif
