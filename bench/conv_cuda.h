/* The layer of conv_layer.h on a GPU. */
#ifndef PNET_BENCH_CONV_CUDA_H
#define PNET_BENCH_CONV_CUDA_H

#include "bench/conv_layer.h"

struct cuda_ceilings {
    double copy; /* bytes read and written in a second */
    double gemm; /* FLOP/s of our own dense product, in the same precision */
};

/* Makes out, gin and gweight of the layer on the GPU, then times the three products: medians, seconds. `tiles`:
   how long the tiles of both sets take, which are part of the geometry. `work_bytes` becomes what the GPU needs. NULL,
   or what is wrong. */
const char *conv_cuda_measure(struct layer *l, enum pnet_precision precision, int repeat,
    double time[3], double *tiles, struct cuda_ceilings *ceilings);

#endif
