/* Places on a square, as many for each row of a level. */
#ifndef PNET_KERNELS_LATTICE_H
#define PNET_KERNELS_LATTICE_H

#include "kernels/both.h"
#include "kernels/count.h"

/* y [rows, 2]: row r is place r % (side * side) of a lattice of side * side places from -extent to extent on both axes. The
   first channel runs fastest: channel 0 is that of r % side, channel 1 that of r / side. side is at least 1; of one place both
   are -extent. */
PNET_BOTH(void, lattice, struct pnet_count rows, int32_t side, float extent, float *y);

#endif
