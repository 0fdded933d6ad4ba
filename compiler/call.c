/* Calls: which kind of thing is called, and its arguments as written. */
#include "compiler/call.h"

#include <math.h>
#include <string.h>

/* `piped` is NULL where nothing is piped in. */
static bool collect(struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e,
    const struct value *piped, struct arguments *a)
{
    bool named = false;
    int count = 0;
    *a = (struct arguments){.expr = e, .is_piped = piped != NULL};
    if (piped) a->piped = *piped;
    for (const struct pnet_call_arg *arg = e->call.args; arg && count <= MAX_ARGUMENTS;
         arg = arg->next)
        count++;
    a->items = pnet_arena_array(&c->arena, (size_t)count + 1, sizeof *a->items);
    if (!a->items) return false;
    for (const struct pnet_call_arg *arg = e->call.args; arg; arg = arg->next) {
        if (arg->name && strcmp(arg->name, "name") == 0) {
            struct value v = pnet_evaluate_expr(c, s, arg->value);
            if (v.kind == V_UNKNOWN) return false;
            if (v.kind != V_TEXT || !*v.text) {
                ERROR(c, arg->value->span, "name= takes a text in quotes");
                return false;
            }
            if (strlen(v.text) > PNET_MAX_NAME || !pnet_is_visible(v.text)) {
                ERROR(c, arg->value->span, "name= takes at most %d characters that can be seen",
                    PNET_MAX_NAME);
                return false;
            }
            a->name = v.text;
            continue;
        }
        if (named && !arg->name) {
            pnet_diag_label(
                ERROR(c, arg->value->span, "a positional argument comes after a named one"),
                "move it forward, or name it");
            return false;
        }
        named = arg->name != NULL;
        if (a->count == MAX_ARGUMENTS) {
            ERROR(c, arg->value->span, "too many arguments");
            return false;
        }
        for (int i = 0; i < a->count && arg->name; i++)
            if (a->items[i].name && strcmp(a->items[i].name, arg->name) == 0) {
                struct pnet_diag *d = ERROR(c, arg->name_span, "%s= is given twice", arg->name);
                pnet_diag_second(d, a->items[i].name_span, "first here");
                return false;
            }
        a->items[a->count].name = arg->name;
        a->items[a->count].name_span = arg->name_span;
        a->items[a->count++].expr = arg->value;
    }
    return true;
}

bool pnet_unknown_argument(struct pnet_compilation *c, struct pnet_span span, const char *function,
    const char *name, const char *const *names, int count)
{
    struct pnet_diag *d = ERROR(c, span, "%s() has no argument '%s'", function, name);
    if (!d) return false;
    const char *near = pnet_nearest(name, names, count);
    if (near) {
        pnet_diag_help(d, "did you mean %s=?", near);
    } else {
        char list[256] = "";
        for (int i = 0; i < count; i++)
            if (strlen(list) + strlen(names[i]) + 3 < sizeof list) {
                if (i) strcat(list, ", ");
                strcat(list, names[i]);
            }
        pnet_diag_help(d, count ? "it takes %s" : "it takes none", list);
    }
    return false;
}

static struct value unknown_function(struct pnet_compilation *c, const struct pnet_expr *e)
{
    if (pnet_may_be_lost(c, e->call.name)) return unknown;
    struct pnet_diag *d =
        ERROR(c, e->call.name_span, "there is no layer, block or net '%s'", e->call.name);
    if (!d) return unknown;
    const char *names[512];
    int n = 0;
    for (int i = 0; i < pnet_op_count && n < 256; i++) names[n++] = pnet_ops[i]->name;
    n += pnet_builtin_names(names + n);
    for (int i = 0; i < c->definition_count && n < 512; i++)
        names[n++] = c->definitions[i].item->name;
    const char *near = pnet_nearest(e->call.name, names, n);
    if (near)
        pnet_diag_help(d, "did you mean %s?", near);
    else
        pnet_diag_help(d, "pnetc ops lists the layers");
    return unknown;
}

static struct value dispatch(struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e,
    const struct value *piped)
{
    struct arguments a;
    if (!pnet_spend_steps(c, e->span, 1) || !collect(c, s, e, piped, &a)) return unknown;
    if (pnet_is_lost(c, e->call.name)) return unknown;
    int *definition = pnet_map_find(&c->definition_names, e->call.name);
    if (definition) {
        struct definition *d = &c->definitions[*definition];
        return d->item->kind == PNET_ITEM_BLOCK ? pnet_call_block(c, s, d, &a)
                                                : pnet_call_net(c, s, d, &a);
    }
    int builtin = pnet_find_builtin(e->call.name);
    if (builtin >= 0) return pnet_call_builtin(c, s, builtin, &a);
    const struct pnet_op *op = pnet_op_find(e->call.name);
    return op ? pnet_call_op(c, s, op, &a) : unknown_function(c, e);
}

static struct value repeat(
    struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e, struct value v)
{
    struct value times = pnet_evaluate_expr(c, s, e->call.repeat);
    if (times.kind == V_UNKNOWN) return unknown;
    if (times.kind != V_NUMBER || times.unit || times.number != floor(times.number) ||
        times.number < 0 || times.number > MAX_ITEMS) {
        ERROR(c, e->call.repeat->span, "a stage repeats a whole number of times, not %s",
            pnet_value_text(c, times));
        return unknown;
    }
    const char *path = s->value_path;
    for (int i = 0; i < (int)times.number; i++) {
        s->value_path = pnet_arena_printf(&c->arena, "%s.r%d", path, i);
        if (!s->value_path) break;
        v = dispatch(c, s, e, &v);
        if (v.kind == V_UNKNOWN) break;
    }
    s->value_path = path;
    return v;
}

struct value pnet_evaluate_call(
    struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e)
{
    if (e->kind != PNET_EXPR_PIPE) return dispatch(c, s, e, NULL);
    struct value piped = pnet_evaluate_expr(c, s, e->call.piped);
    piped.span = e->call.piped->span;
    return e->call.repeat ? repeat(c, s, e, piped) : dispatch(c, s, e, &piped);
}
