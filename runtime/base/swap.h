/* A folder replaced as a whole: a kill or a power cut at any moment leaves the old one or the new
   one.

   The new folder is filled as NAME.tmp and then changes places with NAME in one system call (Linux,
   renameat2 with RENAME_EXCHANGE). A file system without that call gets two renames, NAME to
   NAME.old and NAME.tmp to NAME; between the two NAME is missing, and NAME.old is the valid folder. So
   readers take NAME, or else NAME.old. NAME.tmp is never read. One process writes a folder
   at a time.

   The new folder, and files in it that the old one has too, get the owner, group and permissions of the old ones, as far as the
   user may give them.

   If NAME is a link, the folder it leads to is replaced. If NAME.tmp would be too long for a
   file name, both other names begin with the first bytes of NAME and a hash of NAME instead. */
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

/* Repairs the state that a kill left, and creates an empty s->temporary, with its parent folders.
   PNET_FAILED; then neither commit nor drop is called. */
enum pnet_status pnet_swap_begin(const char *path, struct pnet_swap *s, struct pnet_error *e);

/* Each swap ends by one of the two calls. Files in s->temporary must be synced already; commit syncs the folders, swaps them,
   and removes the old one. If commit fails, readers still find the old folder, unless only the last sync failed. A folder is
   removed with its files; if it contains folders it stays, as NAME.tmp. */
enum pnet_status pnet_swap_commit(struct pnet_swap *s, struct pnet_error *e);
void pnet_swap_drop(struct pnet_swap *s);

/* Removes NAME.tmp, and NAME.old if NAME exists, as far as possible: what a program left that was killed. */
void pnet_swap_clear(const char *path);

/* Sets the present place of the folder: NAME or NAME.old. PNET_FAILED: neither exists. */
enum pnet_status pnet_swap_find(const char *path, char found[PNET_SWAP_PATH], struct pnet_error *e);
/* *there: NAME or NAME.old exists, as a folder, another kind of file, or a link to nothing. PNET_FAILED: the system cannot
   tell. */
enum pnet_status pnet_swap_exists(const char *path, bool *there, struct pnet_error *e);

#endif
