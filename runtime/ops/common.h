/* Code that several rows of the op table share. */
#ifndef PNET_RUNTIME_OPS_COMMON_H
#define PNET_RUNTIME_OPS_COMMON_H

#include "kernels/contrastive.h"
#include "kernels/conv.h"
#include "kernels/loss.h"
#include "kernels/norm.h"
#include "kernels/pool.h"
#include "runtime/plan/op.h"

/* For rows whose kernels need no workspace. */
size_t pnet_op_no_work(const struct pnet_exec *x, bool backward);

/* Bytes of workspace of a backward that computes the gradients of a layer's input and of its parameters, which need `input` and
   `params` bytes. The two are independent, and few rows leave most of a GPU idle. So on a GPU each has a workspace of its own,
   the parameters' behind the input's, and both run at once, unless together they exceed what a layer may have. */
size_t pnet_op_backward_work(const struct pnet_exec *x, size_t input, size_t params);
/* Rows with PNET_GRADS_APART call this at the end of backward, with the same bytes: runs to_input and to_params, each if its
   gradient is wanted. */
void pnet_op_backward_both(const struct pnet_exec *x, size_t input, size_t params,
    void (*to_input)(const struct pnet_exec *x, void *work),
    void (*to_params)(const struct pnet_exec *x, void *work));

/* The sum of a layer that multiplies each row by one matrix, for the choice of its kernel: forward, gradient of the input or
   gradient of the weight. */
struct pnet_conv_sum pnet_op_dense_sum(const struct pnet_exec *x, enum pnet_direction direction);

/* References: `count` numbers that the gradient takes as constant, zero in the first run, which fills them. The runs that follow
   get them as they were left, so central differences see the same constants as the gradient. *first tells the first run. */
double *pnet_op_constants(const struct pnet_exec *x, size_t count, bool *first);

/* Elements of a tensor. */
static inline int64_t pnet_op_count_of(const struct pnet_tensor *t)
{
    return t->rows * t->width;
}

/* Elements and rows of a tensor, for kernels. */
static inline struct pnet_count pnet_op_elements(const struct pnet_tensor *t)
{
    return (struct pnet_count){t->rows * t->width, t->live, t->width, t->storage};
}
static inline struct pnet_count pnet_op_rows(const struct pnet_tensor *t)
{
    return (struct pnet_count){t->rows, t->live, 1, t->storage};
}

/* Rules: the result is of the first input's type, which has features. */
bool pnet_op_rule_like_input(struct pnet_rule *r);
/* Rules: helps with how features of level `from` come to level `to`, if a layer takes them there. */
void pnet_op_rule_move_help(struct pnet_rule *r, int from, int to);
/* Rules: fails where input `other` has another level (or, with `width`, another width) than input
   0; the message names both types. `name` is the row's. */
bool pnet_op_rule_same_type(struct pnet_rule *r, const char *name, int other, bool width);
/* Rules: adds a parameter [c], without weight decay. */
int pnet_op_rule_vector(
    struct pnet_rule *r, const char *suffix, int32_t c, enum pnet_init init, bool trained);

/* Losses: the mean over all channels of all rows of input 0. */
struct pnet_mean pnet_op_elements_mean(const struct pnet_exec *x, double value);
/* Coarse and fine rows from a PARENT item. */
struct pnet_cells pnet_op_cells(const struct pnet_geo_view *g, enum pnet_storage storage);
/* The samples of a tensor as segments; splits are not read. */
struct pnet_segments pnet_op_samples(const struct pnet_tensor *t);

/* common_norm.c: rows that normalise over the points of a sample, by groups of channels.
   Parameters: weight, bias; saved: mean and inverse standard deviation [samples, groups]. */
bool pnet_op_samplenorm_rule(struct pnet_rule *r, int32_t groups);
size_t pnet_op_samplenorm_work(const struct pnet_exec *x, int32_t groups);
void pnet_op_samplenorm_forward(const struct pnet_exec *x, int32_t groups, double eps);
void pnet_op_samplenorm_backward(const struct pnet_exec *x, int32_t groups);
void pnet_op_samplenorm_reference(const struct pnet_exec *x, int32_t groups, double eps);

/* common_labels.c: losses and metrics of scores (input 0) and labels (input 1). They are taken on
   the label's points, each through the point that represents its cell on the scores' level. */

/* Rules: checks classes and levels, and asks for the cells. */
bool pnet_op_labels_rule(struct pnet_rule *r, const char *name, bool backward);
/* Rules: checks argument `arg`, a weight for each class, where it is set. */
bool pnet_op_weights_rule(struct pnet_rule *r, const char *name, int arg);
struct pnet_targets pnet_op_targets(const struct pnet_exec *x);
/* Losses: the mean over the labelled points, with `weights` [classes] over the sum of their weights; NULL: all 1. */
struct pnet_mean pnet_op_labels_mean(
    const struct pnet_exec *x, const double *weights, double value);

/* Metrics that come from the confusion matrix, [classes, classes] by label, then prediction. */
bool pnet_op_confusion_rule(struct pnet_rule *r, const char *name);
size_t pnet_op_confusion_work(const struct pnet_exec *x, bool backward);
void pnet_op_confusion_forward(const struct pnet_exec *x);
void pnet_op_confusion_reference(const struct pnet_exec *x);
/* A number for each class, from how many labels were hit and how many labels and predictions there are,
   and their mean: NaN where there is none, which does not count. */
void pnet_op_class_scores(const double *matrix, struct pnet_metric_result *r,
    double (*score)(double hits, double labels, double predictions));
/* Intersection over union: NaN where a class is neither labelled nor predicted. */
void pnet_op_iou_finish(
    const struct pnet_attr *attr, const double *sum, struct pnet_metric_result *r);

/* common_matched.c: losses of the features of two clouds (inputs 0 and 1) on matches (argument 2). */

/* Rules: checks levels and widths, and asks for the matches. */
bool pnet_op_matched_rule(struct pnet_rule *r, const char *name);
struct pnet_matched pnet_op_matched(const struct pnet_exec *x);
struct pnet_matched_gradients pnet_op_matched_gradients(const struct pnet_exec *x);
/* References: the distance of the features of row i of the source and row j of the target. */
double pnet_op_matched_distance(const struct pnet_exec *x, int64_t i, int64_t j);

#endif
