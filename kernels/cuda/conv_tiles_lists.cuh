/* The triplets of a set by kernel cell, made of its tiles a stretch at a time: what VVOR by lists multiplies. */
#ifndef PNET_KERNELS_CUDA_CONV_TILES_LISTS_CUH
#define PNET_KERNELS_CUDA_CONV_TILES_LISTS_CUH

#include "kernels/cuda/conv_common.cuh"

enum {
    LIST_CELLS = 128, /* kernel cells, at most */
    LIST_STEP = 64    /* triplets of one cell that are multiplied at a time */
};

/* A set's triplets in the order of their tiles, those of a tile by cell, are cut into stretches of `stretch` triplets. Of
   a stretch a list has the triplets of each cell, filled up to whole steps with rows -1. Device memory, offsets in bytes. */
struct lists_plan {
    int stretches;
    int64_t tiles, stretch;
    size_t within, before, share, pair, bytes;
};

/* Of a stretch: its tiles, of each cell how many triplets tiles before have that are not in it (`skip`, in the arithmetic
   of 32 bits), how many it has, and at which step its list begins. */
struct list_share {
    int first, end;
    uint32_t skip[LIST_CELLS], count[LIST_CELLS], step[LIST_CELLS + 1];
};

/* Triplets that are listed, on the device. */
struct triplet_lists {
    const list_share *share;
    const int2 *pair; /* row, other */
};

/* In `most_bytes` (24 MiB or more, whole KiB) of work. bytes is 0 where lists are not made: of sets with too many cells or triplets, or
   so many tiles that counting them takes more than a few MiB. */
lists_plan lists_plan_of(const conv_set &s, size_t most_bytes);
/* Counts; then lists a stretch. */
void lists_count(const conv_set &s, const lists_plan &p, void *work);
triplet_lists lists_make(const conv_set &s, const lists_plan &p, int stretch, void *work);

#endif
