/* Rows picked out of a matrix, on the CPU. */
#ifndef PNET_KERNELS_CPU_GATHER_H
#define PNET_KERNELS_CPU_GATHER_H

#include <stdint.h>

/* to[i] = from[index[i]] for i < n, rows of `words` 32-bit words; index NULL: from[i]. With words == 1 `to` may be
   `index` itself. */
void pnet_cpu_gather(int64_t n, int32_t words, const void *from, const int32_t *index, void *to);

#endif
