/* What MVMR and VVOR share: row blocks, whose runs are ordered by kernel cell, and merged groups. */
#ifndef PNET_KERNELS_CPU_CONV_ROW_BLOCK_H
#define PNET_KERNELS_CPU_CONV_ROW_BLOCK_H

#include "kernels/conv.h"
#include "kernels/cpu/isa/conv.h"

/* Groups narrower than a register are merged, so that a register is filled: `merged` neighbours
   become one block-diagonal group. A merged group reads `cin` and writes `cout` channels. */
struct pnet_conv_groups {
    int32_t count;       /* merged groups */
    int32_t merged;      /* groups in each */
    int32_t cin, cout;   /* widths of a merged group */
    int32_t cin1, cout1; /* widths of a single group */
};
struct pnet_conv_groups pnet_conv_groups(struct pnet_conv_shape s);

/* Rows of a row block, at most: a function of the number of kernel cells alone. */
int pnet_row_block_rows(int64_t cells);

/* A row block: its runs ordered by kernel cell, then row. Those of cell k are run[first[k]] to run[first[k + 1] - 1]. */
struct pnet_row_block {
    int64_t place; /* of the first row */
    int rows;
    const int32_t *row;   /* at each place of the block; NULL: row p is at place p */
    const int32_t *other; /* of the triplet that runs count from; NULL: there are no triplets */
    struct pnet_run *run;
    int32_t *first;             /* [cells + 1] */
    struct pnet_run *unordered; /* scratch, as long as run */
};
/* Bytes of the three arrays, a multiple of 64; at most `count` triplets in all. */
size_t pnet_row_block_bytes(int64_t cells, int64_t count);
/* Lays the arrays out in `memory` (aligned to 64). */
struct pnet_row_block pnet_row_block_place(int64_t cells, int64_t count, void *memory);
/* Fills `tile` with the runs of the rows at places [place, place + rows) of the set. */
void pnet_row_block_load(
    struct pnet_row_block *tile, const struct pnet_triplets *t, int64_t place, int rows);
/* A row block of a dense product: one cell, one run a row. */
void pnet_row_block_identity(struct pnet_row_block *tile, int64_t row, int rows);

/* The row at place p of a block, among all rows. */
static inline int64_t pnet_row_block_row(const struct pnet_row_block *tile, int p)
{
    return tile->row ? tile->row[p] : tile->place + p;
}

static inline size_t pnet_align64(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

/* The first address of a workspace that is aligned to 64. */
static inline void *pnet_align64_pointer(void *work)
{
    return (char *)work + (-(uintptr_t)work & 63);
}

#endif
