/* The geometry stage: builds the levels, triplet sets and input fields of one batch from its coordinates. */
#ifndef PNET_RUNTIME_SLOT_H
#define PNET_RUNTIME_SLOT_H

#include "runtime/geo/walk.h"
#include "runtime/run/bound.h"

#include <pthread.h>

/* Sets zeroed counts for a plan. The caller frees them. PNET_NO_MEMORY. */
enum pnet_status pnet_counts_new(
    const struct pnet_plan *p, struct pnet_counts *c, struct pnet_error *e);
void pnet_counts_free(struct pnet_counts *c);

/* Memory with which batches are built: scratch, and items that no layer reads. The slots of a runner share it and take
   turns, so that it counts once. */
struct pnet_geo_work {
    const struct pnet_bound *bound;
    struct pnet_memory *memory;
    /* held while a slot is built; guards all below */
    pthread_mutex_t turn;
    int slots;                                       /* slots that share it */
    struct pnet_buffer (*buffers)[PNET_GEO_BUFFERS]; /* [geo_count] */
    struct pnet_buffer
        set[PNET_GEO_BUFFERS]; /* what a set no longer needs once it is laid out as tiles */
    struct pnet_buffer scratch;
    struct pnet_buffer *
        idle; /* unused while a slot is built, so used in place of `scratch`; NULL: there is none */
};

enum pnet_status pnet_geo_work_new(const struct pnet_bound *b, struct pnet_memory *m,
    struct pnet_geo_work **work, struct pnet_error *e);
/* Frees it, after its slots. */
void pnet_geo_work_free(struct pnet_geo_work *w);

/* For measurements: how long items of one kind take. They are built `times` times behind each other, on the device. */
struct pnet_slot_clock {
    enum pnet_geo_id kind;
    int times;
    double seconds; /* the mean of one building of all of them, of the last batch */
};

/* One batch, in the memory of a device. A runner has two slots if the next batch is prepared while this one runs. */
struct pnet_slot {
    const struct pnet_bound *bound;
    const struct pnet_plan *plan; /* the bound plan */
    struct pnet_memory *memory;
    struct pnet_geo_work *work;
    enum pnet_device_kind device; /* of the memory: the CPU may count what a GPU would build */
    struct pnet_counts counts;
    struct pnet_geo_view *
        views; /* [geo_count], with the true counts. Once the batch is built, without pointers to what
                                    the slots share */
    /* [geo_count]: views for steps; on a GPU with the counts of the capacity class; `splits` has the true ones */
    struct pnet_geo_view *step_views;
    struct pnet_buffer (*buffers)[PNET_GEO_BUFFERS]; /* [geo_count]: what is kept */
    struct pnet_buffer *fields; /* [tensor_count]: of INPUT tensors, rows in level order */
    struct pnet_buffer *idle;   /* the largest field: it arrives last, and is scratch until then */
    struct pnet_buffer splits;  /* row_splits of all levels, [level_count][samples + 1] */
    void *stage;                /* GPU: pinned memory through which a batch comes */
    /* [level_count]: the grid that orders the rows of a level */
    struct pnet_grid *grids;
    size_t (*used)[PNET_GEO_BUFFERS]; /* [geo_count]: bytes of each buffer that this batch uses */
    struct pnet_slot_clock *clock;    /* NULL: nothing is measured */
    /* id of the batch in the slot; 0: none, or not to be reused */
    uint64_t batch;
};

enum pnet_status pnet_slot_new(
    struct pnet_geo_work *work, struct pnet_slot **slot, struct pnet_error *e);
void pnet_slot_free(struct pnet_slot *s);

/* Builds everything that the plan needs from `b`, which is not needed afterwards: on a GPU all work is done on return. Waits
   while another slot with the same `work` is built. Keeps the geometry if `b` has the same id as the last batch; fields are
   always copied again. PNET_BAD_DATA: coordinates do not fit the grid, or a layer needs other sizes. */
enum pnet_status pnet_slot_build(
    struct pnet_slot *s, const struct pnet_batch *b, struct pnet_error *e);

/* Returns order[rows] in device memory: for each row of an INPUT level its row in the batch; NULL for other levels. */
const int32_t *pnet_slot_order(const struct pnet_slot *s, int level);
/* Returns the row splits of a level, [samples + 1] in device memory; NULL for the SCALAR level. */
const int64_t *pnet_slot_splits(const struct pnet_slot *s, int level);
/* GPU: returns the device address of a level's true number of rows; NULL if the number on the host is the true one. */
const int64_t *pnet_slot_live(const struct pnet_slot *s, int level);
/* Returns the buffer of an item while a batch is built: in the slot, or in the memory that the slots share. */
struct pnet_buffer *pnet_slot_place(const struct pnet_slot *s, int item, int which);
/* Returns the view of an item with pointers to other places, such as copies on the host. Only the places that the view needs
   are asked for. */
struct pnet_geo_view pnet_slot_view(
    const struct pnet_slot *s, int item, const struct pnet_geo_places *places);
/* Returns a hash of all addresses that the feature stage gets from this slot: a recorded schedule can be replayed while it
   stays the same. */
uint64_t pnet_slot_addresses(const struct pnet_slot *s);

/* The bytes that batches of given counts take, from the counts alone. */
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

/* Returns the bytes of this slot and of the memory with which it is built. */
size_t pnet_slot_bytes(const struct pnet_slot *s);

#endif
