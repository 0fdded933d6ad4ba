/* Rows picked out of a matrix, on the CPU. */
#ifndef PNET_KERNELS_CPU_GATHER_H
#define PNET_KERNELS_CPU_GATHER_H

#include "kernels/precision.h"

#include <stddef.h>
#include <stdint.h>

/* to[i] = from[index[i]] for i < n, rows of `words` 32-bit words; index NULL: from[i]. With words == 1 `to` may be
   `index` itself. */
void pnet_cpu_gather(int64_t n, int32_t words, const void *from, const int32_t *index, void *to);

/* The same for float32 features that are stored otherwise from then on (on a GPU; here as they are). */
void pnet_cpu_gather_features(int64_t n, int32_t width, const float *from, const int32_t *index,
    enum pnet_storage storage, void *to);

/* memcpy by up to four threads: one alone does not reach the rate of the memory. */
void pnet_cpu_copy(void *to, const void *from, size_t bytes);

#endif
