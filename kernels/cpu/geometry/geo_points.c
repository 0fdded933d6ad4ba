/* Rows that a network generates: so many for each row of another level. */
#include "kernels/geometry_stage.h"

enum { SMALL = 1 << 16 }; /* rows below which threads cost more than they save */

void pnet_cpu_block_parents(int64_t n, int64_t each, int32_t *parent)
{
#pragma omp parallel for schedule(static) if (n > SMALL)
    for (int64_t i = 0; i < n; i++) parent[i] = (int32_t)(i / each);
}

void pnet_cpu_scale_splits(int64_t n, int64_t each, const int64_t *from, int64_t *to)
{
    for (int64_t i = 0; i < n; i++) to[i] = from[i] * each;
}
