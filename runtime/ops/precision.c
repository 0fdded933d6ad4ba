/* The share of predictions that are right. */
#include "runtime/ops/common.h"

#include <math.h>

enum { IN, LABEL };

static bool rule(struct pnet_rule *r)
{
    return pnet_op_confusion_rule(r, "precision");
}

/* 0 where a class is labelled, but never predicted. */
static double precision(double hits, double labels, double predictions)
{
    if (labels + predictions == 0) return (double)NAN;
    return predictions > 0 ? hits / predictions : 0;
}

static void finish(const struct pnet_attr *attr, const double *sum, struct pnet_metric_result *r)
{
    (void)attr;
    pnet_op_class_scores(sum, r, precision);
}

const struct pnet_op pnet_op_precision = {
    .name = "precision",
    .class_ = PNET_METRIC,
    .summary = "Share of the predictions that are right, mean over the classes",
    .doc =
        "`hits / predictions` for each class, 0 for one that is labelled but never predicted. The "
        "headline is the mean over the classes that are labelled or predicted somewhere. Points "
        "with the label -1 are ignored. Levels are treated as in `cross_entropy`.",
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
    .cases = "precision(p.f -> linear(5), p.label)\n"
             "precision(z -> linear(5), p.label)\n"
             "precision(t -> linear(5), p.tag)\n",
};
