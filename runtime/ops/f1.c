/* The harmonic mean of precision and recall. */
#include "runtime/ops/common.h"

#include <math.h>

enum { IN, LABEL };

static bool rule(struct pnet_rule *r)
{
    return pnet_op_confusion_rule(r, "f1");
}

static double f1(double hits, double labels, double predictions)
{
    double all = labels + predictions;
    return all > 0 ? 2 * hits / all : (double)NAN;
}

static void finish(const struct pnet_attr *attr, const double *sum, struct pnet_metric_result *r)
{
    (void)attr;
    pnet_op_class_scores(sum, r, f1);
}

const struct pnet_op pnet_op_f1 = {
    .name = "f1",
    .class_ = PNET_METRIC,
    .summary = "F1 score, the harmonic mean of precision and recall, mean over the classes",
    .doc =
        "`2 hits / (labels + predictions)` for each class, also known as the Dice coefficient. The "
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
    .cases = "f1(p.f -> linear(5), p.label)\n"
             "f1(z -> linear(5), p.label)\n"
             "f1(t -> linear(5), p.tag)\n",
};
