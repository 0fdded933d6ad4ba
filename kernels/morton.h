/* Keys of voxels along a Morton curve, for both devices. */
#ifndef PNET_KERNELS_MORTON_H
#define PNET_KERNELS_MORTON_H

#include "kernels/philox.h" /* PNET_HD */

/* Moves bit b of a 21-bit number to bit 3 b. */
PNET_HD uint64_t pnet_key_spread(uint32_t index)
{
    uint64_t x = index;
    x = (x | x << 32) & UINT64_C(0x001f00000000ffff);
    x = (x | x << 16) & UINT64_C(0x001f0000ff0000ff);
    x = (x | x << 8) & UINT64_C(0x100f00f00f00f00f);
    x = (x | x << 4) & UINT64_C(0x10c30c30c30c30c3);
    x = (x | x << 2) & UINT64_C(0x1249249249249249);
    return x;
}

/* Returns the Morton key of three numbers below 2^21: their bits interleaved, x highest. */
PNET_HD uint64_t pnet_key_join(uint32_t x, uint32_t y, uint32_t z)
{
    return pnet_key_spread(x) << 2 | pnet_key_spread(y) << 1 | pnet_key_spread(z);
}

#endif
