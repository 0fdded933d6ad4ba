/* The share of labels that are found. */
#include "runtime/ops/common.h"

#include <math.h>

enum { IN, LABEL };

static bool rule(struct pnet_rule *r)
{
    return pnet_op_confusion_rule(r, "recall");
}

/* 0 where a class is predicted, but never labelled. */
static double recall(double hits, double labels, double predictions)
{
    if (labels + predictions == 0) return (double)NAN;
    return labels > 0 ? hits / labels : 0;
}

static void finish(const struct pnet_attr *attr, const double *sum, struct pnet_metric_result *r)
{
    (void)attr;
    pnet_op_class_scores(sum, r, recall);
}

const struct pnet_op pnet_op_recall = {
    .name = "recall",
    .class_ = PNET_METRIC,
    .summary = "Share of the labels that are found, mean over the classes",
    .doc = "`hits / labels` for each class, 0 for one that is predicted but never labelled, which "
           "`mean_accuracy` leaves out. The headline is the mean over the classes that are "
           "labelled or predicted somewhere. Points with the label -1 are ignored. "
           "Levels are treated as in `cross_entropy`.",
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
    .cases = "recall(p.f -> linear(5), p.label)\n"
             "recall(z -> linear(5), p.label)\n"
             "recall(t -> linear(5), p.tag)\n",
};
