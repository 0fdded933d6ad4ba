/* The inner loop of the search for nearest features (kernels/feature.h), compiled for each instruction set. */
#ifndef PNET_KERNELS_CPU_ISA_FEATURE_H
#define PNET_KERNELS_CPU_ISA_FEATURE_H

#include <stdint.h>

/* b lies in panels of PNET_FEATURE_LANES rows: [panel][channel][lane]. For up to PNET_FEATURE_ROWS rows of a it lowers
   best[row][lane] and sets at[row][lane] to the panel, counted from `first`. */
enum { PNET_FEATURE_LANES = 16, PNET_FEATURE_ROWS = 4 };
typedef void pnet_feature_scan(int rows, int32_t width, const float *a, int64_t first,
    int64_t panels, const float *b, float (*best)[PNET_FEATURE_LANES],
    int32_t (*at)[PNET_FEATURE_LANES]);

#endif
