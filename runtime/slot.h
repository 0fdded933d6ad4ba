/* The geometry stage: one batch's levels, triplet sets and input fields, built from its
 * coordinates. */
#ifndef PNET_RUNTIME_SLOT_H
#define PNET_RUNTIME_SLOT_H

#include "runtime/memory.h"
#include "runtime/plan.h"

/* What the sizes of everything else are linear in. */
struct pnet_counts {
    int32_t samples;
    int64_t *rows;     /* [level_count] */
    int64_t *triplets; /* [geo_count], of TRIPLETS items; of MATCHES: their number */
    /* [geo_count]: of TRIPLETS items, what the forward and the transposed form take as tiles; 0 where they are not */
    int64_t (*tile_words)[2];
};

enum { PNET_SLOT_BUFFERS = 10 }; /* of one geometry item */

/* One batch, in the memory of `memory`'s device. A session has two where the next one is prepared while this one runs.
 */
struct pnet_slot {
    const struct pnet_plan *plan;
    struct pnet_memory *memory;
    enum pnet_device_kind device; /* of the memory */
    struct pnet_counts counts;
    struct pnet_geo_view *views; /* [geo_count], with the true counts */
    struct pnet_geo_view *
        bound; /* [geo_count]: what the feature stage gets. On a GPU with the counts of the capacity
                                    class, the true ones standing in `splits` */
    struct pnet_buffer (*buffers)[PNET_SLOT_BUFFERS]; /* [geo_count] */
    struct pnet_buffer *fields; /* [tensor_count]: of INPUT tensors, rows in level order */
    struct pnet_buffer splits;  /* row_splits of all levels, [level_count][samples + 1] */
    struct pnet_buffer scratch;
    struct pnet_buffer arrival; /* GPU: rows of an input in the order of the batch */
    void *stage;                /* GPU: pinned memory they come through */
    int *level_item;            /* [level_count]: the LEVEL item of each level; -1 */
    uint64_t batch;             /* id of what is built; 0: nothing or not to be reused */
};

enum pnet_status pnet_slot_new(const struct pnet_plan *p, struct pnet_memory *m,
    struct pnet_slot **slot, struct pnet_error *e);
void pnet_slot_free(struct pnet_slot *s);

/* Builds everything the plan asks for from `b`, which is not needed afterwards: on a GPU all work is done on return.
   The geometry is kept where the batch has the same id as the last one; fields are always taken anew.
   PNET_BAD_DATA: coordinates that do not fit the grid. */
enum pnet_status pnet_slot_build(
    struct pnet_slot *s, const struct pnet_batch *b, struct pnet_error *e);

/* order[rows]: which row of the batch each row of the INPUT level was; NULL for other levels. In device memory. */
const int32_t *pnet_slot_order(const struct pnet_slot *s, int level);
/* [samples + 1], in device memory; NULL for the SCALAR level. */
const int64_t *pnet_slot_splits(const struct pnet_slot *s, int level);
/* GPU: where the true number of rows of a level stands; NULL where the number on the host is it. */
const int64_t *pnet_slot_live(const struct pnet_slot *s, int level);
/* A hash of all addresses the feature stage gets from this slot: while it is the same, a recorded schedule fits. */
uint64_t pnet_slot_addresses(const struct pnet_slot *s);

/* Is the transposed form of a set written by a second search over the first one's row starts, instead of sorting it? */
bool pnet_slot_searches_back(enum pnet_device_kind device, const struct pnet_geo_request *q);

/* Does a plan for a GPU have the forward (0) or the transposed (1) form of a set as tiles? And the bytes of their
   headers, for the capacity class of the rows that the form is sorted by. */
bool pnet_slot_tiled(const struct pnet_plan *p, int item, int form);
size_t pnet_slot_tile_bytes(int64_t rows);

/* The same from counts alone: what a slot holds behind pnet_slot_build of one batch with them. */
size_t pnet_slot_estimate(const struct pnet_plan *p, const struct pnet_counts *c);

/* Bytes this slot holds: items, fields, scratch. */
size_t pnet_slot_bytes(const struct pnet_slot *s);

#endif
