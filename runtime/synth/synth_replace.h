/* Puts a new synthetic data set into a folder, and takes away an older one: a kill at any moment leaves the one or the other,
   whole, as the index says.

   The clouds are made in FOLDER/.pnet-set-1. Then the index is replaced by one that lists them there; then they get their names
   SPLIT/NUMBER.ply as hard links (copies, where the file system has none), the index is replaced by one with these names, and
   .pnet-set-1 is removed. Clouds that only the older index lists are removed before that, while .pnet-set-1 holds the older
   index as the file `replaced`. If a kill leaves an index that lists clouds in .pnet-set-1, the next set is made in .pnet-set-2,
   and replaces what `replaced` lists too. A lock (flock on the file `lock` there) says whether a program still works
   on a folder like this; what a killed program left there is removed by the next one. Other files in FOLDER stay. */
#ifndef PNET_RUNTIME_SYNTH_REPLACE_H
#define PNET_RUNTIME_SYNTH_REPLACE_H

#include "runtime/base/file.h"

#include <stdbool.h>

struct pnet_synth_place {
    const char *folder;
    const char *made_in; /* ".pnet-set-1/", to be put before names of clouds while they are made */
    int lock;            /* descriptor */
    struct pnet_bytes
        old; /* the older index, and what it was about to replace; empty: there is none */
};

/* Makes FOLDER and the folder in it where the clouds are made, with the folders `splits`. PNET_USAGE: FOLDER holds an index and
   `replace` is false, or its name is too long; PNET_FAILED: another program makes a set there, or a system call failed. Then
   there is nothing to end. */
enum pnet_status pnet_synth_place_begin(const char *folder, bool replace, const char *const *splits,
    int split_count, struct pnet_synth_place *p, struct pnet_error *e);

/* Gives a cloud its name in FOLDER/SPLIT, which exists; the index lists it where it was made. */
enum pnet_status pnet_synth_place_cloud(
    const struct pnet_synth_place *p, const char *name, struct pnet_error *e);

/* Removes the clouds of the older index that have names of pnet_synth_generate and of which `is_new` is false. */
void pnet_synth_place_clear(const struct pnet_synth_place *p,
    bool (*is_new)(const void *context, const char *name), const void *context);

/* Ends a set that the index lists under its names. */
void pnet_synth_place_end(struct pnet_synth_place *p);
/* Ends a set that the index lists where it was made. */
void pnet_synth_place_leave(struct pnet_synth_place *p);
/* Ends a set that could not be made: FOLDER stays as it was. */
void pnet_synth_place_drop(struct pnet_synth_place *p);

#endif
