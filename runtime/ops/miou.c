/* Intersection over union, by its other name. */
#include "runtime/ops/common.h"

enum { IN, LABEL };

static bool rule(struct pnet_rule *r)
{
    return pnet_op_confusion_rule(r, "miou");
}

const struct pnet_op pnet_op_miou = {
    .name = "miou",
    .class_ = PNET_METRIC,
    .summary = "Mean intersection over union: another name for `iou`",
    .doc = "See `iou`.",
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
    .cases = "miou(p.f -> linear(5), p.label)\n"
             "miou(z -> linear(5), p.label)\n"
             "miou(t -> linear(5), p.tag)\n",
};
