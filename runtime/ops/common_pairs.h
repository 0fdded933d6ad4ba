/* Metrics of features that belong together: arguments fs, fd, T at the first three places. */
#ifndef PNET_RUNTIME_OPS_COMMON_PAIRS_H
#define PNET_RUNTIME_OPS_COMMON_PAIRS_H

#include "runtime/plan/op.h"
#include "runtime/register/register.h"

enum { PNET_PAIRS_SOURCE, PNET_PAIRS_TARGET, PNET_PAIRS_POSE, PNET_PAIRS_INPUTS };

#define PNET_PAIRS_ARGS                                                                            \
    [PNET_PAIRS_SOURCE] = {"fs", PNET_ARG_VALUE, NULL, 0, 0, NULL, "features of the source"},      \
    [PNET_PAIRS_TARGET] = {"fd", PNET_ARG_VALUE, NULL, 0, 0, NULL, "features of the target"},      \
    [PNET_PAIRS_POSE] = {"T", PNET_ARG_POSE, NULL, 0, 0, NULL, "the true pose, source to target"}

/* Rules: features of equal width on levels of two clouds, the source declared first; asks for the positions of both
   levels. */
bool pnet_op_pairs_rule(struct pnet_rule *r, const char *name);

/* One sample of the batch, and which of its points were matched. */
struct pnet_op_pairs {
    int64_t source_rows, target_rows;
    const float *source, *target; /* [rows, 3] */
    double truth[16];
    struct pnet_match *pairs;
    int64_t count;
    double distinct, shared; /* struct pnet_register_choice over the number of drawn source rows */
    struct pnet_rand rand;   /* for what comes next */
};

/* Draws `points` rows a side, the same whatever the place in the batch, and matches them. The pairs lie in `work` up
   to *used; behind that it is free again. */
size_t pnet_op_pairs_work(const struct pnet_exec *x, int64_t points, size_t *used);
void pnet_op_pairs_make(const struct pnet_exec *x, int32_t sample, int64_t points, bool mutual,
    struct pnet_op_pairs *p);

/* For references: the same from features in double by comparing every pair; `pairs` is to be freed. */
void pnet_op_pairs_reference(const struct pnet_exec *x, int32_t sample, int64_t points, bool mutual,
    struct pnet_op_pairs *p);

/* Appends a value to those behind the headline. */
void pnet_metric_name(struct pnet_metric_result *r, const char *name, double value);

#endif
