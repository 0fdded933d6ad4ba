/* Which kernel forms a sum on a GPU: a table whose rows are asked one after the other, and the first one that serves is
   launched. A row holds all that a kernel is: when it serves, its workspace, its launches. Host code alone, in every
   build: `pnetc plan` prints the choice where there is no GPU, README.md lists the table, and
   tests/kernels/test_conv_choice.c holds that page to it. */
#ifndef PNET_KERNELS_CUDA_CONV_CHOICE_H
#define PNET_KERNELS_CUDA_CONV_CHOICE_H

#include "kernels/cuda/conv/conv_launch.h"
#include "kernels/cuda/conv/conv_work.h"

#ifdef __cplusplus
extern "C" {
#endif

enum conv_kernel {
    CONV_LISTING,
    CONV_IM2COL,
    CONV_GATHER,
    CONV_DEPTHWISE,
    CONV_SLIM,
    CONV_PLAIN,
    /* MVMR and dense products */
    MVMR_BY_FEW,
    MVMR_BY_DENSE,
    MVMR_BY_DEEP,
    MVMR_BY_WIDE,
    MVMR_BY_TILE,
    MVMR_BY_TILES,
    MVMR_BY_TRIPLETS,
    MVMR_BY_WARPS,
    /* VVOR and outer products */
    VVOR_BY_DENSE,
    VVOR_BY_NARROW,
    VVOR_BY_SORTED,
    VVOR_BY_CELLS,
    VVOR_BY_TILES,
    VVOR_BY_TRIPLETS,
    VVOR_BY_WARPS,
};

/* What a choice depends on. */
struct conv_case {
    struct conv_set set; /* rows, cells and count; pointers are not read */
    int64_t others;      /* rows that are gathered from; for workspaces alone */
    enum pnet_conv_form form;
    struct pnet_conv_shape shape;
    struct conv_groups groups; /* the merged ones; of a part: fewer output channels */
    bool weights, swapped;
    bool exact; /* a dense product between few channels in float32 and features in 16 bits */
    bool part;  /* VVOR: some of the output channels (pnet_cuda_conv_columns_at_once) */
    bool few;   /* MVMR: the kernel for few rows may be chosen */
    enum pnet_precision precision;
    enum pnet_conv_algo algo;
    enum conv_unit unit; /* the best of the GPU */
    bool aligned; /* features and weights begin at multiples of 16 bytes; those of the runtime do */
};
/* Of a GPU of that architecture; 0: of the one at hand. A plan is made for the best of GPUs where there is none. */
enum conv_unit pnet_cuda_conv_unit_of(int architecture);

struct conv_case pnet_cuda_conv_case_of(const struct pnet_conv_sum *s);

/* A row of the table. What it says in words stands in README.md; `serves` decides. */
struct conv_choice {
    enum conv_kernel kernel;
    const char *sums; /* "MVMR", "VVOR" or "both" */
    const char *name, *file;
    const char *shape, *storage, *form;
    enum conv_unit unit; /* the best of the GPU must be this one; CONV_UNIT_NONE: any */
    bool
        tiles; /* reads tiles; triplets only where a tile lists nothing, or where it takes no more than the order from tiles */
    bool (*serves)(const struct conv_case *c);
    /* Bytes, for any number of rows up to those of the case, whether it serves or not: NULL means none. */
    size_t (*work)(const struct conv_case *c);
    /* NULL in a build without CUDA, and of the algorithms in compare/, which have launches of their own. */
    conv_mvmr_launch *mvmr;
    conv_vvor_launch *vvor;
    bool
        parts; /* the launch of VVOR takes some output channels at a time (pnet_cuda_conv_columns_at_once) */
};
extern const struct conv_choice pnet_cuda_conv_choices[];
extern const int pnet_cuda_conv_choice_count;

/* Never NULL: the last row serves everything. */
const struct conv_choice *pnet_cuda_conv_choose(const struct conv_case *c);

/* Bytes of shared memory that kernels which other GPUs have too may use, a block of threads and a processor: 0, as many as
   there are. Less where an H100 or H200 stands for a GPU that has less (pnet_cuda_conv_limit). */
struct conv_room {
    int block, processor;
};
struct conv_room pnet_cuda_conv_room(void);

/* The workspaces of the rows, in conv_work.c. */
typedef size_t conv_work_of(const struct conv_case *c);
conv_work_of pnet_cuda_conv_few_work, pnet_cuda_conv_wide_work, pnet_cuda_conv_by_tile_work,
    pnet_cuda_conv_tiles_work, pnet_cuda_conv_triplets_work, pnet_cuda_conv_warps_work,
    pnet_cuda_conv_warps_tiles_work, pnet_cuda_conv_depthwise_work, pnet_cuda_conv_slim_work,
    pnet_cuda_conv_dense_vvor_work, pnet_cuda_conv_narrow_work, pnet_cuda_conv_sorted_work,
    pnet_cuda_conv_cells_work, pnet_cuda_conv_tiles_vvor_work, pnet_cuda_conv_triplets_vvor_work,
    pnet_cuda_conv_warps_vvor_work, pnet_cuda_conv_warps_outer_work, pnet_cuda_conv_plain_work;

#ifdef __cplusplus
}
#endif

#endif
