/* Calls of layers: arguments as written to inputs and attributes. */
#include "compiler/call.h"
#include "runtime/base/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_value_arg(const struct pnet_arg *arg)
{
    return arg->type == PNET_ARG_VALUE || arg->type == PNET_ARG_LABEL ||
           arg->type == PNET_ARG_VALUES || arg->type == PNET_ARG_ANY || arg->type == PNET_ARG_POSE;
}

/* "mean|max|sum": the position of `word`, or -1. */
static int find_choice(const char *choices, const char *word)
{
    size_t n = strlen(word);
    int index = 0;
    for (const char *p = choices; *p; index++) {
        const char *end = strchr(p, '|');
        size_t length = end ? (size_t)(end - p) : strlen(p);
        if (length == n && memcmp(p, word, n) == 0) return index;
        if (!end) break;
        p = end + 1;
    }
    return -1;
}

bool pnet_is_choice(const char *word)
{
    for (int k = 0; k < pnet_op_count; k++)
        for (int i = 0; i < PNET_MAX_ARGS && pnet_ops[k]->args[i].name; i++) {
            const struct pnet_arg *a = &pnet_ops[k]->args[i];
            if (a->type == PNET_ARG_CHOICE && find_choice(a->choices, word) >= 0) return true;
        }
    return false;
}

bool pnet_default_attrs(
    struct pnet_compilation *c, const struct pnet_op *op, struct pnet_attr *attr)
{
    (void)c;
    for (int i = 0; i < PNET_MAX_ARGS && op->args[i].name; i++) {
        const struct pnet_arg *arg = &op->args[i];
        attr[i] = (struct pnet_attr){0};
        if (is_value_arg(arg) || !arg->standard || !*arg->standard) continue;
        attr[i].set = true;
        switch (arg->type) {
        case PNET_ARG_BOOL: attr[i].i = strcmp(arg->standard, "yes") == 0; break;
        case PNET_ARG_CHOICE: attr[i].i = find_choice(arg->choices, arg->standard); break;
        case PNET_ARG_INT: attr[i].i = strtoll(arg->standard, NULL, 10); break;
        case PNET_ARG_ANGLE:
            attr[i].r = pnet_number_read(arg->standard, NULL) * (M_PI / 180);
            break;
        default: attr[i].r = pnet_number_read(arg->standard, NULL); break;
        }
    }
    return true;
}

static bool wrong_type(struct pnet_compilation *c, struct pnet_span span, const struct pnet_op *op,
    const struct pnet_arg *arg, const char *wanted, struct value v)
{
    struct pnet_diag *d = ERROR(c, span, "%s() takes %s for %s", op->name, wanted, arg->name);
    pnet_diag_label(d, "this is %s", pnet_value_text(c, v));
    bool features = arg->type == PNET_ARG_VALUE || arg->type == PNET_ARG_VALUES;
    if (features && v.kind == V_LIST && v.count)
        pnet_diag_help(d, "take one of its items, from [0] to [%d]", v.count - 1);
    else if (features && v.kind == V_CLOUD)
        pnet_diag_help(d, "take one of its fields: %s.%s", c->plan.inputs[v.index].name,
            c->plan.inputs[v.index].fields[0].name);
    return false;
}

static bool check_range(struct pnet_compilation *c, struct pnet_span span, const struct pnet_op *op,
    const struct pnet_arg *arg, double x)
{
    if ((arg->min == 0 && arg->max == 0) || (x >= arg->min && x <= arg->max)) return true;
    const char *unit = arg->type == PNET_ARG_LENGTH  ? "m"
                       : arg->type == PNET_ARG_ANGLE ? "rad"
                                                     : "";
    struct pnet_diag *d =
        ERROR(c, span, "%s of %s() is out of range: %.10g%s", arg->name, op->name, x, unit);
    pnet_diag_label(d, "from %.10g%s to %.10g%s", arg->min, unit, arg->max, unit);
    return false;
}

static bool number_attr(struct pnet_compilation *c, struct pnet_span span, const struct pnet_op *op,
    const struct pnet_arg *arg, struct value v, struct pnet_attr *attr)
{
    bool length = arg->type == PNET_ARG_LENGTH, angle = arg->type == PNET_ARG_ANGLE;
    if (v.kind != V_NUMBER || (angle && v.unit != PNET_UNIT_ANGLE))
        return wrong_type(c, span, op, arg,
            length  ? "a length"
            : angle ? "an angle"
                    : "a number",
            v);
    if (length && v.unit != PNET_UNIT_LENGTH) {
        struct pnet_diag *d = ERROR(c, span, "%s of %s() needs a unit", arg->name, op->name);
        pnet_diag_label(d, "this is %s", pnet_value_text(c, v));
        pnet_diag_help(d, "write %gcm, or %gm", v.number * 100, v.number);
        return false;
    }
    if (!length && !angle && (v.unit == PNET_UNIT_LENGTH || v.unit == PNET_UNIT_ANGLE))
        return wrong_type(c, span, op, arg, "a plain number", v);
    if (!check_range(c, span, op, arg, v.number)) return false;
    if (arg->type == PNET_ARG_INT) {
        if (v.number != floor(v.number) || fabs(v.number) > 1e15) {
            pnet_diag_label(ERROR(c, span, "%s() takes a whole number for %s", op->name, arg->name),
                "this is %.10g", v.number);
            return false;
        }
        attr->i = (int64_t)v.number;
    } else {
        attr->r = v.number;
    }
    return true;
}

static bool choice_attr(struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e,
    const struct pnet_op *op, const struct pnet_arg *arg, struct pnet_attr *attr)
{
    struct value v = {.kind = V_WORD};
    if (e->kind == PNET_EXPR_NAME && pnet_is_lost(c, e->name)) return false;
    if (e->kind == PNET_EXPR_NAME && !pnet_find_binding(s, e->name))
        v.text = e->name;
    else
        v = pnet_evaluate_expr(c, s, e);
    if (v.kind == V_UNKNOWN) return false;
    if (v.kind != V_WORD && v.kind != V_TEXT)
        return wrong_type(c, e->span, op, arg, arg->choices, v);
    attr->i = find_choice(arg->choices, v.text);
    if (attr->i >= 0) return true;
    struct pnet_diag *d =
        ERROR(c, e->span, "%s of %s() cannot be '%s'", arg->name, op->name, v.text);
    pnet_diag_help(d, "one of %s", arg->choices);
    return false;
}

static bool list_attr(struct pnet_compilation *c, const struct pnet_expr *e,
    const struct pnet_op *op, const struct pnet_arg *arg, struct value v, struct pnet_attr *attr)
{
    if (v.kind != V_LIST || v.count > PNET_MAX_LIST)
        return wrong_type(c, e->span, op, arg, "a list of numbers", v);
    double *items = pnet_arena_array(&c->arena, (size_t)v.count + 1, sizeof *items);
    if (!items) return false;
    for (int i = 0; i < v.count; i++) {
        if (v.items[i].kind == V_UNKNOWN) return false;
        if (v.items[i].kind != V_NUMBER)
            return wrong_type(c, e->span, op, arg, "a list of numbers", v.items[i]);
        if (!check_range(c, e->span, op, arg, v.items[i].number)) return false;
        items[i] = v.items[i].number;
    }
    attr->list.items = items;
    attr->list.count = v.count;
    return true;
}

static bool level_attr(struct pnet_compilation *c, struct pnet_span span, const struct pnet_op *op,
    const struct pnet_arg *arg, struct value v, struct pnet_attr *attr)
{
    attr->i = v.index;
    if (v.kind == V_LEVEL) return true;
    struct pnet_diag *d = ERROR(c, span, "%s() takes a level for %s", op->name, arg->name);
    pnet_diag_label(d, "this is %s", pnet_value_text(c, v));
    if (v.kind == V_CLOUD || v.kind == V_TENSOR) pnet_diag_help(d, "write level(..) around it");
    return false;
}

static bool set_attr(struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e,
    const struct pnet_op *op, const struct pnet_arg *arg, struct pnet_attr *attr)
{
    attr->set = true;
    if (arg->type == PNET_ARG_CHOICE) return choice_attr(c, s, e, op, arg, attr);
    struct value v = pnet_evaluate_expr(c, s, e);
    if (v.kind == V_UNKNOWN) return false;
    switch (arg->type) {
    case PNET_ARG_BOOL:
        if (v.kind != V_BOOL) return wrong_type(c, e->span, op, arg, "yes or no", v);
        attr->i = v.truth;
        return true;
    case PNET_ARG_LEVEL: return level_attr(c, e->span, op, arg, v, attr);
    case PNET_ARG_MATCHES:
        if (v.kind != V_MATCHES)
            return wrong_type(c, e->span, op, arg, "what matches(..) gives", v);
        attr->matches = v.matches;
        return true;
    case PNET_ARG_REALS: return list_attr(c, e, op, arg, v, attr);
    default: return number_attr(c, e->span, op, arg, v, attr);
    }
}

static int find_arg(const struct pnet_op *op, const char *name)
{
    for (int i = 0; i < PNET_MAX_ARGS && op->args[i].name; i++)
        if (strcmp(op->args[i].name, name) == 0) return i;
    return -1;
}

/* The arguments of a layer, evaluated: input values and attributes. */
struct bound {
    struct value in[PNET_MAX_IN];
    struct pnet_span in_span[PNET_MAX_IN];
    int in_arg[PNET_MAX_IN]; /* the argument that each value is of */
    int in_count;
    struct pnet_attr attr[PNET_MAX_ARGS];
    struct pnet_span span[PNET_MAX_ARGS];
    bool given[PNET_MAX_ARGS];
};

static bool add_input(struct pnet_compilation *c, const struct pnet_op *op, int arg, struct value v,
    struct pnet_span span, struct bound *b)
{
    const struct pnet_arg *a = &op->args[arg];
    b->given[arg] = true;
    if (v.kind == V_UNKNOWN) return false;
    bool pose = a->type == PNET_ARG_POSE;
    if (v.kind != (pose ? V_POSE : V_TENSOR))
        return wrong_type(c, span, op, a,
            pose                        ? "a pose"
            : a->type == PNET_ARG_LABEL ? "labels"
                                        : "features",
            v);
    enum pnet_scalar type = c->plan.tensors[v.index].type.type;
    if (a->type == PNET_ARG_LABEL && type != PNET_I32)
        return wrong_type(c, span, op, a, "labels", v);
    if ((a->type == PNET_ARG_VALUE || a->type == PNET_ARG_VALUES) && type == PNET_I32) {
        pnet_diag_label(
            ERROR(c, span, "%s() takes features for %s", op->name, a->name), "these are labels");
        return false;
    }
    if (b->in_count == PNET_MAX_IN) {
        ERROR(c, span, "%s() takes at most %d values", op->name, PNET_MAX_IN);
        return false;
    }
    /* in the order of the arguments, whichever was written first */
    int at = b->in_count++;
    for (; at > 0 && b->in_arg[at - 1] > arg; at--) {
        b->in[at] = b->in[at - 1];
        b->in_span[at] = b->in_span[at - 1];
        b->in_arg[at] = b->in_arg[at - 1];
    }
    b->in[at] = v;
    b->in_span[at] = span;
    b->in_arg[at] = arg;
    return true;
}

static void unknown_op_argument(
    struct pnet_compilation *c, const struct pnet_op *op, const struct argument *a)
{
    const char *names[PNET_MAX_ARGS];
    int n = 0;
    for (int k = 0; k < PNET_MAX_ARGS && op->args[k].name; k++) names[n++] = op->args[k].name;
    pnet_unknown_argument(c, a->name_span, op->name, a->name, names, n);
}

/* Evaluates one argument; *next is the place of the next positional one. False with an error, or if the argument is
   unknown; then *lost says that it may have been meant for any place. */
static bool bind_argument(struct pnet_compilation *c, struct scope *s, const struct pnet_op *op,
    const struct argument *a, int *next, struct bound *b, bool *lost)
{
    const struct pnet_expr *e = a->expr;
    int arg = a->name ? find_arg(op, a->name) : *next;
    if (arg < 0) {
        unknown_op_argument(c, op, a);
        *lost = true;
        return false;
    }
    if (arg >= PNET_MAX_ARGS || !op->args[arg].name) {
        ERROR(c, e->span, "%s() takes no more arguments", op->name);
        return false;
    }
    bool many = op->args[arg].type == PNET_ARG_VALUES;
    if (!a->name && !many) ++*next;
    if (b->given[arg] && !many) {
        ERROR(c, e->span, "%s of %s() is given twice", op->args[arg].name, op->name);
        return false;
    }
    b->given[arg] = true;
    b->span[arg] = e->span;
    if (is_value_arg(&op->args[arg]))
        return add_input(c, op, arg, pnet_evaluate_expr(c, s, e), e->span, b);
    return set_attr(c, s, e, op, &op->args[arg], &b->attr[arg]);
}

/* Values fill the value arguments in order; the remaining arguments fill the others in order.
   Evaluates all arguments, also those after an error. */
static bool bind_arguments(struct pnet_compilation *c, struct scope *s, const struct pnet_op *op,
    const struct arguments *a, struct bound *b)
{
    int next = 0;
    bool good = true, lost = false;
    *b = (struct bound){0};
    pnet_default_attrs(c, op, b->attr);
    for (int i = 0; i < PNET_MAX_ARGS; i++) b->span[i] = a->expr->call.name_span;
    if (a->is_piped) {
        if (!op->args[0].name || !is_value_arg(&op->args[0])) {
            ERROR(c, a->expr->call.name_span, "%s() takes no value from a pipe", op->name);
            return false;
        }
        good = add_input(c, op, 0, a->piped, a->piped.span, b);
        next = op->args[0].type == PNET_ARG_VALUES ? 0 : 1;
    }
    for (int i = 0; i < a->count; i++)
        if (!bind_argument(c, s, op, &a->items[i], &next, b, &lost)) good = false;
    for (int i = 0; i < PNET_MAX_ARGS && op->args[i].name && !lost; i++)
        if (!b->given[i] && !op->args[i].standard) {
            struct pnet_diag *d =
                ERROR(c, a->expr->call.name_span, "%s() needs %s", op->name, op->args[i].name);
            pnet_diag_help(d, "%s: %s", op->args[i].name, op->args[i].help);
            return false;
        }
    return good && !lost;
}

/* The run config may weigh classes where the model does not. */
static void weigh_classes(struct pnet_compilation *c, const struct pnet_op *op, struct bound *b)
{
    if (op->class_ != PNET_LOSS || !c->options.class_weight_count) return;
    for (int i = 0; i < PNET_MAX_ARGS && op->args[i].name; i++)
        if (op->args[i].type == PNET_ARG_REALS && strcmp(op->args[i].name, "weights") == 0 &&
            !b->attr[i].set) {
            b->attr[i].set = true;
            b->attr[i].list.items = c->options.class_weights;
            b->attr[i].list.count = c->options.class_weight_count;
        }
}

struct value pnet_call_op(struct pnet_compilation *c, struct scope *s, const struct pnet_op *op,
    const struct arguments *a)
{
    struct bound b;
    if (!bind_arguments(c, s, op, a, &b)) return unknown;
    weigh_classes(c, op, &b);
    for (int i = 0; i < b.in_count; i++) b.in[i].span = b.in_span[i];
    struct value v =
        pnet_apply_op(c, s, a->expr->call.name_span, op, b.in, b.in_count, b.attr, b.span, a->name);
    return v;
}
