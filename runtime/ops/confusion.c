/* The confusion matrix. */
#include "runtime/ops/common.h"

#include <math.h>

enum { IN, LABEL };

static bool rule(struct pnet_rule *r)
{
    return pnet_op_confusion_rule(r, "confusion");
}

static void finish(const struct pnet_attr *attr, const double *sum, struct pnet_metric_result *r)
{
    int32_t n = r->classes;
    double all = 0, hits = 0, by_chance = 0;
    (void)attr;
    for (int32_t c = 0; c < n; c++) {
        double labels = 0, predictions = 0;
        for (int32_t other = 0; other < n; other++) {
            labels += sum[(int64_t)c * n + other];
            predictions += sum[(int64_t)other * n + c];
        }
        all += labels;
        hits += sum[(int64_t)c * n + c];
        by_chance += labels * predictions;
    }
    by_chance = all > 0 ? by_chance / all : 0;
    r->value = all > 0 ? hits / all : (double)NAN;
    r->values[r->value_count++] = (struct pnet_named_value){
        "kappa", by_chance < all ? (hits - by_chance) / (all - by_chance) : (double)NAN};
    r->matrix = sum;
}

const struct pnet_op pnet_op_confusion = {
    .name = "confusion",
    .class_ = PNET_METRIC,
    .summary = "How many labels of each class are predicted as which: the confusion matrix",
    .doc =
        "`pnetc eval` prints the matrix, a row for each label and a column for each prediction; "
        "with `--json` it is `NAME.matrix`, an array of rows. The headline is the share of labels "
        "that are predicted, as in `accuracy`; a second value is Cohen's kappa, `(a - b) / (1 - "
        "b)` with this share a and the share b that is right by chance, `sum over classes of "
        "labels * predictions / all^2` (Cohen, A Coefficient of Agreement for Nominal Scales, "
        "1960). The label -1 is ignored. Levels are treated as in `cross_entropy`.",
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
    .cases = "confusion(p.f -> linear(5), p.label)\n"
             "confusion(z -> linear(5), p.label)\n"
             "confusion(t -> linear(5), p.tag)\n",
};
