/* Code that the losses of kernels/contrastive.h share: the drawn rows side by side in float32, and gradients of rows
   that may come several times. */
#ifndef PNET_KERNELS_CUDA_MATCHED_CUH
#define PNET_KERNELS_CUDA_MATCHED_CUH

#include "kernels/contrastive.h"
#include "kernels/cuda/base/levels.cuh"
#include "kernels/cuda/base/storage.cuh"

static const unsigned WHOLE_WARP = 0xffffffffu;

/* Drawn rows of both sides, [samples, each]: those of a in front. -1: none. */
struct matched_rows {
    int32_t each, of_a;
    int32_t *row;
    float *feature; /* [samples, each, width] */
};

/* Copies the features of the rows. */
void pnet_cuda_matched_gather(const struct pnet_matched *p, const struct matched_rows *r);

/* Gradients of rows, [samples, 2, each], first of a, then of b, as on the CPU. */
struct matched_entries {
    int32_t each;
    int32_t *row; /* -1: none */
    float *gradient;
};

struct matched_entries pnet_cuda_matched_entries_of(
    const struct pnet_matched *p, int32_t each, void *work);
/* Adds them up, those of one row in order. */
void pnet_cuda_matched_add_entries(const struct pnet_matched *p, const struct matched_entries *e,
    const struct pnet_matched_gradients *g);

static __device__ __forceinline__ struct pnet_rand rand_now(const struct pnet_matched &p)
{
    struct pnet_rand r = p.rand;
    if (r.live) r.a = *r.live;
    return r;
}

static __device__ __forceinline__ double distance2(
    int32_t width, const float *__restrict__ x, const float *__restrict__ y)
{
    double sum = 0;
    for (int32_t c = 0; c < width; c++) {
        double d = (double)x[c] - (double)y[c];
        sum += d * d;
    }
    return sum;
}

#endif
