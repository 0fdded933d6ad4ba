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

#endif
