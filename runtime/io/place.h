/* Places coordinates, given as doubles a piece at a time, in a cloud, as pnet_cloud_place does: for readers that do not hold
   all doubles at once. Two passes over the same points, in the same order. */
#ifndef PNET_RUNTIME_IO_PLACE_H
#define PNET_RUNTIME_IO_PLACE_H

#include "runtime/io/cloud.h"

#include <stdbool.h>
#include <stdint.h>

struct pnet_placer {
    double low[3], most; /* corner of the box of the points that stay, their largest |coordinate| */
    int64_t rows, kept;  /* points measured; points that stay */
    double offset[3];
    float *xyz;
    int64_t *row;      /* file rows of points that stay; NULL if all stay */
    int64_t put, read; /* points written and seen in the second pass */
};

void pnet_placer_begin(struct pnet_placer *p);
/* First pass: n points at xyz[n, 3]. */
void pnet_placer_measure(struct pnet_placer *p, int64_t n, const double *xyz);
/* Call between the passes. Returns false if memory is out; nothing is left to free then. */
bool pnet_placer_turn(struct pnet_placer *p);
/* Second pass. */
void pnet_placer_put(struct pnet_placer *p, int64_t n, const double *xyz);
/* Moves the result to `c`, whose fields have a row for each point measured. Returns false if memory is out: the placer has
   nothing left to free, and `c` may only be passed to pnet_cloud_free. */
bool pnet_placer_end(struct pnet_placer *p, struct pnet_cloud *c);

#endif
