#include "runtime/geo/grids.h"

#include <math.h>

bool pnet_grid_nests(double coarse, double fine, int32_t *factor)
{
    double ratio = coarse / fine, whole = round(ratio);
    if (!(whole >= 1 && whole <= 1 << 20)) return false;
    *factor = (int32_t)whole;
    return fabs(ratio - whole) <= 1e-6 * whole;
}

struct pnet_grid pnet_grid_of_extent(int64_t rows, const float *xyz)
{
    float largest = 0;
    for (int64_t i = 0; i < 3 * rows; i++) largest = fmaxf(largest, fabsf(xyz[i]));
    return pnet_grid_of_largest(largest);
}

struct pnet_grid pnet_grid_of_largest(float coordinate)
{
    float base = fminf(fmaxf(coordinate, 1e-6f), (float)PNET_FARTHEST) / (1 << 19);
    return (struct pnet_grid){base, (float)(1 / (double)base), 1};
}
