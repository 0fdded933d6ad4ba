/* Normalisation on a GPU, and the sums over segments of rows that it is made of: kernels/cpu/norm/norm.h says what they do.
   Pointers lead to device memory, those inside of structs too; the structs themselves lie on the host. Kernels are put
   on the calling thread's stream. Workspaces are aligned to 16 bytes. */
#ifndef PNET_KERNELS_CUDA_NORM_H
#define PNET_KERNELS_CUDA_NORM_H

#include "kernels/cpu/norm/norm.h"

#ifdef __cplusplus
extern "C" {
#endif

size_t pnet_cuda_segment_sums_work(struct pnet_segments s, int32_t c);
void pnet_cuda_segment_sums(struct pnet_segments s, int32_t c, const float *a, const float *b,
    double *sum, double *sum_ab, void *work);

size_t pnet_cuda_norm_work(const struct pnet_norm *n);
void pnet_cuda_norm_statistics(
    const struct pnet_norm *n, double eps, float *mean, float *inverse, void *work);
void pnet_cuda_batchnorm_statistics(const struct pnet_norm *n, double eps, bool training,
    struct pnet_running running, float *mean, float *inverse, void *work);
void pnet_cuda_norm_forward(
    const struct pnet_norm *n, const float *mean, const float *inverse, float *y, void *work);
void pnet_cuda_norm(
    const struct pnet_norm *n, double eps, float *mean, float *inverse, float *y, void *work);
void pnet_cuda_batchnorm(const struct pnet_norm *n, double eps, bool training,
    struct pnet_running running, float *mean, float *inverse, float *y, void *work);
void pnet_cuda_norm_backward(const struct pnet_norm *n, const float *mean, const float *inverse,
    const struct pnet_norm_gradient *g, void *work);

void pnet_cuda_layernorm(struct pnet_count rows, int32_t c, double eps, const float *x,
    const float *weight, const float *bias, enum pnet_activation act, float slope, float *y);
size_t pnet_cuda_layernorm_backward_work(struct pnet_count rows, int32_t c);
void pnet_cuda_layernorm_backward(struct pnet_count rows, int32_t c, double eps, const float *x,
    const float *weight, const struct pnet_norm_gradient *g, void *work);

void pnet_cuda_l2norm(struct pnet_count rows, int32_t c, double eps, const float *x, float *y);
void pnet_cuda_l2norm_backward(struct pnet_count rows, int32_t c, double eps, const float *x,
    const float *g, bool add, float *gx);
void pnet_cuda_softmax(struct pnet_count rows, int32_t c, const float *x, float *y);
void pnet_cuda_softmax_backward(
    struct pnet_count rows, int32_t c, const float *y, const float *g, bool add, float *gx);

#ifdef __cplusplus
}
#endif

#endif
