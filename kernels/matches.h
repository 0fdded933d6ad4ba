/* Matches of two clouds: which rows lie near each other under a pose.

   For each row i of `a` the rows j of `b`, same sample, with |T p_i - q_j| <= radius, ascending.
   T is the 4x4 matrix of the sample, row-major: (T p)[r] = ((t[r][0] x + t[r][1] y) + t[r][2] z) +
   t[r][3], and the distance is that of a ball (kernels/geometry.h); float32 without contraction, so that
   the matches are the same bits everywhere. */
#ifndef PNET_KERNELS_MATCHES_H
#define PNET_KERNELS_MATCHES_H

#include "kernels/both.h"
#include "kernels/geometry.h"

/* Moves the points of level `a` by the poses [samples, 16] of their samples: to [rows, 3]. */
PNET_BOTH(void, move, const struct pnet_level *a, const float *pose, float *to);

/* Matches are made in two calls, like triplets:

     count: start[a->rows + 1] gets the prefix sums of the rows' matches; returns the number of matches
     write: other[number] gets the rows of `b`

   Work, in bytes: call it with the number of matches for `write`, with 0 for `count`. On the CPU it is 12 bytes a row of `a`, 2 a
   match, and the workspace of triplets between two levels. */
PNET_BOTH(size_t, matches_work, const struct pnet_level *a, const struct pnet_level *b,
    float radius, int64_t number);
PNET_BOTH(int64_t, matches_count, const struct pnet_level *a, const struct pnet_level *b,
    const float *pose, float radius, int64_t *start, void *work);
PNET_BOTH(void, matches_write, const struct pnet_level *a, const struct pnet_level *b,
    const float *pose, float radius, int64_t number, const int64_t *start, int32_t *other,
    void *work);

#endif
