/* A tree of boxes over the points of a level, for every search of the geometry stage.

   Points are taken in an order in which neighbours in the list are neighbours in space (a
   space-filling curve; for a level in the order of its key that is the order of its rows), WIDE of
   them to a leaf. The boxes of WIDE leaves make a group, the boxes of WIDE groups one of the next
   level, and so on: no pointers, memory linear in the points whatever their density or the radius,
   and every test is a loop of WIDE equal steps. The order decides how fast a search is, never what
   it finds.

   Pruning is exact: with rounding to nearest, a <= b implies fl(a - c) <= fl(b - c), so a distance
   to a box that is computed by the same operations as the distance to a point never exceeds that to
   a point inside. */
#ifndef PNET_KERNELS_CPU_GEO_TREE_H
#define PNET_KERNELS_CPU_GEO_TREE_H

#include "kernels/cpu/geometry/geo_grid.h"

enum { WIDE = 16, TREE_DEPTH = 8 };

struct pnet_geo_leaf {
    _Alignas(64) float at[3][WIDE];
    int32_t row[WIDE]; /* -1 after the last point of a sample */
};

struct pnet_geo_boxes {
    _Alignas(64) float low[3][WIDE], high[3][WIDE];
};

struct pnet_geo_tree {
    const struct pnet_level *level;
    bool ascending;      /* rows ascend over the leaves of each sample */
    int64_t *leaf_start; /* [samples + 1]: a leaf holds points of one sample */
    struct pnet_geo_leaf *leaf;
    int depth;
    struct pnet_geo_boxes *group[TREE_DEPTH]; /* group[0] holds the boxes of leaves */
};

/* Takes pieces of a workspace of any alignment; each piece begins on a cache line of its own. With base NULL it only adds up
   their sizes. */
struct pnet_geo_purse {
    char *base;
    size_t used;
};
struct pnet_geo_purse pnet_geo_open(void *work);
void *pnet_geo_take(struct pnet_geo_purse *purse, size_t bytes);

/* The rows of a level in blocks of WIDE queries: along a curve, each block from one sample. */
struct pnet_geo_blocks {
    const struct pnet_level *level;
    const int32_t *order; /* place to row; NULL: place = row */
    int64_t *start;       /* [samples + 1] blocks */
};
struct pnet_geo_block {
    int32_t sample;
    int count;
    int32_t row[WIDE];
};
/* Returns an upper bound for start[samples]. */
int64_t pnet_geo_blocks_bound(const struct pnet_level *level);
/* Makes the blocks of a level. `order` [rows] and `scratch` (pnet_geo_curve_work bytes) are used if its rows do not follow a
   curve. */
void pnet_geo_blocks_make(struct pnet_geo_blocks *b, const struct pnet_level *level, int32_t *order,
    int64_t *start, void *scratch);
void pnet_geo_block_get(const struct pnet_geo_blocks *b, int64_t block, struct pnet_geo_block *out);
size_t pnet_geo_curve_work(int64_t rows);

/* Takes the memory of a tree for a level with that many rows and samples. */
void pnet_geo_tree_take(
    struct pnet_geo_tree *t, const struct pnet_level *level, struct pnet_geo_purse *purse);
/* Builds the tree over the points of `blocks`: over their positions or, with `voxel`, over the indices of their voxels. */
void pnet_geo_tree_build(struct pnet_geo_tree *t, const struct pnet_geo_blocks *blocks, bool voxel);

/* Sets the position of a row for searching: metres, or its voxel. */
static inline void pnet_geo_place(
    const struct pnet_level *level, int64_t row, bool voxel, float at[3])
{
    const float *p = level->xyz + 3 * row;
    if (voxel) {
        bool inside = true;
        struct pnet_voxel v = pnet_voxel_of(p, level->grid, &inside);
        for (int a = 0; a < 3; a++) at[a] = (float)v.at[a];
    } else {
        for (int a = 0; a < 3; a++) at[a] = p[a];
    }
}

/* A walk from group to group through the leaves of one sample. */
struct pnet_geo_walk {
    int64_t first, last; /* leaves of the sample, both inclusive; none: last < first */
    int64_t points;      /* of the sample */
    int level;           /* level of the present group */
    int64_t group[TREE_DEPTH];
    uint32_t left[TREE_DEPTH]; /* members of each group that are not visited yet */
};

static inline struct pnet_geo_walk pnet_geo_walk_begin(
    const struct pnet_geo_tree *t, int32_t sample)
{
    const int64_t *splits = t->level->row_splits + sample, *leaves = t->leaf_start + sample;
    return (struct pnet_geo_walk){.first = leaves[0],
        .last = leaves[1] - 1,
        .points = splits[1] - splits[0],
        .level = t->depth - 1};
}

/* Returns the members of a group that lead to leaves of the sample, a bit each. */
static inline uint32_t pnet_geo_walk_members(
    const struct pnet_geo_walk *w, int level, int64_t group)
{
    int64_t first = (w->first >> 4 * level) - group * WIDE,
            last = (w->last >> 4 * level) - group * WIDE;
    uint32_t from = first > 0 ? 0xffffu << first : 0xffffu;
    uint32_t to = last < WIDE - 1 ? (2u << last) - 1 : 0xffffu;
    return from & to;
}

/* Returns the lanes of a leaf that hold a point, a bit each. */
static inline uint32_t pnet_geo_walk_points(const struct pnet_geo_walk *w, int64_t leaf)
{
    int64_t left = w->points - (leaf - w->first) * WIDE;
    return left < WIDE ? (1u << left) - 1 : 0xffffu;
}

#endif
