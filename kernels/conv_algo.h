/* The algorithms that MVMR and VVOR can be made by. All compute the same sums, in float32 and in orders of their own.

     default             what the fixed table of a device chooses: on a GPU, tiles that the geometry lays out, where they serve
     mvmr-k, -i, -j      the listings of PointCNN++: triplets sorted by kernel cell, by output row or by input row, in
                         groups of 128, which keep the matrix and the sum at hand until the index changes
     im2col              the inputs of each output row laid side by side, cell by cell, and one dense product
     gather-gemm-scatter triplets by kernel cell: gathered, multiplied by the cell's matrix, added to their rows
     implicit-gemm       the cells of a block of output rows, gathered while they are multiplied: nothing lies in between, and
                         nothing but the triplets is read; on the CPU that is the default

   On a GPU mvmr-* and gather-gemm-scatter add with float atomics, as the papers do, so the last bits of their results vary
   from run to run; all else gives the same bits every time. */
#ifndef PNET_KERNELS_CONV_ALGO_H
#define PNET_KERNELS_CONV_ALGO_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum pnet_conv_algo {
    PNET_ALGO_DEFAULT,
    PNET_ALGO_MVMR_K,
    PNET_ALGO_MVMR_I,
    PNET_ALGO_MVMR_J,
    PNET_ALGO_IM2COL,
    PNET_ALGO_GATHER,
    PNET_ALGO_IMPLICIT,
    PNET_ALGO_COUNT
};
/* By enum pnet_conv_algo, then NULL. */
extern const char *const pnet_conv_algo_names[];
/* False: no algorithm has that name. */
bool pnet_conv_algo_parse(const char *name, enum pnet_conv_algo *algo);

/* Made by the functions of conv.h themselves; the others have functions of their own. */
static inline bool pnet_conv_algo_is_usual(enum pnet_conv_algo algo)
{
    return algo == PNET_ALGO_DEFAULT || algo == PNET_ALGO_IMPLICIT;
}

/* Reads tiles (struct pnet_tiles) where a set has them. */
static inline bool pnet_conv_algo_reads_tiles(enum pnet_conv_algo algo)
{
    return algo == PNET_ALGO_DEFAULT;
}

/* Takes a list of triplets (struct pnet_conv_list). */
static inline bool pnet_conv_algo_lists(enum pnet_conv_algo algo)
{
    return !pnet_conv_algo_is_usual(algo) && algo != PNET_ALGO_IM2COL;
}

/* A chunk of a set's triplets one by one, sorted as an algorithm wants them: by the index it is named for, then as in
   the set; by cell for gather-gemm-scatter. `row` is the side that the set is sorted by. */
struct pnet_conv_list {
    int64_t most;
    const int64_t *live; /* GPU: the true number, at most `most`; NULL: it is `most` */
    const int32_t *row, *other;
    const uint16_t *cell;
};

#ifdef __cplusplus
}
#endif

#endif
