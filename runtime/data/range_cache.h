/* Keeps the value ranges of a data set from run to run, in a file that may be deleted. Private to runtime/data/range_*.c. */
#ifndef PNET_RUNTIME_RANGE_CACHE_H
#define PNET_RUNTIME_RANGE_CACHE_H

#include "runtime/data/range.h"

#include <stddef.h>
#include <stdint.h>

struct pnet_range_cache {
    char path[4096]; /* "": nothing is kept */
    uint64_t files;  /* hash of the text of the index, and of size, time and inode of each file */
};

/* Names the file in `folder` (NULL: nothing is kept) by the index and `key`, which says what of the data set feeds the model. The
   text of the index says which split a cloud is of, what its columns are called, and where its coordinates are: a result counts
   as long as it stays. An index that cannot be read keeps the result from being kept. */
void pnet_range_cache_open(
    struct pnet_range_cache *c, const char *folder, const char *index, const char *key);
/* Adds a file of the data set. One that cannot be looked at keeps the result from being kept. */
void pnet_range_cache_add(struct pnet_range_cache *c, const char *path);
/* Reads the ranges into the empty `r`. Returns false, and `r` stays empty, if they are not there, damaged, or of other files. */
bool pnet_range_cache_read(const struct pnet_range_cache *c, struct pnet_ranges *r);
/* Replaces the file. What cannot be written is left out. */
void pnet_range_cache_write(const struct pnet_range_cache *c, const struct pnet_ranges *r);

#endif
