/* Blocks and nets: their bodies run once for each use. */
#include "compiler/call.h"

#include <string.h>

/* The argument of a parameter; `set` is false if the parameter takes its default. */
struct given {
    bool set;
    struct pnet_span span;
    struct value value;
};

static bool is_parameter(const struct pnet_item *item, const char *name)
{
    for (const struct pnet_param_decl *p = item->params; p; p = p->next)
        if (strcmp(p->name, name) == 0) return true;
    return false;
}

static void unknown_parameter(
    struct pnet_compilation *c, const struct pnet_item *item, const struct argument *a)
{
    const char *names[MAX_ARGUMENTS];
    int n = 0;
    for (const struct pnet_param_decl *p = item->params; p && n < MAX_ARGUMENTS; p = p->next)
        names[n++] = p->name;
    pnet_unknown_argument(c, a->name_span, item->name, a->name, names, n);
}

/* Evaluates the arguments in the caller's scope, in the order of the parameters; those from `next` on are
   left. The first `skip` parameters are given already. False: what was wrong may have been meant for
   any parameter. */
static bool take_arguments(struct pnet_compilation *c, struct scope *caller,
    const struct pnet_item *item, const struct arguments *a, int next, int skip,
    struct given *given)
{
    bool good = true;
    for (int i = next; i < a->count; i++)
        if (a->items[i].name && !is_parameter(item, a->items[i].name)) {
            unknown_parameter(c, item, &a->items[i]);
            good = false;
        }
    int index = 0;
    for (const struct pnet_param_decl *p = item->params; p && index < MAX_ARGUMENTS;
         p = p->next, index++) {
        const struct pnet_expr *e = NULL;
        if (index >= skip && next < a->count && !a->items[next].name) e = a->items[next++].expr;
        for (int i = 0; i < a->count; i++) {
            if (!a->items[i].name || strcmp(a->items[i].name, p->name) != 0) continue;
            if (e || given[index].set)
                ERROR(c, a->items[i].name_span, "%s of %s() is given twice", p->name, item->name);
            else
                e = a->items[i].expr;
        }
        if (e)
            given[index] = (struct given){
                .set = true, .span = e->span, .value = pnet_evaluate_expr(c, caller, e)};
    }
    if (next < a->count && !a->items[next].name) {
        ERROR(c, a->items[next].expr->span, "%s() takes no more arguments", item->name);
        good = false;
    }
    return good;
}

/* A value that does not fit is reported, and unknown inside. */
static void bind_parameters(struct pnet_compilation *c, struct scope *callee,
    const struct definition *d, const struct arguments *a, const struct given *given, bool good)
{
    const struct pnet_item *item = d->item;
    int index = 0;
    for (const struct pnet_param_decl *p = item->params; p && index < MAX_ARGUMENTS;
         p = p->next, index++) {
        struct value v = given[index].value;
        if (d->broken)
            v = unknown;
        else if (!given[index].set)
            v = p->value ? pnet_evaluate_expr(c, callee, p->value) : unknown;
        if (!given[index].set && !p->value && good && !d->broken && !c->torn)
            pnet_diag_second(
                ERROR(c, a->expr->call.name_span, "%s() needs %s", item->name, p->name),
                p->name_span, "declared here");
        if (p->type && v.kind != V_CLOUD && v.kind != V_UNKNOWN) {
            struct pnet_diag *e = ERROR(c, given[index].set ? given[index].span : p->name_span,
                "'%s' is a cloud, not %s", p->name, pnet_value_text(c, v));
            pnet_diag_second(e, p->name_span, "declared here");
            v = unknown;
        }
        pnet_bind_value(c, callee, p->name, v, p->name_span, true);
    }
}

/* From here on the block or net is in use: its defaults belong to that, its arguments do not. */
static bool enter(struct pnet_compilation *c, struct definition *d, struct pnet_span span)
{
    if (d->active) {
        struct pnet_diag *e = ERROR(c, span, "'%s' uses itself", d->item->name);
        pnet_diag_second(e, d->item->name_span, "declared here");
        return false;
    }
    if (c->depth == MAX_CALL_DEPTH) {
        ERROR(c, span, "blocks and nets are nested more than %d deep", MAX_CALL_DEPTH);
        return false;
    }
    c->depth++;
    return d->active = true;
}

static void leave(struct pnet_compilation *c, struct definition *d)
{
    c->depth--;
    d->active = false;
}

static struct value run_body(struct pnet_compilation *c, struct scope *callee, struct definition *d)
{
    bool block = d->item->kind == PNET_ITEM_BLOCK;
    pnet_run_statements(c, callee, d->item->stmt);
    if (callee->unsure || c->stopped || c->arena.failed) return unknown;
    if (callee->returned) return callee->result;
    struct binding *out = pnet_find_own_binding(callee, "out");
    if (out) return out->value;
    if (c->torn) return unknown; /* it may stand in what the tree lacks */
    struct pnet_diag *e = ERROR(
        c, d->item->name_span, "%s '%s' has no result", block ? "block" : "net", d->item->name);
    pnet_diag_help(e, "%s", block ? "give `out` a value" : "end it with return");
    return unknown;
}

static struct given *new_given(struct pnet_compilation *c, const struct pnet_item *item)
{
    size_t count = 1;
    for (const struct pnet_param_decl *p = item->params; p; p = p->next) count++;
    return pnet_arena_array(&c->arena, count, sizeof(struct given));
}

struct value pnet_call_block(
    struct pnet_compilation *c, struct scope *s, struct definition *d, const struct arguments *a)
{
    struct scope callee = {
        .outer = c->global, .value_path = "", .counters = s->counters, .net_use = s->net_use};
    struct value in = a->piped;
    struct given *given = new_given(c, d->item);
    int first = 0;
    if (!given) return unknown;
    if (!a->is_piped) {
        if (!a->count || a->items[0].name) {
            pnet_diag_help(ERROR(c, a->expr->call.name_span, "%s() needs an input", d->item->name),
                "pipe it in: x -> %s(..)", d->item->name);
            return unknown;
        }
        in = pnet_evaluate_expr(c, s, a->items[first++].expr);
    }
    callee.prefix = pnet_op_path(c, s, d->item->name, a->name);
    if (!callee.prefix) return unknown;
    pnet_bind_value(c, &callee, "in", in, a->expr->span, false);
    bool good = take_arguments(c, s, d->item, a, first, 0, given);
    if (!enter(c, d, a->expr->call.name_span)) return unknown;
    bind_parameters(c, &callee, d, a, given, good);
    struct value v = run_body(c, &callee, d);
    leave(c, d);
    return v;
}

/* The first cloud that is a parameter. */
static int find_input(const struct scope *callee)
{
    for (int i = 0; i < callee->binding_count; i++)
        if (callee->bindings[i]->value.kind == V_CLOUD) return callee->bindings[i]->value.index;
    return -1;
}

struct value pnet_call_net(
    struct pnet_compilation *c, struct scope *s, struct definition *d, const struct arguments *a)
{
    struct map counters = {0}; /* each use starts to count again, and so finds the same names */
    struct scope callee = {.outer = c->global,
        .prefix = a->name ? a->name : d->item->name,
        .value_path = "",
        .counters = &counters,
        .net_use = ++c->net_uses};
    struct given *given = new_given(c, d->item);
    if (!given) return unknown;
    if (a->is_piped && !d->item->params) {
        ERROR(c, a->expr->call.name_span, "%s() takes no arguments", d->item->name);
        return unknown;
    }
    if (a->is_piped) given[0] = (struct given){true, a->piped.span, a->piped};
    bool good = take_arguments(c, s, d->item, a, 0, a->is_piped, given);
    if (!enter(c, d, a->expr->call.name_span)) return unknown;
    bind_parameters(c, &callee, d, a, given, good);
    int input = find_input(&callee);
    struct value v = run_body(c, &callee, d);
    leave(c, d);
    if (d->value.kind == V_NONE && (v.kind == V_TENSOR || v.kind == V_LIST)) {
        d->value = v;
        d->input = input;
        d->inner = s->net_use != 0;
    }
    return v;
}
