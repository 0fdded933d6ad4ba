/* What a training says of itself: the report, and how its config differs from the one it was begun with. */
#ifndef PNET_RUNTIME_TRAIN_REPORT_H
#define PNET_RUNTIME_TRAIN_REPORT_H

#include "runtime/train/train.h"

/* report.html in the folder of the run; `begun_at`: the step that this process began at. */
enum pnet_status pnet_train_report(const struct pnet_train_options *o, const struct pnet_plan *plan,
    int64_t begun_at, struct pnet_error *e);
/* Tells what differs from config.yaml in the folder. PNET_USAGE: something that a training cannot go on with. */
enum pnet_status pnet_train_compare(const struct pnet_train_options *o, struct pnet_error *e);

#endif
