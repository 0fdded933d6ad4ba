/* Coordinates as doubles, a piece at a time, into a cloud: what pnet_cloud_place does, for readers
   that would rather not hold all doubles at once. Two passes over the same points, in the same
   order. */
#ifndef PNET_RUNTIME_IO_PLACE_H
#define PNET_RUNTIME_IO_PLACE_H

#include "runtime/io/cloud.h"

#include <stdbool.h>
#include <stdint.h>

struct pnet_placer {
    double low[3], most; /* corner of the box of the points that stay, their largest |coordinate| */
    int64_t rows, kept;  /* points measured, those that stay */
    double offset[3];
    float *xyz;
    int64_t *row;      /* NULL where all stay */
    int64_t put, read; /* points written and seen in the second pass */
};

void pnet_placer_begin(struct pnet_placer *p);
/* First pass: n points at xyz[n, 3]. */
void pnet_placer_measure(struct pnet_placer *p, int64_t n, const double *xyz);
/* Between the passes; false: out of memory, nothing is left to free. */
bool pnet_placer_turn(struct pnet_placer *p);
/* Second pass. */
void pnet_placer_put(struct pnet_placer *p, int64_t n, const double *xyz);
/* Hands the result to `c`, whose fields have a row for each point measured. false: out of memory, the
   placer has nothing left to free, and `c` is for pnet_cloud_free alone. */
bool pnet_placer_end(struct pnet_placer *p, struct pnet_cloud *c);

#endif
