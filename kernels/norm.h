/* Normalisation.

   A matrix [rows, c] is cut into segments by splits[segments + 1] (batch norm: one segment of all
   rows; instance and group norm: one a sample). Sums are formed in double over fixed blocks of rows
   and joined in order: they are accurate for any number of rows and the same bits for any number of
   threads. Empty segments are all right.

   The variance is the mean of squares less the square of the mean: its relative error is some
   1e-16 (mean / standard deviation)^2 for few rows, and up to a hundred times that for a million. */
#ifndef PNET_KERNELS_NORM_H
#define PNET_KERNELS_NORM_H

#include "kernels/act.h"
#include "kernels/both.h"
#include "kernels/count.h"
#include "kernels/segments.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One normalisation: y = act((x - mean) * inverse * weight + bias), of a sum act(.. + added), with
   mean and inverse standard deviation per segment and group of channels: [segments, groups];
   groups divides c, and groups == c has one for each channel. */
struct pnet_norm {
    struct pnet_segments segments;
    int32_t c, groups;
    const float *x;      /* [rows, c] */
    const float *weight; /* [c] */
    const float *bias;   /* [c] */
    bool sum;
    const float *added;       /* [rows, c]; forward of a sum only */
    enum pnet_activation act; /* backward only where y is there: `out` */
    float slope;
};

/* Workspace of each of those below that take one. */
PNET_BOTH(size_t, norm_work, const struct pnet_norm *n);

/* mean, and inverse = 1 / sqrt(biased variance + eps), of x. Of an empty segment: 0 and
   1 / sqrt(eps). */
PNET_BOTH(void, norm_statistics, const struct pnet_norm *n, double eps, float *mean, float *inverse,
    void *work);

/* Batch norm: one segment, groups == c. While training, and where there is more than one row, the
   statistics above, and the running ones move: running = (1 - momentum) running + momentum batch,
   with the unbiased variance. Else mean and inverse are made of the running ones: one row has no
   variance. */
struct pnet_running {
    float *mean, *var; /* [c] */
    double momentum;
};
PNET_BOTH(void, batchnorm_statistics, const struct pnet_norm *n, double eps, bool training,
    struct pnet_running running, float *mean, float *inverse, void *work);

/* y [rows, c]; may be x itself. */
PNET_BOTH(void, norm_forward, const struct pnet_norm *n, const float *mean, const float *inverse,
    float *y, void *work);

/* Both in one: statistics, then y. */
PNET_BOTH(void, norm, const struct pnet_norm *n, double eps, float *mean, float *inverse, float *y,
    void *work);
PNET_BOTH(void, batchnorm, const struct pnet_norm *n, double eps, bool training,
    struct pnet_running running, float *mean, float *inverse, float *y, void *work);

/* Gradients from gout [rows, c]. gx [rows, c] may be gout itself where it is written; gx, gweight,
   gbias may be NULL. */
struct pnet_norm_gradient {
    float *gout;
    const float
        *out; /* norm_backward: y [rows, c], whose activation is undone in gout first, which may
                              be written over for it; NULL: there is none to undo */
    int64_t constant_rows; /* mean and inverse of segments of at most this many rows do not depend
                              on x; as 0 elsewhere than in norm_backward */
    float *gx, *gweight, *gbias;
    float *gadded; /* norm_backward of a sum: [rows, c], memory of its own; NULL: not wanted */
    bool gx_add, gweight_add, gbias_add, gadded_add;
};
/* All gradients that `g` names, from gout, with the mean and inverse of the forward pass. */
PNET_BOTH(void, norm_backward, const struct pnet_norm *n, const float *mean, const float *inverse,
    const struct pnet_norm_gradient *g, void *work);

/* The same row by row over all c channels (Ba, Kiros, Hinton, 2016): statistics of each row. */
PNET_BOTH(void, layernorm, struct pnet_count rows, int32_t c, double eps, const float *x,
    const float *weight, const float *bias, enum pnet_activation act, float slope, float *y);
PNET_BOTH(size_t, layernorm_backward_work, struct pnet_count rows, int32_t c);
PNET_BOTH(void, layernorm_backward, struct pnet_count rows, int32_t c, double eps, const float *x,
    const float *weight, const struct pnet_norm_gradient *g, void *work);

/* y = x / max(|x|, eps) row by row, and its gradient. */
PNET_BOTH(void, l2norm, struct pnet_count rows, int32_t c, double eps, const float *x, float *y);
PNET_BOTH(void, l2norm_backward, struct pnet_count rows, int32_t c, double eps, const float *x,
    const float *g, bool add, float *gx);

/* y = softmax of each row, and its gradient from the result y. */
PNET_BOTH(void, softmax, struct pnet_count rows, int32_t c, const float *x, float *y);
PNET_BOTH(void, softmax_backward, struct pnet_count rows, int32_t c, const float *y, const float *g,
    bool add, float *gx);

#endif
