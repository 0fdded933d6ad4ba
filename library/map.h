/* What a map between points holds. */
#ifndef PNET_LIBRARY_MAP_H
#define PNET_LIBRARY_MAP_H

#include "library/points.h"

#include "kernels/corners.h"
#include "kernels/pool.h"

/* Lists of rows of the other side, with weights; those of `out` by place, where the map has `row`. */
struct pnet_map_lists {
    int64_t *start;
    int32_t *other;
    float *weight; /* NULL: all are 1 */
};

/* All rows are the caller's, but for places: they are along a curve through space, whatever the order of the caller's points is.
   Nothing changes a map. */
struct pnet_map {
    struct pnet_handle handle;
    enum pnet_map_kind kind;
    int64_t rows_in, rows_out;
    int32_t *row; /* the point at each place, of the finer side or `out`; NULL: as they are */
    /* MEAN, MAX, SUM, PARENT: */
    struct pnet_cells cells; /* with the memory of these: */
    int64_t *start;
    int32_t *child, *parent; /* `parent`: by place */
    /* INVERSE_DISTANCE: [rows_out, k], by place */
    int32_t k, *index;
    float *distance2;
    /* TRILINEAR, NEAREST */
    struct pnet_map_lists by_out, by_in;
    struct pnet_home home;
    struct pnet_rooms rooms; /* GPU: all memory of the map */
};

/* What a map is made of; the points fit its kind. */
struct pnet_mapping {
    struct pnet_map_options o;
    const struct pnet_points *out, *in;
    struct pnet_map *map;
};

/* A call. */
struct pnet_map_call {
    const struct pnet_map *map;
    bool backward;
    int32_t width;
    enum pnet_storage storage; /* of features */
    struct pnet_map_run o;
    size_t bytes; /* of workspace */
};

static inline bool pnet_map_on_gpu(const struct pnet_map *map)
{
    return pnet_home_on_gpu(&map->home);
}
static inline struct pnet_nearest pnet_map_nearest(const struct pnet_map *map)
{
    return (struct pnet_nearest){.fine_rows = pnet_count(map->rows_out),
        .coarse_rows = pnet_count(map->rows_in),
        .k = map->k,
        .index = map->index,
        .distance2 = map->distance2,
        .row = map->row};
}

/* GPU. Finds a map whose home, kind and rows are known. What it takes belongs to the map, also after a failure. */
enum pnet_status pnet_map_find_on_gpu(const struct pnet_mapping *m, struct pnet_error *e);
/* GPU. A call with arrays that were checked. */
enum pnet_status pnet_map_run_on_gpu(
    const struct pnet_map_call *r, const void *from, void *to, struct pnet_error *e);

#endif
