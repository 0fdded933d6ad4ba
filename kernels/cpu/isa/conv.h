/* The inner loops of convolution, compiled once for each instruction set. The functions
   of a table compute the same sums in the same order whatever the number of threads. */
#ifndef PNET_KERNELS_CPU_ISA_CONV_H
#define PNET_KERNELS_CPU_ISA_CONV_H

#include <stddef.h>
#include <stdint.h>

/* A panel is a small matrix of gathered rows that stays in the inner caches. Its stride is an odd
   number of cache lines, so that a column of it does not fall into one cache set, and a constant,
   so that the rows of a register block need one address register. */
enum { PNET_PANEL_WIDTH = 128, PNET_PANEL_STRIDE = 144, PNET_PANEL_ROWS = 112 };

/* Input channels of a thread's block of a gradient, and triplets of a group. */
enum { PNET_LISTING_DEPTH = 12, PNET_LISTING_LENGTH = 128 };

/* The triplets [begin, end) of one row and one kernel cell, counted from the first triplet of the row block; `row` counts
   from the first row of the block. */
struct pnet_run {
    int32_t row, begin, end;
};

/* Triplets of a list, and the columns of their matrices that one thread computes: at most `vector` of them. */
struct pnet_listing {
    int64_t count;
    const int32_t *row, *other;
    const uint16_t *cell;
    int depth, columns;
    /* all at their first channel; strides in floats */
    const float *in, *weight, *gout;
    float *out;
    size_t in_stride, weight_stride, gout_stride, out_stride, cell_stride;
};

struct pnet_conv_isa {
    const char *name;
    int vector; /* floats in a register; a column block is 2 registers wide */

    /* panel[r] = sum over t in run r of in[other[t]]: `columns` floats of rows `stride` floats
       apart. Floats of the panel up to the next multiple of `vector` become 0. */
    void (*sum_runs)(float *panel, const float *in, size_t stride, int columns,
        const int32_t *other, const struct pnet_run *runs, int count);

    /* panel[r] = in[runs[r].row], likewise. */
    void (*copy_rows)(float *panel, const float *in, size_t stride, int columns,
        const struct pnet_run *runs, int count);

    /* out[b][runs[r].row] += panel[r] times weight[b] for every column block b < blocks.
         weight  block b at weight + b * weight_stride: [depth][2 * vector]
         out     block b at out + b * out_stride: [rows of the block][2 * vector]
       The last block uses its first half only if `half`. */
    void (*multiply)(const float *panel, int count, int depth, const float *weight,
        size_t weight_stride, int blocks, int half, float *out, size_t out_stride,
        const struct pnet_run *runs);

    /* sum[a][b] += sum over r < count of x[r][a] * y[r][b], a < rows, b < columns; x and y are
       panels; `stride` is a multiple of `vector`, at least `columns`. */
    void (*outer)(const float *x, const float *y, int count, int rows, int columns, float *sum,
        size_t stride);

    /* One matrix of channels a kernel cell. `cell` and `other` are the triplets of one row.
         depthwise:        out[c] = sum over t of weight[cell[t]][c] * in[other[t]][c]
         depthwise_outer:  sum[cell[t]][c] += in[other[t]][c] * g[c], the inputs of a cell run
       summed first */
    void (*depthwise)(int channels, int64_t count, const uint16_t *cell, const int32_t *other,
        const float *in, const float *weight, float *out);
    void (*depthwise_outer)(int channels, int64_t count, const uint16_t *cell, const int32_t *other,
        const float *in, const float *g, float *sum);

    /* The listings: out[row][b] += in[other][a] * weight[cell][a][b], and out[cell][a][b] += in[other][a] * gout[row][b],
       here with `depth` at most that of PNET_LISTING_DEPTH. */
    void (*listing_mvmr)(const struct pnet_listing *l);
    void (*listing_vvor)(const struct pnet_listing *l);
};

/* The table for this machine: the best one its processor has, or a lower one (pnet_cpu_isa_limit). */
const struct pnet_conv_isa *pnet_conv_isa(void);

#endif
