/* Losses and metrics over a split of a data set. */
#ifndef PNET_RUNTIME_EVALUATE_H
#define PNET_RUNTIME_EVALUATE_H

#include "runtime/train/loss_terms.h"
#include "runtime/train/pipeline.h"

/* The result of one objective of the plan. */
struct pnet_score_line {
    const char *name; /* the plan's */
    bool metric;
    /* loss: its mean over what it counts (docs/training.md, Evaluate), NaN if there is nothing; metric: its headline */
    double value;
    bool counted;      /* there is something of which the loss is a mean; metrics: true */
    double *per_class; /* [classes], NaN where a class never occurred; NULL */
    int32_t classes;
    double *matrix; /* [matrix_classes, matrix_classes] counts by label, then prediction; NULL */
    int32_t matrix_classes;
    struct pnet_named_value *values; /* [value_count]: further values of a metric; NULL */
    int value_count;
    double
        *error_pose; /* [16] T_true^-1 T, if the metric found the pose of exactly one pair; NULL */
};

/* Owns its lines. */
struct pnet_evaluation {
    struct pnet_score_line *lines; /* [count], as plan->objectives */
    int count;
    double loss; /* sum of the losses that count something; NaN if none does */
    int64_t samples, points;
    struct pnet_frame frame; /* of its clouds */
    double seconds;          /* of all, loading included */
    double compute_seconds;  /* of the forward passes */
};

/* Runs the loader through one epoch from its start. `go_on` (or NULL) is called after each batch; if it returns false, the
   evaluation ends with PNET_INTERRUPTED. */
enum pnet_status pnet_evaluate(struct pnet_runner *s, struct pnet_loader *l,
    bool (*go_on)(void *context, int64_t batch), void *context, struct pnet_evaluation *v,
    struct pnet_error *e);
/* Does the same and calls `each` (or NULL) with the results of every batch, numbered from 1. `each` may change `v`; it gets the
   context of go_on. */
enum pnet_status pnet_evaluate_each(struct pnet_runner *s, struct pnet_loader *l,
    bool (*go_on)(void *context, int64_t batch),
    void (*each)(void *context, int64_t batch, struct pnet_evaluation *v), void *context,
    struct pnet_evaluation *v, struct pnet_error *e);
void pnet_evaluation_free(struct pnet_evaluation *v);

/* Sums of statistics over batches; training uses them for its own epochs. */
struct pnet_tally {
    const struct pnet_plan *plan;
    double **sums; /* [objective_count][width], of metrics */
    struct pnet_loss_terms terms;
    struct pnet_mean *means; /* [terms.count] */
    int64_t samples, points;
};
enum pnet_status pnet_tally_init(
    struct pnet_tally *t, const struct pnet_plan *p, struct pnet_error *e);
void pnet_tally_free(struct pnet_tally *t);
/* Adds the statistics of the last forward of the runner, on `slot`. */
enum pnet_status pnet_tally_add(struct pnet_tally *t, const struct pnet_runner *s, int slot,
    int32_t samples, int64_t points, struct pnet_error *e);
/* Adds those of the metrics alone: the losses count nothing. */
void pnet_tally_add_metrics(struct pnet_tally *t, const struct pnet_runner *s);
enum pnet_status pnet_tally_finish(
    const struct pnet_tally *t, struct pnet_evaluation *v, struct pnet_error *e);

#endif
