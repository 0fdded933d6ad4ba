/* Checkpoints: everything from which a training resumes with the same bits, in a folder that is replaced as a whole.

     weights.safetensors     parameters and running statistics
     optimizer.safetensors   the optimiser's state; left out if no training will resume from here
     state.json              counters, metrics, texts; size and CRC-32 of the two other files, and
                             CRC-32 of itself
   Writing is atomic as runtime/base/swap.h has it: a kill at any moment leaves the last good checkpoint.
 */
#ifndef PNET_RUNTIME_CHECKPOINT_H
#define PNET_RUNTIME_CHECKPOINT_H

#include "runtime/base/error.h"
#include "runtime/train/safetensors.h"

#include <stddef.h>
#include <stdint.h>

struct pnet_counter {
    const char *name;
    int64_t value;
};

struct pnet_score {
    const char *name;
    double value; /* any value, also NaN and infinities */
};

struct pnet_checkpoint_state {
    int64_t epoch;           /* epoch in which to resume, from 0 */
    int64_t step;            /* optimiser steps done, from the start of the training */
    int64_t loader_position; /* samples of this epoch already used */
    double optimizer_step;   /* t of Adam's bias correction: skipped steps do not count */
    uint64_t seed;
    const struct pnet_counter *counters; /* [counter_count], names differ */
    size_t counter_count;
    const struct pnet_score *metrics; /* [metric_count] so far, names differ */
    size_t metric_count;
    const char *model;     /* text of the .pnet file */
    const char *input_map; /* how fields of the data set feed the inputs, as in the run config */
    const char *kernels;   /* kernel choices of --autotune */
    const char *params;    /* values of the model's params, "name=value" a line */
    const struct pnet_metadata
        *metadata; /* [metadata_count] of weights.safetensors, to be written */
    size_t metadata_count;
    uint64_t model_hash; /* pnet_checkpoint_hash of `model`; filled in by writing */
};

/* Returns the FNV-1a hash of 64 bits (Fowler, Noll and Vo). */
uint64_t pnet_checkpoint_hash(const char *text);

/* Replaces or makes `folder`. `optimizer` NULL: without its file. Texts may be NULL (empty); bytes in them that are not UTF-8 are
   stored as U+FFFD, while the hash is of the text as given. PNET_FAILED (full disk, permissions):
   the old checkpoint is as it was. A process whose file size is limited (RLIMIT_FSIZE) must ignore
   SIGXFSZ to get the error. */
enum pnet_status pnet_checkpoint_write(const char *folder,
    const struct pnet_checkpoint_state *state, const struct pnet_safetensor *weights,
    size_t weight_count, const struct pnet_safetensor *optimizer, size_t optimizer_count,
    struct pnet_error *e);

/* Owns everything it points to. */
struct pnet_checkpoint {
    struct pnet_checkpoint_state state;           /* texts are never NULL */
    struct pnet_safetensors *weights, *optimizer; /* optimizer NULL: there is none */
    struct pnet_checkpoint_memory *memory;
};

/* Reads a checkpoint of pnet_checkpoint_write, also if its writer was killed or is writing the next one. PNET_FAILED: there is
   none; PNET_BAD_DATA: a file is damaged. Then *c is NULL. */
enum pnet_status pnet_checkpoint_read(
    const char *folder, struct pnet_checkpoint **c, struct pnet_error *e);
void pnet_checkpoint_free(struct pnet_checkpoint *c);

/* Reads only the text of a state.json: weights and optimizer are NULL. `name` is for messages. */
enum pnet_status pnet_checkpoint_parse_state(const char *name, const char *text, size_t size,
    struct pnet_checkpoint **c, struct pnet_error *e);

#endif
