#include "kernels/rows.h"

#include "kernels/halves.h"

#include <omp.h>
#include <string.h>

void pnet_cpu_gather(int64_t n, int32_t words, const void *from, const int32_t *index, void *to)
{
    size_t row = (size_t)words * 4;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)to + (size_t)i * row,
            (const char *)from + (size_t)(index ? index[i] : i) * row, row);
}

void pnet_cpu_gather_features(int64_t n, int32_t width, const float *from, const int32_t *index,
    enum pnet_storage storage, void *to)
{
    (void)storage;
    pnet_cpu_gather(n, width, from, index, to);
}

static int64_t place(const struct pnet_placing *p, int64_t i)
{
    return p->index ? p->index[i / p->each] * p->each + i % p->each : i;
}

void pnet_cpu_rows_out(
    struct pnet_placing p, const void *x, enum pnet_storage storage, const int32_t *from, float *to)
{
    const uint16_t *half = x;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < p.rows; i++) {
        int64_t at = (from ? from[i] : i) * p.width;
        float *row = to + place(&p, i) * p.width;
        if (storage == PNET_STORE_F32) {
            memcpy(row, (const float *)x + at, (size_t)p.width * sizeof *row);
            continue;
        }
        for (int32_t k = 0; k < p.width; k++)
            row[k] = storage == PNET_STORE_BF16 ? pnet_from_bf16(half[at + k])
                                                : pnet_from_fp16(half[at + k]);
    }
}

void pnet_cpu_rows_in(struct pnet_placing p, const float *x, enum pnet_storage storage, void *y)
{
    uint16_t *half = y;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < p.rows; i++) {
        const float *row = x + place(&p, i) * p.width;
        int64_t at = i * p.width;
        if (storage == PNET_STORE_F32) {
            memcpy((float *)y + at, row, (size_t)p.width * sizeof *row);
            continue;
        }
        for (int32_t k = 0; k < p.width; k++)
            half[at + k] = storage == PNET_STORE_BF16 ? pnet_to_bf16(row[k]) : pnet_to_fp16(row[k]);
    }
}

static int few_threads(void)
{
    return omp_get_max_threads() < 4 ? omp_get_max_threads() : 4;
}

void pnet_cpu_copy(void *to, const void *from, size_t bytes)
{
    const size_t part = (size_t)1 << 20;
    int64_t parts = (int64_t)((bytes + part - 1) / part);
#pragma omp parallel for schedule(static) num_threads(few_threads()) if (parts > 1)
    for (int64_t i = 0; i < parts; i++) {
        size_t at = (size_t)i * part, n = bytes - at < part ? bytes - at : part;
        memcpy((char *)to + at, (const char *)from + at, n);
    }
}
