/* Activations and element-wise arithmetic on the CPU. n counts elements. A result may be the same
   memory as an input (never part of it). `add`: add to the result instead of writing it. The bits
   do not depend on the number of threads. Nothing allocates. */
#ifndef PNET_KERNELS_CPU_ACT_H
#define PNET_KERNELS_CPU_ACT_H

#include "kernels/count.h"
#include "kernels/cpu/conv/conv.h"
#include "kernels/philox.h"

/* y = act(x): relu is 0 below 0 and keeps NaN; leaky is slope * x below 0; NONE copies. */
void pnet_cpu_act(
    struct pnet_count n, enum pnet_activation act, float slope, const float *x, float *y);

/* The gradient before a fused activation, in place: g *= act'(.), told by the sign of the result y
   (so slope >= 0). Nothing happens for PNET_ACT_NONE (y may be NULL then). */
void pnet_cpu_act_backward(
    struct pnet_count n, enum pnet_activation act, float slope, const float *y, float *g);

/* The same apart: gx (+)= g * act'(.). */
void pnet_cpu_act_gradient(struct pnet_count n, enum pnet_activation act, float slope,
    const float *y, const float *g, bool add, float *gx);

/* y = x * (1 + erf(x / sqrt(2))) / 2 (Hendrycks and Gimpel, 2016), and its gradient from x. */
void pnet_cpu_gelu(struct pnet_count n, const float *x, float *y);
void pnet_cpu_gelu_backward(
    struct pnet_count n, const float *x, const float *g, bool add, float *gx);

/* y = 1 / (1 + exp(-x)), and its gradient from the result y. */
void pnet_cpu_sigmoid(struct pnet_count n, const float *x, float *y);
void pnet_cpu_sigmoid_backward(
    struct pnet_count n, const float *y, const float *g, bool add, float *gx);

/* y = value. */
void pnet_cpu_fill(struct pnet_count n, float value, float *y);
/* y (+)= scale * x. */
void pnet_cpu_scale(struct pnet_count n, float scale, const float *x, bool add, float *y);
/* y = act(a + scale * b). */
void pnet_cpu_add(struct pnet_count n, const float *a, const float *b, float scale,
    enum pnet_activation act, float slope, float *y);

/* y[row, c] (+)= a[row, c] * b[row, c], all [rows, width]; with b_width 1: b is [rows, 1]. */
void pnet_cpu_mul(struct pnet_count rows, int32_t width, const float *a, const float *b,
    int32_t b_width, bool add, float *y);
/* y[row] (+)= sum over c of a[row, c] * b[row, c]. */
void pnet_cpu_row_dot(
    struct pnet_count rows, int32_t width, const float *a, const float *b, bool add, float *y);

/* y[i] (+)= x[i] / (1 - p) where the draw of element i is at least p, else 0 (Srivastava et al.,
   2014). The same call with the gradient for x is the backward pass. */
void pnet_cpu_dropout(
    struct pnet_count n, float p, const struct pnet_rand *rand, const float *x, bool add, float *y);

#endif
