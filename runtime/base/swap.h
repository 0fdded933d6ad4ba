/* A folder replaced as a whole: a kill or a power cut at any moment leaves the old one or the new
   one.

   The new folder is filled as NAME.tmp and then changes places with NAME in one system call (Linux,
   renameat2 with RENAME_EXCHANGE). A file system without that call gets two renames, NAME to
   NAME.old and NAME.tmp to NAME; between them NAME is missing, and NAME.old is what counts. So the
   rule for readers is: NAME, or else NAME.old. NAME.tmp is never read. One process writes a folder
   at a time.

   Where NAME is a link, all of this happens to what it names. Where NAME.tmp would be too long for a
   file name, the first bytes of NAME and a hash of all of it take the place of NAME in the two. */
#ifndef PNET_RUNTIME_SWAP_H
#define PNET_RUNTIME_SWAP_H

#include "runtime/base/error.h"

#include <stdbool.h>

enum { PNET_SWAP_PATH = 4128 };

struct pnet_swap {
    char path[4096];                /* NAME */
    char temporary[PNET_SWAP_PATH]; /* NAME.tmp: the folder to fill with synced files */
    char old[PNET_SWAP_PATH];       /* NAME.old */
};

/* Puts right what a kill left behind, and makes an empty s->temporary. Folders on the way are made.
   PNET_FAILED; then there is nothing to end. */
enum pnet_status pnet_swap_begin(const char *path, struct pnet_swap *s, struct pnet_error *e);

/* Either ends it. Files in s->temporary must be synced already; commit syncs the folders, swaps,
   and removes the old one. Where commit fails, the old folder is still the one that is found,
   unless only the last sync failed. Only files are removed with a folder: one with folders inside
   stays, as NAME.tmp. */
enum pnet_status pnet_swap_commit(struct pnet_swap *s, struct pnet_error *e);
void pnet_swap_drop(struct pnet_swap *s);

/* Where the folder is now: NAME or NAME.old. PNET_FAILED where there is neither. */
enum pnet_status pnet_swap_find(const char *path, char found[PNET_SWAP_PATH], struct pnet_error *e);
/* Has anything, be it a folder, something else, or a link to what is gone, that name or NAME.old? PNET_FAILED: the
   system does not tell. */
enum pnet_status pnet_swap_exists(const char *path, bool *there, struct pnet_error *e);

#endif
