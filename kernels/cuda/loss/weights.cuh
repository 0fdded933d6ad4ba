/* Weights of classes by value, as an argument of a kernel: a recorded launch keeps them. */
#ifndef PNET_KERNELS_CUDA_WEIGHTS_CUH
#define PNET_KERNELS_CUDA_WEIGHTS_CUH

#include "kernels/loss.h"

#include <cstdio>
#include <cstdlib>

struct class_weights {
    bool given;
    double of[PNET_CLASS_WEIGHTS];
};

/* weight [classes] or NULL. */
static inline struct class_weights class_weights_of(const double *weight, int32_t classes)
{
    struct class_weights w = {weight != nullptr, {}};
    if (w.given && classes > PNET_CLASS_WEIGHTS) {
        fprintf(stderr, "kernels/cuda/loss/weights.cuh: weights of %d classes, at most %d\n",
            (int)classes, (int)PNET_CLASS_WEIGHTS);
        abort();
    }
    for (int32_t c = 0; w.given && c < classes; c++) w.of[c] = weight[c];
    return w;
}

static __device__ __forceinline__ double weight_of(const struct class_weights &w, int32_t c)
{
    return w.given ? w.of[c] : 1;
}

#endif
