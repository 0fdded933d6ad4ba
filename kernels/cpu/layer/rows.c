#include "kernels/rows.h"

enum { SMALL = 1 << 14 }; /* elements below which threads cost more than they save */

void pnet_cpu_columns_move(struct pnet_count count, int32_t c, const float *x, int32_t x_width,
    int32_t x_at, bool add, float *y, int32_t y_width, int32_t y_at)
{
    int64_t rows = count.most;
#pragma omp parallel for schedule(static) if (rows * c > SMALL)
    for (int64_t row = 0; row < rows; row++) {
        const float *p = x + row * x_width + x_at;
        float *q = y + row * y_width + y_at;
        if (add) {
#pragma omp simd
            for (int32_t i = 0; i < c; i++) q[i] += p[i];
            continue;
        }
#pragma omp simd
        for (int32_t i = 0; i < c; i++) q[i] = p[i];
    }
}

void pnet_cpu_columns_put(
    struct pnet_count count, int32_t c, const float *x, int32_t width, int32_t at, float *y)
{
    pnet_cpu_columns_move(count, c, x, c, 0, false, y, width, at);
}

void pnet_cpu_columns_take(struct pnet_count count, int32_t c, const float *x, int32_t width,
    int32_t at, bool add, float *y)
{
    pnet_cpu_columns_move(count, c, x, width, at, add, y, c, 0);
}

void pnet_cpu_convert(struct pnet_count n, const float *x, enum pnet_storage to, bool add, float *y)
{
    (void)to; /* the CPU stores float32 */
#pragma omp parallel for simd schedule(static) if (n.most > SMALL)
    for (int64_t i = 0; i < n.most; i++) y[i] = add ? y[i] + x[i] : x[i];
}
