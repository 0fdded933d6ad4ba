/* Intersection over union. */
#include "runtime/ops/common.h"

enum { IN, LABEL };

static bool rule(struct pnet_rule *r)
{
    return pnet_op_confusion_rule(r, "iou");
}

const struct pnet_op pnet_op_iou = {
    .name = "iou",
    .class_ = PNET_METRIC,
    .summary = "Intersection over union of each class, and their mean",
    .doc = "`hits / (labels + predictions - hits)` for each class; the headline is the mean over "
           "the classes "
           "that are labelled or predicted somewhere. Points with the label -1 are ignored. Levels "
           "are treated as in `cross_entropy`.",
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
    .finish = pnet_op_iou_finish,
    .cases = "iou(p.f -> linear(5), p.label)\n"
             "iou(z -> linear(5), p.label)\n"
             "iou(t -> linear(5), p.tag)\n",
};
