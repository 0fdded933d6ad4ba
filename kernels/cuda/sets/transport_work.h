/* What workspaces of emd and sinkhorn hold. Host arithmetic, in every build. */
#ifndef PNET_KERNELS_CUDA_SETS_TRANSPORT_WORK_H
#define PNET_KERNELS_CUDA_SETS_TRANSPORT_WORK_H

#include "kernels/cuda/sets/sets_work.h"

/* The box around the points of both sets in a sample. The diagonal is 0 where a set is empty, NaN where a coordinate is not
   finite. */
struct set_box {
    double centre[3], diagonal;
};

enum {
    PLACE_FLOATS = 4,     /* of a point: three coordinates, and a number of its own */
    POTENTIAL_FLOATS = 2, /* of a point: against the other set, and against its own */
    OBJECTS_KEPT = 32,    /* that a person remembers: one a lane of a warp */
    LISTS = 2,            /* of persons: of this round, and of the next one */
    COUNTS =
        3, /* of persons: of this round, of the next one, and the one that is made 0 meanwhile */
};

#endif
