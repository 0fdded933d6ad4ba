/* The gated linear unit with a sigmoid linear unit as its gate (Shazeer, "GLU Variants Improve Transformer", 2020). x is
   [rows, 2 c]: the first c channels of a row gate the last ones. */
#ifndef PNET_KERNELS_SWIGLU_H
#define PNET_KERNELS_SWIGLU_H

#include "kernels/both.h"
#include "kernels/count.h"

#include <stdbool.h>

/* y[row, i] = silu(x[row, i]) * x[row, c + i], with silu(a) = a / (1 + exp(-a)); y is [rows, c]. */
PNET_BOTH(void, swiglu, struct pnet_count rows, int32_t c, const float *x, float *y);

/* The gradient: gx [rows, 2 c] (+)= that of x, from the gradient g [rows, c] of y. */
PNET_BOTH(void, swiglu_backward, struct pnet_count rows, int32_t c, const float *x, const float *g,
    bool add, float *gx);

#endif
