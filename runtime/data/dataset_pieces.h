/* Large files of a data set, which are gone through in pieces where all of their points would need much memory. */
#ifndef PNET_RUNTIME_DATASET_PIECES_H
#define PNET_RUNTIME_DATASET_PIECES_H

#include "runtime/base/error.h"
#include "runtime/io/cloud.h"

#include <stdbool.h>
#include <stdint.h>

/* Sees a piece, whose first row is row `first` of the file. */
typedef enum pnet_status pnet_see_piece(
    void *to, const struct pnet_cloud *c, int64_t first, struct pnet_error *e);

/* Calls `see` with the pieces of a file of more than 32 MiB in order, their columns named by the hints; smaller files are read
   faster as a whole. `warning` (or NULL) as in pnet_cloud_read_as. *done is false where the file is to be read as a whole,
   though some pieces may have been seen: a small one, one of a format that is not read in pieces, and one with an error, which is
   found again then, with its message. PNET_NO_MEMORY, from `see` too. */
enum pnet_status pnet_see_large_cloud(const char *path, const struct pnet_cloud_hints *hints,
    pnet_see_piece *see, void *to, char warning[256], bool *done, struct pnet_error *e);

#endif
