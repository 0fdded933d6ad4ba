/* The share of labels that are predicted, class by class. */
#include "runtime/ops/common.h"

#include <math.h>

enum { IN, LABEL };

static bool rule(struct pnet_rule *r)
{
    return pnet_op_confusion_rule(r, "mean_accuracy");
}

static double recall(double hits, double labels, double predictions)
{
    (void)predictions;
    return labels > 0 ? hits / labels : (double)NAN;
}

static void finish(const struct pnet_attr *attr, const double *sum, struct pnet_metric_result *r)
{
    (void)attr;
    pnet_op_class_scores(sum, r, recall);
}

const struct pnet_op pnet_op_mean_accuracy = {
    .name = "mean_accuracy",
    .class_ = PNET_METRIC,
    .summary = "Share of the labels that are predicted, mean over the classes",
    .doc = "For each class, the share of its labels that are predicted; the headline is the mean "
           "over the "
           "classes that occur. The label -1 is ignored. Levels are treated as in `cross_entropy`.",
    .args =
        {
            [IN] = {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "scores, one channel a class"},
            [LABEL] = {"label", PNET_ARG_LABEL, NULL, 0, 0, NULL, "labels"},
        },
    .flags = PNET_NO_GRAD,
    .rule = rule,
    .work = pnet_op_confusion_work,
    .forward = pnet_op_confusion_forward,
    .reference = pnet_op_confusion_reference,
    .finish = finish,
    .cases = "mean_accuracy(p.f -> linear(5), p.label)\n"
             "mean_accuracy(z -> linear(5), p.label)\n"
             "mean_accuracy(t -> linear(5), p.tag)\n",
};
