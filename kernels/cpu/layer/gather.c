#include "kernels/rows.h"

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
