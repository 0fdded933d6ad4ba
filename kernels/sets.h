/* Point sets: as many points as each sample has, with coordinates that a network predicts or a file gives. Losses and metrics
   compare two sets of a batch, sample by sample. Coordinates are float32 on either device, whatever the precision. */
#ifndef PNET_KERNELS_SETS_H
#define PNET_KERNELS_SETS_H

#include "kernels/both.h"
#include "kernels/count.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The points of a batch. Rows of sample s are splits[s] .. splits[s + 1] - 1. */
struct pnet_point_set {
    struct pnet_count rows;
    int32_t samples;
    const int64_t *splits; /* [samples + 1] */
    const float *xyz;      /* [rows, 3] */
};

/* x is what is predicted, y what it is compared with. Both have the same samples. A sample of which either set is empty adds
   nothing to a loss, but counts in the mean over samples. */
struct pnet_set_pair {
    struct pnet_point_set x, y;
    /* The nearest row of the other set, in the same sample: of equally near ones the lowest. -1: the sample of the other set is
       empty, or a coordinate is not finite. NULL where a loss does not read them. */
    const int32_t *x_near; /* [rows of x], rows of y */
    const int32_t *y_near; /* [rows of y], rows of x */
};

#endif
