/* Output of a training: the report, and notices about a config that differs from the config the run began with. */
#ifndef PNET_RUNTIME_TRAIN_REPORT_H
#define PNET_RUNTIME_TRAIN_REPORT_H

#include "runtime/train/train.h"
#include "runtime/train/train_pictures.h"

/* Writes report.html into the folder of the run. `r`: memory of this process; `begun_at`: the step at which it began. */
enum pnet_status pnet_train_report(const struct pnet_train_options *o,
    const struct pnet_train_result *r, const struct pnet_train_pictures *p, int64_t begun_at,
    struct pnet_error *e);
/* Prints a notice for each key that differs from config.yaml in the folder. PNET_USAGE: a key differs that must not. */
enum pnet_status pnet_train_compare(const struct pnet_train_options *o, struct pnet_error *e);

#endif
