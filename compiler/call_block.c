/* Blocks and nets: their bodies run once for each use. */
#include "compiler/call.h"

#include <string.h>

static const struct value none = {.kind = V_NONE};

static bool bind_parameter(struct pnet_compilation *c, struct scope *caller, struct scope *callee,
    const struct pnet_param_decl *p, const struct pnet_expr *e)
{
    struct value v = evaluate(c, e ? caller : callee, e ? e : p->value);
    if (v.kind == V_NONE) return false;
    if (p->type && strcmp(p->type, "cloud") != 0) {
        ERROR(c, p->type_span, "a parameter's type is cloud, or left out");
        return false;
    }
    if (p->type && v.kind != V_CLOUD) {
        struct pnet_diag *d = ERROR(
            c, e ? e->span : p->name_span, "'%s' is a cloud, not %s", p->name, describe(c, v));
        pnet_diag_second(d, p->name_span, "declared here");
        return false;
    }
    bind_value(c, callee, p->name, v, p->name_span, true);
    return true;
}

static bool bind_parameters(struct pnet_compilation *c, struct scope *caller, struct scope *callee,
    const struct pnet_item *item, const struct arguments *a, int first_positional, int skip)
{
    const char *names[64];
    int n = 0, position = first_positional;
    for (const struct pnet_param_decl *p = item->params; p && n < 64; p = p->next)
        names[n++] = p->name;
    for (int i = 0; i < a->count; i++) {
        bool known = !a->items[i].name;
        for (int k = 0; k < n && !known; k++) known = strcmp(names[k], a->items[i].name) == 0;
        if (!known)
            return unknown_argument(
                c, a->items[i].name_span, item->name, a->items[i].name, names, n);
    }
    int index = 0;
    for (const struct pnet_param_decl *p = item->params; p; p = p->next, index++) {
        const struct pnet_expr *e = NULL;
        if (index < skip) continue;
        if (position < a->count && !a->items[position].name) e = a->items[position++].expr;
        for (int i = 0; i < a->count; i++)
            if (a->items[i].name && strcmp(a->items[i].name, p->name) == 0) {
                if (e) {
                    ERROR(
                        c, a->items[i].name_span, "%s of %s() is given twice", p->name, item->name);
                    return false;
                }
                e = a->items[i].expr;
            }
        if (!e && !p->value) {
            struct pnet_diag *d =
                ERROR(c, a->expr->call.name_span, "%s() needs %s", item->name, p->name);
            pnet_diag_second(d, p->name_span, "declared here");
            return false;
        }
        if (!bind_parameter(c, caller, callee, p, e)) return false;
    }
    if (position < a->count && !a->items[position].name) {
        ERROR(c, a->items[position].expr->span, "%s() takes no more arguments", item->name);
        return false;
    }
    return true;
}

static struct value run_body(
    struct pnet_compilation *c, struct scope *callee, struct definition *d, struct pnet_span span)
{
    bool block = d->item->kind == PNET_ITEM_BLOCK;
    if (d->active) {
        struct pnet_diag *e = ERROR(c, span, "'%s' uses itself", d->item->name);
        pnet_diag_second(e, d->item->name_span, "declared here");
        return none;
    }
    if (++c->depth > MAX_CALL_DEPTH) {
        ERROR(c, span, "blocks and nets are nested more than %d deep", MAX_CALL_DEPTH);
        c->depth--;
        return none;
    }
    d->active = true;
    int errors = pnet_diags_errors(c->diags);
    run_statements(c, callee, d->item->stmt);
    d->active = false;
    c->depth--;
    if (callee->returned) return callee->result;
    struct binding *out = NULL;
    for (struct binding *b = callee->bindings; b; b = b->next)
        if (strcmp(b->name, "out") == 0) out = b;
    if (out) return out->value;
    if (pnet_diags_errors(c->diags) == errors) {
        struct pnet_diag *e = ERROR(
            c, d->item->name_span, "%s '%s' has no result", block ? "block" : "net", d->item->name);
        pnet_diag_help(e, "%s", block ? "give `out` a value" : "end it with return");
    }
    return none;
}

struct value call_block(
    struct pnet_compilation *c, struct scope *s, struct definition *d, const struct arguments *a)
{
    struct scope callee = {
        .outer = c->global, .value_path = "", .counters = s->counters, .net_use = s->net_use};
    struct value in = a->piped;
    int first = 0;
    if (in.kind == V_NONE) {
        if (!a->count || a->items[0].name) {
            pnet_diag_help(ERROR(c, a->expr->call.name_span, "%s() needs an input", d->item->name),
                "pipe it in: x -> %s(..)", d->item->name);
            return none;
        }
        in = evaluate(c, s, a->items[first++].expr);
        if (in.kind == V_NONE) return none;
    }
    callee.prefix = op_path(c, s, d->item->name, a->name);
    if (!callee.prefix) return none;
    bind_value(c, &callee, "in", in, a->expr->span, false);
    if (!bind_parameters(c, s, &callee, d->item, a, first, 0)) return none;
    return run_body(c, &callee, d, a->expr->call.name_span);
}

struct value call_net(
    struct pnet_compilation *c, struct scope *s, struct definition *d, const struct arguments *a)
{
    struct map counters = {0}; /* each use starts to count again, and so finds the same names */
    struct scope callee = {.outer = c->global,
        .prefix = a->name ? a->name : d->item->name,
        .value_path = "",
        .counters = &counters,
        .net_use = ++c->net_uses};
    int skip = 0;
    if (a->piped.kind != V_NONE) {
        if (!d->item->params) {
            ERROR(c, a->expr->call.name_span, "%s() takes no arguments", d->item->name);
            return none;
        }
        bind_value(c, &callee, d->item->params->name, a->piped, d->item->params->name_span, true);
        skip = 1;
    }
    if (!bind_parameters(c, s, &callee, d->item, a, 0, skip)) return none;
    int input = -1;
    for (struct binding *b = callee.bindings; b; b = b->next)
        if (b->value.kind == V_CLOUD) input = b->value.index;
    struct value v = run_body(c, &callee, d, a->expr->call.name_span);
    if (d->result < 0 && v.kind == V_TENSOR) {
        d->result = v.index;
        d->input = input;
    }
    return v;
}
