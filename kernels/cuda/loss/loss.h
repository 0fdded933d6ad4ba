/* kernels/cpu/loss/loss.h on a GPU: all pointers lead to device memory, those of the structs too, but the
   weights of classes, which are read on the host. Rows between the true number and
   the most are neither read nor written. */
#ifndef PNET_KERNELS_CUDA_LOSS_H
#define PNET_KERNELS_CUDA_LOSS_H

#include "kernels/cpu/loss/loss.h"

#ifdef __cplusplus
extern "C" {
#endif

size_t pnet_cuda_cross_entropy_work(const struct pnet_cross_entropy *e);
void pnet_cuda_cross_entropy(
    const struct pnet_cross_entropy *e, float *loss, float *divisor, void *work);
void pnet_cuda_cross_entropy_backward(const struct pnet_cross_entropy *e, const float *divisor,
    const float *gloss, bool add, float *gx, void *work);

size_t pnet_cuda_focal_work(const struct pnet_focal *f);
void pnet_cuda_focal(const struct pnet_focal *f, float *loss, float *divisor, void *work);
void pnet_cuda_focal_backward(const struct pnet_focal *f, const float *divisor, const float *gloss,
    bool add, float *gx, void *work);

size_t pnet_cuda_dice_work(const struct pnet_dice *d);
void pnet_cuda_dice(const struct pnet_dice *d, float *loss, double *slope, void *work);
void pnet_cuda_dice_backward(const struct pnet_dice *d, const double *slope, const float *gloss,
    bool add, float *gx, void *work);

size_t pnet_cuda_lovasz_work(const struct pnet_targets *t);
void pnet_cuda_lovasz(
    const struct pnet_targets *t, const float *x, float *loss, float *gprob, void *work);
void pnet_cuda_lovasz_backward(struct pnet_count rows, int32_t classes, const float *x,
    const float *gprob, const float *gloss, bool add, float *gx);

size_t pnet_cuda_mse_work(void);
void pnet_cuda_mse(struct pnet_count n, const float *x, const float *y, float *loss, void *work);
void pnet_cuda_mse_backward(
    struct pnet_count n, const float *x, const float *y, const float *gloss, bool add, float *gx);

void pnet_cuda_huber(
    struct pnet_count n, double delta, const float *x, const float *y, float *loss, void *work);
void pnet_cuda_huber_backward(struct pnet_count n, double delta, const float *x, const float *y,
    const float *gloss, bool add, float *gx);
void pnet_cuda_l1(struct pnet_count n, const float *x, const float *y, float *loss, void *work);
void pnet_cuda_l1_backward(
    struct pnet_count n, const float *x, const float *y, const float *gloss, bool add, float *gx);

void pnet_cuda_best_class(struct pnet_count rows, int32_t classes, const float *x, int32_t *best);
size_t pnet_cuda_correct_work(void);
void pnet_cuda_correct(
    const struct pnet_targets *t, const int32_t *best, double correct[2], void *work);
void pnet_cuda_top_k(
    const struct pnet_targets *t, int32_t k, const float *x, double correct[2], void *work);
size_t pnet_cuda_confusion_work(int32_t classes);
void pnet_cuda_confusion(
    const struct pnet_targets *t, const int32_t *best, double *matrix, void *work);

#ifdef __cplusplus
}
#endif

#endif
