/* Losses and metrics of two point sets: arguments x, y at the first two places. */
#ifndef PNET_RUNTIME_OPS_COMMON_SETS_H
#define PNET_RUNTIME_OPS_COMMON_SETS_H

#include "kernels/sets.h"
#include "runtime/plan/op.h"

enum { PNET_SETS_X, PNET_SETS_Y, PNET_SETS_INPUTS };
enum { PNET_SETS_X_PULL, PNET_SETS_Y_PULL }; /* saved */

#define PNET_SETS_ARGS                                                                             \
    [PNET_SETS_X] = {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "predicted points, 3 channels"},       \
    [PNET_SETS_Y] = {"y", PNET_ARG_VALUE, NULL, 0, 0, NULL, "points to compare with, 3 channels"}

/* The hidden row that gives the nearest row of another set for each row of a set; losses and metrics of the same sets share its
   result. */
extern const struct pnet_op pnet_op_near;

/* The hidden row that gives each row of x a partner in y, or -1 (kernels/emd.h: scaled, eps 0.002, at most 100,000 rounds, then
   completed, which it tells): what metrics measure the earth mover's distance by. Its sets have equal sizes, which
   pnet_op_sets_same_sizes checks as far as a rule can. */
extern const struct pnet_op pnet_op_emd_partners;

/* Rules: both values have 3 channels, on levels with rows of a sample. The result is one number for the batch. */
bool pnet_op_sets_rule(struct pnet_rule *r, const char *name);
/* Rules: fails where generated points of one row are known not to be as many in y as in x. Sizes of points of files are known
   only when they are read; then the slot checks them (PNET_SAME_SIZES). `name` is what the message calls the row. */
bool pnet_op_sets_same_sizes(struct pnet_rule *r, const char *name, const char *help);
/* Asks for the nearest rows in either direction. */
void pnet_op_sets_read_near(struct pnet_rule *r);
/* Both, for losses that are functions of nearest distances (kernels/sets.h): asks for the nearest rows in either direction,
   and keeps what set_pull makes gradients from. They have PNET_KEEP_ALL_IN, and the next two as backward. */
bool pnet_op_near_rule(struct pnet_rule *r, const char *name);
size_t pnet_op_near_backward_work(const struct pnet_exec *x);
void pnet_op_near_backward(const struct pnet_exec *x);

/* The two sets of a step, with the nearest rows where the rule asked for them. */
struct pnet_set_pair pnet_op_sets(const struct pnet_exec *x);
/* The gradients of a backward step. */
struct pnet_set_gradients pnet_op_sets_gradients(const struct pnet_exec *x);

/* Losses: the mean over the samples of which neither set is empty. The others give 0. */
struct pnet_mean pnet_op_sets_mean(const struct pnet_exec *x, double value);

/* For references: the sum over samples and both directions of `term`, over the number of samples. */
struct pnet_op_near_point {
    double square;          /* of the distance to the nearest point of the other set */
    int64_t row, near;      /* rows of the two sets */
    int64_t rows, others;   /* of the sample, in its own set and in the other one */
    const int32_t *nearest; /* of each row of its own set */
    int64_t begin;          /* first row of the sample in its own set */
    int own;                /* PNET_SETS_X: a point of x; PNET_SETS_Y */
};
double pnet_op_near_reference(const struct pnet_exec *x,
    double (*term)(const struct pnet_exec *x, const struct pnet_op_near_point *p));

#endif
