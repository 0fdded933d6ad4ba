/* A cloud cut into tiles: cubes whose points a network reads by themselves, with a margin of the points around them. Where the
   margin is the receptive field, the results of a tile's own points have the same bits as those of the whole cloud. */
#ifndef PNET_RUNTIME_CLOUD_TILES_H
#define PNET_RUNTIME_CLOUD_TILES_H

#include "kernels/geometry.h"
#include "runtime/base/error.h"
#include "runtime/plan/plan.h"

/* How clouds are cut. The border of a tile is one of cells of `grid`, so that no tile cuts a cell. */
struct pnet_tiling {
    struct pnet_grid grid; /* of tiles: its cell is the edge of a tile */
    double edge;           /* metres */
    double margin;         /* metres, on each axis */
};

/* Chooses tiles of about that edge: a whole number of the cells of the coarsest grid of the plan, 1 at least; any edge where the
   plan has no grid. The margin is 0. edge: metres, more than 0. */
struct pnet_tiling pnet_tiling_new(const struct pnet_plan *p, double edge);

/* Finds the tile of a point: its index on each axis. */
void pnet_tiling_place(const struct pnet_tiling *t, const float xyz[3], int32_t place[3]);
/* Returns how far around its points, on each axis, a tile reads others, metres: the margin, and what float32 may take from
   coordinates, the largest of which is given. */
double pnet_tiling_reach(const struct pnet_tiling *t, float largest);

/* The tiles of one cloud that hold points, by their place. */
struct pnet_cloud_tiles {
    struct pnet_tiling tiling;
    int64_t rows;     /* of the cloud */
    const float *xyz; /* [rows, 3], not owned */
    float largest;    /* absolute coordinate, metres */
    int64_t count;
    int32_t (*place)[3]; /* [count]: indices in the grid of tiles, ascending */
    int64_t *first;      /* [count + 1]: into `row` */
    int64_t *row;        /* [rows]: those of a tile ascend */
};
/* The coordinates must outlive the tiles; the caller frees them. PNET_NO_MEMORY. */
enum pnet_status pnet_cloud_tiles_new(const struct pnet_tiling *t, int64_t rows, const float *xyz,
    struct pnet_cloud_tiles *tiles, struct pnet_error *e);
void pnet_cloud_tiles_free(struct pnet_cloud_tiles *t);

/* The points of one tile and of its margin, in the order of the cloud. */
struct pnet_cloud_tile {
    int64_t rows, own;
    int64_t *row; /* [rows] of the cloud, ascending */
    bool *is_own; /* [rows]: `own` of them are points of the tile itself */
};
/* The caller frees it. PNET_NO_MEMORY. */
enum pnet_status pnet_cloud_tile_new(const struct pnet_cloud_tiles *t, int64_t number,
    struct pnet_cloud_tile *tile, struct pnet_error *e);
void pnet_cloud_tile_free(struct pnet_cloud_tile *t);

/* The weight of a point of a tile or of its margin where results of tiles are blended: on each axis it rises from 0 at the outer
   border of the margin to 1 at twice the margin from there, so that the weights of two tiles add up to 1. */
double pnet_cloud_tile_weight(const struct pnet_cloud_tiles *t, int64_t number, const float xyz[3]);

#endif
