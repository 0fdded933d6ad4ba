/* One layer on one device: checked against double first, then timed. */
#ifndef PNET_BENCH_MEASURE_H
#define PNET_BENCH_MEASURE_H

#include "bench/conv_layer.h"

enum { PRODUCTS = 3 };                                 /* forward, dF, dW */
extern const char *const pnet_bench_product_names[];   /* [PRODUCTS] */
extern const char *const pnet_bench_precision_names[]; /* by enum pnet_precision */

struct measure_options {
    bool cuda;
    enum pnet_precision precision;
    bool narrow; /* GPU: features in the 16 bits of bf16 or fp16 */
    int repeat;  /* timed runs, of which the median is taken */
};

/* Times in seconds. */
struct measured {
    int64_t rows, triplets, runs;
    struct pnet_conv_shape shape;
    double work;       /* useful: 2 T Cin Cout / groups, in FLOP */
    size_t work_bytes; /* of the workspace that the three products share */
    double error[PRODUCTS], time[PRODUCTS];
    double tiles; /* GPU: seconds for both sets */
};

/* NULL, or why there is nothing to measure. */
const char *pnet_bench_measure_layer(
    const struct measure_options *o, struct layer *l, struct measured *m);
/* The first product whose relative error is above what kernels/precision.h promises, or NULL. */
const char *pnet_bench_measure_wrong(const struct measured *m, enum pnet_precision precision);

/* Parses "fp32", "tf32", "bf16", "fp16". */
bool pnet_bench_measure_precision(const char *text, enum pnet_precision *precision);
/* Chooses the storage of features: 16 or 32 bits, 0 for what sessions have. NULL, or what is wrong with it. */
const char *pnet_bench_measure_storage(struct measure_options *o, int bits);
/* Median seconds of `repeat` runs on the CPU. */
double pnet_bench_measure_median(struct layer *l, void (*product)(struct layer *), int repeat);

#endif
