/* Files of several arrays with names: NPZ and HDF5. */
#ifndef PNET_RUNTIME_IO_ARCHIVE_H
#define PNET_RUNTIME_IO_ARCHIVE_H

#include "runtime/io/npy.h"

/* Tells by its ending whether a file has arrays with names. */
bool pnet_is_archive(const char *path);
/* Reads the array `name` of a file, recognised by its content; NULL: the first. The caller frees it with pnet_npy_free.
   PNET_BAD_DATA, PNET_FAILED, PNET_NO_MEMORY: `a` is empty. */
enum pnet_status pnet_archive_read(
    const char *path, const char *name, struct pnet_npy *a, struct pnet_error *e);
/* Finds the array that has `dims` dimensions and writes its name. Of several it is the one called xyz, points or the like, else
   the one whose name, such as normals, does not say that it holds something else. PNET_BAD_DATA: there is none, or there are
   several; the message lists the arrays. */
enum pnet_status pnet_archive_find(
    const char *path, int dims, char name[PNET_ARRAY_NAME], struct pnet_error *e);

#endif
