/* Finds the value ranges of a source: the clouds of a data set, or the files of one command. Each file is read once, one at a
   time. A file is left out if its header shows that it cannot change a decision, as all files with uint8 colours do. */
#ifndef PNET_RUNTIME_RANGE_SCAN_H
#define PNET_RUNTIME_RANGE_SCAN_H

#include "runtime/data/dataset.h"
#include "runtime/data/input_map.h"

struct pnet_range_scan {
    const struct pnet_input_map *map; /* its own ranges do not count */
    const struct pnet_input *inputs;  /* of the model */
    int roles
        [2]; /* inputs that the first and the second cloud of an entry feed; [1]: -1 of single clouds */
    /* Looks at every cloud and counts those that alone would be divided by another number; else clouds that can no longer change
       the decision are left out. */
    bool whole;
    const char *cache; /* folder that keeps the results of data sets; NULL: none */
    bool (*stop)(
        void); /* asked before each file; true: the scan ends with PNET_INTERRUPTED. May be NULL. */
    /* Called once if more than 256 MiB are about to be read; may be NULL. */
    void (*note)(void *context, const char *text);
    void *context;
};

/* Adds the ranges of the clouds of some splits to the empty `r`: bit k of `splits` is split k. The colours of all of them
   count, other features of the splits `fed` alone. A result is kept in s->cache, under the path of the index and what feeds the
   model. It counts as long as the text of the index stays, and no file changes its size, its time or its inode; a cache that
   cannot be read or written is ignored. PNET_BAD_DATA: a colour is negative or larger than 65535; errors of pnet_cloud_read;
   PNET_INTERRUPTED. */
enum pnet_status pnet_ranges_of_dataset(const struct pnet_range_scan *s,
    const struct pnet_dataset *d, unsigned splits, unsigned fed, struct pnet_ranges *r,
    struct pnet_error *e);

/* Adds the ranges of the colours of files, which all feed the input roles[0]. What is no regular file, such as a pipe, can be
   read only once, and is left out. `hints` as in pnet_cloud_read_as. */
enum pnet_status pnet_ranges_of_files(const struct pnet_range_scan *s, char *const *paths,
    int64_t count, const struct pnet_cloud_hints *hints, struct pnet_ranges *r,
    struct pnet_error *e);

#endif
