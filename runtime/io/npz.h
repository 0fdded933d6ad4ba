/* Arrays in NPZ archives. */
#ifndef PNET_RUNTIME_IO_NPZ_H
#define PNET_RUNTIME_IO_NPZ_H

#include "runtime/io/named_arrays.h"

/* Reads the member "name" or "name.npy" of the archive `b` into the empty array `a`; `name` NULL: the first. PNET_BAD_DATA,
   PNET_NO_MEMORY. */
enum pnet_status pnet_npz_array(const struct pnet_bytes *b, const char *path, const char *name,
    struct pnet_npy *a, struct pnet_error *e);
/* Shows all arrays of the archive to the search. PNET_BAD_DATA, PNET_NO_MEMORY. */
enum pnet_status pnet_npz_search(const struct pnet_bytes *b, const char *path,
    struct pnet_array_search *s, struct pnet_error *e);

#endif
