/* Grids of levels, for all that make levels: of a plan, or of a program's points. */
#ifndef PNET_RUNTIME_GEO_GRIDS_H
#define PNET_RUNTIME_GEO_GRIDS_H

#include "kernels/geometry.h"

/* Are cells of the edge `coarse` a whole multiple of those of the edge `fine`? *factor: which one. */
bool pnet_grid_nests(double coarse, double fine, int32_t *factor);

/* The grid along which points are ordered from which no grid is sampled: its cells are 2^-19 of the largest coordinate of
   xyz [rows, 3], or of PNET_FARTHEST if that is less: points of twice that and more lie beyond the grid. */
struct pnet_grid pnet_grid_of_extent(int64_t rows, const float *xyz);
/* The same of that coordinate. */
struct pnet_grid pnet_grid_of_largest(float coordinate);

#endif
