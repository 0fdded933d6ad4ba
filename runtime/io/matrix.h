/* Rows of numbers read from text whose length is not known in advance. */
#ifndef PNET_RUNTIME_IO_MATRIX_H
#define PNET_RUNTIME_IO_MATRIX_H

#include "runtime/io/column.h"

/* A column holds integers, PNET_I64 or PNET_U64, until a value comes that is none or does not fit; from then on all of its
   values are doubles. */
struct pnet_matrix {
    double *values;         /* [rows, width] of eight bytes, of the type of their column */
    enum pnet_scalar *type; /* [width] PNET_I64, PNET_U64 or PNET_F64 */
    int width;
    int64_t rows, capacity;
    bool rounded; /* an integer beyond 2^53 became a double that is another number */
};

/* Returns false if memory is out. The caller frees `m` in any case. */
bool pnet_matrix_begin(struct pnet_matrix *m, int width);
void pnet_matrix_free(struct pnet_matrix *m);
/* Makes the column one of doubles. */
void pnet_matrix_make_real(struct pnet_matrix *m, int k);
/* Returns a new row, to be filled; `guess`: how many more rows may come. NULL: out of memory. */
double *pnet_matrix_row(struct pnet_matrix *m, uint64_t guess);
/* Reads `word` as column `k` of the row, the last one. Returns false if it is not a number. An empty word is a missing value:
   NaN. */
bool pnet_matrix_set(struct pnet_matrix *m, double *row, int k, struct pnet_span word);

/* Makes the cloud: coordinates from the columns `axis`, the others fields named by names[width] (or
   NULL). A column of integers becomes int32 where it fits (uint8 if it is a colour, and all colours
   are bytes), else int64 or uint64; other columns are doubles. Destroys the values. On failure `c` is empty. */
enum pnet_status pnet_matrix_cloud(struct pnet_matrix *m, const struct pnet_span *names,
    const int axis[3], const char *path, struct pnet_cloud *c, struct pnet_error *e);

#endif
