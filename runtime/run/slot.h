/* The geometry stage: one batch's levels, triplet sets and input fields, built from its
 * coordinates. */
#ifndef PNET_RUNTIME_SLOT_H
#define PNET_RUNTIME_SLOT_H

#include "runtime/geo/walk.h"
#include "runtime/run/bound.h"

#include <pthread.h>

/* Zeroed counts for a plan. */
enum pnet_status pnet_counts_new(
    const struct pnet_plan *p, struct pnet_counts *c, struct pnet_error *e);
void pnet_counts_free(struct pnet_counts *c);

/* What batches are built with: scratch, and items that nobody reads afterwards. The slots of a session share it and take
   turns, so that it counts once. */
struct pnet_geo_work {
    const struct pnet_bound *bound;
    struct pnet_memory *memory;
    pthread_mutex_t turn;                            /* of all below, while a slot is built */
    int slots;                                       /* that share it */
    struct pnet_buffer (*buffers)[PNET_GEO_BUFFERS]; /* [geo_count] */
    struct pnet_buffer
        set[PNET_GEO_BUFFERS]; /* what a set has no use for once it lies there as tiles */
    struct pnet_buffer scratch;
};

enum pnet_status pnet_geo_work_new(const struct pnet_bound *b, struct pnet_memory *m,
    struct pnet_geo_work **work, struct pnet_error *e);
/* Behind its slots. */
void pnet_geo_work_free(struct pnet_geo_work *w);

/* One batch, in the memory of `memory`'s device. A session has two where the next one is prepared while this one runs.
 */
struct pnet_slot {
    const struct pnet_bound *bound;
    const struct pnet_plan *plan; /* that is bound */
    struct pnet_memory *memory;
    struct pnet_geo_work *work;
    enum pnet_device_kind device; /* of the memory: the CPU may count what a GPU would build */
    struct pnet_counts counts;
    struct pnet_geo_view *
        views; /* [geo_count], with the true counts. Once the batch is built, without pointers to what
                                    the slots share */
    struct pnet_geo_view
        *step_views; /* [geo_count]: what steps get. On a GPU with the counts of the capacity
                                    class, the true ones standing in `splits` */
    struct pnet_buffer (*buffers)[PNET_GEO_BUFFERS]; /* [geo_count]: what is kept */
    struct pnet_buffer *fields; /* [tensor_count]: of INPUT tensors, rows in level order */
    struct pnet_buffer
        *idle; /* the largest of them: they come last, and serve as scratch till then */
    struct pnet_buffer splits;        /* row_splits of all levels, [level_count][samples + 1] */
    void *stage;                      /* GPU: pinned memory through which a batch comes */
    struct pnet_grid *grids;          /* [level_count]: what the rows of a level are ordered by */
    size_t (*used)[PNET_GEO_BUFFERS]; /* [geo_count]: bytes of each buffer that this batch uses */
    uint64_t batch;                   /* id of what is built; 0: nothing or not to be reused */
};

enum pnet_status pnet_slot_new(
    struct pnet_geo_work *work, struct pnet_slot **slot, struct pnet_error *e);
void pnet_slot_free(struct pnet_slot *s);

/* Builds everything the plan asks for from `b`, which is not needed afterwards: on a GPU all work is done on return.
   Waits while another slot of the same work is built.
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
/* Where the buffer of an item lies while a batch is built: in the slot, or in what the slots share. */
struct pnet_buffer *pnet_slot_place(const struct pnet_slot *s, int item, int which);
/* The view of an item that points to other places, such as copies on the host: those are asked for what the view needs, and
   for nothing else. */
struct pnet_geo_view pnet_slot_view(
    const struct pnet_slot *s, int item, const struct pnet_geo_places *places);
/* A hash of all addresses the feature stage gets from this slot: while it is the same, a recorded schedule fits. */
uint64_t pnet_slot_addresses(const struct pnet_slot *s);

/* What batches of given counts take, from the counts alone, in bytes. */
struct pnet_slot_sizes {
    /* each slot, behind pnet_slot_build */
    size_t fields;   /* of inputs */
    size_t levels;   /* points, their order, row splits */
    size_t maps;     /* parents, children, nearest points, matches */
    size_t triplets; /* one by one */
    size_t tiles;
    size_t kept; /* all of these */
    /* what all slots share */
    size_t passing; /* items that are not kept */
    size_t scratch;
    size_t shared; /* both */
};
struct pnet_slot_sizes pnet_slot_estimate(const struct pnet_bound *b, const struct pnet_counts *c);

/* Bytes this slot holds, with all that it is built with. */
size_t pnet_slot_bytes(const struct pnet_slot *s);

#endif
