/* The algorithms of kernels/conv_algo.h on the CPU. Each thread owns columns of the result, so that the same bits come out
   for any number of threads.

   Workspaces: bytes for any alignment of `work`, OpenMP's current number of threads and every batch of a capacity class;
   at most some 64 MiB, unless the matrices of a layer take more: im2col, groups, a transposed weight and swapped sets need
   a copy of the weight, as one matrix [cin, cout] a cell. */
#ifndef PNET_KERNELS_CPU_CONV_ALGO_H
#define PNET_KERNELS_CPU_CONV_ALGO_H

#include "kernels/cpu/conv/conv.h"

/* Triplets [first, first + most) of the set, as many of them as there are, sorted for `algo`: in `memory`, which takes
   list_bytes(most); list_work(most) bytes of workspace are free again afterwards. */
size_t pnet_cpu_conv_list_bytes(int64_t count);
size_t pnet_cpu_conv_list_work(int64_t count);
struct pnet_conv_list pnet_cpu_conv_list(const struct pnet_triplets *t, enum pnet_conv_algo algo,
    int64_t first, int64_t most, void *memory, void *work);

/* Any algorithm; that of pnet_cpu_mvmr_work for the usual ones. */
size_t pnet_cpu_mvmr_algo_work(enum pnet_conv_algo algo, const struct pnet_triplets *t,
    struct pnet_conv_shape s, enum pnet_precision precision);
size_t pnet_cpu_vvor_algo_work(enum pnet_conv_algo algo, const struct pnet_triplets *t,
    struct pnet_conv_shape s, enum pnet_precision precision);
/* Where pnet_cpu_mvmr and pnet_cpu_vvor turn to for the others. */
void pnet_cpu_mvmr_algo(const struct pnet_mvmr *m, void *work);
void pnet_cpu_vvor_algo(const struct pnet_vvor *v, void *work);

/* Triplets of a stretch: what buffers of `bytes` a triplet leave room for. Never fewer for more triplets. */
int64_t pnet_conv_stretch(int64_t count, int64_t bytes);

#endif
