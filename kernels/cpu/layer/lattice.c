#include "kernels/lattice.h"

enum { SMALL = 1 << 14 }; /* rows below which threads cost more than they save */

void pnet_cpu_lattice(struct pnet_count rows, int32_t side, float extent, float *y)
{
    float step = side > 1 ? 2 * extent / (float)(side - 1) : 0;
    int32_t places = side * side;
#pragma omp parallel for schedule(static) if (rows.most > SMALL)
    for (int64_t row = 0; row < rows.most; row++) {
        int32_t at = (int32_t)(row % places), line = at / side;
        y[2 * row] = -extent + step * (float)(at % side);
        y[2 * row + 1] = -extent + step * (float)line;
    }
}
