/* Places coordinates, given as doubles a piece at a time, in a cloud, as pnet_cloud_place does: for readers that do not hold
   all doubles at once. Two passes over the same points, in the same order. */
#ifndef PNET_RUNTIME_IO_PLACE_H
#define PNET_RUNTIME_IO_PLACE_H

#include "runtime/io/cloud.h"

#include <stdbool.h>
#include <stdint.h>

/* Where all points of a cloud have been placed, for those who place some of them. */
struct pnet_placing {
    double offset[3];
    bool exact; /* the cloud has c->exact */
};

struct pnet_placer {
    double metres[3];       /* factors of the axes */
    double low[3], high[3]; /* box of the points that stay */
    int64_t rows, kept;     /* points measured; points that stay */
    double offset[3];
    bool placed; /* by pnet_placer_follow */
    float *xyz;
    double *exact;     /* as in the cloud; begun with the first coordinate that needs it */
    bool failed;       /* no memory for it */
    int64_t *row;      /* file rows of points that stay; NULL if all stay */
    int64_t put, read; /* points written and seen in the second pass */
};

/* metres[2]: what x and y, and z, are multiplied with; 0: 1. */
void pnet_placer_begin(struct pnet_placer *p, const double metres[2]);
/* First pass: n points at xyz[n, 3], in the unit of the file. */
void pnet_placer_measure(struct pnet_placer *p, int64_t n, const double *xyz);
/* Converts a point to metres. Returns false for one that is not kept. */
bool pnet_placer_convert(const struct pnet_placer *p, const double xyz[3], double v[3]);
/* Call between the passes. `placing` (or NULL): the points are some of a cloud that was placed so, and no strays are looked for
   among them. Returns false if memory is out; nothing is left to free then. */
bool pnet_placer_turn(struct pnet_placer *p, const struct pnet_placing *placing);
/* Second pass. A failure is kept for pnet_placer_end. */
void pnet_placer_put(struct pnet_placer *p, int64_t n, const double *xyz);
/* Moves the result to `c`, whose fields have a row for each point measured, and finds its strays, which have no part in the
   offset. PNET_NO_MEMORY: the placer has nothing left to free, and `c` may only be passed to pnet_cloud_free. */
enum pnet_status pnet_placer_end(struct pnet_placer *p, struct pnet_cloud *c, struct pnet_error *e);

/* Tells whether strays are possible in the box of the points measured. */
bool pnet_placer_is_wide(const struct pnet_placer *p);

/* Writes the offset of points in the box low..high. */
void pnet_offset_of_box(const double low[3], const double high[3], double offset[3]);

#endif
