/* Chunks of rows: coarse row r of a sample of n rows stands for the sample's rows size * r to min(size * (r + 1), n) - 1. So a
   sample of n rows has ceil(n / size) coarse rows. Definitions: docs/geometry.md. The results are the same bits on either device,
   for any number of threads. */
#ifndef PNET_KERNELS_CHUNKS_H
#define PNET_KERNELS_CHUNKS_H

#include "kernels/both.h"
#include "kernels/geometry.h"
#include "kernels/philox.h" /* PNET_HD */

/* Returns, of n > 0 points xyz [n, 3], the first of those nearest to their mean. In float64 without contraction: the mean is the
   sum in the order of rows, divided by n; the squared distance is (dx*dx + dy*dy) + dz*dz. Of two points it is the first. */
PNET_HD int64_t pnet_chunk_centre(const float *xyz, int64_t n)
{
    double mean[3] = {0, 0, 0}, least = 0;
    int64_t nearest = 0;
    if (n <= 2) return 0;
    for (int64_t i = 0; i < n; i++)
        for (int a = 0; a < 3; a++) mean[a] += (double)xyz[3 * i + a];
    for (int a = 0; a < 3; a++) mean[a] /= (double)n;
    for (int64_t i = 0; i < n; i++) {
        double x = (double)xyz[3 * i] - mean[0], y = (double)xyz[3 * i + 1] - mean[1],
               z = (double)xyz[3 * i + 2] - mean[2], distance2 = (x * x + y * y) + z * z;
        if (i > 0 && !(distance2 < least)) continue;
        least = distance2;
        nearest = i;
    }
    return nearest;
}

/* row_splits[samples + 1] of the coarse level, from those of the fine one. Returns the number of coarse rows; on a GPU it waits
   for the thread's stream once. */
PNET_BOTH(int64_t, chunk_splits, int32_t samples, const int64_t *fine_splits, int32_t size,
    int64_t *row_splits);

/* The points of the coarse level, xyz [rows, 3]: of each chunk that of pnet_chunk_centre. parent[fine->rows]: the coarse row of
   each fine row. `rows` and `row_splits` are those of chunk_splits. */
PNET_BOTH(void, chunk_points, const struct pnet_level *fine, int32_t size, int64_t rows,
    const int64_t *row_splits, float *xyz, int32_t *parent);

#endif
