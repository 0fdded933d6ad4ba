/* How the rows of segments are divided among threads. */
#ifndef PNET_KERNELS_CPU_SEGMENT_H
#define PNET_KERNELS_CPU_SEGMENT_H

#include "kernels/segments.h"

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

#endif
