/* How orders are made, for measurements: the result is that of pnet_cuda_bucket_order. */
#ifndef PNET_KERNELS_CUDA_GEO_BUCKET_H
#define PNET_KERNELS_CUDA_GEO_BUCKET_H

#include "kernels/order.h"

enum pnet_bucket_way {
    PNET_BUCKET_APART,  /* a launch for each pass of the sort */
    PNET_BUCKET_JOINED, /* one launch for all of them */
    PNET_BUCKET_CUB,    /* the sort of CUB, by all 63 bits that a key may have */
    PNET_BUCKET_WAYS
};

#ifdef __cplusplus
extern "C" {
#endif

/* Does the first `steps` of an order: extents, keys, then the launches of the sort (CUB: all at once). Returns how many steps it
   has, most of which do nothing where keys are short. */
int pnet_cuda_bucket_order_steps(const struct pnet_level *level, struct pnet_grid grid,
    enum pnet_order order, int32_t bucket, int32_t *row, void *work, enum pnet_bucket_way way,
    int steps);

#ifdef __cplusplus
}
#endif

#endif
