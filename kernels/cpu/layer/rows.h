/* Columns of matrices moved between matrices, on the CPU. */
#ifndef PNET_KERNELS_CPU_ROWS_H
#define PNET_KERNELS_CPU_ROWS_H

#include "kernels/count.h"

#include <stdbool.h>
#include <stdint.h>

/* y[row, at + c] = x[row, c]; x [rows, c], y [rows, width]. */
void pnet_cpu_columns_put(
    struct pnet_count rows, int32_t c, const float *x, int32_t width, int32_t at, float *y);
/* y[row, c] (+)= x[row, at + c]; x [rows, width], y [rows, c]. */
void pnet_cpu_columns_take(struct pnet_count rows, int32_t c, const float *x, int32_t width,
    int32_t at, bool add, float *y);

#endif
