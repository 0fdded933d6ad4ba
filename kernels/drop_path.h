/* Stochastic depth: whole rows, or whole samples, are 0 at random (Huang et al., Deep Networks with Stochastic Depth, 2016). */
#ifndef PNET_KERNELS_DROP_PATH_H
#define PNET_KERNELS_DROP_PATH_H

#include "kernels/both.h"
#include "kernels/philox.h"
#include "kernels/segments.h"

#include <stdbool.h>

enum pnet_drop_each { PNET_DROP_POINT, PNET_DROP_SAMPLE };

/* The number of the draw that decides on a row of a sample, counted from 0 in the batch and in the sample. So what is drawn for a
   sample depends on its place in the whole batch, and not on the rows of other samples. */
PNET_HD uint64_t pnet_drop_number(enum pnet_drop_each each, int32_t sample, int64_t row)
{
    return (uint64_t)sample << 32 | (each == PNET_DROP_POINT ? (uint64_t)row : 0);
}

/* y[row] (+)= x[row] / (1 - p) where the draw of the row is at least p, else 0. x and y are [rows, c], and may be the same
   memory; samples: their rows. The same call with the gradient for x is the backward pass. */
PNET_BOTH(void, drop_path, struct pnet_segments samples, int32_t c, enum pnet_drop_each each,
    float p, const struct pnet_rand *rand, const float *x, bool add, float *y);

#endif
