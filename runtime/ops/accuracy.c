/* The share of labels that are predicted. */
#include "runtime/ops/common.h"

#include <math.h>

enum { IN, LABEL };

static bool rule(struct pnet_rule *r)
{
    if (!pnet_op_labels_rule(r, "accuracy", false)) return false;
    r->out = (struct pnet_type){PNET_F64, 2, r->scalar_level, 0, false};
    return true;
}

/* The predicted class of each row, padded to where counts can follow. */
static size_t best_bytes(const struct pnet_exec *x)
{
    return ((size_t)x->in[IN].rows * sizeof(int32_t) + 7) / 8 * 8;
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    return backward ? 0 : best_bytes(x) + PNET_WORK(x->device, correct_work)();
}

static void forward(const struct pnet_exec *x)
{
    struct pnet_targets t = pnet_op_targets(x);
    PNET_KERNEL(x, best_class)(t.rows, t.classes, x->in[IN].data, x->work);
    PNET_KERNEL(x, correct)(&t, x->work, x->out.data, (char *)x->work + best_bytes(x));
}

static void reference(const struct pnet_exec *x)
{
    const double *scores = x->in[IN].data;
    const int32_t *label = x->in[LABEL].data;
    double *out = x->out.data;
    int32_t classes = x->in[IN].width;
    out[0] = out[1] = 0;
    for (int64_t point = 0; point < x->in[LABEL].rows; point++) {
        int64_t row = x->geo[0] ? x->geo[0]->parent[point] : point;
        int32_t best = 0;
        for (int32_t c = 1; c < classes; c++)
            if (scores[row * classes + c] > scores[row * classes + best]) best = c;
        bool counts = label[point] >= 0 && label[point] < classes;
        out[0] += counts && label[point] == best;
        out[1] += counts;
    }
}

static void finish(const struct pnet_attr *attr, const double *sum, struct pnet_metric_result *r)
{
    (void)attr;
    r->value = sum[1] > 0 ? sum[0] / sum[1] : (double)NAN;
}

const struct pnet_op pnet_op_accuracy = {
    .name = "accuracy",
    .class_ = PNET_METRIC,
    .summary = "Share of the labels that are predicted",
    .doc =
        "The predicted class has the largest score, the lowest one among equals. The label -1 is "
        "ignored. Levels are treated as in `cross_entropy`.",
    .args =
        {
            [IN] = {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "scores, one channel a class"},
            [LABEL] = {"label", PNET_ARG_LABEL, NULL, 0, 0, NULL, "labels"},
        },
    .flags = PNET_NO_GRAD,
    .rule = rule,
    .work = work,
    .forward = forward,
    .reference = reference,
    .finish = finish,
    .cases = "accuracy(p.f -> linear(5), p.label)\n"
             "accuracy(z -> linear(5), p.label)\n"
             "accuracy(t -> linear(5), p.tag)\n",
};
