/* Trained weights, named by the path of a file or a folder. */
#ifndef PNET_RUNTIME_WEIGHTS_H
#define PNET_RUNTIME_WEIGHTS_H

#include "runtime/run/runner.h"
#include "runtime/train/checkpoint.h"
#include "runtime/train/trained.h"

/* Owns its parts, but not `path`. */
struct pnet_weights {
    const char *path;
    struct pnet_checkpoint *checkpoint; /* NULL for a plain file */
    struct pnet_safetensors *file;      /* the weights of a checkpoint or of a plain file */
    struct pnet_trained trained;        /* what the file records about its training */
};

/* Opens a safetensors file, a checkpoint folder, or a run folder: its best checkpoint, else its last. The caller closes it. On
   failure there is nothing to close. */
enum pnet_status pnet_weights_open(const char *path, struct pnet_weights *w, struct pnet_error *e);
void pnet_weights_close(struct pnet_weights *w);
/* Records all files of such weights as inputs of the program (runtime/base/guard.h), those of a run's other checkpoint too.
   pnet_weights_open does it. */
enum pnet_status pnet_weights_guard(const char *path, struct pnet_error *e);

/* Copies the weights into the runner. Tensors are found by name. PNET_BAD_MODEL: the message names the first one that is missing
   or has another shape. PNET_BAD_DATA: one holds numbers that are not finite. */
enum pnet_status pnet_weights_load(
    const struct pnet_weights *w, struct pnet_runner *r, struct pnet_error *e);

#endif
