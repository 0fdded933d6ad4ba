/* Walks, by which the rows of the geometry table size an item or build it. */
#ifndef PNET_RUNTIME_GEO_WALK_H
#define PNET_RUNTIME_GEO_WALK_H

#include "runtime/plan/geo_look.h"
#include "runtime/device/memory.h"

struct pnet_slot;
struct pnet_geo_sizes;

/* The walk of one item. A sizing walk asks for the same memory as a building walk, and gets none; its counts are given, while a
   building walk finds them. After a failure all calls of a walk do nothing. */
struct pnet_geo_walk {
    const struct pnet_plan *plan;
    const struct pnet_geo_request *q;
    int item;
    unsigned forms;                   /* of the item */
    const enum pnet_geo_owner *owner; /* of its buffers, [PNET_GEO_BUFFERS] */
    enum pnet_device_kind
        device; /* whose kernels build it, by PNET_KERNEL(w, name), and where its memory lies */
    struct pnet_counts *counts; /* a building walk sets the counts of the item and of its level */
    const struct pnet_batch *batch; /* NULL: it sizes */
    struct pnet_slot *slot;         /* likewise */
    struct pnet_geo_sizes *sizes;   /* NULL: it builds */
    enum pnet_status status;
    struct pnet_error *error;
};

/* Does the walk run kernels, and has nothing failed? */
static inline bool pnet_geo_builds(const struct pnet_geo_walk *w)
{
    return w->slot && !w->status;
}
void pnet_geo_fail(struct pnet_geo_walk *w, enum pnet_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Buffer `which` of the item: `each` elements of `size` bytes for each of `rows`, and `more`. It has room for the capacity
   class of the rows, so that another batch of the class fits. NULL where the walk sizes, or failed. */
void *pnet_geo_buffer(
    struct pnet_geo_walk *w, int which, int64_t rows, int64_t each, int64_t more, size_t size);
/* The same, of so many bytes. */
void *pnet_geo_block(struct pnet_geo_walk *w, int which, size_t bytes);
/* Makes buffer `which` one of the slot's own, and copies `count` elements of `size` bytes there from a temporary buffer. */
void pnet_geo_own(struct pnet_geo_walk *w, int which, const void *from, int64_t count, size_t size);
/* Temporary memory, valid until the next call. */
void *pnet_geo_scratch(struct pnet_geo_walk *w, size_t bytes);
/* `bytes` of scratch in `work`, and n rows of the batch of `row` bytes where kernels can read them. */
const void *pnet_geo_arrive(
    struct pnet_geo_walk *w, size_t bytes, void **work, const void *rows, int64_t n, size_t row);

/* A level; where the walk sizes, without its points. */
struct pnet_level pnet_geo_level(const struct pnet_geo_walk *w, int level);
/* The same with the rows of its capacity class: workspaces are sized for the class. */
struct pnet_level pnet_geo_room(const struct pnet_geo_walk *w, int level);
/* row_splits of a level to write [samples + 1]; NULL where the walk sizes. And the same, copied from the host. */
int64_t *pnet_geo_splits(const struct pnet_geo_walk *w, int level);
void pnet_geo_put_splits(const struct pnet_geo_walk *w, int level, const int64_t *splits);
/* Address of the true number of rows of a level on a GPU; NULL on the CPU. */
const int64_t *pnet_geo_live(const struct pnet_geo_walk *w, int level);
/* Sets the grid of a level for which the plan has none; views of the level get it. */
void pnet_geo_set_grid(struct pnet_geo_walk *w, struct pnet_grid grid);
/* Buffer `which` of another item that was built before. */
void *pnet_geo_data(const struct pnet_geo_walk *w, int item, int which);
/* The view of an item that was built before. Building alone. */
const struct pnet_geo_view *pnet_geo_built(const struct pnet_geo_walk *w, int item);

#endif
