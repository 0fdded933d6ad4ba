/* Activations and element-wise arithmetic on a GPU: kernels/cpu/layer/act.h says what they do. Pointers lead to device
   memory; kernels are put on the calling thread's stream. */
#ifndef PNET_KERNELS_CUDA_ACT_H
#define PNET_KERNELS_CUDA_ACT_H

#include "kernels/cpu/layer/act.h"

#ifdef __cplusplus
extern "C" {
#endif

void pnet_cuda_act(
    struct pnet_count n, enum pnet_activation act, float slope, const float *x, float *y);
void pnet_cuda_act_backward(
    struct pnet_count n, enum pnet_activation act, float slope, const float *y, float *g);
void pnet_cuda_act_gradient(struct pnet_count n, enum pnet_activation act, float slope,
    const float *y, const float *g, bool add, float *gx);
void pnet_cuda_gelu(struct pnet_count n, const float *x, float *y);
void pnet_cuda_gelu_backward(
    struct pnet_count n, const float *x, const float *g, bool add, float *gx);
void pnet_cuda_sigmoid(struct pnet_count n, const float *x, float *y);
void pnet_cuda_sigmoid_backward(
    struct pnet_count n, const float *y, const float *g, bool add, float *gx);
void pnet_cuda_fill(struct pnet_count n, float value, float *y);
void pnet_cuda_scale(struct pnet_count n, float scale, const float *x, bool add, float *y);
void pnet_cuda_add(struct pnet_count n, const float *a, const float *b, float scale,
    enum pnet_activation act, float slope, float *y);
void pnet_cuda_mul(struct pnet_count rows, int32_t width, const float *a, const float *b,
    int32_t b_width, bool add, float *y);
void pnet_cuda_row_dot(
    struct pnet_count rows, int32_t width, const float *a, const float *b, bool add, float *y);
void pnet_cuda_dropout(
    struct pnet_count n, float p, const struct pnet_rand *rand, const float *x, bool add, float *y);

#ifdef __cplusplus
}
#endif

#endif
