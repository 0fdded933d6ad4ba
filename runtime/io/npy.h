/* NPY arrays (NumPy enhancement proposal 1), versions 1 to 3, C or Fortran order, either byte order. */
#ifndef PNET_RUNTIME_IO_NPY_H
#define PNET_RUNTIME_IO_NPY_H

#include "runtime/io/cloud.h"
#include "runtime/base/file.h"

enum { PNET_NPY_DIMS = 8, PNET_ARRAY_NAME = 256 };

/* Owns data: C order, native byte order. */
struct pnet_npy {
    enum pnet_scalar type; /* booleans read as PNET_U8, float16 as PNET_F32 */
    int dims;
    int64_t shape[PNET_NPY_DIMS];
    int64_t count; /* product of the shape */
    void *data;
};

enum pnet_status pnet_npy_read(const char *path, struct pnet_npy *a, struct pnet_error *e);
/* The same of the bytes of a file. */
enum pnet_status pnet_npy_read_bytes(
    const struct pnet_bytes *b, const char *path, struct pnet_npy *a, struct pnet_error *e);
/* Atomic: temporary name, sync, rename. */
enum pnet_status pnet_npy_write(const char *path, enum pnet_scalar type, int dims,
    const int64_t *shape, const void *data, struct pnet_error *e);
void pnet_npy_free(struct pnet_npy *a);

/* An array that is written in pieces, with the bytes that pnet_npy_write writes. An open one must not be moved. */
struct pnet_npy_output {
    struct pnet_output output;
    size_t item;  /* bytes of a value */
    int64_t left; /* values that have not been put */
};
/* Begins a file: its name is given when it is committed. On failure there is nothing to drop. PNET_USAGE, PNET_FAILED. */
enum pnet_status pnet_npy_begin(const char *path, enum pnet_scalar type, int dims,
    const int64_t *shape, struct pnet_npy_output *o, struct pnet_error *e);
/* Puts the next `count` values, of the type of the array, in C order. On failure `o` can only be dropped. PNET_USAGE: more than
   the shape has; PNET_FAILED. */
enum pnet_status pnet_npy_put(
    struct pnet_npy_output *o, const void *data, int64_t count, struct pnet_error *e);
/* Commits the file, or leaves none: PNET_USAGE, values are missing; PNET_FAILED. */
enum pnet_status pnet_npy_commit(struct pnet_npy_output *o, struct pnet_error *e);
void pnet_npy_drop(struct pnet_npy_output *o);

#endif
