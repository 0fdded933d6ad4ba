/* The share of labels that are among the k best predictions. */
#include "runtime/ops/common.h"

#include <math.h>

enum { IN, LABEL, K };

static bool rule(struct pnet_rule *r)
{
    if (!pnet_op_labels_rule(r, "top_k_accuracy", false)) return false;
    if (r->attr[K].i > r->in[LABEL].classes) {
        pnet_rule_help(r, "choose k from 1 to %d", (int)r->in[LABEL].classes);
        return pnet_rule_fail(r, K, "top_k_accuracy() cannot choose the best %d of %d classes",
            (int)r->attr[K].i, (int)r->in[LABEL].classes);
    }
    r->out = (struct pnet_type){PNET_F64, 2, r->scalar_level, 0, false};
    return true;
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    (void)x; /* one kernel without CUDA */
    return backward ? 0 : PNET_WORK(x->device, correct_work)();
}

static void forward(const struct pnet_exec *x)
{
    struct pnet_targets t = pnet_op_targets(x);
    PNET_KERNEL(x, top_k)(&t, (int32_t)x->attr[K].i, x->in[IN].data, x->out.data, x->work);
}

/* Takes the best class k times; of equal ones the lowest that is left. */
static bool is_chosen(const double *scores, int32_t classes, int64_t k, int32_t label)
{
    double last = (double)INFINITY;
    int32_t from = -1;
    for (int64_t turn = 0; turn < k; turn++) {
        int32_t best = -1;
        for (int32_t c = 0; c < classes; c++) {
            bool taken = scores[c] > last || (scores[c] == last && c <= from);
            if (!taken && (best < 0 || scores[c] > scores[best])) best = c;
        }
        if (best == label) return true;
        if (best < 0) return false;
        last = scores[best];
        from = best;
    }
    return false;
}

static void reference(const struct pnet_exec *x)
{
    const int32_t *label = x->in[LABEL].data;
    double *out = x->out.data;
    int32_t classes = x->in[IN].width;
    out[0] = out[1] = 0;
    for (int64_t point = 0; point < x->in[LABEL].rows; point++) {
        int64_t row = x->geo[0] ? x->geo[0]->parent[point] : point;
        const double *scores = (const double *)x->in[IN].data + row * classes;
        if (label[point] < 0 || label[point] >= classes) continue;
        out[0] += is_chosen(scores, classes, x->attr[K].i, label[point]);
        out[1]++;
    }
}

static void finish(const struct pnet_attr *attr, const double *sum, struct pnet_metric_result *r)
{
    (void)attr;
    r->value = sum[1] > 0 ? sum[0] / sum[1] : (double)NAN;
}

const struct pnet_op pnet_op_top_k_accuracy = {
    .name = "top_k_accuracy",
    .class_ = PNET_METRIC,
    .summary = "Share of the labels that are among the k best predictions",
    .doc = "The k classes with the largest scores, the lower ones first among equals: with `k=1` "
           "this is `accuracy`. The label -1 is ignored. Levels are treated as in `cross_entropy`.",
    .args =
        {
            [IN] = {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "scores, one channel a class"},
            [LABEL] = {"label", PNET_ARG_LABEL, NULL, 0, 0, NULL, "labels"},
            [K] = {"k", PNET_ARG_INT, "5", 1, 65536, NULL,
                "number of best predictions among which the label counts as predicted"},
        },
    .flags = PNET_NO_GRAD,
    .rule = rule,
    .work = work,
    .forward = forward,
    .reference = reference,
    .finish = finish,
    .cases = "top_k_accuracy(p.f -> linear(5), p.label, k=2)\n"
             "top_k_accuracy(z -> linear(5), p.label, k=3)\n"
             "top_k_accuracy(x -> linear(5), p.label)\n"
             "top_k_accuracy(t -> linear(5), p.tag, k=1)\n",
};
