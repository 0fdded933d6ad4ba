/* Two sets of a batch in one tree of boxes (kernels/cuda/geometry/geo_tree.h): the points of each sample of the first set, in the
   order of a curve, then those of the second set. Workspaces are host arithmetic, in every build. */
#ifndef PNET_KERNELS_CUDA_SET_TREE_H
#define PNET_KERNELS_CUDA_SET_TREE_H

#include "kernels/cuda/geometry/geo_work.h"
#include "kernels/sets.h"

/* Samples 0 .. samples - 1 are those of the first set, the next ones those of the second. 25.1 bytes a point of either set, of
   which 8 may be used again once the tree is built. */
struct set_tree {
    int64_t places;  /* most points of both sets */
    int32_t samples; /* of one set */
    int64_t *splits; /* [2 samples + 1] places of the samples */
    uint32_t *low;   /* [2 samples, 3] the box of the finite coordinates of each sample, as ranks */
    uint32_t *high;  /* [2 samples, 3] */
    uint32_t *broken; /* is any coordinate not finite? Behind `high` */
    int32_t *row;     /* [places] the row of a place, in its own set */
    float *placed;    /* [places, 3] */
    struct geo_tree tree;
    /* Scratch of the sort: it lies where `placed` and the tree come, and beyond. */
    void *items, *sorter;
};

#ifdef __cplusplus
extern "C" {
#endif

/* Takes the memory of a tree. Returns how many bytes of the purse the sort uses; what the caller takes of the purse next may lie
   there too. */
size_t pnet_cuda_set_tree_take(const struct pnet_point_set *a, const struct pnet_point_set *b,
    struct geo_purse *purse, struct set_tree *t);

/* Bits of an item of the sort: of the samples of both sets and one behind them, and of a place along the curve on each axis. */
int pnet_cuda_set_sample_bits(int32_t samples);
int pnet_cuda_set_curve_bits(int32_t samples);

/* Does set_near search a tree? Known from what there can be at most; either way finds the same rows. */
bool pnet_cuda_near_by_tree(const struct pnet_point_set *a, const struct pnet_point_set *b);
/* set_near by a tree, and by comparing all rows. */
size_t pnet_cuda_near_tree_work(const struct pnet_point_set *a, const struct pnet_point_set *b);
void pnet_cuda_near_tree(
    const struct pnet_point_set *a, const struct pnet_point_set *b, int32_t *near, void *work);
size_t pnet_cuda_near_pairs_work(const struct pnet_point_set *a, const struct pnet_point_set *b);
void pnet_cuda_near_pairs(
    const struct pnet_point_set *a, const struct pnet_point_set *b, int32_t *near, void *work);

/* Makes the boxes of samples, the places, and the tree over finite and other points. */
void pnet_cuda_set_tree_build(
    const struct set_tree *t, const struct pnet_point_set *a, const struct pnet_point_set *b);

#ifdef __cplusplus
}
#endif

#endif
