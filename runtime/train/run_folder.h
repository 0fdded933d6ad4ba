/* The folder of a run, while a training works in it: one process at a time, and nothing is left of a training that
   could not begin. */
#ifndef PNET_RUNTIME_RUN_FOLDER_H
#define PNET_RUNTIME_RUN_FOLDER_H

#include "runtime/base/error.h"

#include <stdbool.h>

struct pnet_run_folder {
    char path[4096];
    char made[4096]; /* the topmost folder that was made for it; "": all were there */
    unsigned had;    /* bit i: file i of those that a training writes was there */
    int lock;        /* descriptor of FOLDER/lock; -1: not open */
};

/* Makes the folder, with those on the way, and locks it. The lock is the kernel's (flock) on the file `lock`, which
   holds the process number: it ends with the process, however that ends. PNET_FAILED: another process has it, the
   message names it; or the system refuses something. Then nothing is left open. */
enum pnet_status pnet_run_folder_open(
    const char *path, struct pnet_run_folder *f, struct pnet_error *e);
/* Removes the file `lock` and ends the lock. A folder that is not open is left alone. */
void pnet_run_folder_close(struct pnet_run_folder *f);
/* The same, and removes the files, though not the checkpoints, and folders that were not there before. */
void pnet_run_folder_undo(struct pnet_run_folder *f);

/* Replaces FOLDER/NAME. */
enum pnet_status pnet_run_folder_write(
    const struct pnet_run_folder *f, const char *name, const char *text, struct pnet_error *e);
/* Is there a checkpoint of that name, sound or damaged? PNET_FAILED: nobody can tell. */
enum pnet_status pnet_run_folder_holds(
    const struct pnet_run_folder *f, const char *checkpoint, bool *there, struct pnet_error *e);

#endif
