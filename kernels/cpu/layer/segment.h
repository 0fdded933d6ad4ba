/* Segments of rows, and how their rows are divided among threads. */
#ifndef PNET_KERNELS_CPU_SEGMENT_H
#define PNET_KERNELS_CPU_SEGMENT_H

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

/* Rows are worked on in blocks of this many, whatever the number of threads. Block b and segment s
   meet in at most one stretch of rows; b + s numbers these stretches without clash, as either index
   only grows along the rows. */
enum { PNET_SEGMENT_BLOCK = 512 };

static inline int64_t pnet_segment_blocks(int64_t rows)
{
    return (rows + PNET_SEGMENT_BLOCK - 1) / PNET_SEGMENT_BLOCK;
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

/* A block's rows within one segment; walk them with
   for (p = pnet_piece_first(s, block); p.begin < p.last; p = pnet_piece_next(s, p)). */
struct pnet_piece {
    int64_t begin, end; /* rows; may be none */
    int64_t last;       /* end of the block */
    int32_t segment;
};

static inline struct pnet_piece pnet_piece_at(
    struct pnet_segments s, int64_t begin, int64_t last, int32_t segment)
{
    int64_t end = begin < last ? pnet_segment_split(s, segment + 1) : begin;
    return (struct pnet_piece){begin, end < last ? end : last, last, segment};
}

static inline struct pnet_piece pnet_piece_first(struct pnet_segments s, int64_t block)
{
    int64_t begin = block * PNET_SEGMENT_BLOCK, last = begin + PNET_SEGMENT_BLOCK;
    if (last > s.rows) last = s.rows;
    return pnet_piece_at(s, begin, last, pnet_segment_of(s, begin));
}

static inline struct pnet_piece pnet_piece_next(struct pnet_segments s, struct pnet_piece p)
{
    return pnet_piece_at(s, p.end, p.last, p.segment + 1);
}

/* Sums are formed in double over fixed blocks of rows and joined in order: accurate for any number of rows, the same bits for
   any number of threads. */

/* sum[segment, c] = sum over its rows of a, and with b: sum_ab[segment, c] = sum of a * b.
   b and sum_ab may be NULL, together. */
size_t pnet_cpu_segment_sums_work(struct pnet_segments s, int32_t c);
void pnet_cpu_segment_sums(struct pnet_segments s, int32_t c, const float *a, const float *b,
    double *sum, double *sum_ab, void *work);

#endif
