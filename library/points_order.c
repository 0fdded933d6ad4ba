/* From rows inside to the caller's. */
#include "library/points.h"

void pnet_points_name(int64_t count, const int32_t *order, int32_t *other)
{
    if (!order) return;
#pragma omp parallel for schedule(static)
    for (int64_t n = 0; n < count; n++) other[n] = order[other[n]];
}
