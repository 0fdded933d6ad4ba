/* Voxel indices and their keys: the arithmetic that every geometry file shares. */
#ifndef PNET_KERNELS_CPU_GEO_GRID_H
#define PNET_KERNELS_CPU_GEO_GRID_H

#include "kernels/geometry.h"
#include "kernels/morton.h"

struct pnet_voxel {
    int32_t at[3];
};

/* Returns the index of the voxel of coordinate `p` (metres) on one axis, clamped to the key range. Sets `inside` to false if
   it was clamped, and leaves it unchanged otherwise. */
static inline int32_t pnet_voxel_index(float p, struct pnet_grid grid, bool *inside)
{
    const float reach = 0x1p30f; /* fits an int32_t; any division by a factor comes after it */
    float x = p * grid.inverse_base;
    if (!(x >= -reach && x < reach)) {
        *inside = false;
        return x > 0 ? PNET_KEY_BIAS - 1 : -PNET_KEY_BIAS;
    }
    int32_t index = (int32_t)x;
    index -= (float)index > x;
    if (grid.factor != 1) {
        int32_t quotient = index / grid.factor;
        index = quotient - (index % grid.factor < 0);
    }
    if (index < -PNET_KEY_BIAS || index >= PNET_KEY_BIAS) {
        *inside = false;
        return index > 0 ? PNET_KEY_BIAS - 1 : -PNET_KEY_BIAS;
    }
    return index;
}

static inline struct pnet_voxel pnet_voxel_of(const float p[3], struct pnet_grid grid, bool *inside)
{
    struct pnet_voxel v;
    for (int a = 0; a < 3; a++) v.at[a] = pnet_voxel_index(p[a], grid, inside);
    return v;
}

/* Returns the edge of a voxel in metres. */
static inline float pnet_grid_cell(struct pnet_grid grid)
{
    return grid.base * (float)grid.factor;
}

static inline uint64_t pnet_voxel_key(struct pnet_voxel v)
{
    return pnet_key_join((uint32_t)(v.at[0] + PNET_KEY_BIAS), (uint32_t)(v.at[1] + PNET_KEY_BIAS),
        (uint32_t)(v.at[2] + PNET_KEY_BIAS));
}

#endif
