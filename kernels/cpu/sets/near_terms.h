/* Sums over points of a function of the distance to the nearest point of the other set. */
#ifndef PNET_KERNELS_CPU_NEAR_TERMS_H
#define PNET_KERNELS_CPU_NEAR_TERMS_H

#include "kernels/sets.h"

/* A point that has a nearest one. */
struct pnet_near_point {
    double square;        /* of the distance */
    int64_t row, near;    /* rows of the two sets */
    int64_t rows, others; /* of its sample, in its own set and in the other one */
    int32_t sample;
};

/* What a point adds to the loss of its sample, and the derivative of that by the point's place, over the difference of the two
   places. */
struct pnet_near_term {
    double value, pull;
};

typedef struct pnet_near_term pnet_near_function(
    const void *args, const struct pnet_near_point *point);

/* The squared distance of two points. */
static inline double pnet_near_square(const float *p, const float *q)
{
    double dx = (double)p[0] - (double)q[0], dy = (double)p[1] - (double)q[1],
           dz = (double)p[2] - (double)q[2];
    return dx * dx + dy * dy + dz * dz;
}

/* Bytes of `work` for a set of so many rows. */
size_t pnet_near_terms_work(int64_t rows);
/* Returns the mean over samples of the sum of the points of `a`; writes pull [a->rows] of that, unless NULL. A coordinate that
   is not finite gives NaN. */
double pnet_near_terms(const struct pnet_point_set *a, const struct pnet_point_set *b,
    const int32_t *near, pnet_near_function *function, const void *args, float *pull, void *work);

/* The same over both directions of a pair; `work` has pnet_near_pair_work bytes. */
size_t pnet_near_pair_work(const struct pnet_set_pair *p);
void pnet_near_pair(const struct pnet_set_pair *p, pnet_near_function *function, const void *x_args,
    const void *y_args, float *loss, float *x_pull, float *y_pull, void *work);

#endif
