/* Losses and metrics of two point sets: arguments x, y at the first two places. */
#ifndef PNET_RUNTIME_OPS_COMMON_SETS_H
#define PNET_RUNTIME_OPS_COMMON_SETS_H

#include "kernels/sets.h"
#include "runtime/plan/op.h"

enum { PNET_SETS_X, PNET_SETS_Y, PNET_SETS_INPUTS };

#define PNET_SETS_ARGS                                                                             \
    [PNET_SETS_X] = {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "predicted points, 3 channels"},       \
    [PNET_SETS_Y] = {"y", PNET_ARG_VALUE, NULL, 0, 0, NULL, "points to compare with, 3 channels"}

/* Rules: both values have 3 channels, on levels with rows of a sample. The result is one number for the batch. */
bool pnet_op_sets_rule(struct pnet_rule *r, const char *name);

/* The two sets of a step. */
struct pnet_set_pair pnet_op_sets(const struct pnet_exec *x);

#endif
