/* What workspaces of losses between point sets depend on. Host arithmetic, in every build. */
#ifndef PNET_KERNELS_CUDA_SETS_WORK_H
#define PNET_KERNELS_CUDA_SETS_WORK_H

#include "kernels/cuda/base/feature_work.h"
#include "kernels/sets.h"

enum {
    SIDES = 2, /* x against y, y against x */
    SAMPLE_PARTS =
        512, /* stretches of rows that all samples of a set have together, at least, if each sample has one */
};

/* How many stretches the rows of each sample are summed in. The bits of a result depend on it. */
static inline int32_t parts_of_sample(int32_t samples)
{
    return samples >= SAMPLE_PARTS || samples <= 0 ? 1 : (SAMPLE_PARTS + samples - 1) / samples;
}

/* Sums over a stretch of rows of a sample, of one side. */
struct judged {
    double distance, square, near, hits, moved, left;
};

#endif
