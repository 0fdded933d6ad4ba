/* metrics.jsonl of a run: a JSON object a line, for each step and each evaluation. */
#ifndef PNET_RUNTIME_TRAIN_LOG_H
#define PNET_RUNTIME_TRAIN_LOG_H

#include "runtime/train/evaluate.h"

#include <stdio.h>

struct pnet_train_log {
    FILE *file;
    char path[4096];
};

/* Opens FOLDER/metrics.jsonl and removes lines of steps beyond `step` and of evaluations beyond `validated`, which a run wrote
   after its last checkpoint. `*seconds`: the `time_s` of the last line kept. */
enum pnet_status pnet_train_log_open(struct pnet_train_log *l, const char *folder, int64_t step,
    int64_t validated, double *seconds, struct pnet_error *e);
void pnet_train_log_close(struct pnet_train_log *l);

/* One optimiser step. Owns its arrays. */
struct pnet_step_log {
    int64_t step, epoch, points;
    double
        *losses; /* [objective_count] of the plan, NaN without anything to count; metrics stay 0 */
    int *
        counted; /* [objective_count] batches of the step in which the loss found something to count */
    double loss, lr, gradient_norm, seconds, points_per_s;
};
enum pnet_status pnet_step_log_init(
    struct pnet_step_log *s, const struct pnet_plan *p, struct pnet_error *e);
void pnet_step_log_free(struct pnet_step_log *s);

enum pnet_status pnet_train_log_step(struct pnet_train_log *l, const struct pnet_plan *p,
    const struct pnet_step_log *s, struct pnet_error *e);
enum pnet_status pnet_train_log_evaluation(struct pnet_train_log *l, int64_t step, int64_t epoch,
    const struct pnet_evaluation *v, struct pnet_error *e);

#endif
