#include "kernels/conv.h"

#include <string.h>
#include "kernels/cpu/conv/conv_row_block.h"

/* Sums of BLOCK_ROWS rows are added up in a chunk, chunks in the end: rounding grows with the
   length of the longest of these sums, not with n. */
enum { CHUNKS = 64, BLOCK_ROWS = 256, COLUMNS = 64 };

static int64_t chunk_rows(int64_t n)
{
    int64_t blocks = (n + BLOCK_ROWS - 1) / BLOCK_ROWS;
    return (blocks + CHUNKS - 1) / CHUNKS * BLOCK_ROWS;
}

size_t pnet_cpu_column_sum_work(struct pnet_count n, int32_t c)
{
    (void)n;
    return 64 + (size_t)CHUNKS * (size_t)c * sizeof(float);
}

static void sum_block(int64_t rows, int32_t c, const float *x, float *sum)
{
    for (int32_t first = 0; first < c; first += COLUMNS) {
        int32_t width = c - first < COLUMNS ? c - first : COLUMNS;
        float part[COLUMNS] = {0};
        for (int64_t r = 0; r < rows; r++) {
            const float *from = x + r * c + first;
            for (int32_t i = 0; i < width; i++) part[i] += from[i];
        }
        for (int32_t i = 0; i < width; i++) sum[first + i] += part[i];
    }
}

void pnet_cpu_column_sum(
    struct pnet_count count, int32_t c, const float *x, bool add, float *sum, void *work)
{
    int64_t n = count.most;
    float *partial = pnet_align64_pointer(work);
    int64_t step = chunk_rows(n), chunks = n > 0 ? (n + step - 1) / step : 0;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < chunks; i++) {
        float *to = partial + i * c;
        int64_t end = (i + 1) * step < n ? (i + 1) * step : n;
        memset(to, 0, (size_t)c * sizeof *to);
        for (int64_t row = i * step; row < end; row += BLOCK_ROWS)
            sum_block(end - row < BLOCK_ROWS ? end - row : BLOCK_ROWS, c, x + row * c, to);
    }
    for (int32_t i = 0; i < c; i++) {
        float total = 0;
        for (int64_t k = 0; k < chunks; k++) total += partial[k * c + i];
        sum[i] = add ? sum[i] + total : total;
    }
}
