/* Weighted sums of rows (kernels/corners.h), compiled for each instruction set. */
#ifndef PNET_KERNELS_CPU_ISA_WEIGHTED_H
#define PNET_KERNELS_CPU_ISA_WEIGHTED_H

#include "kernels/corners.h"

/* pnet_cpu_weighted_rows for the lists first <= list < end. A number is summed in the order of its list, in stretches of
   fixed length, by one multiply-add an entry. */
typedef void pnet_weighted_rows(const struct pnet_weighted *w, int64_t first, int64_t end,
    int32_t c, const float *x, bool add, float *y);

#endif
