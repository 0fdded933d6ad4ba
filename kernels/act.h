/* Activations and element-wise arithmetic. n counts elements. A result may be the same memory as an input (never part of it).
   `add`: add to the result instead of writing it. */
#ifndef PNET_KERNELS_ACT_H
#define PNET_KERNELS_ACT_H

#include "kernels/both.h"
#include "kernels/count.h"
#include "kernels/philox.h"

#include <stdbool.h>

enum pnet_activation { PNET_ACT_NONE, PNET_ACT_RELU, PNET_ACT_LEAKY }; /* leaky: slope below 0 */

/* y = act(x): relu is 0 below 0 and keeps NaN; leaky is slope * x below 0; NONE copies. */
PNET_BOTH(void, act, struct pnet_count n, enum pnet_activation act, float slope, const float *x,
    float *y);

/* The gradient before a fused activation, in place: g *= act'(.), where the sign of the result y gives the sign of the input
   (so slope >= 0). PNET_ACT_NONE changes nothing, and y may be NULL. */
PNET_BOTH(void, act_backward, struct pnet_count n, enum pnet_activation act, float slope,
    const float *y, float *g);

/* The same apart: gx (+)= g * act'(.). */
PNET_BOTH(void, act_gradient, struct pnet_count n, enum pnet_activation act, float slope,
    const float *y, const float *g, bool add, float *gx);

/* y = x * (1 + erf(x / sqrt(2))) / 2 (Hendrycks and Gimpel, 2016), and its gradient from x. */
PNET_BOTH(void, gelu, struct pnet_count n, const float *x, float *y);
PNET_BOTH(
    void, gelu_backward, struct pnet_count n, const float *x, const float *g, bool add, float *gx);

/* y = 1 / (1 + exp(-x)), and its gradient from the result y. */
PNET_BOTH(void, sigmoid, struct pnet_count n, const float *x, float *y);
PNET_BOTH(void, sigmoid_backward, struct pnet_count n, const float *y, const float *g, bool add,
    float *gx);

/* y = value. */
PNET_BOTH(void, fill, struct pnet_count n, float value, float *y);
/* y (+)= scale * x. */
PNET_BOTH(void, scale, struct pnet_count n, float scale, const float *x, bool add, float *y);
/* y = act(a + scale * b). */
PNET_BOTH(void, add, struct pnet_count n, const float *a, const float *b, float scale,
    enum pnet_activation act, float slope, float *y);

/* y[row, c] (+)= a[row, c] * b[row, c], all [rows, width]; with b_width 1: b is [rows, 1]. */
PNET_BOTH(void, mul, struct pnet_count rows, int32_t width, const float *a, const float *b,
    int32_t b_width, bool add, float *y);
/* y[row] (+)= sum over c of a[row, c] * b[row, c]. */
PNET_BOTH(void, row_dot, struct pnet_count rows, int32_t width, const float *a, const float *b,
    bool add, float *y);

/* y[i] (+)= x[i] / (1 - p) where the draw of element i is at least p, else 0 (Srivastava et al.,
   2014). The same call with the gradient for x is the backward pass. */
PNET_BOTH(void, dropout, struct pnet_count n, float p, const struct pnet_rand *rand, const float *x,
    bool add, float *y);

#endif
