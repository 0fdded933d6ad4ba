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

/* PNET_USAGE: the folder holds something that no run made. A folder that is missing or empty, or that holds a checkpoint or
   no more than a training that was killed before its first one wrote, passes; so does the file into which the program
   prints. */
enum pnet_status pnet_run_folder_check(const char *path, struct pnet_error *e);
/* Records the files that a training writes besides its checkpoints as inputs of the program (runtime/base/guard.h). */
enum pnet_status pnet_run_folder_guard(const char *path, struct pnet_error *e);

/* Checks the folder, creates it and its parents, and locks it. The lock is the operating system's (flock) on the file
   `lock`, which holds the process number, so the lock ends with the process in any case. PNET_FAILED: another process holds
   the lock, and the message names it; or a system call fails. PNET_USAGE: pnet_run_folder_check, or the file `lock` is an
   input. Then nothing is left open. */
enum pnet_status pnet_run_folder_open(
    const char *path, struct pnet_run_folder *f, struct pnet_error *e);
/* Removes the file `lock` and ends the lock. A folder that is not open is left alone. */
void pnet_run_folder_close(struct pnet_run_folder *f);
/* The same, and removes the files and folders that did not exist before, except checkpoints. */
void pnet_run_folder_undo(struct pnet_run_folder *f);

/* Checks, before the training writes, that it replaces no input, and removes what a killed training has left unfinished. A
   run that resumes may get its own config.yaml and model.pnet as inputs: the one is replaced by the effective config, and
   the other stays if it holds `model_text`. PNET_USAGE. */
enum pnet_status pnet_run_folder_begin(
    const struct pnet_run_folder *f, bool resume, const char *model_text, struct pnet_error *e);
/* Replaces FOLDER/NAME, unless it has that text. */
enum pnet_status pnet_run_folder_write(
    const struct pnet_run_folder *f, const char *name, const char *text, struct pnet_error *e);
/* *there: the folder has a checkpoint of that name, intact or damaged. PNET_FAILED: the system does not say. */
enum pnet_status pnet_run_folder_holds(
    const struct pnet_run_folder *f, const char *checkpoint, bool *there, struct pnet_error *e);

#endif
