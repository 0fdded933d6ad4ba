/* What the loss apml and the metric apml_support share. */
#ifndef PNET_RUNTIME_OPS_COMMON_APML_H
#define PNET_RUNTIME_OPS_COMMON_APML_H

#include "kernels/apml.h"
#include "runtime/ops/common_sets.h"

/* Places of arguments. `most` stands at a place of the row's choice, `entries` behind it. */
enum { PNET_APML_P = PNET_SETS_INPUTS, PNET_APML_TAU, PNET_APML_NEXT };

#define PNET_APML_FIRST_ARGS                                                                       \
    PNET_SETS_ARGS,                                                                                \
        [PNET_APML_P] = {"p", PNET_ARG_REAL, "0.8", 0.5, 1, NULL,                                  \
            "weight of the nearest point, if all others lie a gap farther; not 0.5 and not 1"},    \
        [PNET_APML_TAU] = {                                                                        \
            "tau", PNET_ARG_REAL, "1e-8", 1e-30, 0.1, NULL, "similarities below it are left out"}
#define PNET_APML_LIMIT_ARGS(most)                                                                 \
    [most] = {"most", PNET_ARG_INT, "64", 2, PNET_APML_MOST, NULL,                                 \
        "nearest points that a point keeps at most"},                                              \
    [(most) + 1] = {"entries", PNET_ARG_INT, "12", 2, PNET_APML_MOST, NULL,                        \
        "memory: points that a point keeps on average"}

/* Rules: two point sets, and p between its bounds. */
bool pnet_op_apml_rule(struct pnet_rule *r, const char *name);

/* The loss without its rounds. `most`: the place of that argument. */
struct pnet_apml pnet_op_apml_search(const struct pnet_exec *x, int most);

/* References: all pairs of a sample, inputs in double. Side 0 looks from rows of x to rows of y, side 1 back. */
struct pnet_apml_dense {
    const struct pnet_exec *x;
    struct pnet_apml a;
    int32_t limit[2]; /* of a side's rows */
};
struct pnet_apml_dense pnet_op_apml_dense(const struct pnet_exec *x, int most);

/* The definition's distance of row i of a side and row j of the other: float32. */
float pnet_op_apml_distance(const struct pnet_apml_dense *d, int side, int64_t i, int64_t j);

/* What row i of a side finds in rows from .. to - 1 of the other side. */
struct pnet_apml_row {
    float a, g, radius;
    double slope; /* L */
    int64_t count;
};
struct pnet_apml_row pnet_op_apml_row(
    const struct pnet_apml_dense *d, int side, int64_t i, int64_t from, int64_t to);

/* Adds the rows of a side: to sum [PNET_APML_SUMS], or NULL, what the metric counts; to *kept the points that stay at `limit`. */
void pnet_op_apml_counts(
    const struct pnet_apml_dense *d, int side, int32_t limit, double *sum, double *kept);

#endif
