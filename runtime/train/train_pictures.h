/* What a completion model makes of a few samples, for the report. */
#ifndef PNET_RUNTIME_TRAIN_PICTURES_H
#define PNET_RUNTIME_TRAIN_PICTURES_H

#include "runtime/run/runner.h"
#include "runtime/train/report_clouds.h"
#include "runtime/train/train.h"

enum { PNET_TRAIN_PICTURES = 4 };

/* Zeroed: none. */
struct pnet_train_pictures {
    struct pnet_report_sample samples[PNET_TRAIN_PICTURES];
    size_t count;
};

/* Runs the runner forward on samples of the validation split that lie evenly in its order, always the same ones. Both slots of
   the runner must be free. There are no pictures if the data set is not for completion, or the plan predicts no points. The
   caller frees *p, also after a failure. */
enum pnet_status pnet_train_pictures_make(const struct pnet_train_options *o, struct pnet_runner *s,
    struct pnet_train_pictures *p, struct pnet_error *e);
void pnet_train_pictures_free(struct pnet_train_pictures *p);

#endif
