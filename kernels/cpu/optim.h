/* Optimiser steps on flat arrays. All arrays are float [n] and do not overlap. The bits do not
   depend on the number of threads. Nothing allocates. `scale` multiplies the gradient as it is
   read: clipping, loss scaling and averaging take no pass of their own. */
#ifndef PNET_KERNELS_CPU_OPTIM_H
#define PNET_KERNELS_CPU_OPTIM_H

#include <stdbool.h>
#include <stdint.h>

/* g' = scale g + decay w;  v = momentum v + g';  w -= lr v, or lr (g' + momentum v) with nesterov
   (Sutskever, Martens, Dahl, Hinton, 2013, in the form of PyTorch without dampening). v starts as
   0; it may be NULL where momentum is 0. */
struct pnet_sgd_step {
    float scale, lr, momentum, decay;
    bool nesterov;
};
void pnet_cpu_sgd(int64_t n, const struct pnet_sgd_step *s, const float *g, float *w, float *v);

/* g' = scale g + decay w;  w = keep w;  m += (1 - beta1) (g' - m);  v = beta2 v + (1 - beta2) g'^2;
   w -= rate m / (sqrt(v) inverse_root + eps)
   with rate = lr / (1 - beta1^t), inverse_root = 1 / sqrt(1 - beta2^t) at step t = 1, 2, ...
   (Kingma and Ba, 2015). Decoupled decay (AdamW: Loshchilov and Hutter, 2019) is keep = 1 - lr *
   weight decay with decay = 0. m and v start as 0. */
struct pnet_adam_step {
    float scale, rate, inverse_root, eps, decay, keep;
    float beta1_rest, beta2, beta2_rest; /* 1 - beta1, beta2, 1 - beta2 */
};
void pnet_cpu_adam(
    int64_t n, const struct pnet_adam_step *s, const float *g, float *w, float *m, float *v);

/* The sum of the squares of g[n], in double. Not finite exactly where some g is not: the square of
   a float does not overflow a double, nor do 2^63 of them. */
double pnet_cpu_square_sum(int64_t n, const float *g);

#endif
