/* The header of an NPY array: a Python dictionary with type, order and shape. */
#ifndef PNET_RUNTIME_IO_NPY_HEADER_H
#define PNET_RUNTIME_IO_NPY_HEADER_H

#include "runtime/io/column.h"
#include "runtime/io/npy.h"

/* One item of the array is described by packed `columns`: one column without a name for a plain type, or those of the
   structured type (padding is skipped). */
struct pnet_npy_header {
    struct pnet_columns columns;
    bool structured, fortran;
    int dims;
    int64_t shape[PNET_NPY_DIMS];
    int64_t count;       /* items */
    size_t item;         /* bytes of one */
    const uint8_t *data; /* count * item bytes, within the file */
};

/* Names in the columns point into `b`. Free h->columns in any case. */
enum pnet_status pnet_npy_header_read(
    const struct pnet_bytes *b, const char *path, struct pnet_npy_header *h, struct pnet_error *e);

/* Makes the array that a header of plain numbers describes. PNET_BAD_DATA: it has a structured type. PNET_NO_MEMORY. */
enum pnet_status pnet_npy_convert(
    const struct pnet_npy_header *h, const char *path, struct pnet_npy *a, struct pnet_error *e);

/* Returns the type as NPY writes it: "<f4". */
const char *pnet_npy_code(enum pnet_scalar type);
/* Writes a header, padded so that mapped data is aligned. `descr` is the type as Python writes it: '<f4' with its quotes, or a
   list of fields. The owner of the stream handles its errors. */
void pnet_npy_header_write(FILE *f, const char *descr, int dims, const int64_t *shape);

#endif
