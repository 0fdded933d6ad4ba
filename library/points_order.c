/* From rows inside to the caller's. */
#include "library/points.h"

#include <string.h>

void pnet_points_place_starts(
    int64_t rows, const int32_t *order, const int64_t *start, int64_t *to_start)
{
    to_start[0] = 0;
    for (int64_t row = 0; row < rows; row++) to_start[order[row] + 1] = start[row + 1] - start[row];
    for (int64_t row = 0; row < rows; row++) to_start[row + 1] += to_start[row];
}

void pnet_points_place_lists(int64_t rows, const int32_t *order, const int64_t *start,
    const int64_t *to_start, size_t size, const void *from, void *to)
{
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; row++)
        memcpy((char *)to + (size_t)to_start[order[row]] * size,
            (const char *)from + (size_t)start[row] * size,
            (size_t)(start[row + 1] - start[row]) * size);
}

void pnet_points_name(int64_t count, const int32_t *order, int32_t *other)
{
    if (!order) return;
#pragma omp parallel for schedule(static)
    for (int64_t n = 0; n < count; n++) other[n] = order[other[n]];
}
