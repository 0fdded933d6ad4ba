/* kernels/cpu/layer/pool.h on a GPU: all pointers lead to device memory, those of the structs too. Rows
   between the true number and the most are neither read nor written. */
#ifndef PNET_KERNELS_CUDA_POOL_H
#define PNET_KERNELS_CUDA_POOL_H

#include "kernels/cpu/layer/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

void pnet_cuda_copy_elements(struct pnet_count n, const void *x, void *y);

size_t pnet_cuda_cells_sum_work(int32_t c);
void pnet_cuda_cells_sum(const struct pnet_cells *cells, int32_t c, const float *x, bool mean,
    bool add, float *y, void *work);
void pnet_cuda_cells_spread(
    const struct pnet_cells *cells, int32_t c, const float *x, bool mean, bool add, float *y);
void pnet_cuda_cells_max(
    const struct pnet_cells *cells, int32_t c, const float *x, float *y, int32_t *argmax);
void pnet_cuda_cells_max_backward(const struct pnet_cells *cells, int32_t c, const int32_t *argmax,
    const float *g, bool add, float *gx);
size_t pnet_cuda_cells_majority_work(const struct pnet_cells *cells);
void pnet_cuda_cells_majority(
    const struct pnet_cells *cells, const int32_t *label, int32_t *y, void *work);

size_t pnet_cuda_segments_pool_work(struct pnet_segments s, int32_t c);
void pnet_cuda_segments_sum(
    struct pnet_segments s, int32_t c, const float *x, bool mean, bool add, float *y, void *work);
void pnet_cuda_segments_spread(
    struct pnet_segments s, int32_t c, const float *x, bool mean, bool add, float *y);
void pnet_cuda_segments_max(
    struct pnet_segments s, int32_t c, const float *x, float *y, int32_t *argmax, void *work);
void pnet_cuda_segments_max_backward(
    struct pnet_segments s, int32_t c, const int32_t *argmax, const float *g, bool add, float *gx);

void pnet_cuda_interpolate(const struct pnet_nearest *n, int32_t c, const float *x, float *y);
size_t pnet_cuda_interpolate_backward_work(const struct pnet_nearest *n, int32_t c);
void pnet_cuda_interpolate_backward(
    const struct pnet_nearest *n, int32_t c, const float *g, bool add, float *gx, void *work);

#ifdef __cplusplus
}
#endif

#endif
