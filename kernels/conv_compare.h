/* The algorithms of kernels/conv_algo.h beside the usual ones, on either device. On the CPU each thread owns columns of the
   result, so that the same bits come out for any number of threads.

   Workspaces: as those of kernels/conv.h, of every batch of a capacity class; at most some 64 MiB, unless the matrices of a
   layer take more: im2col, groups, a transposed weight and swapped sets need a copy of the weight, as one matrix
   [cin, cout] a cell. */
#ifndef PNET_KERNELS_CONV_COMPARE_H
#define PNET_KERNELS_CONV_COMPARE_H

#include "kernels/conv.h"

/* Triplets [first, first + most) of the set, as many of them as there are, sorted for `algo`: in `memory`, which takes
   list_bytes(most); list_work(most) bytes of workspace are free again afterwards. */
PNET_BOTH(size_t, conv_list_bytes, int64_t count);
PNET_BOTH(size_t, conv_list_work, int64_t count);
PNET_BOTH(struct pnet_conv_list, conv_list, const struct pnet_triplets *t, enum pnet_conv_algo algo,
    int64_t first, int64_t most, void *memory, void *work);

/* Any algorithm; that of mvmr_work and vvor_work for the usual ones. */
PNET_BOTH(size_t, mvmr_algo_work, enum pnet_conv_algo algo, const struct pnet_triplets *t,
    struct pnet_conv_shape s, enum pnet_precision precision);
PNET_BOTH(size_t, vvor_algo_work, enum pnet_conv_algo algo, const struct pnet_triplets *t,
    struct pnet_conv_shape s, enum pnet_precision precision);
/* Where mvmr and vvor turn to for the others. */
PNET_BOTH(void, mvmr_algo, const struct pnet_mvmr *m, void *work);
PNET_BOTH(void, vvor_algo, const struct pnet_vvor *v, void *work);

#ifdef __cplusplus
extern "C" {
#endif

/* Triplets of a chunk: what buffers of `bytes` a triplet leave room for. Never fewer for more triplets. */
int64_t pnet_conv_chunk(int64_t count, int64_t bytes);

#ifdef __cplusplus
}
#endif

#endif
