#include "runtime/run/not_finite.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct search {
    struct pnet_runner *runner;
    const struct pnet_plan *plan;
    int slot, last; /* the step that has run last; -1: none */
    char *text;
    bool found;
};

/* Returns the first of the numbers that is not finite; -1: there is none. */
static int64_t first_bad(const float *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(x[i])) return i;
    return -1;
}

static void tell(struct search *f, const char *what, const char *path, const char *op, int64_t row,
    int64_t column, int64_t rows, int64_t width)
{
    f->found = true;
    snprintf(f->text, PNET_NOT_FINITE_TEXT,
        "the first such number is in the %s `%.120s`%s%s%s: row %" PRId64 ", column %" PRId64
        " of [%" PRId64 ", %" PRId64 "]",
        what, path, op ? " (" : "", op ? op : "", op ? ")" : "", row, column, rows, width);
}

static enum pnet_status look_at_tensor(
    struct search *f, const struct pnet_node *n, const char *what, int tensor, struct pnet_error *e)
{
    void *data = NULL;
    int64_t rows = 0, width;
    if (tensor < 0 || f->found || f->plan->tensors[tensor].type.type != PNET_F32) return PNET_OK;
    if (!pnet_runner_tensor(f->runner, f->slot, tensor, &rows)) return PNET_OK;
    width = f->plan->tensors[tensor].type.width;
    enum pnet_status st = pnet_runner_copy_tensor(f->runner, f->slot, tensor, &data, &rows, e);
    int64_t at = st ? -1 : first_bad(data, rows * width);
    if (at >= 0) tell(f, what, n->path, n->op->name, at / width, at % width, rows, width);
    free(data);
    return st;
}

static enum pnet_status look_at_param(struct search *f, int param, enum pnet_runner_block block,
    const char *what, struct pnet_error *e)
{
    const struct pnet_plan_param *q = &f->plan->params[param];
    if (f->found || !q->info.trained) return PNET_OK; /* running statistics follow the results */
    float *x = malloc((size_t)q->count * sizeof *x + 1);
    if (!x) return pnet_error_memory(e);
    enum pnet_status st = pnet_runner_read(f->runner, block, q->offset, q->count, x, e);
    int64_t at = st ? -1 : first_bad(x, q->count);
    if (at >= 0) tell(f, what, q->name, NULL, 0, at, 1, q->count);
    free(x);
    return st;
}

/* Looks at what a step has written. */
static enum pnet_status look(struct search *f, int step, struct pnet_error *e)
{
    const struct pnet_step *s = &f->plan->steps[step];
    const struct pnet_node *n = &f->plan->nodes[s->node];
    if (!s->backward) return look_at_tensor(f, n, "results of", n->out, e);
    enum pnet_status st = PNET_OK;
    for (int i = 0; i < n->in_count && !st; i++)
        st = look_at_tensor(f, n, "gradients that lead out of", s->gin[i], e);
    for (int i = 0; i < n->param_count && !st; i++)
        st = look_at_param(f, n->param[i], PNET_BLOCK_GRADS, "gradients of", e);
    return st;
}

static enum pnet_status visit(
    void *context, int step, const struct pnet_exec *x, struct pnet_error *e)
{
    struct search *f = context;
    (void)x;
    enum pnet_status st = pnet_runner_wait(f->runner, e);
    if (!st && f->last >= 0) st = look(f, f->last, e);
    f->last = step;
    if (st || !f->found) return st;
    return pnet_error_set(e, PNET_FAILED, "%s", f->text); /* ends the walk */
}

enum pnet_status pnet_not_finite(
    struct pnet_runner *s, int slot, char text[PNET_NOT_FINITE_TEXT], struct pnet_error *e)
{
    struct search f = {s, pnet_runner_plan(s), slot, -1, text, false};
    snprintf(text, PNET_NOT_FINITE_TEXT,
        "computed once more, layer by layer, all numbers of its last batch are finite");
    enum pnet_status st = PNET_OK;
    for (int i = 0; i < f.plan->param_count && !st; i++)
        st = look_at_param(&f, i, PNET_BLOCK_PARAMS, "weights", e);
    if (!st && !f.found) st = pnet_runner_walk(s, slot, visit, &f, e);
    if (!st && !f.found && f.last >= 0) st = look(&f, f.last, e);
    return f.found ? PNET_OK : st;
}
