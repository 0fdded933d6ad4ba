/* NPY arrays (NumPy enhancement proposal 1), versions 1 to 3, C or Fortran order, either byte order. */
#ifndef PNET_RUNTIME_IO_NPY_H
#define PNET_RUNTIME_IO_NPY_H

#include "runtime/io/cloud.h"
#include "runtime/base/error.h"

enum { PNET_NPY_DIMS = 8, PNET_NPZ_NAME = 256 };

/* Owns data: C order, native byte order. */
struct pnet_npy {
    enum pnet_scalar type; /* booleans read as PNET_U8, float16 as PNET_F32 */
    int dims;
    int64_t shape[PNET_NPY_DIMS];
    int64_t count; /* product of the shape */
    void *data;
};

enum pnet_status pnet_npy_read(const char *path, struct pnet_npy *a, struct pnet_error *e);
/* `path` inside an .npz archive: member "name" or "name.npy"; NULL: the first. */
enum pnet_status pnet_npz_read(
    const char *path, const char *member, struct pnet_npy *a, struct pnet_error *e);
/* Finds the array of an archive that has `dims` dimensions, or, of several, the one called xyz, points or the like, and writes
   its name. PNET_BAD_DATA: there is none, or there are several; the message lists the arrays. */
enum pnet_status pnet_npz_find(
    const char *path, int dims, char name[PNET_NPZ_NAME], struct pnet_error *e);
/* Atomic: temporary name, sync, rename. */
enum pnet_status pnet_npy_write(const char *path, enum pnet_scalar type, int dims,
    const int64_t *shape, const void *data, struct pnet_error *e);
void pnet_npy_free(struct pnet_npy *a);

#endif
