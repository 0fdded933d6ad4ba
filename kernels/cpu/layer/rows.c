#include "kernels/rows.h"

enum { SMALL = 1 << 14 }; /* elements below which threads cost more than they save */

void pnet_cpu_columns_put(
    struct pnet_count count, int32_t c, const float *x, int32_t width, int32_t at, float *y)
{
    int64_t rows = count.most;
#pragma omp parallel for schedule(static) if (rows * c > SMALL)
    for (int64_t row = 0; row < rows; row++) {
        const float *p = x + row * c;
        float *q = y + row * width + at;
#pragma omp simd
        for (int32_t i = 0; i < c; i++) q[i] = p[i];
    }
}

void pnet_cpu_columns_take(struct pnet_count count, int32_t c, const float *x, int32_t width,
    int32_t at, bool add, float *y)
{
    int64_t rows = count.most;
#pragma omp parallel for schedule(static) if (rows * c > SMALL)
    for (int64_t row = 0; row < rows; row++) {
        const float *p = x + row * width + at;
        float *q = y + row * c;
        if (add) {
#pragma omp simd
            for (int32_t i = 0; i < c; i++) q[i] += p[i];
            continue;
        }
#pragma omp simd
        for (int32_t i = 0; i < c; i++) q[i] = p[i];
    }
}
