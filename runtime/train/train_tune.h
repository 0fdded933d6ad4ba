/* Chooses the algorithms that the convolutions of a training use. */
#ifndef PNET_RUNTIME_TRAIN_TUNE_H
#define PNET_RUNTIME_TRAIN_TUNE_H

#include "runtime/run/choices.h"
#include "runtime/data/loader.h"
#include "runtime/train/train.h"

struct pnet_train_kernels {
    struct pnet_bound *bound; /* the options' plan, bound with the chosen algorithms */
    char *text;               /* text of kernels.yaml, for checkpoints too; "": the fixed table */
};

/* Chooses by the first of these that applies: --algo; the choices of a run that resumes (`saved`, from the checkpoint; if it
   is NULL, kernels.yaml of the folder); --autotune, measured on the first batch of `l` in a runner that is freed
   afterwards; the fixed table. The caller must start the loader again, and frees *k by pnet_train_kernels_free. */
enum pnet_status pnet_train_kernels_choose(const struct pnet_train_options *o, const char *saved,
    struct pnet_loader *l, struct pnet_train_kernels *k, struct pnet_error *e);
/* Writes kernels.yaml into the folder of the run; for the fixed table no file is left there. */
enum pnet_status pnet_train_kernels_write(
    const struct pnet_train_kernels *k, const char *folder, struct pnet_error *e);
void pnet_train_kernels_free(struct pnet_train_kernels *k);

#endif
