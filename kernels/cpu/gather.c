#include "kernels/cpu/gather.h"

#include <string.h>

void pnet_cpu_gather(int64_t n, int32_t words, const void *from, const int32_t *index, void *to)
{
    size_t row = (size_t)words * 4;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)to + (size_t)i * row, (const char *)from + (size_t)(index ? index[i] : i) * row, row);
}
