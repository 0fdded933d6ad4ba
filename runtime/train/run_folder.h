/* The folder of a run during a training. One process at a time uses it, and a training that could not begin leaves nothing in
   it. */
#ifndef PNET_RUNTIME_RUN_FOLDER_H
#define PNET_RUNTIME_RUN_FOLDER_H

#include "runtime/base/error.h"

#include <stdbool.h>

struct pnet_run_folder {
    char path[4096];
    char made[4096]; /* topmost folder that was created for it; "": all existed */
    unsigned had;    /* bit i: file i of the files that a training writes existed before */
    int lock;        /* descriptor of FOLDER/lock; -1: not open */
};

/* Creates the folder and its parents, and locks it. The lock is the operating system's (flock) on the file `lock`, which
   holds the process number, so the lock ends with the process in any case. PNET_FAILED: another process holds the lock, and the
   message names it; or a system call fails. Then nothing is left open. */
enum pnet_status pnet_run_folder_open(
    const char *path, struct pnet_run_folder *f, struct pnet_error *e);
/* Removes the file `lock` and ends the lock. A folder that is not open is left alone. */
void pnet_run_folder_close(struct pnet_run_folder *f);
/* The same, and removes the files and folders that did not exist before, except checkpoints. */
void pnet_run_folder_undo(struct pnet_run_folder *f);

/* Replaces FOLDER/NAME. */
enum pnet_status pnet_run_folder_write(
    const struct pnet_run_folder *f, const char *name, const char *text, struct pnet_error *e);
/* *there: the folder has a checkpoint of that name, intact or damaged. PNET_FAILED: the system does not say. */
enum pnet_status pnet_run_folder_holds(
    const struct pnet_run_folder *f, const char *checkpoint, bool *there, struct pnet_error *e);

#endif
