/* How the kernels of convolution split their work among blocks of threads, and how much memory that takes. Host
   arithmetic alone, in every build, so that a plan for a GPU is the same on a machine without one. Numbers that results
   depend on are fixed for the 132 processors of an H100 or H200, whatever GPU runs them. */
#ifndef PNET_KERNELS_CUDA_CONV_WORK_H
#define PNET_KERNELS_CUDA_CONV_WORK_H

#include "kernels/conv.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CONV_PROCESSORS = 132, /* of an H100 or H200 */
    /* kernel cells, at most, of the kernels that read triplets on the matrix unit: all that the language allows */
    CONV_TRIPLETS_CELLS = PNET_KERNEL_LIMIT * PNET_KERNEL_LIMIT * PNET_KERNEL_LIMIT,
    CONV_MERGED_WIDTH = 64,  /* groups are merged up to so many channels */
    CONV_PAIR_ROWS = 256,    /* rows that a block of threads looks through at once: one a thread */
    CONV_PLAIN_SIDE = 64,    /* channels of a tile of the plain VVOR */
    CONV_DENSE_DEEP = 256,   /* input channels of the dense kernel, at most */
    CONV_DEEP_BLOCKS = 1024, /* of 128 rows and 64 output channels: such a product has few rows */
    CONV_DENSE_UNEVEN = 128, /* its channels, at most, where rows are no whole units of 16 bytes */
    CONV_WIDE_DEPTH = 64,    /* input channels that the wide kernel stages at a time */
    CONV_VVOR_TILES_CELLS = 512, /* beyond, VVOR from triplets is faster */
    CONV_FEW_CELLS = 343,
    CONV_FEW_DEPTH = 32,
    CONV_FEW_BLOCKS = 16, /* with twice as many it takes as long as on tiles */
    VVOR_PRODUCERS = 256, /* threads that gather */
    VVOR_CONSUMERS = 256, /* threads that multiply: two warpgroups */
    VVOR_TEAM = 8,        /* lanes that gather a row: 4 channels each */
    VVOR_BAND_ROWS = VVOR_PRODUCERS / VVOR_TEAM, /* gathered at a time */
    VVOR_BATCH = 8, /* bands whose rows are looked up together: one a lane */
    VVOR_CELLS = 9, /* of a block, at most */
    VVOR_CELL_SIDE =
        128, /* channels of either side that a block of threads sums, in float32 by cell */
    VVOR_MOST_CELLS = 1024,
    DENSE_SHARE_ROWS = 128, /* of a share, at least */
    SORT_CELLS = 128,       /* kernel cells that are sorted together, at most */
    SORT_STEP = 64,         /* triplets of one cell that are multiplied at a time */
    SORTED_SIDE = 128,      /* channels of the rows */
    SORTED_NARROW = 64,     /* of both sides where conv_warps_vvor.cu has no more */
    NARROW_WIDTH = 8,       /* input channels, at most */
    NARROW_COLUMNS = 512,   /* of a block of threads */
    NARROW_OUT = 32,        /* output channels of a block of threads */
    NARROW_PARTIAL_BYTES = 16 << 20,
    SLIM_SUMS = 1 << 18,   /* of one channel of coordinates, over all shares of the rows, at most */
    SLIM_SHARES = 512,     /* of the rows, at most */
    SLIM_SHARES_LEAST = 4, /* at most, however wide rows are */
    SLIM_SHARE_ROWS = 64,  /* of a share, at least */
    COLUMN_SUM_CHUNKS = 512, /* at most */
    COLUMN_SUM_ROWS = 256,   /* of a chunk, at least */
};

/* The triplets of a convolution, or, without `start`, the one triplet (i, i, 0) of every row: a dense product. */
struct conv_set {
    struct pnet_count rows;
    int32_t cells;
    const int64_t *start;
    const int32_t *other;
    const uint16_t *cell;
    const int32_t *row; /* the row at each place, as in struct pnet_triplets */
    struct pnet_tiles tiles;
    int64_t count; /* of triplets: those of the capacity class */
};
/* `storage`: of the features that are gathered. */
struct conv_set pnet_cuda_conv_set_of(const struct pnet_triplets *t, enum pnet_storage storage);
struct conv_set pnet_cuda_conv_dense_set(struct pnet_count n);

/* Narrow groups are merged into one block-diagonal group, so that the matrix unit has full blocks to multiply. */
struct conv_groups {
    int count;       /* merged groups */
    int cin, cout;   /* widths of a merged group */
    int cin1, cout1; /* widths of a single group */
};
struct conv_groups pnet_cuda_conv_merge(struct pnet_conv_shape s, int width);

/* What is done to a finished sum before it is stored. */
struct conv_end {
    const float *bias; /* or NULL */
    float *out;        /* stored as the features that are gathered */
    bool add;
    enum pnet_activation act;
    float slope;
};

/* A product of gathered rows with one matrix a kernel cell. */
struct conv_product {
    struct conv_set set;
    struct conv_groups groups;
    int cin, cout;
    const float *in, *weight;
    bool transposed;
    bool
        exact_in; /* of the kernel for coordinates: `in` is float32 and the output has 16 bits, not the other way round */
    struct conv_end end;
};

/* A sum of outer products of rows and gathered rows, a matrix a kernel cell. */
struct conv_outer {
    struct conv_set set;
    struct conv_groups groups;
    int cin, cout;
    const float *in, *gout;
    const float *gout_matrix; /* as gout, or where the matrix begins that gout has columns of */
    float *gweight;
    bool swapped;    /* the set's rows are those of `in` */
    bool transposed; /* of a dense product: gweight is [cout, cin] */
    bool add;
};

/* How operands become 16 bits:
     CONV_SPLIT   half, twice: x = (high + low) / scale, three products, 22 significant bits: fp32
     CONV_SCALED  half, once, scaled likewise: the 11 bits of tf32 without the range of half
     CONV_BFLOAT, CONV_HALF  as they are
     CONV_TILE_SCALED  half, once: features by a scale a tile, weights by a scale a layer, so that sums stay in the
       matrix unit and runs are summed in half; with the precision tf32, sets of tiles that are large enough
   Scales are powers of two that bring the largest operand of a block near the top of half's range. */
enum conv_form { CONV_SPLIT, CONV_SCALED, CONV_BFLOAT, CONV_HALF, CONV_TILE_SCALED };
enum conv_form pnet_cuda_conv_form_of(enum pnet_precision p);
/* The same for MVMR of a set of `count` triplets that has tiles. */
enum conv_form pnet_cuda_conv_tile_form_of(
    enum pnet_precision p, int64_t count, const struct conv_groups *g);

/* Weights as blocks of `depth` input channels and `columns` output channels, in the order cell, group, block of input
   channels, block of output channels. A block has one plane (two for CONV_SPLIT: high, low), a plane one row of `depth`
   elements a column, permuted as gathering threads hold them (`unit` channels one after the other, four threads a row),
   and swizzled in units of 16 bytes as the matrix unit reads them. Columns are in order, or, with `units`, such that
   each of the four threads that hold a row's sums has units of 8 channels. Behind all blocks stand their inverse scales. */
struct conv_blocks {
    enum conv_form form;
    int depth, columns;
    int unit;        /* 4 or 8 */
    bool units;      /* of sums */
    int deep, whole; /* blocks of input and of output channels of a group */
    int first, wide; /* of the latter: where the part that is packed begins, how many it has */
    int64_t count;   /* of the part */
    size_t bytes;    /* of a block */
};
/* The first part, and the part that begins at block `first`. A product is formed in parts of its output columns where the
   packed weights of all of them would exceed a layer's workspace; the sums are the same. */
struct conv_blocks pnet_cuda_conv_block_weights(enum conv_form form, int64_t cells,
    const struct conv_groups *g, int depth, int columns, int unit, bool units);
struct conv_blocks pnet_cuda_conv_blocks_part(struct conv_blocks b, int first);
size_t pnet_cuda_conv_blocks_bytes(const struct conv_blocks *b);

/* Input channels that MVMR from triplets stages at a time; output channels of a block of weights. */
int pnet_cuda_conv_triplets_depth(enum conv_form form, const struct conv_groups *g);
int pnet_cuda_conv_tiles_columns(int channels);
/* How many pieces of 64 bytes of a row MVMR from tiles stages at a time: two, unless half of the last two would be empty.
   One piece costs less then, except where sums leave the matrix unit after each of five or more stages. */
int pnet_cuda_conv_tiles_pieces(enum conv_form form, int channels);
/* May 256 output columns be multiplied at a time? They must be no more than blocks of 128 would make, and their packed
   weights must fit. */
bool pnet_cuda_conv_tiles_may_be_wide(
    enum conv_form form, int64_t cells, const struct conv_groups *g);
/* The byte, behind the packed weights, of the counter from which blocks of threads take their next item. */
size_t pnet_cuda_conv_tiles_taken_at(const struct conv_blocks *b);

/* Behind that, for CONV_TILE_SCALED: a struct vvor_measures, the size of the largest weight, a scale for each tile, and the
   exponent of each row that is gathered, a byte each. Offsets in bytes from the start of the workspace. */
struct tile_scales_plan {
    size_t measures, weight, tile, exponent, bytes;
};
struct tile_scales_plan pnet_cuda_conv_tile_scales_plan(
    const struct conv_blocks *b, int64_t rows, int64_t others);

/* Weights as the kernel by instructions of a warp reads them (conv_warps.cu): `depth` is at most 128 bytes of channels.
   Weights are stored as they are multiplied, those of CONV_SPLIT in float32. */
struct conv_blocks pnet_cuda_conv_warp_blocks(
    enum conv_form form, int64_t cells, const struct conv_groups *g);

/* How conv_warps_tiles.cu splits its work, where it stages `pieces` pieces of 64 bytes of a row at a time. A block of threads
   has a tile and a block of columns; where that would leave most of the GPU idle, `splits` of them share the cells of the
   tile, and their sums are added in order. `partial`: where these lie in the workspace, in float32. Of weights of CONV_SPLIT
   both numbers are packed. */
struct warp_tiles_plan {
    struct conv_blocks blocks;
    int splits;
    size_t partial, bytes;
};
struct warp_tiles_plan pnet_cuda_conv_warp_tiles_plan(
    enum conv_form form, const struct conv_set *s, const struct conv_groups *g, int pieces);

/* MVMR of few rows. */
struct few_plan {
    int rows, columns; /* of an item */
    int deep, wide, splits;
    int64_t blocks; /* of rows */
    size_t bytes;   /* of partial sums, at most: never less for more rows */
};
struct few_plan pnet_cuda_conv_few_plan(const struct conv_set *s, const struct conv_groups *g);

/* How many partial sums there are, and how many rows each covers: a multiple of CONV_PAIR_ROWS, except for depthwise
   layers. More rows never make fewer of them. */
struct conv_splits {
    int count;
    int64_t rows;
};
struct conv_splits pnet_cuda_conv_depthwise_split(const struct conv_set *s, int channels);

/* The plain VVOR. */
struct plain_plan {
    struct conv_groups groups;
    int tiles_a, tiles_b;
    int cells_at_once;
    int64_t blocks, bytes; /* of a launch; of one of its partial sums */
    struct conv_splits splits;
};
struct plain_plan pnet_cuda_conv_plain_plan(const struct conv_set *s, struct pnet_conv_shape shape);

/* VVOR of dense products. */
struct dense_plan {
    int tiles_a, tiles_b;
    int most, shares; /* at most: of any rows, of as many as there is room for */
    size_t bytes;
};
struct dense_plan pnet_cuda_conv_dense_plan(struct pnet_count rows, int cin, int cout);

/* The outer product of rows in 16 bits and few channels in float32. */
struct slim_plan {
    int most, shares; /* of the rows, at most: of any rows, of as many as there is room for */
    size_t bytes;
};
struct slim_plan pnet_cuda_conv_slim_plan(struct pnet_count rows, int cin, int cout);

/* VVOR from triplets, on the matrix unit. `columns`: gathered channels of a block of threads, at most. */
struct vvor_plan {
    int parts, blocks, columns, tiles_n, tiles_m, types, streams;
    int batches;    /* of bands, until a block of threads leaps over the others' rows */
    int slot;       /* sums of a block */
    int64_t window; /* rows of a launch */
    size_t measures, bound, bytes;
};
struct vvor_plan pnet_cuda_vvor_make_plan(
    const struct conv_set *s, const struct conv_groups *g, bool swapped, int columns);

/* VVOR from tiles. */
struct tiles_plan {
    int parts, columns, tiles_n, tiles_m, kinds, blocks, halves, slot;
    size_t measures, weight, first, bytes;
};
struct tiles_plan pnet_cuda_conv_tiles_plan(
    const struct conv_set *s, const struct conv_groups *g, bool swapped, int columns);

/* Likewise in float32, by kernel cell. */
struct cell_plan {
    int tiles_n, tiles_m, kinds, blocks;
    size_t measures, weight, bytes;
};
struct cell_plan pnet_cuda_conv_cell_plan(
    const struct conv_set *s, const struct conv_groups *g, bool swapped);
/* 0: the layer is not wide enough, or needs too much. */
size_t pnet_cuda_cells_vvor_work(const struct conv_set *s, const struct conv_groups *g);

/* VVOR of sorted triplets takes a set in chunks of `chunk` triplets, in the order of tiles and within a tile by cell. A
   chunk is sorted by kernel cell; the triplets of each cell are padded with rows -1 to a whole number of steps. What lies
   where in device memory: offsets in bytes. */
struct sort_plan {
    int chunks;
    int cells; /* kernel cells that are sorted together */
    int64_t tiles, chunk;
    size_t within, before, share, pair, bytes;
};
/* A chunk: its tiles; for each cell the number of triplets that its tiles have before the chunk begins (`skip`, modulo
   2^32), the number of triplets, and the step at which they begin. */
struct sort_chunk {
    int first, end;
    uint32_t skip[SORT_CELLS], count[SORT_CELLS], step[SORT_CELLS + 1];
};
/* How VVOR of sorted triplets is split; bytes is 0 where it does not serve. A kind of block of threads has 128 channels
   of the side of rows, `columns` of the gathered side, and a group. Each kind has `blocks` blocks, which share the steps
   of a chunk evenly. A block that has only some steps of a cell puts its sum into a slot; the slots are added afterwards.
   */
struct sorted_plan {
    struct sort_plan sort;
    int columns, tiles_n, tiles_m, kinds, blocks, slots;
    size_t slot_bytes, measures, bytes;
};
/* `floats`: features in float32, which are measured first and scaled to half as they are copied. `warps`: for
   conv_warps_vvor.cu, where all widths serve, a block has SORTED_SIDE or SORTED_NARROW gathered channels, and cells are sorted
   window by window where there are too many. */
struct sorted_plan pnet_cuda_conv_sorted_plan(
    const struct conv_set *s, const struct conv_groups *g, bool swapped, bool floats, bool warps);
/* The same for a dense product. */
struct sorted_plan pnet_cuda_conv_warps_outer_plan(
    struct pnet_count rows, int cin, int cout, bool floats);

/* How VVOR of layers with few input channels is split: kernel cells of a block of threads; windows of cells and blocks of
   output channels that cover all of them; shares of the rows. */
struct narrow_plan {
    int cells, windows, wide, splits;
    size_t bytes;
};
struct narrow_plan pnet_cuda_conv_narrow_plan(
    const struct conv_set *s, const struct conv_groups *g);
/* Does the kernel for few input channels serve? Only where cells times input channels exceed the columns that the kernel
   for all widths gathers for one cell anyway, and where it goes through the tiles at most twice as often: that one goes
   through them for 9 cells and 128 output channels at a time. */
bool pnet_cuda_conv_narrow_made_for(
    const struct conv_set *s, const struct conv_groups *g, enum pnet_precision precision);

/* Output channels that are summed together: the sums of all kernel cells of a wide layer at once would take too much
   memory. */
int pnet_cuda_conv_columns_at_once(int cells, const struct conv_groups *g);

/* Chunks of rows that columns are summed over. */
int pnet_cuda_conv_sum_chunks(struct pnet_count n);

/* The algorithms of conv/compare. Pieces of a workspace begin at multiples of 256 bytes. The chunks are triplets for the
   listings and for gathering, and rows for im2col. */
size_t pnet_cuda_conv_piece(size_t bytes);
size_t pnet_cuda_conv_turned_bytes(const struct pnet_triplets *t, struct pnet_conv_shape s);
int64_t pnet_cuda_conv_list_chunk(
    enum pnet_conv_algo algo, const struct pnet_triplets *t, struct pnet_conv_shape s);
int64_t pnet_cuda_conv_im2col_chunk(const struct pnet_triplets *t, int width);

/* The matrix instructions of a GPU: of a warp (mma.sync) from architecture 80 on, of four warps (wgmma) too on an H100 or
   H200. */
enum conv_unit { CONV_UNIT_NONE, CONV_UNIT_WARP, CONV_UNIT_WARPGROUP };

/* The best that the GPU at hand has and this program has kernels for; CONV_UNIT_WARPGROUP where there is no GPU. Defined in
   conv.cu; pnet_cuda_conv_unit_of asks it, and is what others ask. */
enum conv_unit pnet_cuda_conv_unit(void);

#ifdef __cplusplus
}
#endif

#endif
