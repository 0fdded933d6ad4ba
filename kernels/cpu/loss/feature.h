/* Nearest rows in feature space: what matching of clouds by learned features searches through. */
#ifndef PNET_KERNELS_CPU_FEATURE_H
#define PNET_KERNELS_CPU_FEATURE_H

#include <stddef.h>
#include <stdint.h>

/* For each row of a [rows, width] the row of b [others, width] with the least sum over channels of (a - b)^2, added
   in the order of the channels in float32; the lowest row among equals. nearest[rows] is -1 where no distance is
   finite (no rows in b, NaN). Every pair is looked at: 2 * rows * others * width operations, on all threads, the
   same bits for any number of them. Allocates nothing; `work` is aligned to 64. */
size_t pnet_cpu_feature_nearest_work(int64_t others, int32_t width);
void pnet_cpu_feature_nearest(int64_t rows, const float *a, int64_t others, const float *b,
    int32_t width, int32_t *nearest, void *work);

/* The inner loop of one instruction set. b lies in panels of PNET_FEATURE_LANES rows: [panel][channel][lane]. For
   up to PNET_FEATURE_ROWS rows of a it lowers best[row][lane] and sets at[row][lane] to the panel, counted from
   `first`. */
enum { PNET_FEATURE_LANES = 16, PNET_FEATURE_ROWS = 4 };
typedef void pnet_feature_scan(int rows, int32_t width, const float *a, int64_t first,
    int64_t panels, const float *b, float (*best)[PNET_FEATURE_LANES],
    int32_t (*at)[PNET_FEATURE_LANES]);

#endif
