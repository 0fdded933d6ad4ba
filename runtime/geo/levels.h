/* The buffers of a level with points, whichever kind gives it its rows. */
#ifndef PNET_RUNTIME_GEO_LEVELS_H
#define PNET_RUNTIME_GEO_LEVELS_H

#include "runtime/geo/walk.h"

enum {
    LEVEL_XYZ,
    LEVEL_KEY,   /* of levels that are searched */
    LEVEL_ORDER, /* INPUT: which row of the batch each row was */
    LEVEL_PARENT /* GRID: the row of this level for each row of the finer one */
};

/* Points and keys of a level of n rows. */
struct pnet_level_points {
    float *xyz;
    uint64_t *key; /* NULL: not searched, or the walk sizes */
};
struct pnet_level_points pnet_level_buffers(struct pnet_geo_walk *w, int level, int64_t n);

/* Is it a level of an input whose points are read by nothing but their own ordering? They have no buffer then. */
bool pnet_level_unread(const struct pnet_plan *p, int level);

/* The rows of geo.def for levels. */
enum pnet_geo_owner pnet_level_owner(
    const struct pnet_plan *p, int item, unsigned forms, int which);
void pnet_level_view(const struct pnet_geo_look *l, struct pnet_geo_view *v);
void pnet_level_describe(
    const struct pnet_plan *p, int item, const struct pnet_counts *c, FILE *out);

#endif
