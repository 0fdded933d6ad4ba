/* Attention among points that lie near each other in an order. A part of pnet.h, which programs include. */
#ifndef PNET_API_ATTEND_H
#define PNET_API_ATTEND_H

#include "points.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The points of each sample in an order, cut into buckets of equal size, and buckets joined to scopes: the layer `attend` of a
   model (docs/geometry.md of the sources). It keeps nothing of the points; 4 bytes a row and 8 a sample. */
struct pnet_buckets;

enum pnet_buckets_order { /* TRANS: with x and y swapped */
    PNET_BUCKETS_Z = 0,   /* a Morton curve, as rows lie inside */
    PNET_BUCKETS_Z_TRANS = 1,
    PNET_BUCKETS_HILBERT = 2,
    PNET_BUCKETS_HILBERT_TRANS = 3,
    PNET_BUCKETS_XOR_DIV = 4, /* and three hashes of voxels */
    PNET_BUCKETS_XOR_MOD = 5,
    PNET_BUCKETS_Z_MOD = 6
};
struct pnet_buckets_options {
    size_t size;
    enum pnet_buckets_order order;
    int32_t bucket; /* points of a bucket at most: a multiple of 16, to 4096. 0: 512 */
    int32_t scope;  /* buckets of a scope at most, 1 to 64; 0: 8 */
    int32_t shift;  /* buckets by which the borders of scopes move, 0 to 1000000 */
    int32_t stride; /* distance of the buckets of a scope, 1 to 8; 0: 1 */
    int wrap;       /* join the ends of the order, instead of smaller scopes there */
    double
        cell; /* edge of the voxels of an order, 1e-6 to 1e5 m; 0: the cells of the level. Not for Z */
};
/* `o` may be NULL. PNET_BAD_DATA: points lie more than 2^20 voxels from the origin. On a GPU the buckets lie there, in memory of
   the points' allocator, and the call waits for the points' stream. */
PNET_API enum pnet_status pnet_buckets_new(const struct pnet_points *points,
    const struct pnet_buckets_options *o, struct pnet_buckets **buckets, struct pnet_error *e);
/* NULL is allowed. */
PNET_API void pnet_buckets_free(struct pnet_buckets *buckets);

struct pnet_attend_options {
    size_t size;
    int32_t heads; /* 0: 1. Each has 8, 16, 32, 64 or 128 of the C channels */
    double scale;  /* factor of the products q.k, a finite float32; 0: 1 / sqrt(C / heads) */
    float *
        log_sum; /* [rows, heads], for the backward: filled forward, unless NULL, and read backward */
    int accumulate;  /* backward: add to what the result holds */
    void *workspace; /* NULL: the call takes memory and gives it back. Aligned to 16 bytes */
    size_t workspace_bytes;
    void *stream; /* GPU: as in pnet_voxel_options */
};
/* The bytes of workspace of a call, forward or backward, for so many heads and C channels of either type. */
PNET_API enum pnet_status pnet_attend_workspace(const struct pnet_buckets *buckets, int backward,
    int32_t heads, int32_t channels, size_t *bytes, struct pnet_error *e);
/* qkv [rows, 3 C] has queries, keys, values side by side, each by heads; result [rows, C]: each point's mean of the values of its
   scope, weighted by the softmax of scale q.k. Backward: `out` is the forward's result, `gradient` is [rows, C], and the result
   [rows, 3 C]. Arrays as for maps; log_sum is float32. The same bits for any number of threads; for rows in another order as
   `cell` of pnet_points_options says. */
PNET_API enum pnet_status pnet_attend_forward(const struct pnet_buckets *buckets,
    const struct pnet_array *qkv, const struct pnet_attend_options *o,
    const struct pnet_array_out *result, struct pnet_error *e);
PNET_API enum pnet_status pnet_attend_backward(const struct pnet_buckets *buckets,
    const struct pnet_array *qkv, const struct pnet_array *out, const struct pnet_array *gradient,
    const struct pnet_attend_options *o, const struct pnet_array_out *result, struct pnet_error *e);

#ifdef __cplusplus
}
#endif

#endif
