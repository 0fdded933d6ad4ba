/* The layer of conv_layer.h on a GPU. */
#ifndef PNET_BENCH_CONV_CUDA_H
#define PNET_BENCH_CONV_CUDA_H

#include "bench/measure.h"

struct cuda_ceilings {
    double copy; /* bytes read and written in a second */
    double gemm; /* FLOP/s of our own dense product, in the same precision */
};

/* Makes out, gin and gweight of the layer on the GPU, then times the three products: medians, seconds, and the tiles of
   both sets, which are part of the geometry. With narrow features `in` and `gout` are rounded to them first, on the host
   too. `work_bytes` of the layer becomes what the GPU needs. NULL, or what is wrong. */
const char *pnet_bench_conv_cuda_measure(
    struct layer *l, const struct measure_options *o, struct measured *m);

/* What the GPU reaches at best. NULL, or what is wrong. */
const char *pnet_bench_conv_cuda_ceilings(enum pnet_precision precision, struct cuda_ceilings *c);

#endif
