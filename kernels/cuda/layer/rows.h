/* Columns of matrices moved between matrices, on a GPU: kernels/cpu/layer/rows.h. Pointers lead to device memory; kernels are
   put on the calling thread's stream. */
#ifndef PNET_KERNELS_CUDA_ROWS_H
#define PNET_KERNELS_CUDA_ROWS_H

#include "kernels/cpu/layer/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

void pnet_cuda_columns_put(
    struct pnet_count rows, int32_t c, const float *x, int32_t width, int32_t at, float *y);
void pnet_cuda_columns_take(struct pnet_count rows, int32_t c, const float *x, int32_t width,
    int32_t at, bool add, float *y);

#ifdef __cplusplus
}
#endif

#endif
