/* Losses and metrics of scores against labels. */
#include "runtime/ops/common.h"

#include <math.h>

enum { SCORES, LABEL };

static bool check_levels(struct pnet_rule *r, const char *name)
{
    int scores = r->in[SCORES].level, label = r->in[LABEL].level;
    const struct pnet_level_info *a = &r->levels[scores], *b = &r->levels[label];
    if (scores == label || pnet_level_reaches(r->levels, label, scores)) return true;
    r->error_in = SCORES;
    if (b->kind == PNET_GEO_SAMPLE) {
        pnet_rule_help(r, "pool the prediction first: -> pool(mean, to=sample)");
        return pnet_rule_fail(r, SCORES,
            "%s() has one label a cloud but a prediction for the points of %s", name, a->name);
    }
    if (a->kind == PNET_GEO_SAMPLE)
        return pnet_rule_fail(r, SCORES,
            "%s() has labels on the points of %s but one prediction a cloud", name, b->name);
    if (pnet_level_reaches(r->levels, scores, label)) {
        pnet_rule_help(r, "pool the prediction first: -> pool(mean, to=%s)", b->name);
        return pnet_rule_fail(r, SCORES,
            "%s() has labels on %s but its prediction on the finer level %s", name, b->name,
            a->name);
    }
    return pnet_rule_fail(r, SCORES,
        "%s() has labels on %s but its prediction on %s, which was not sampled from it", name,
        b->name, a->name);
}

bool pnet_op_labels_rule(struct pnet_rule *r, const char *name, bool backward)
{
    struct pnet_type scores = r->in[SCORES], label = r->in[LABEL];
    if (scores.width != label.classes) {
        r->error_in = SCORES;
        pnet_rule_help(r, "end the prediction with -> linear(%d)", (int)label.classes);
        return pnet_rule_fail(r, SCORES,
            "%s() has %d classes in its label but the prediction has %d channels", name,
            (int)label.classes, (int)scores.width);
    }
    if (!check_levels(r, name)) return false;
    if (scores.level != label.level)
        pnet_rule_geo(r, (struct pnet_geo_request){.kind = PNET_GEO_PARENT,
                             .a = label.level,
                             .b = scores.level,
                             .forward_forms = PNET_FORM_CHILDREN,
                             .backward_forms = backward ? PNET_FORM_CHILDREN : 0});
    return true;
}

struct pnet_targets pnet_op_targets(const struct pnet_exec *x)
{
    struct pnet_targets t = {.rows = pnet_op_rows(&x->in[SCORES]),
        .label_rows = pnet_op_rows(&x->in[LABEL]),
        .classes = x->in[SCORES].width,
        .label = x->in[LABEL].data};
    if (x->geo[0]) {
        t.start = x->geo[0]->child_start;
        t.child = x->geo[0]->child;
    }
    return t;
}

bool pnet_op_confusion_rule(struct pnet_rule *r, const char *name)
{
    if (!pnet_op_labels_rule(r, name, false)) return false;
    int64_t classes = r->in[SCORES].width, cells = classes * classes;
    if (cells > INT32_MAX)
        return pnet_rule_fail(
            r, LABEL, "%s() cannot count %d classes: at most 46340", name, (int)classes);
    r->out = (struct pnet_type){PNET_F64, (int32_t)cells, r->scalar_level, (int32_t)classes, false};
    return true;
}

static size_t best_bytes(const struct pnet_exec *x)
{
    return ((size_t)x->in[SCORES].rows * sizeof(int32_t) + 7) / 8 * 8;
}

size_t pnet_op_confusion_work(const struct pnet_exec *x, bool backward)
{
    return backward ? 0 : best_bytes(x) + PNET_KERNEL(x, confusion_work)(x->in[SCORES].width);
}

void pnet_op_confusion_forward(const struct pnet_exec *x)
{
    struct pnet_targets t = pnet_op_targets(x);
    PNET_KERNEL(x, best_class)(t.rows, t.classes, x->in[SCORES].data, x->work);
    PNET_KERNEL(x, confusion)(&t, x->work, x->out.data, (char *)x->work + best_bytes(x));
}

void pnet_op_confusion_reference(const struct pnet_exec *x)
{
    const double *scores = x->in[SCORES].data;
    const int32_t *label = x->in[LABEL].data;
    double *matrix = x->out.data;
    int32_t classes = x->in[SCORES].width;
    for (int64_t i = 0; i < (int64_t)classes * classes; i++) matrix[i] = 0;
    for (int64_t point = 0; point < x->in[LABEL].rows; point++) {
        int64_t row = x->geo[0] ? x->geo[0]->parent[point] : point;
        int32_t best = 0;
        for (int32_t c = 1; c < classes; c++)
            if (scores[row * classes + c] > scores[row * classes + best]) best = c;
        if (label[point] >= 0 && label[point] < classes)
            matrix[(int64_t)label[point] * classes + best]++;
    }
}

/* What of a class was hit, over what there is of it: its labels, and for `unite` its predictions
   too. The headline is the mean over the classes that have any. */
static void finish(const double *sum, struct pnet_metric_result *r, bool unite)
{
    int32_t n = r->classes, counted = 0;
    double total = 0;
    for (int32_t c = 0; c < n; c++) {
        double hit = sum[(int64_t)c * n + c], all = 0;
        for (int32_t other = 0; other < n; other++) {
            all += sum[(int64_t)c * n + other];
            if (unite && other != c) all += sum[(int64_t)other * n + c];
        }
        double share = all > 0 ? hit / all : (double)NAN;
        if (r->per_class) r->per_class[c] = share;
        if (all > 0) {
            total += share;
            counted++;
        }
    }
    r->value = counted ? total / counted : (double)NAN;
}

void pnet_op_recall_finish(
    const struct pnet_attr *attr, const double *sum, struct pnet_metric_result *r)
{
    (void)attr;
    finish(sum, r, false);
}

void pnet_op_iou_finish(
    const struct pnet_attr *attr, const double *sum, struct pnet_metric_result *r)
{
    (void)attr;
    finish(sum, r, true);
}
