/* What the losses of kernels/contrastive.h share. */
#ifndef PNET_KERNELS_CPU_MATCHED_H
#define PNET_KERNELS_CPU_MATCHED_H

#include "kernels/contrastive.h"

static inline double matched_distance2(int32_t width, const float *x, const float *y)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int32_t c = 0; c < width; c++) {
        double d = (double)x[c] - (double)y[c];
        sum += d * d;
    }
    return sum;
}

/* Gradients of rows that may come several times: [samples, 2, each], first of a, then of b. They
   are made side by side, then added to their rows in order. */
struct matched_entries {
    int32_t each;
    float *gradient; /* [.., width] */
    int32_t *row;    /* -1: none */
};

size_t pnet_matched_gradient_bytes(const struct pnet_matched *p, int32_t each);
struct matched_entries pnet_matched_entries_of(
    const struct pnet_matched *p, int32_t each, void *work);
void pnet_matched_add_entries(const struct pnet_matched *p, const struct matched_entries *e,
    const struct pnet_matched_gradients *g);

#endif
