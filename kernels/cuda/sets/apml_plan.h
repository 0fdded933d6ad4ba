/* The parts of the workspaces of APML. Host arithmetic, in every build. */
#ifndef PNET_KERNELS_CUDA_APML_PLAN_H
#define PNET_KERNELS_CUDA_APML_PLAN_H

#include "kernels/apml.h"

enum { PNET_APML_LONG = 2048 /* entries of a row above which a block adds them up */ };

/* Of the forward step. The search writes the supports of rows to the plan's by_row, and those of columns, by rows of y, to its
   by_column. The latter move to by_y[1] and come back transposed; the former are transposed to by_y[0]. `search` ends before
   that, and shares its memory with what comes behind it here. */
struct pnet_cuda_apml_room {
    int32_t *finite;
    int32_t *long_count[2], *long_row[2]; /* rows with long lists, of x, of y */
    double *slice;                        /* [2 * SLICES]: sums of the loss */
    int64_t *sums;                        /* of scans */
    int64_t *
        start; /* [larger number of rows + 2]: of the supports of rows, then of each transposed list */
    int64_t *start_y; /* [rows of y + 1]: of the supports of columns */
    void *search;
    struct pnet_apml_entry *by_y[2]; /* the supports of rows, of columns */
    int32_t *begin_split;            /* [1]: the half round from which exponents of factors count */
    float *part[2];   /* [rows of x], [rows of y]: of factors; before that, rows to sort */
    int8_t *steps[2]; /* as `part`: of their exponents */
};

/* Of the backward step, which transposes one list after the other. */
struct pnet_cuda_apml_backward_room {
    int32_t *finite, *long_count, *long_row;
    struct pnet_cuda_apml_box *box; /* [samples, parts of a sample] */
    int64_t *sums, *start;          /* start [rows of y + 2] */
    int32_t *longer;                /* [rows of y] */
    struct pnet_apml_entry *by_y;
};

/* The box of some points. */
struct pnet_cuda_apml_box {
    float low[3], high[3];
    int32_t finite; /* all coordinates */
};

#ifdef __cplusplus
extern "C" {
#endif

/* Return the bytes of a workspace; with `work` NULL they do nothing else. */
size_t pnet_cuda_apml_room(const struct pnet_apml *a, void *work, struct pnet_cuda_apml_room *p);
size_t pnet_cuda_apml_backward_room(
    const struct pnet_apml *a, void *work, struct pnet_cuda_apml_backward_room *p);

#ifdef __cplusplus
}
#endif

#endif
