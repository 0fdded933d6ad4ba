/* The Lovasz-softmax loss. */
#include "runtime/ops/common.h"

#include <math.h>
#include <stdlib.h>

enum { IN, LABEL };
enum { GPROB };

static bool rule(struct pnet_rule *r)
{
    if (!pnet_op_labels_rule(r, "lovasz_softmax", false)) return false;
    pnet_rule_save(r, r->in[IN], true);
    r->out = (struct pnet_type){PNET_F32, 1, r->scalar_level, 0, false};
    return true;
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    struct pnet_targets t = pnet_op_targets(x);
    return backward ? 0 : PNET_WORK(x->device, lovasz_work)(&t);
}

static void forward(const struct pnet_exec *x)
{
    struct pnet_targets t = pnet_op_targets(x);
    PNET_KERNEL(x, lovasz)(&t, x->in[IN].data, x->out.data, x->saved[GPROB].data, x->work);
}

static void backward(const struct pnet_exec *x)
{
    const float *gloss = x->gout.data;
    if (x->gin[IN].data) PNET_KERNEL(x, lovasz_backward)
    (pnet_op_rows(&x->in[IN]), x->in[IN].width, x->in[IN].data, x->saved[GPROB].data, gloss,
        x->gin_add[IN], x->gin[IN].data);
}

static struct pnet_mean mean(const struct pnet_exec *x, double value)
{
    return pnet_op_labels_mean(x, NULL, value);
}

/* The error of the point for the class, 1 minus or plain probability. */
static double reference_error(const struct pnet_exec *x, int64_t point, int32_t class)
{
    int64_t row = x->geo[0] ? x->geo[0]->parent[point] : point;
    const double *scores = (const double *)x->in[IN].data + row * x->in[IN].width;
    double sum = 0;
    for (int32_t c = 0; c < x->in[IN].width; c++) sum += exp(scores[c] - scores[class]);
    return ((const int32_t *)x->in[LABEL].data)[point] == class ? 1 - 1 / sum : 1 / sum;
}

/* Without sorting: the extension is the integral over a threshold u of the Jaccard loss of the
   points whose error exceeds u, summed here over the steps between errors. */
static double reference_class(const struct pnet_exec *x, int32_t class)
{
    const int32_t *label = x->in[LABEL].data;
    int64_t n = x->in[LABEL].rows;
    double loss = 0, above = 2;
    for (;;) {
        double level = -1, total = 0, hit = 0, others = 0;
        for (int64_t point = 0; point < n; point++) {
            if (label[point] < 0 || label[point] >= x->in[IN].width) continue;
            double e = reference_error(x, point, class);
            bool wrong = e >= above;
            if (e < above && e > level) level = e;
            total += label[point] == class;
            hit += wrong && label[point] == class;
            others += wrong && label[point] != class;
        }
        if (above <= 1) loss += (above - fmax(level, 0)) * (1 - (total - hit) / (total + others));
        if (level < 0) return loss;
        above = level;
    }
}

static void reference(const struct pnet_exec *x)
{
    const int32_t *label = x->in[LABEL].data;
    double *out = x->out.data, sum = 0;
    int32_t present = 0;
    for (int32_t c = 0; c < x->in[IN].width; c++) {
        bool found = false;
        for (int64_t point = 0; point < x->in[LABEL].rows; point++) found |= label[point] == c;
        if (!found) continue;
        present++;
        sum += reference_class(x, c);
    }
    *out = present ? sum / present : 0;
}

const struct pnet_op pnet_op_lovasz_softmax = {
    .name = "lovasz_softmax",
    .class_ = PNET_LOSS,
    .summary = "Lovasz-softmax: a smooth stand-in for 1 - mIoU",
    .doc = "The convex extension of the Jaccard loss of each class, at the errors of `softmax(x)`, "
           "mean over the classes that occur in the batch. The label -1 is ignored; if all labels "
           "are ignored, the loss is 0. Takes scores, without a softmax before it; commonly added "
           "to `cross_entropy`. Levels are treated as in `cross_entropy`.\n\n"
           "Berman, Triki, Blaschko, The Lovasz-Softmax Loss, 2018.",
    .args =
        {
            [IN] = {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "scores, one channel a class"},
            [LABEL] = {"label", PNET_ARG_LABEL, NULL, 0, 0, NULL, "labels"},
        },
    .keep = PNET_KEEP_IN0,
    .rule = rule,
    .work = work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .mean = mean,
    .cases = "lovasz_softmax(p.f -> linear(5), p.label)\n"
             "lovasz_softmax(x -> linear(5), p.label)\n"
             "lovasz_softmax(z -> linear(5), p.label)\n"
             "lovasz_softmax(t -> linear(5), p.tag)\n",
};
