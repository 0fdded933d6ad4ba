/* Optimiser steps on a GPU: kernels/cpu/layer/optim.h says what they do. Pointers lead to device memory; the struct itself
   lies on the host. Kernels are put on the calling thread's stream, and nothing that changes from step to step is an
   argument of theirs: a step can be recorded and replayed. */
#ifndef PNET_KERNELS_CUDA_OPTIM_H
#define PNET_KERNELS_CUDA_OPTIM_H

#include "kernels/cpu/layer/optim.h"

#ifdef __cplusplus
extern "C" {
#endif

size_t pnet_cuda_optim_update_work(int64_t chunk_count);
void pnet_cuda_optim_squares(
    const struct pnet_optim_update *u, int64_t first, int64_t count, void *work);
void pnet_cuda_optim_update(const struct pnet_optim_update *u, void *work);
void pnet_cuda_loss_add(const float *loss, double weight, bool add, double *sum);

#ifdef __cplusplus
}
#endif

#endif
