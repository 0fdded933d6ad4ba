/* Neighbourhoods of every kind, for clouds of cells of 5 cm. */
#ifndef PNET_TESTS_GEOMETRY_NEIGHBOURHOODS_H
#define PNET_TESTS_GEOMETRY_NEIGHBOURHOODS_H

#include "kernels/geometry.h"

static const struct pnet_neighbourhood neighbourhoods[] = {
    {.kernel = 3, .radius = 0.075f},
    {.kernel = 3, .radius = 0.11f, .shape = PNET_CUBE},
    {.kernel = 5, .radius = 0.2f},
    {.kernel = 7, .radius = 0.15f}, /* more than 256 cells */
    {.kernel = 31, .radius = 0.3f},
    {.kernel = 2, .radius = 0.09f},
    {.kernel = 1, .radius = 0.06f},
    {.kernel = 3, .radius = 1e-7f},
    {.kernel = 3, .radius = 50.0f},
    {.kernel = 3, .radius = 1e-42f},
    {.kernel = 3, .radius = 3e19f}, /* its square is infinite */
    {.kernel = 3, .knn = 1},
    {.kernel = 3, .knn = 9},
    {.kernel = 4, .knn = 40},
    {.kernel = 3, .knn = PNET_KNN_LIMIT},
    {.kernel = 3, .radius = 0.08f, .degrade = PNET_CENTRE},
    {.kernel = 3, .radius = 0.08f, .degrade = PNET_NEIGHBOUR},
    {.kernel = 3, .radius = 0.12f, .degrade = PNET_KERNEL},
    {.kernel = 3, .radius = 0.08f, .degrade = PNET_CENTRE | PNET_NEIGHBOUR},
    {.kernel = 5, .radius = 0.08f, .degrade = PNET_CENTRE | PNET_KERNEL, .shape = PNET_CUBE},
    {.kernel = 3, .radius = 0.08f, .degrade = PNET_NEIGHBOUR | PNET_KERNEL},
    {.kernel = 3, .radius = 0.075f, .degrade = PNET_VOXEL},
    {.kernel = 5, .radius = 0.125f, .degrade = PNET_VOXEL},
    {.kernel = 31, .radius = 0.775f, .degrade = PNET_VOXEL},
    {.kernel = 2, .radius = 0.05f, .degrade = PNET_VOXEL},
    {.kernel = 4, .radius = 0.1f, .degrade = PNET_VOXEL},
};
enum { NEIGHBOURHOODS = sizeof neighbourhoods / sizeof *neighbourhoods };

#endif
