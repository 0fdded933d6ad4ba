/* The sums of statistics that losses and metrics are made of. */
#include "runtime/train/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int width_of(const struct pnet_plan *p, int objective)
{
    return p->tensors[p->objectives[objective].tensor].type.width;
}

enum pnet_status pnet_tally_init(
    struct pnet_tally *t, const struct pnet_plan *p, struct pnet_error *e)
{
    *t = (struct pnet_tally){.plan = p};
    enum pnet_status st = pnet_loss_terms_find(p, &t->terms, e);
    if (st) return st;
    t->sums = calloc((size_t)p->objective_count + 1, sizeof *t->sums);
    t->means = calloc((size_t)t->terms.count + 1, sizeof *t->means);
    bool bad = !t->sums || !t->means;
    for (int i = 0; !bad && i < p->objective_count; i++) {
        t->sums[i] = calloc((size_t)width_of(p, i), sizeof **t->sums);
        bad = !t->sums[i];
    }
    if (!bad) return PNET_OK;
    pnet_tally_free(t);
    return pnet_error_memory(e);
}

void pnet_tally_free(struct pnet_tally *t)
{
    for (int i = 0; t->sums && i < t->plan->objective_count; i++) free(t->sums[i]);
    free(t->sums);
    free(t->means);
    pnet_loss_terms_free(&t->terms);
    *t = (struct pnet_tally){0};
}

void pnet_tally_add_metrics(struct pnet_tally *t, const struct pnet_runner *s)
{
    for (int i = 0; i < t->plan->objective_count; i++)
        if (t->plan->objectives[i].metric) pnet_runner_objective(s, i, t->sums[i]);
}

enum pnet_status pnet_tally_add(struct pnet_tally *t, const struct pnet_runner *s, int slot,
    int32_t samples, int64_t points, struct pnet_error *e)
{
    pnet_tally_add_metrics(t, s);
    for (int i = 0; i < t->terms.count; i++) {
        struct pnet_mean m;
        enum pnet_status st = pnet_runner_mean(s, slot, t->terms.items[i].tensor, &m, e);
        if (st) return st;
        t->means[i].sum += m.sum;
        t->means[i].count += m.count;
    }
    t->samples += samples;
    t->points += points;
    return PNET_OK;
}

/* A term that counts nothing adds nothing. */
static void finish_loss(const struct pnet_tally *t, int objective, struct pnet_score_line *line)
{
    double value = 0;
    line->counted = false;
    for (int i = 0; i < t->terms.count; i++) {
        const struct pnet_loss_term *term = &t->terms.items[i];
        if (term->objective != objective || !(t->means[i].count > 0)) continue;
        value += term->factor * t->means[i].sum / t->means[i].count;
        line->counted = true;
    }
    line->value = line->counted ? value : NAN;
}

static bool finish_metric(
    const struct pnet_plan *p, int objective, const double *sum, struct pnet_score_line *line)
{
    const struct pnet_node *n = &p->nodes[p->objectives[objective].node];
    struct pnet_metric_result r = {
        .value = NAN, .classes = p->tensors[p->objectives[objective].tensor].type.classes};
    r.per_class = calloc((size_t)r.classes + 1, sizeof *r.per_class);
    if (!r.per_class) return false;
    for (int i = 0; i < r.classes; i++) r.per_class[i] = NAN;
    n->op->finish(n->attr, sum, &r);
    bool any = false;
    for (int i = 0; i < r.classes; i++) any |= !isnan(r.per_class[i]);
    if (!any) {
        free(r.per_class);
        r.per_class = NULL;
    }
    line->value = r.value;
    line->per_class = r.per_class;
    line->classes = r.per_class ? r.classes : 0;
    if (r.matrix) {
        size_t size = (size_t)r.classes * (size_t)r.classes * sizeof *r.matrix;
        line->matrix = malloc(size + 1);
        if (!line->matrix) return false;
        memcpy(line->matrix, r.matrix, size);
        line->matrix_classes = r.classes;
    }
    if (r.has_error_pose) {
        line->error_pose = malloc(sizeof r.error_pose);
        if (!line->error_pose) return false;
        memcpy(line->error_pose, r.error_pose, sizeof r.error_pose);
    }
    if (!r.value_count) return true;
    line->values = calloc((size_t)r.value_count, sizeof *line->values);
    if (!line->values) return false;
    memcpy(line->values, r.values, (size_t)r.value_count * sizeof *line->values);
    line->value_count = r.value_count;
    return true;
}

enum pnet_status pnet_tally_finish(
    const struct pnet_tally *t, struct pnet_evaluation *v, struct pnet_error *e)
{
    const struct pnet_plan *p = t->plan;
    *v = (struct pnet_evaluation){
        .count = p->objective_count, .samples = t->samples, .points = t->points};
    bool counted = false;
    v->lines = calloc((size_t)p->objective_count + 1, sizeof *v->lines);
    if (!v->lines) return pnet_error_memory(e);
    for (int i = 0; i < p->objective_count; i++) {
        struct pnet_score_line *line = &v->lines[i];
        line->name = p->objectives[i].name;
        line->metric = line->counted = p->objectives[i].metric;
        if (line->metric) {
            if (finish_metric(p, i, t->sums[i], line)) continue;
            pnet_evaluation_free(v);
            return pnet_error_memory(e);
        }
        finish_loss(t, i, line);
        if (line->counted) v->loss += line->value;
        counted |= line->counted;
    }
    if (!counted) v->loss = NAN;
    return PNET_OK;
}

void pnet_evaluation_free(struct pnet_evaluation *v)
{
    for (int i = 0; v->lines && i < v->count; i++) {
        free(v->lines[i].per_class);
        free(v->lines[i].matrix);
        free(v->lines[i].values);
        free(v->lines[i].error_pose);
    }
    free(v->lines);
    *v = (struct pnet_evaluation){0};
}
