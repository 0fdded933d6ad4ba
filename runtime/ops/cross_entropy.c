/* Cross entropy with labels. */
#include "runtime/ops/common.h"

#include <math.h>

enum { IN, LABEL, WEIGHTS, SMOOTHING };
enum { DIVISOR };

static bool rule(struct pnet_rule *r)
{
    if (!pnet_op_labels_rule(r, "cross_entropy", true) ||
        !pnet_op_weights_rule(r, "cross_entropy", WEIGHTS))
        return false;
    r->out = (struct pnet_type){PNET_F32, 1, r->scalar_level, 0, false};
    pnet_rule_save(r, r->out, true);
    return true;
}

static struct pnet_cross_entropy loss_of(const struct pnet_exec *x)
{
    return (struct pnet_cross_entropy){.targets = pnet_op_targets(x),
        .x = x->in[IN].data,
        .weight = x->attr[WEIGHTS].set ? x->attr[WEIGHTS].list.items : NULL,
        .smoothing = x->attr[SMOOTHING].r};
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    struct pnet_cross_entropy e = loss_of(x);
    (void)backward;
    return PNET_WORK(x->device, cross_entropy_work)(&e);
}

static void forward(const struct pnet_exec *x)
{
    struct pnet_cross_entropy e = loss_of(x);
    PNET_KERNEL(x, cross_entropy)(&e, x->out.data, x->saved[DIVISOR].data, x->work);
}

static void backward(const struct pnet_exec *x)
{
    struct pnet_cross_entropy e = loss_of(x);
    const float *divisor = x->saved[DIVISOR].data, *gloss = x->gout.data;
    if (x->gin[IN].data) PNET_KERNEL(x, cross_entropy_backward)
    (&e, divisor, gloss, x->gin_add[IN], x->gin[IN].data, x->work);
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
    double *out = x->out.data, sum = 0, divisor = 0, smoothing = x->attr[SMOOTHING].r;
    int32_t classes = x->in[IN].width;
    for (int64_t point = 0; point < x->in[LABEL].rows; point++) {
        int64_t row = x->geo[0] ? x->geo[0]->parent[point] : point;
        const double *scores = (const double *)x->in[IN].data + row * classes;
        double top = scores[0], total = 0, soft = 0;
        if (label[point] < 0 || label[point] >= classes) continue;
        for (int32_t c = 1; c < classes; c++) top = fmax(top, scores[c]);
        for (int32_t c = 0; c < classes; c++) total += exp(scores[c] - top);
        for (int32_t c = 0; c < classes; c++)
            soft -= (weights ? weights[c] : 1) * (scores[c] - top - log(total));
        double w = weights ? weights[label[point]] : 1;
        sum -= (1 - smoothing) * w * (scores[label[point]] - top - log(total));
        sum += smoothing / classes * soft;
        divisor += w;
    }
    *out = divisor > 0 ? sum / divisor : 0;
}

const struct pnet_op pnet_op_cross_entropy = {
    .name = "cross_entropy",
    .class_ = PNET_LOSS,
    .summary = "Cross entropy of the softmax of scores with labels",
    .doc = "The mean of `-log softmax(x)[label]` over the labelled points, weighted by the label's "
           "class: `sum of w[label] nll[label] / sum of w[label]`, with `nll = -log softmax(x)`. "
           "With `smoothing` s the target `t` is `1 - s` for the label plus `s / classes` for "
           "every class, and each class counts with its own weight, as in PyTorch: `sum over "
           "points and classes of t[c] w[c] nll[c] / sum of w[label]`. The label -1 is ignored; if "
           "all labels are ignored, the loss is 0.\n\n"
           "The loss is computed on the points of the labels. If `x` lies on a coarser level, each "
           "point gets the scores of the point that represents its cell.",
    .args =
        {
            [IN] = {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "scores, one channel a class"},
            [LABEL] = {"label", PNET_ARG_LABEL, NULL, 0, 0, NULL, "labels"},
            [WEIGHTS] = {"weights", PNET_ARG_REALS, "", 0, 0, NULL,
                "weight of each class; default: 1 for all"},
            [SMOOTHING] = {"smoothing", PNET_ARG_REAL, "0", 0, 1, NULL,
                "share of each label spread over all classes"},
        },
    .keep = PNET_KEEP_IN0 | PNET_KEEP_IN1,
    .rule = rule,
    .work = work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .mean = mean,
    .cases = "cross_entropy(p.f -> linear(5), p.label)\n"
             "cross_entropy(x -> linear(5), p.label)\n"
             "cross_entropy(z -> linear(5), p.label, weights=[1, 2, 0.5, 0, 3])\n"
             "cross_entropy(x -> linear(5), p.label, smoothing=10%)\n"
             "cross_entropy(p.f -> pool(mean, to=chunks(p, 4)) -> linear(5), p.label)\n"
             "cross_entropy(t -> linear(5), p.tag, weights=[1, 2, 1, 2, 1], smoothing=0.2)\n",
};
