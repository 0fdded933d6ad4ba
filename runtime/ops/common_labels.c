/* Losses and metrics of scores against labels. */
#include "runtime/ops/common.h"

#include <math.h>

enum { SCORES, LABEL };

_Static_assert((int)PNET_MAX_LIST <= (int)PNET_CLASS_WEIGHTS, "a GPU takes any list of weights");

static bool check_levels(struct pnet_rule *r, const char *name)
{
    int scores = r->in[SCORES].level, label = r->in[LABEL].level;
    char text[96];
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
        pnet_rule_help(
            r, "pool the prediction first: -> pool(mean, to=%s)", pnet_level_written(b, text));
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
    r->scores = true;
    return true;
}

bool pnet_op_weights_rule(struct pnet_rule *r, const char *name, int arg)
{
    const struct pnet_attr *a = &r->attr[arg];
    if (!a->set) return true;
    if (a->list.count != r->in[LABEL].classes)
        return pnet_rule_fail(r, arg, "%s() has %d weights for %d classes", name, a->list.count,
            (int)r->in[LABEL].classes);
    for (int i = 0; i < a->list.count; i++) {
        double weight = a->list.items[i];
        const char *what = isnan(weight)   ? "a weight that is not a number"
                           : isinf(weight) ? "an infinite weight"
                           : weight < 0    ? "a negative weight"
                                           : NULL;
        if (what) return pnet_rule_fail(r, arg, "%s() has %s: class %d", name, what, i);
    }
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

struct pnet_mean pnet_op_labels_mean(const struct pnet_exec *x, const double *weights, double value)
{
    const int32_t *label = x->in[LABEL].data;
    int32_t classes = x->in[SCORES].width;
    double count = 0;
    for (int64_t i = 0; i < x->in[LABEL].rows; i++)
        if (label[i] >= 0 && label[i] < classes) count += weights ? weights[label[i]] : 1;
    return (struct pnet_mean){value * count, count};
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
    return backward ? 0 : best_bytes(x) + PNET_WORK(x->device, confusion_work)(x->in[SCORES].width);
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

void pnet_op_class_scores(const double *matrix, struct pnet_metric_result *r,
    double (*score)(double hits, double labels, double predictions))
{
    int32_t n = r->classes, counted = 0;
    double total = 0;
    for (int32_t c = 0; c < n; c++) {
        double labels = 0, predictions = 0;
        for (int32_t other = 0; other < n; other++) {
            labels += matrix[(int64_t)c * n + other];
            predictions += matrix[(int64_t)other * n + c];
        }
        double of_class = score(matrix[(int64_t)c * n + c], labels, predictions);
        if (r->per_class) r->per_class[c] = of_class;
        if (isnan(of_class)) continue;
        total += of_class;
        counted++;
    }
    r->value = counted ? total / counted : (double)NAN;
}

static double iou(double hits, double labels, double predictions)
{
    double either = labels + predictions - hits;
    return either > 0 ? hits / either : (double)NAN;
}

void pnet_op_iou_finish(
    const struct pnet_attr *attr, const double *sum, struct pnet_metric_result *r)
{
    (void)attr;
    pnet_op_class_scores(sum, r, iou);
}
