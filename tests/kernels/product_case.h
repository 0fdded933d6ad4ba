/* Dense products by plain loops in double. */
#ifndef PNET_TESTS_KERNELS_PRODUCT_CASE_H
#define PNET_TESTS_KERNELS_PRODUCT_CASE_H

#include "tests/kernels/conv_case.h"

struct product {
    int64_t n;
    int32_t cin, cout;
};

/* x w + bias, activated (leaky: 0.25), on top of `old`: [n][cout], to be freed. `bias` and `old` may be NULL. */
static inline double *product_gemm(struct product p, const float *x, const float *w,
    bool transposed, const float *bias, const float *old, enum pnet_activation act)
{
    double *want = conv_alloc((size_t)p.n * (size_t)p.cout * sizeof *want);
    for (int64_t i = 0; i < p.n; i++) {
        for (int32_t b = 0; b < p.cout; b++) {
            double sum = bias ? (double)bias[b] : 0;
            for (int32_t a = 0; a < p.cin; a++)
                sum += (double)x[i * p.cin + a] *
                       (double)(transposed ? w[b * p.cin + a] : w[a * p.cout + b]);
            if (sum < 0 && act == PNET_ACT_RELU) sum = 0;
            if (sum < 0 && act == PNET_ACT_LEAKY) sum *= 0.25;
            want[i * p.cout + b] = sum + (old ? (double)old[i * p.cout + b] : 0);
        }
    }
    return want;
}

/* The sum of outer products of rows of x and g, on top of `old`: [cin][cout], transposed [cout][cin], to be freed. */
static inline double *product_outer(
    struct product p, const float *x, const float *g, bool transposed, const float *old)
{
    size_t size = (size_t)p.cin * (size_t)p.cout;
    double *want = conv_alloc(size * sizeof *want);
    for (size_t at = 0; at < size; at++) want[at] = old ? (double)old[at] : 0;
    for (int64_t i = 0; i < p.n; i++)
        for (int32_t a = 0; a < p.cin; a++)
            for (int32_t b = 0; b < p.cout; b++)
                want[transposed ? b * p.cin + a : a * p.cout + b] +=
                    (double)x[i * p.cin + a] * (double)g[i * p.cout + b];
    return want;
}

#endif
