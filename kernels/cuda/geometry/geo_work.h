/* The workspaces of the geometry stage on a GPU: their parts, and so their sizes. Host arithmetic alone, in every build, so
   that plans for a GPU do not depend on whether there is one. */
#ifndef PNET_KERNELS_CUDA_GEO_WORK_H
#define PNET_KERNELS_CUDA_GEO_WORK_H

#include "kernels/geometry.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TREE_DEPTH = 6,     /* 2^31 points make 2^26 leaves: 2^21, 2^16, 2^11, 2^6, 2 groups */
    SCAN_CHUNK = 2048,  /* numbers that one block sums */
    CURVE_BYTES = 20,   /* bytes a row for sorting along a curve: two keys of 8 bytes and a row */
    ROOM_BYTES = 12,    /* bytes a row for pnet_cuda_order_points: two keys of 4 bytes and a row */
    RADIX_TILE = 4096,  /* kernels/cuda/geometry/geo_radix.h: rows of a tile */
    RADIX_DIGITS = 256, /* values of a digit */
    RADIX_PASSES = 12,  /* digits of a key of 64 bits, and of a sample */
    RADIX_HEAD_BYTES = 4 * RADIX_PASSES * (RADIX_DIGITS + 2), /* counts of a sort */
};

/* Takes pieces of a workspace, aligned to 256 bytes. With base NULL it only adds up their sizes. */
struct geo_purse {
    char *base;
    size_t used;
#ifdef __cplusplus
    explicit geo_purse(void *work) : base((char *)work), used(0) {}
    template <class T> T *take(size_t count)
    {
        T *piece = base ? (T *)(base + used) : nullptr;
        used += (count * sizeof(T) + 255) / 256 * 256;
        return piece;
    }
#endif
};

#ifndef __cplusplus
static inline void *geo_take(struct geo_purse *p, size_t count, size_t size)
{
    void *piece = p->base ? p->base + p->used : NULL;
    p->used += (count * size + 255) / 256 * 256;
    return piece;
}
#endif

#ifdef __cplusplus
struct __align__(16) geo_box
#else
struct geo_box
#endif
{
    float low[3], high[3];
    int32_t least; /* of the rows of its points */
    float
        centre2; /* the least squared distance of its points to a centre, where the tree's owner sets it; else INFINITY */
};

struct geo_tree {
    int depth;
    int64_t nodes[TREE_DEPTH];
    struct geo_box *box[TREE_DEPTH]; /* of leaves, then of groups */
};

/* kernels/cuda/geometry/geo_blocks.h */
struct block_table {
    const uint64_t *key; /* of the level */
    /* [rows] at the first row of a block: which of its voxels hold a point */
    uint64_t *mask;
    int32_t *table; /* [2^bits] first rows of blocks, hashed; -1: none */
    int bits;
    /* 1: the level has no blocks; NULL: this set does not use blocks */
    int32_t *missing;
};

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of workspace of CUB's sort: a histogram for each digit and each 2^28 items, and the counts that its blocks of at least
   2048 items exchange. */
size_t pnet_cuda_geo_sorter_bytes(int64_t n);
/* Returns the workspace, in bytes, of pnet_cuda_order along a curve: a box, two keys and a row for each row, and the sort's. */
size_t pnet_cuda_geo_curve_work(int64_t rows);
/* Returns how many numbers of workspace inclusive sums of n numbers need; 0: none. */
size_t pnet_cuda_geo_scan_sums(int64_t n);
void pnet_cuda_geo_tree_take(struct geo_tree *t, int64_t rows, struct geo_purse *purse);
void pnet_cuda_geo_blocks_take(struct block_table *b, int64_t rows, struct geo_purse *purse);
int64_t pnet_cuda_geo_tiles_of(int64_t rows);
int64_t pnet_cuda_geo_radix_tiles(int64_t rows);

/* The parts of workspaces; each function returns the bytes, and with `work` NULL does nothing else. */
struct geo_sample_work {
    int32_t *order; /* [n] place to row, by sample and key; NULL: the same */
    void *room, *sorting;
    int32_t *voxel;    /* [n] voxel of each place; NULL: stored in the memory of the parents */
    uint32_t *nearest; /* [n] for each voxel the least distance^2 to its centre, as bits */
    int64_t *sums;
};
size_t pnet_cuda_geo_sample_take(int64_t n, bool ordered, void *work, struct geo_sample_work *p);

struct geo_triplets_work {
    int32_t *in_order, *out_order;
    void *sorting;
    int64_t *sums;
    uint32_t *child_box;
    int64_t *child_start;
    int32_t *child;
    struct block_table blocks;
};
size_t pnet_cuda_geo_triplets_take(const struct pnet_level *out, const struct pnet_level *in,
    const struct pnet_neighbourhood *nb, void *work, struct geo_triplets_work *p,
    struct geo_tree *tree);

struct geo_nearest_work {
    int32_t *in_order, *out_order;
    void *sorting;
    struct geo_tree tree;
};
size_t pnet_cuda_geo_nearest_take(const struct pnet_level *out, const struct pnet_level *in,
    void *work, struct geo_nearest_work *p);

struct geo_matches_work {
    float *xyz;
    uint16_t *cell;
    char *triplets;
};
struct geo_corners_work {
    uint64_t *key;  /* [source rows] */
    int32_t *found; /* [queries, corners]: source row of each corner; -1: none */
    int64_t *sums;
};
size_t pnet_cuda_geo_corners_take(const struct pnet_level *queries, const struct pnet_level *source,
    int corners, void *work, struct geo_corners_work *p);

/* Returns the neighbourhood of matches: a triplet set with one cell, in which the moved points of `a` are centres among the
   points of `b`. */
struct pnet_neighbourhood pnet_cuda_geo_matches_ball(float radius);
size_t pnet_cuda_geo_matches_take(
    const struct pnet_level *a, int64_t number, void *work, struct geo_matches_work *p);

#ifdef __cplusplus
}
#endif

#endif
