#include "kernels/cpu/gather.h"

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
