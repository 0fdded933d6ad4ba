/* Focal loss. */
#include "runtime/ops/common.h"

#include <math.h>

enum { IN, LABEL, GAMMA, WEIGHTS };
enum { DIVISOR };

static bool rule(struct pnet_rule *r)
{
    if (!pnet_op_labels_rule(r, "focal", true) || !pnet_op_weights_rule(r, "focal", WEIGHTS))
        return false;
    r->out = (struct pnet_type){PNET_F32, 1, r->scalar_level, 0, false};
    pnet_rule_save(r, r->out, true);
    return true;
}

static struct pnet_focal loss_of(const struct pnet_exec *x)
{
    return (struct pnet_focal){.targets = pnet_op_targets(x),
        .x = x->in[IN].data,
        .weight = x->attr[WEIGHTS].set ? x->attr[WEIGHTS].list.items : NULL,
        .gamma = x->attr[GAMMA].r};
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    struct pnet_focal f = loss_of(x);
    (void)backward;
    return PNET_WORK(x->device, focal_work)(&f);
}

static void forward(const struct pnet_exec *x)
{
    struct pnet_focal f = loss_of(x);
    PNET_KERNEL(x, focal)(&f, x->out.data, x->saved[DIVISOR].data, x->work);
}

static void backward(const struct pnet_exec *x)
{
    struct pnet_focal f = loss_of(x);
    const float *divisor = x->saved[DIVISOR].data, *gloss = x->gout.data;
    if (x->gin[IN].data) PNET_KERNEL(x, focal_backward)
    (&f, divisor, gloss, x->gin_add[IN], x->gin[IN].data, x->work);
}

static struct pnet_mean mean(const struct pnet_exec *x, double value)
{
    return pnet_op_labels_mean(x, x->attr[WEIGHTS].set ? x->attr[WEIGHTS].list.items : NULL, value);
}

/* Point by point, as the formula stands. */
static void reference(const struct pnet_exec *x)
{
    const int32_t *label = x->in[LABEL].data;
    const double *weights = x->attr[WEIGHTS].set ? x->attr[WEIGHTS].list.items : NULL;
    double *out = x->out.data, sum = 0, divisor = 0;
    int32_t classes = x->in[IN].width;
    for (int64_t point = 0; point < x->in[LABEL].rows; point++) {
        int64_t row = x->geo[0] ? x->geo[0]->parent[point] : point;
        const double *scores = (const double *)x->in[IN].data + row * classes;
        if (label[point] < 0 || label[point] >= classes) continue;
        double odds = 0; /* against the label */
        for (int32_t c = 0; c < classes; c++)
            if (c != label[point]) odds += exp(scores[c] - scores[label[point]]);
        double w = weights ? weights[label[point]] : 1;
        sum += w * pow(odds / (1 + odds), x->attr[GAMMA].r) * log1p(odds);
        divisor += w;
    }
    *out = divisor > 0 ? sum / divisor : 0;
}

const struct pnet_op pnet_op_focal = {
    .name = "focal",
    .class_ = PNET_LOSS,
    .summary = "Focal loss: cross entropy with more weight on points that are predicted badly",
    .doc = "`(1 - p)^gamma * -log p` with `p = softmax(x)[label]`, mean over the labelled points "
           "weighted by the label's class: `sum of w[label] * loss / sum of w[label]`. The larger "
           "`gamma`, the less weight points have whose label is already predicted well; with 0 the "
           "loss is `cross_entropy`. The label -1 is ignored; if all labels are ignored, the loss "
           "is 0. Levels are treated as in `cross_entropy`.\n\n"
           "Lin, Goyal, Girshick, He, Dollar, Focal Loss for Dense Object Detection, 2017, here "
           "with softmax over all classes.",
    .args =
        {
            [IN] = {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "scores, one channel a class"},
            [LABEL] = {"label", PNET_ARG_LABEL, NULL, 0, 0, NULL, "labels"},
            [GAMMA] = {"gamma", PNET_ARG_REAL, "2", 0, 100, NULL,
                "exponent that lowers the weight of points predicted well"},
            [WEIGHTS] = {"weights", PNET_ARG_REALS, "", 0, 0, NULL,
                "weight of each class; default: 1 for all"},
        },
    .keep = PNET_KEEP_IN0 | PNET_KEEP_IN1,
    .rule = rule,
    .work = work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .mean = mean,
    .cases = "focal(p.f -> linear(5), p.label)\n"
             "focal(x -> linear(5), p.label, gamma=0)\n"
             "focal(x -> linear(5), p.label, gamma=0.5)\n"
             "focal(z -> linear(5), p.label, gamma=3, weights=[1, 2, 0.5, 0, 3])\n"
             "focal(t -> linear(5), p.tag, weights=[1, 2, 1, 2, 1])\n",
};
