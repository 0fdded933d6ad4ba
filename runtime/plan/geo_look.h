/* How the view of a geometry item is made: from counts alone, or from where its buffers lie. */
#ifndef PNET_RUNTIME_GEO_LOOK_H
#define PNET_RUNTIME_GEO_LOOK_H

#include "runtime/plan/plan.h"

/* Where things lie that a view points to: in a slot, in copies on the host. */
struct pnet_geo_places {
    const void *(*data)(void *context, int item, int which);
    const int64_t *(*splits)(void *context, int level);
    const int64_t *(*live)(void *context, int level);
    struct pnet_grid (*grid)(void *context, int level);
    void *context;
};

/* What a view is made from. */
struct pnet_geo_look {
    const struct pnet_plan *plan;
    const struct pnet_geo_request *q;
    int item;
    unsigned forms;
    enum pnet_device_kind device;         /* that built it */
    const struct pnet_counts *counts;     /* NULL: nothing is counted yet */
    bool capacity;                        /* of the capacity classes */
    const struct pnet_geo_places *places; /* NULL: shapes alone, without pointers */
};

/* A view of the item: what every kind has, and what the row fills. */
struct pnet_geo_view pnet_geo_view_of(const struct pnet_geo_look *l);

/* For rows: numbers as the look wants them, and pointers, NULL where there are none. */
int64_t pnet_look_rows(const struct pnet_geo_look *l, int level);
int64_t pnet_look_count(const struct pnet_geo_look *l, int which);
const void *pnet_look_data(const struct pnet_geo_look *l, int item, int which);

#endif
