/* GPU: the caller's arrays of a batch, where they lie on the GPU. On the CPU the caller of kernels reads them itself. */
#ifndef PNET_KERNELS_ARRAYS_H
#define PNET_KERNELS_ARRAYS_H

#include <stdbool.h>
#include <stdint.h>

/* to[i] = from[i] for i < n: classes, int32 or int64 (`wide`), as int32. Returns the first row whose class is none of
   -1 .. classes - 1; -1: there is none. work: 8 bytes */
int64_t pnet_cuda_classes_take(
    int64_t n, const void *from, bool wide, int32_t classes, int32_t *to, void *work);

/* Returns the largest size of n numbers, 0 of none; NaN do not count. work: 4 bytes */
float pnet_cuda_largest(int64_t n, const float *x, void *work);

#endif
