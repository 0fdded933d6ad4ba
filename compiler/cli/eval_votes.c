#include "compiler/cli/eval_votes.h"
#include "runtime/base/clock.h"

#include <stdlib.h>
#include <string.h>

/* The counts of labels by predicted class. */
struct counts {
    int32_t classes;
    double *matrix;   /* [classes, classes]: by label, then prediction */
    double agreed[2]; /* labels that are predicted, labels */
    int64_t clouds, points;
    double seconds, compute_seconds;
};

/* Returns the labels of points in the batches of a plan; -1: there are none of that many classes. */
static int label_field(const struct pnet_input *in, int32_t classes)
{
    for (int k = 0; k < in->field_count; k++) {
        const struct pnet_input_field *f = &in->fields[k];
        if (f->kind == PNET_INPUT_CLASS && !f->per_cloud && !f->unused && f->classes == classes)
            return k;
    }
    return -1;
}

static void count(struct counts *c, const float *scores, const int32_t *labels, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *s = scores + i * c->classes;
        int32_t best = 0;
        if (labels[i] < 0) continue;
        for (int32_t k = 1; k < c->classes; k++)
            if (s[k] > s[best]) best = k;
        c->matrix[(int64_t)labels[i] * c->classes + best]++;
        c->agreed[0] += labels[i] == best;
        c->agreed[1]++;
    }
    c->clouds++;
    c->points += rows;
}

/* Returns what a metric of a plan counts, if that is among the counts; else NULL. */
static const double *counts_of(
    const struct pnet_plan *p, const struct pnet_objective *o, const struct counts *c)
{
    const struct pnet_type *t = &p->tensors[o->tensor].type;
    if (!o->metric) return NULL;
    if (strcmp(p->nodes[o->node].op->name, "accuracy") == 0) return c->agreed;
    return t->classes == c->classes && t->width == c->classes * c->classes ? c->matrix : NULL;
}

/* Fills the metrics of the plan of the evaluation, and drops its other lines. */
static enum pnet_status finish(const struct pnet_plan *p, const struct counts *c,
    struct pnet_evaluation *v, struct pnet_error *e)
{
    struct pnet_tally t;
    enum pnet_status st = pnet_tally_init(&t, p, e);
    if (st) return st;
    for (int i = 0; i < p->objective_count; i++) {
        const double *counted = counts_of(p, &p->objectives[i], c);
        size_t width = (size_t)p->tensors[p->objectives[i].tensor].type.width;
        if (counted) memcpy(t.sums[i], counted, width * sizeof *counted);
    }
    t.samples = c->clouds;
    t.points = c->points;
    st = pnet_tally_finish(&t, v, e);
    pnet_tally_free(&t);
    if (st) return st;
    v->seconds = c->seconds;
    v->compute_seconds = c->compute_seconds;
    int kept = 0;
    for (int i = 0; i < v->count; i++) {
        struct pnet_score_line line = v->lines[i];
        bool keeps = counts_of(p, &p->objectives[i], c) != NULL;
        v->lines[i] = (struct pnet_score_line){.metric = false};
        if (keeps) {
            v->lines[kept++] = line;
            continue;
        }
        free(line.per_class);
        free(line.matrix);
        free(line.values);
        free(line.error_pose);
    }
    v->count = kept;
    return PNET_OK;
}

static enum pnet_status check_metrics(
    const struct pnet_plan *p, const struct counts *c, struct pnet_error *e)
{
    for (int i = 0; i < p->objective_count; i++)
        if (counts_of(p, &p->objectives[i], c)) return PNET_OK;
    return pnet_error_set(e, PNET_USAGE,
        "--votes: the model has no metric of predicted classes, such as iou or accuracy");
}

static enum pnet_status run_all(const struct run *run, const struct computing *computing, int label,
    struct pnet_loader *l, struct counts *c, struct pnet_error *e)
{
    enum pnet_status st;
    struct pnet_batch *b;
    struct computing quiet = *computing;
    double begun = pnet_seconds();
    quiet.quiet = true;
    pnet_loader_start(l, 0, 0);
    while (!(st = pnet_loader_next(l, &b, e)) && b) {
        float *scores = NULL;
        int64_t rows;
        struct moments m;
        double loaded = pnet_seconds();
        st = pnet_cli_compute(&quiet, run->data->path, b, &scores, &rows, &m, e);
        if (!st) count(c, scores, b->inputs[computing->input].fields[label], rows);
        free(scores);
        pnet_batch_free(b);
        c->compute_seconds += m.computed - loaded;
        c->seconds = m.computed - begun;
        if (!st && pnet_cli_interrupted()) st = pnet_error_set(e, PNET_INTERRUPTED, "interrupted");
        if (st) return st;
    }
    return st;
}

/* Votes with the plan of inference, whose result is the scores. */
static enum pnet_status vote(const struct run *run, const struct weights *w,
    const struct votes_request *r, const struct pnet_plan *p, struct pnet_loader *l,
    struct pnet_evaluation *v, struct pnet_error *e)
{
    struct pnet_runner_options o = {
        .memory_limit = pnet_cli_memory_budget(&run->o.model), .slots = 1};
    struct computing computing = {.input = 0};
    struct counts c = {.classes = p->result_classes};
    struct pnet_bound *bound = NULL;
    enum pnet_status st = pnet_cli_computing(r->tiles, r->copies, p, &run->o.model, &computing, e);
    if (st) return st;
    while (p->inputs[computing.input].unused || pnet_input_is_pose(&p->inputs[computing.input]))
        computing.input++;
    int label = label_field(&run->plan->inputs[computing.input], c.classes);
    if (label < 0)
        return pnet_error_set(e, PNET_USAGE,
            "--votes: `%s` has no labels of points of %d classes, which the result has",
            p->inputs[computing.input].name, (int)c.classes);
    if ((st = check_metrics(run->plan, &c, e))) return st;
    c.matrix = calloc((size_t)c.classes * (size_t)c.classes, sizeof *c.matrix);
    if (!c.matrix) return pnet_error_memory(e);
    st = pnet_cli_weights_bind(w, &run->o.model, run->precision, p, &bound, e);
    if (!st) st = pnet_runner_new(bound, &o, &computing.runner, e);
    if (!st) st = pnet_weights_load(&w->from, computing.runner, e);
    if (!st) st = run_all(run, &computing, label, l, &c, e);
    if (!st) st = finish(run->plan, &c, v, e);
    pnet_runner_free(computing.runner);
    pnet_bound_free(bound);
    free(c.matrix);
    return st;
}

enum pnet_status pnet_cli_eval_votes(const struct run *run, const struct weights *w,
    const struct votes_request *r, struct pnet_loader *l, struct pnet_evaluation *v,
    struct pnet_error *e)
{
    int code;
    struct pnet_compile_options o = {.purpose = PNET_FOR_INFERENCE,
        .degrade = run->plan->degrade,
        .sets = run->sets.items,
        .set_count = run->sets.count};
    struct pnet_compilation *c =
        pnet_cli_compile_model(r->model, &o, &(struct model_options){.quiet = true}, &code);
    *v = (struct pnet_evaluation){0};
    if (!c) return pnet_error_set(e, PNET_BAD_MODEL, "%s: no net for --votes", r->model);
    enum pnet_status st = vote(run, w, r, pnet_compilation_plan(c), l, v, e);
    pnet_compilation_free(c);
    return st;
}
