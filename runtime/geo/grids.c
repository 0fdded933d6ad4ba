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
    float extent = 1e-6f;
    for (int64_t i = 0; i < 3 * rows; i++) extent = fmaxf(extent, fabsf(xyz[i]));
    float base = extent / (1 << 19);
    return (struct pnet_grid){base, (float)(1 / (double)base), 1};
}
