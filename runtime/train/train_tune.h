/* Which algorithms the convolutions of a training are formed by. */
#ifndef PNET_RUNTIME_TRAIN_TUNE_H
#define PNET_RUNTIME_TRAIN_TUNE_H

#include "runtime/run/choices.h"
#include "runtime/data/loader.h"
#include "runtime/train/train.h"

struct pnet_train_kernels {
    struct pnet_bound *bound; /* the options' plan */
    char *text;               /* for checkpoints and kernels.yaml; "": the fixed table */
};

/* In this order: --algo; where a run is gone on with, those it has (`saved`, of the checkpoint, else NULL and
   kernels.yaml of the folder); --autotune, measured on the first batch of `l`, in a session of its own that is gone
   afterwards; the fixed table. The loader has to be started again. */
enum pnet_status pnet_train_kernels_choose(const struct pnet_train_options *o, const char *saved,
    struct pnet_loader *l, struct pnet_train_kernels *k, struct pnet_error *e);
/* kernels.yaml in the folder of the run; none for the fixed table. */
enum pnet_status pnet_train_kernels_write(
    const struct pnet_train_kernels *k, const char *folder, struct pnet_error *e);
void pnet_train_kernels_free(struct pnet_train_kernels *k);

#endif
