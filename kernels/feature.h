/* Nearest rows in feature space: what matching of clouds by learned features searches through. On the CPU alone. */
#ifndef PNET_KERNELS_FEATURE_H
#define PNET_KERNELS_FEATURE_H

#include <stddef.h>
#include <stdint.h>

/* For each row of a [rows, width] the row of b [others, width] with the least sum over channels of (a - b)^2, added
   in the order of the channels in float32; the lowest row among equals. nearest[rows] is -1 where no distance is
   finite (no rows in b, NaN). Every pair is looked at: 2 * rows * others * width operations, on all threads, the
   same bits for any number of them. Allocates nothing; `work` is aligned to 64. */
size_t pnet_cpu_feature_nearest_work(int64_t others, int32_t width);
void pnet_cpu_feature_nearest(int64_t rows, const float *a, int64_t others, const float *b,
    int32_t width, int32_t *nearest, void *work);

#endif
