/* The geometry stage: one batch's levels, triplet sets and input fields, built from its
 * coordinates. */
#ifndef PNET_RUNTIME_SLOT_H
#define PNET_RUNTIME_SLOT_H

#include "runtime/memory.h"
#include "runtime/plan.h"

#include <pthread.h>

/* What the sizes of everything else are linear in. */
struct pnet_counts {
    int32_t samples;
    int64_t *rows;     /* [level_count] */
    int64_t *triplets; /* [geo_count], of TRIPLETS items; of MATCHES: their number */
    /* [geo_count]: of TRIPLETS items, what the forward and the transposed form take as tiles; 0 where they are not */
    int64_t (*tile_words)[2];
    bool (*unlisted)
        [2]; /* and whether one of the tiles lists nothing, so that the triplets themselves are read too */
};

/* Zeroed counts for a plan. */
enum pnet_status pnet_counts_new(
    const struct pnet_plan *p, struct pnet_counts *c, struct pnet_error *e);
void pnet_counts_free(struct pnet_counts *c);

enum { PNET_SLOT_BUFFERS = 10 }; /* of one geometry item */

/* What batches are built with: scratch, and items that nobody reads afterwards. The slots of a session share it and take
   turns, so that it counts once. */
struct pnet_geo_work {
    const struct pnet_plan *plan;
    struct pnet_memory *memory;
    pthread_mutex_t turn;                             /* of all below, while a slot is built */
    int slots;                                        /* that share it */
    unsigned *forms;                                  /* [geo_count]: pnet_plan_forms */
    struct pnet_buffer (*buffers)[PNET_SLOT_BUFFERS]; /* [geo_count] */
    struct pnet_buffer
        set[PNET_SLOT_BUFFERS]; /* what a set has no use for once it lies there as tiles */
    struct pnet_buffer scratch;
};

enum pnet_status pnet_geo_work_new(const struct pnet_plan *p, struct pnet_memory *m,
    struct pnet_geo_work **work, struct pnet_error *e);
/* Behind its slots. */
void pnet_geo_work_free(struct pnet_geo_work *w);

/* One batch, in the memory of `memory`'s device. A session has two where the next one is prepared while this one runs.
 */
struct pnet_slot {
    const struct pnet_plan *plan;
    struct pnet_memory *memory;
    struct pnet_geo_work *work;
    enum pnet_device_kind device; /* of the memory */
    struct pnet_counts counts;
    /* [geo_count], with the true counts. Where two slots share the work, what is not kept has no pointers in there once
       the batch is built. */
    struct pnet_geo_view *views;
    struct pnet_geo_view *
        bound; /* [geo_count]: what the feature stage gets. On a GPU with the counts of the capacity
                                    class, the true ones standing in `splits` */
    struct pnet_buffer (*buffers)[PNET_SLOT_BUFFERS]; /* [geo_count]: what is kept */
    struct pnet_buffer *fields; /* [tensor_count]: of INPUT tensors, rows in level order */
    struct pnet_buffer
        *idle; /* the largest of them: they come last, and serve as scratch till then */
    struct pnet_buffer splits; /* row_splits of all levels, [level_count][samples + 1] */
    void *stage;               /* GPU: pinned memory through which a batch comes */
    int *level_item;           /* [level_count]: the LEVEL item of each level; -1 */
    uint64_t batch;            /* id of what is built; 0: nothing or not to be reused */
};

enum pnet_status pnet_slot_new(const struct pnet_plan *p, struct pnet_geo_work *work,
    struct pnet_slot **slot, struct pnet_error *e);
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
/* A hash of all addresses the feature stage gets from this slot: while it is the same, a recorded schedule fits. */
uint64_t pnet_slot_addresses(const struct pnet_slot *s);

/* Does a plan for a GPU have the forward (0) or the transposed (1) form of a set as tiles? */
bool pnet_slot_tiled(const struct pnet_plan *p, int item, int form);

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
struct pnet_slot_sizes pnet_slot_estimate(const struct pnet_plan *p, const struct pnet_counts *c);

/* Bytes this slot holds, with all that it is built with. */
size_t pnet_slot_bytes(const struct pnet_slot *s);

#endif
