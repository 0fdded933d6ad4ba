/* kernels/cpu/layer/gather.h on a GPU: all pointers lead to device memory. */
#ifndef PNET_KERNELS_CUDA_GATHER_H
#define PNET_KERNELS_CUDA_GATHER_H

#include "kernels/precision.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void pnet_cuda_gather(int64_t n, int32_t words, const void *from, const int32_t *index, void *to);
void pnet_cuda_gather_features(int64_t n, int32_t width, const float *from, const int32_t *index,
    enum pnet_storage storage, void *to);

#ifdef __cplusplus
}
#endif

#endif
