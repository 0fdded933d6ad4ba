/* MVMR, VVOR and the dense products on the GPU: what kernels/cpu/conv/conv.h says, with pointers to device memory. The structs
   themselves, and what they point to as struct pnet_triplets, lie on the host. */
#ifndef PNET_KERNELS_CUDA_CONV_H
#define PNET_KERNELS_CUDA_CONV_H

#include "kernels/cpu/conv/conv.h"

size_t pnet_cuda_mvmr_work(
    const struct pnet_triplets *t, struct pnet_conv_shape s, enum pnet_precision precision);
void pnet_cuda_mvmr(const struct pnet_mvmr *m, void *work);
/* The same by the kernels of layers of many rows, however few there are: for tests and benchmarks. */
void pnet_cuda_mvmr_whole(const struct pnet_mvmr *m, void *work);
/* Does the kernel that is chosen for such a set and layer read the set's tiles, and the triplets only where a tile lists
   nothing? Without a GPU: as on those that this program has all its kernels for. */
bool pnet_cuda_mvmr_tiled(int32_t cells, struct pnet_conv_shape s, enum pnet_precision precision,
    enum pnet_conv_algo algo);
bool pnet_cuda_vvor_tiled(int32_t cells, struct pnet_conv_shape s, enum pnet_precision precision,
    enum pnet_conv_algo algo);

size_t pnet_cuda_vvor_work(
    const struct pnet_triplets *t, struct pnet_conv_shape s, enum pnet_precision precision);
void pnet_cuda_vvor(const struct pnet_vvor *v, void *work);
size_t pnet_cuda_gemm_work(
    struct pnet_count n, int32_t cin, int32_t cout, enum pnet_precision precision);
void pnet_cuda_gemm(const struct pnet_gemm *g, void *work);
void pnet_cuda_gemm_whole(const struct pnet_gemm *g, void *work);
size_t pnet_cuda_outer_work(
    struct pnet_count n, int32_t cin, int32_t cout, enum pnet_precision precision);
void pnet_cuda_outer(const struct pnet_outer *o, void *work);
size_t pnet_cuda_column_sum_work(struct pnet_count n, int32_t c);
void pnet_cuda_column_sum(
    struct pnet_count n, int32_t c, const float *x, bool add, float *sum, void *work);

#endif
