/* Levels, neighbourhoods and triplets: the arguments and results of the geometry kernels of every device.
   Definitions: docs/geometry.md. All arithmetic on coordinates is float32 without contraction. */
#ifndef PNET_KERNELS_GEOMETRY_H
#define PNET_KERNELS_GEOMETRY_H

#include "kernels/philox.h" /* PNET_HD */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Voxel indices run from -2^20 to 2^20 - 1 an axis. The key interleaves the bits of
   (index + 2^20): x highest, so keys of one sample follow a Morton curve. */
enum { PNET_KEY_BIAS = 1 << 20, PNET_KEY_LIMIT = 1 << 21 };

/* Version of the definitions in docs/geometry.md; it changes whenever the same points give other
   levels or triplets than before. */
enum { PNET_GEOMETRY_VERSION = 2 };

/* Metres: coordinates beyond count as infinite. Squared distances between points, and from points less an offset, stay within
   float32 with room for sums of a few of them, which searches and losses form. */
#define PNET_FARTHEST 1e18

/* The largest number of kernel cells an axis. */
enum { PNET_KERNEL_LIMIT = 31 };

/* The largest number of nearest points that can be asked for. */
enum { PNET_KNN_LIMIT = 1024 };

/* The grid of a level: voxel index = floor_div(floorf(p * inverse_base), factor). */
struct pnet_grid {
    float base;         /* finest cell of its chain of grids, metres; 0: the level has no grid */
    float inverse_base; /* (float)(1 / base) */
    int32_t factor;     /* this level's cell is factor * base */
};

/* Are rows that are sorted by their keys on `fine` also sorted by their keys on `coarse`? Halving indices keeps the order of
   interleaved bits. The bias is not halved, but it only flips the topmost bit, from which the bit that halving inserts below
   follows. */
static inline bool pnet_grid_follows(struct pnet_grid fine, struct pnet_grid coarse)
{
    if (!(fine.base > 0) || fine.base != coarse.base || coarse.factor % fine.factor) return false;
    int32_t ratio = coarse.factor / fine.factor;
    return ratio > 0 && (ratio & (ratio - 1)) == 0;
}

/* One level of a batch. Rows are ordered by sample, then by key. */
struct pnet_level {
    int64_t rows;
    int32_t samples;
    const int64_t *row_splits; /* [samples + 1] */
    const float *xyz;          /* [rows, 3] metres */
    const uint64_t *key;       /* [rows] */
    struct pnet_grid grid;     /* what `key` was made with */
};

enum pnet_shape { PNET_BALL, PNET_CUBE };

enum pnet_degrade { PNET_CENTRE = 1, PNET_NEIGHBOUR = 2, PNET_KERNEL = 4, PNET_VOXEL = 7 };

struct pnet_neighbourhood {
    int32_t kernel; /* K: cells an axis */
    float radius;   /* metres; unused with knn */
    int32_t knn;    /* 0: by radius; else the number of neighbours, the point itself among them */
    enum pnet_shape shape;
    unsigned degrade; /* of enum pnet_degrade */
    bool pointwise;   /* kernel 1 on one level without radius: the point itself, nothing else */
};

/* A set laid out as the GPU's kernels gather it, made once for all layers that share it: tiles of 256 rows, in an order of
   their own (kernels/tile_order.h): 4 blocks of 64 or 16 slabs of 16. From words[at] on, `list` holds for each tile,
     int32_t[neighbours], filled up to a multiple of 4 with row 0: the distinct rows of the other side that the tile
       gathers, in no particular order; they have the slots 1, 2, ...; slot 0 stands for zeros;
     struct pnet_tile_cell[cells]: the kernel cells that its rows have, ascending;
     uint32_t[rounds][8]: rounds, those of a slab in the order of the cells, slab 0 first. Word g of a round holds a slot
       of the slab's row g in its lower half and one of row g + 8 in its upper half: a round adds one triplet to
       the run of each row, in the set's order; a row whose run has ended adds slot 0.
   A tile with more than PNET_TILE_SLOTS neighbours, or a run of more than 65535 triplets, lists nothing:
   neighbours = -1, all else but `at` and `row` is 0. Sets with more than PNET_TILE_CELLS kernel cells are not laid out. */
enum {
    PNET_TILE_ROWS = 256,
    PNET_TILE_BLOCKS = 4,
    PNET_TILE_SLABS = 16,
    PNET_TILE_SLOTS = 32767,
    PNET_TILE_CELLS = 1024
};

struct pnet_tile {
    int64_t at; /* first word; a multiple of 4 */
    int32_t neighbours, cells;
    int32_t longest;                 /* triplets of a run, most of all */
    uint32_t rounds;                 /* of all slabs */
    uint32_t first[PNET_TILE_SLABS]; /* round at which a slab's rounds begin */
    uint32_t spare[2];               /* 0 */
    uint8_t row[PNET_TILE_ROWS]; /* of the tile's 256 places; those that are not there come last */
};

struct pnet_tile_cell {
    uint32_t cell, blocks;            /* bit b: block b has rows with this cell */
    uint16_t rounds[PNET_TILE_SLABS]; /* the longest run of the cell in each slab */
    uint32_t spare[2];                /* 0 */
};

/* How a kernel runs does not depend on `words`: another batch of the class has others. */
struct pnet_tiles {
    int64_t words;                /* of all lists; of the capacity class, where rows are */
    const struct pnet_tile *tile; /* [(rows + 255) / 256] */
    const uint32_t *list;         /* [words], aligned to 16 bytes */
};

/* All triplets of one set, sorted by (row, cell, other): `row` is the side a kernel accumulates on.
   Read forward, row = i (output) and other = j (input); transposed, row = j and other = i.
   Where features lie in the order of a caller, triplets lie in another one, in which rows near each other in space follow each
   other: row[p] is the row at place p, whose triplets begin at start[p], and `other` holds rows of the caller. */
struct pnet_triplets {
    int64_t rows;         /* of the side that is sorted by */
    int64_t others;       /* rows of the other side */
    int64_t count;        /* T */
    int32_t cells;        /* V = K^3 */
    const int64_t *start; /* [rows + 1], by place */
    const int32_t *other; /* [T] */
    const uint16_t *cell; /* [T] */
    const int32_t *row;   /* [rows]: the row at each place; NULL: row p is at place p */
    const int32_t *place; /* [rows]: the place of each row; NULL where `row` is */
    /* GPU: where the true number of rows stands, `rows` and `count` being those of the capacity
       class; NULL: they are the numbers */
    const int64_t *live;
    /* GPU: the same triplets as tiles; tile is NULL where they were not made */
    struct pnet_tiles tiles;
};

/* The row at a place. */
PNET_HD int64_t pnet_triplets_row(const struct pnet_triplets *t, int64_t place)
{
    return t->row ? t->row[place] : place;
}

#endif
