/* Levels, neighbourhoods and triplets: what the geometry kernels of every device take and give.
   Definitions: docs/geometry.md. All arithmetic on coordinates is float32 without contraction. */
#ifndef PNET_KERNELS_GEOMETRY_H
#define PNET_KERNELS_GEOMETRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Voxel indices run from -2^20 to 2^20 - 1 an axis. The key interleaves the bits of
   (index + 2^20): x highest, so keys of one sample follow a Morton curve. */
enum { PNET_KEY_BIAS = 1 << 20, PNET_KEY_LIMIT = 1 << 21 };

/* The largest number of nearest points that can be asked for. */
enum { PNET_KNN_LIMIT = 1024 };

/* The grid of a level: voxel index = floor_div(floorf(p * inverse_base), factor). */
struct pnet_grid {
    float base;         /* finest cell of its chain of grids, metres; 0: the level has no grid */
    float inverse_base; /* (float)(1 / base) */
    int32_t factor;     /* this level's cell is factor * base */
};

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

/* All triplets of one set, sorted by (row, cell, other): `row` is the side a kernel accumulates on.
   Read forward, row = i (output) and other = j (input); transposed, row = j and other = i. */
struct pnet_triplets {
    int64_t rows;         /* of the side that is sorted by */
    int64_t others;       /* rows of the other side */
    int64_t count;        /* T */
    int32_t cells;        /* V = K^3 */
    const int64_t *start; /* [rows + 1] */
    const int32_t *other; /* [T] */
    const uint16_t *cell; /* [T] */
    /* GPU: where the true number of rows stands, `rows` and `count` being those of the capacity
       class; NULL: they are the numbers */
    const int64_t *live;
};

#endif
