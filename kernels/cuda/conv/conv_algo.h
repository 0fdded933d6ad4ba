/* The algorithms of kernels/conv_algo.h on the GPU: what kernels/cpu/conv/conv_algo.h says, with pointers to device memory. */
#ifndef PNET_KERNELS_CUDA_CONV_ALGO_H
#define PNET_KERNELS_CUDA_CONV_ALGO_H

#include "kernels/cpu/conv/conv_algo.h"

size_t pnet_cuda_conv_list_bytes(int64_t count);
size_t pnet_cuda_conv_list_work(int64_t count);
struct pnet_conv_list pnet_cuda_conv_list(const struct pnet_triplets *t, enum pnet_conv_algo algo,
    int64_t first, int64_t most, void *memory, void *work);

size_t pnet_cuda_mvmr_algo_work(enum pnet_conv_algo algo, const struct pnet_triplets *t,
    struct pnet_conv_shape s, enum pnet_precision precision);
void pnet_cuda_mvmr_algo(const struct pnet_mvmr *m, void *work);
size_t pnet_cuda_vvor_algo_work(enum pnet_conv_algo algo, const struct pnet_triplets *t,
    struct pnet_conv_shape s, enum pnet_precision precision);
void pnet_cuda_vvor_algo(const struct pnet_vvor *v, void *work);

#endif
