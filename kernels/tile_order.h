/* The order of the rows of a tile (struct pnet_tile): by the kernel cells they have, so that rows that share a product
   have few different cells. The host, which sizes a plan, and the GPU, which lays tiles out, use the same order. */
#ifndef PNET_KERNELS_TILE_ORDER_H
#define PNET_KERNELS_TILE_ORDER_H

#include "kernels/philox.h"

enum { PNET_TILE_PARTS = 27 };

/* K of a set with that many kernel cells; of other numbers than cubes the next one's. */
PNET_HD int pnet_tile_kernel(int cells)
{
    int k = 1;
    while (k * k * k < cells) k++;
    return k;
}

/* Parts of a kernel: its cells, three an axis, where K is 3, and what falls together with them where it is not. By rank: those
   with more axes off the centre before others, since fewer rows have them, then the two ends of the last axis
   before its middle. */
PNET_HD int pnet_tile_rank(int part)
{
    const int off[3] = {part / 9 != 1, part / 3 % 3 != 1, part % 3 != 1};
    const int place[3] = {0, 2, 1};
    return ((3 - off[0] - off[1] - off[2]) * 3 + place[part % 3]) * 9 + part / 3;
}

/* The bit of a row's key that a cell sets. */
PNET_HD int pnet_tile_bit(int cell, int kernel)
{
    int part = cell / (kernel * kernel) * 3 / kernel * 9 + cell / kernel % kernel * 3 / kernel * 3 +
               cell % kernel * 3 / kernel;
    int before = 0;
    for (int other = 0; other < PNET_TILE_PARTS; other++)
        before += pnet_tile_rank(other) < pnet_tile_rank(part);
    return PNET_TILE_PARTS - 1 - before;
}

/* The sort key of a row of a tile, ascending. `bits`: the cells that the row has. The key is the position of these bits in a Gray
   code, so that neighbours have similar cells; the last three bits, which nearly all rows have, give way to the row number. */
PNET_HD uint32_t pnet_tile_key(uint32_t bits, int row)
{
    for (int shift = 1; shift < 32; shift *= 2) bits ^= bits >> shift;
    return bits >> 3 << 8 | (uint32_t)row;
}

/* The sort key of a row that does not exist; such rows come last. */
PNET_HD uint32_t pnet_tile_no_key(int row)
{
    return 0xFFFFFF00u | (uint32_t)row;
}

#endif
