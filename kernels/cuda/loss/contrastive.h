/* kernels/cpu/loss/contrastive.h on a GPU: all pointers lead to device memory, those inside of the structs as well; features
   and their gradients lie there as the storage of a_rows and b_rows says. Draws are the same. Nothing waits. */
#ifndef PNET_KERNELS_CUDA_CONTRASTIVE_H
#define PNET_KERNELS_CUDA_CONTRASTIVE_H

#include "kernels/cpu/loss/contrastive.h"

#ifdef __cplusplus
extern "C" {
#endif

size_t pnet_cuda_hardest_work(const struct pnet_hardest *h, bool backward);
void pnet_cuda_hardest(
    const struct pnet_hardest *h, int32_t *mined, float *sizes, float *loss, void *work);
void pnet_cuda_hardest_backward(const struct pnet_hardest *h, const int32_t *mined,
    const float *sizes, const float *gloss, const struct pnet_matched_gradients *g, void *work);

size_t pnet_cuda_circle_work(const struct pnet_circle *c, bool backward);
void pnet_cuda_circle(const struct pnet_circle *c, int32_t *drawn, double *sums, float *sizes,
    float *loss, void *work);
void pnet_cuda_circle_backward(const struct pnet_circle *c, const int32_t *drawn,
    const double *sums, const float *sizes, const float *gloss,
    const struct pnet_matched_gradients *g, void *work);

#ifdef __cplusplus
}
#endif

#endif
