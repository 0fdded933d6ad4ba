/* Segments of rows, and sums over them. */
#ifndef PNET_KERNELS_SEGMENTS_H
#define PNET_KERNELS_SEGMENTS_H

#include "kernels/both.h"
#include "kernels/philox.h" /* PNET_HD */
#include "kernels/precision.h"

#include <stddef.h>
#include <stdint.h>

/* Stretches of the rows of a matrix: segment s has the rows splits[s * stride] to
   splits[(s + 1) * stride] - 1. */
struct pnet_segments {
    int64_t rows; /* the last split, known before the splits are; GPU: at most that */
    int32_t count;
    const int64_t *splits;     /* [count * stride + 1], ascending; segments may be empty. NULL: one
                              segment of all rows. Not read where rows is 0. GPU: device memory */
    int32_t stride;            /* 0 means 1 */
    enum pnet_storage storage; /* of the features of the rows */
};

/* Where segment `s` begins, and the one before it ends. */
PNET_HD int64_t pnet_segment_split(struct pnet_segments s, int32_t segment)
{
    if (!s.splits || s.rows == 0) return segment > 0 ? s.rows : 0;
    return s.splits[(int64_t)segment * (s.stride > 1 ? s.stride : 1)];
}

/* The segment that holds a row. */
PNET_HD int32_t pnet_segment_of(struct pnet_segments s, int64_t row)
{
    int32_t low = 0, high = s.count;
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (pnet_segment_split(s, middle) <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Rows are worked on in blocks of this many, whatever the number of threads. Block b and segment s
   meet in at most one stretch of rows; b + s numbers these stretches without clash, as either index
   only grows along the rows. */
enum { PNET_SEGMENT_BLOCK = 512 };

static inline int64_t pnet_segment_blocks(int64_t rows)
{
    return (rows + PNET_SEGMENT_BLOCK - 1) / PNET_SEGMENT_BLOCK;
}

/* sum[segment, c] = sum over its rows of a, and with b: sum_ab[segment, c] = sum of a * b. b and sum_ab may be NULL, together.
   Sums are formed in double over these blocks and joined in order: accurate for any number of rows. */
PNET_BOTH(size_t, segment_sums_work, struct pnet_segments s, int32_t c);
PNET_BOTH(void, segment_sums, struct pnet_segments s, int32_t c, const float *a, const float *b,
    double *sum, double *sum_ab, void *work);

#endif
