/* Losses between points: options, by the rows of the op table, and what is kept for the backward. */
#include "library/loss.h"

#include "runtime/base/number.h"
#include "runtime/plan/op.h"

#include <stddef.h>
#include <string.h>

static const char *const rows[] = {[PNET_LOSS_CHAMFER] = "chamfer",
    [PNET_LOSS_DCD] = "dcd",
    [PNET_LOSS_HYPERCD] = "hypercd",
    [PNET_LOSS_INFOCD] = "infocd",
    [PNET_LOSS_EMD] = "emd",
    [PNET_LOSS_SINKHORN] = "sinkhorn",
    [PNET_LOSS_APML] = "apml"};

/* Where an argument of a row stands in the options. `yes`: the choice for which a member that is no number is 1. */
static const struct member {
    const char *argument, *yes;
    size_t at;
} members[] = {
    {"kind", "l2", offsetof(struct pnet_loss_options, squares)},
    {"at_least_one", "yes", offsetof(struct pnet_loss_options, at_least_one)},
    {"reduce", "sum", offsetof(struct pnet_loss_options, sums)},
    {"rounds", NULL, offsetof(struct pnet_loss_options, rounds)},
    {"most", NULL, offsetof(struct pnet_loss_options, most)},
    {"entries", NULL, offsetof(struct pnet_loss_options, entries)},
    {"alpha", NULL, offsetof(struct pnet_loss_options, alpha)},
    {"lambda", NULL, offsetof(struct pnet_loss_options, lambda)},
    {"tau", NULL, offsetof(struct pnet_loss_options, tau)},
    {"eps", NULL, offsetof(struct pnet_loss_options, eps)},
    {"blur", NULL, offsetof(struct pnet_loss_options, blur)},
    {"scaling", NULL, offsetof(struct pnet_loss_options, scaling)},
    {"p", NULL, offsetof(struct pnet_loss_options, p)},
};

static const struct member *member_of(const struct pnet_arg *a)
{
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (strcmp(members[i].argument, a->name) == 0) return &members[i];
    return NULL; /* x and y */
}

static enum pnet_status check_kind(int kind, struct pnet_error *e)
{
    if (kind >= PNET_LOSS_CHAMFER && kind <= PNET_LOSS_APML) return PNET_OK;
    return pnet_error_set(e, PNET_USAGE, "kind %d: expected a value of enum pnet_loss_kind", kind);
}

enum pnet_status pnet_loss_default(
    enum pnet_loss_kind kind, struct pnet_loss_options *to, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_AS(ANY, "o", to));
    struct pnet_loss_options o = {.kind = kind};
    enum pnet_status st = check_kind((int)kind, e);
    if (st) return st;
    for (const struct pnet_arg *a = pnet_op_find(rows[kind])->args; a->name; a++) {
        const struct member *m = member_of(a);
        if (!m) continue;
        char *at = (char *)&o + m->at, *end;
        double number =
            m->yes ? strcmp(a->standard, m->yes) == 0 : pnet_number_read(a->standard, &end);
        int32_t whole = (int32_t)number;
        if (a->type == PNET_ARG_REAL)
            memcpy(at, &number, sizeof number);
        else
            memcpy(at, &whole, sizeof whole);
    }
    return pnet_library_give("pnet_loss_options", &o, to, sizeof o, e);
}

/* Checks the numbers of the options by the ranges of the row. */
static enum pnet_status check_numbers(const struct pnet_loss_options *o, struct pnet_error *e)
{
    for (const struct pnet_arg *a = pnet_op_find(rows[o->kind])->args; a->name; a++) {
        const struct member *m = member_of(a);
        double number;
        int32_t whole;
        if (!m || m->yes) continue;
        memcpy(&number, (const char *)o + m->at, sizeof number);
        memcpy(&whole, (const char *)o + m->at, sizeof whole);
        if (a->type != PNET_ARG_REAL) number = whole;
        if (number >= a->min && number <= a->max) continue;
        return pnet_error_set(
            e, PNET_USAGE, "%s %g: expected %g to %g", a->name, number, a->min, a->max);
    }
    if (o->kind == PNET_LOSS_APML && !(o->p > 0.5 && o->p < 1))
        return pnet_error_set(e, PNET_USAGE, "p %g: expected to lie between 0.5 and 1", o->p);
    return PNET_OK;
}

static enum pnet_status check_sizes(const struct pnet_loss_call *c, struct pnet_error *e)
{
    for (int32_t s = 0; s < c->x->level.samples; s++) {
        int64_t of_x = c->x->splits[s + 1] - c->x->splits[s],
                of_y = c->y->splits[s + 1] - c->y->splits[s];
        if (of_x != of_y && of_x && of_y)
            return pnet_error_set(e, PNET_BAD_DATA,
                "this loss needs as many points in y as in x, but sample %d has %lld and %lld",
                (int)s, (long long)of_y, (long long)of_x);
    }
    return PNET_OK;
}

static struct pnet_point_set set_of(const struct pnet_points *p)
{
    return (struct pnet_point_set){
        pnet_count(p->level.rows), p->level.samples, p->level.row_splits, p->xyz};
}

enum pnet_status pnet_loss_begin(struct pnet_loss_call *c, const struct pnet_points *x,
    const struct pnet_points *y, const struct pnet_loss_options *o, struct pnet_error *e)
{
    *c = (struct pnet_loss_call){
        .device = x->home.device.kind, .x = x, .y = y, .sets = {.x = set_of(x), .y = set_of(y)}};
    enum pnet_status st = pnet_library_take("pnet_loss_options", o, &c->o, sizeof c->o, e);
    if (!st) st = check_kind((int)c->o.kind, e);
    if (!st) st = check_numbers(&c->o, e);
    if (!st) st = pnet_points_same_samples("x", x, "y", y, e);
    if (!st) st = pnet_points_same_home("x", x, "y", y, e);
    if (!st && c->o.kind == PNET_LOSS_EMD) st = check_sizes(c, e);
    return st;
}

/* Memory that is cut into parts, or counted. */
struct room {
    char *memory;
    size_t used;
};

static void *cut(struct room *r, int64_t count, size_t each)
{
    void *part = r->memory ? r->memory + r->used : NULL;
    r->used += ((size_t)count * each + 15) / 16 * 16;
    return part;
}

size_t pnet_loss_lay_out(struct pnet_loss_call *c, void *memory)
{
    struct room r = {memory, 0};
    struct pnet_loss_kept *k = &c->kept;
    int64_t x = c->x->level.rows, y = c->y->level.rows;
    switch (c->o.kind) {
    case PNET_LOSS_CHAMFER:
    case PNET_LOSS_DCD:
    case PNET_LOSS_HYPERCD:
    case PNET_LOSS_INFOCD:
        k->x_near = cut(&r, x, sizeof *k->x_near);
        k->y_near = cut(&r, y, sizeof *k->y_near);
        k->x_pull = cut(&r, x, sizeof *k->x_pull);
        k->y_pull = cut(&r, y, sizeof *k->y_pull);
        break;
    case PNET_LOSS_EMD: k->partner = cut(&r, x, sizeof *k->partner); break;
    case PNET_LOSS_SINKHORN:
        k->x_potential = cut(&r, 4 * x, sizeof *k->x_potential);
        k->y_potential = cut(&r, 4 * y, sizeof *k->y_potential);
        break;
    case PNET_LOSS_APML:
        k->plan.end = cut(&r, 2 * x, sizeof *k->plan.end);
        k->plan.by_row = cut(&r, c->o.entries * x, sizeof *k->plan.by_row);
        k->plan.by_column = cut(&r, c->o.entries * y, sizeof *k->plan.by_column);
        break;
    }
    c->sets.x_near = k->x_near;
    c->sets.y_near = k->y_near;
    return r.used;
}

struct pnet_dcd pnet_loss_dcd(const struct pnet_loss_call *c)
{
    return (struct pnet_dcd){c->o.alpha, c->o.lambda, c->o.at_least_one != 0};
}

struct pnet_infocd pnet_loss_infocd(const struct pnet_loss_call *c)
{
    return (struct pnet_infocd){c->o.tau, c->o.lambda, c->o.sums != 0};
}

struct pnet_emd pnet_loss_emd(const struct pnet_loss_call *c)
{
    return (struct pnet_emd){
        .sets = c->sets, .eps = c->o.eps, .rounds = c->o.rounds, .complete = true};
}

struct pnet_sinkhorn pnet_loss_sinkhorn(const struct pnet_loss_call *c)
{
    return (struct pnet_sinkhorn){.sets = c->sets, .blur = c->o.blur, .scaling = c->o.scaling};
}

struct pnet_apml pnet_loss_apml(const struct pnet_loss_call *c)
{
    return (struct pnet_apml){.sets = c->sets,
        .p = c->o.p,
        .tau = c->o.tau,
        .rounds = c->o.rounds,
        .most = c->o.most,
        .entries = c->o.entries};
}

struct pnet_set_pull pnet_loss_pull(const struct pnet_loss_call *c, bool of_y)
{
    const struct pnet_loss_kept *k = &c->kept;
    if (of_y)
        return (struct pnet_set_pull){
            c->sets.y, c->sets.x, k->y_near, k->x_near, k->y_pull, k->x_pull};
    return (struct pnet_set_pull){c->sets.x, c->sets.y, k->x_near, k->y_near, k->x_pull, k->y_pull};
}
