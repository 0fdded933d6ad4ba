/* Values of expressions: numbers with units, lists, levels, tensors. */
#include "compiler/internal.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

static struct value number(double x, enum pnet_unit unit, struct pnet_span span)
{
    return (struct value){.kind = V_NUMBER, .span = span, .number = x, .unit = unit};
}

static struct value boolean(bool x, struct pnet_span span)
{
    return (struct value){.kind = V_BOOL, .span = span, .truth = x};
}

static const char *unit_text(enum pnet_unit u)
{
    switch (u) {
    case PNET_UNIT_LENGTH: return "a length";
    case PNET_UNIT_ANGLE: return "an angle";
    case PNET_UNIT_PERCENT: return "a percentage";
    case PNET_UNIT_NONE: break;
    }
    return "a plain number";
}

const char *pnet_value_text(struct pnet_compilation *c, struct value v)
{
    char text[96];
    switch (v.kind) {
    case V_NONE:
    case V_UNKNOWN: return "nothing";
    case V_NUMBER: return unit_text(v.unit);
    case V_BOOL: return v.truth ? "yes" : "no";
    case V_WORD:
    case V_TEXT: return "a text";
    case V_LIST: return pnet_arena_printf(&c->arena, "a list of %d", v.count);
    case V_LEVEL:
        return pnet_arena_printf(&c->arena,
            pnet_level_unnamed(&c->plan.levels[v.index]) ? "a level of %s(..)" : "the level %s",
            c->plan.levels[v.index].name);
    case V_CLOUD: return pnet_arena_printf(&c->arena, "the cloud %s", c->plan.inputs[v.index].name);
    case V_POSE: return "a pose";
    case V_MATCHES: return "matches of points";
    case V_TENSOR: {
        const char *s = pnet_type_text(c->plan.levels, c->plan.tensors[v.index].type, text);
        return pnet_arena_printf(&c->arena, "%s", s);
    }
    }
    return "?";
}

/* The source of a span on one line, where it is short enough to stand in a label. */
const char *pnet_span_text(struct pnet_compilation *c, struct pnet_span span)
{
    enum { LONGEST = 24 };
    const struct pnet_source *s = pnet_sources_get(c->sources, span.file);
    if (!s || span.end <= span.begin || span.end - span.begin > LONGEST || span.end > s->length)
        return NULL;
    for (uint32_t i = span.begin; i < span.end; i++)
        if (!isprint((unsigned char)s->text[i])) return NULL;
    return pnet_arena_copy(&c->arena, s->text + span.begin, span.end - span.begin);
}

static struct value units_differ(
    struct pnet_compilation *c, const struct pnet_expr *e, struct value a, struct value b)
{
    struct pnet_diag *d = ERROR(c, e->binary.op_span, "the units do not fit: %s and %s",
        unit_text(a.unit), unit_text(b.unit));
    if (e->kind == PNET_EXPR_BINARY) {
        pnet_diag_second(d, e->binary.left->span, "%s", unit_text(a.unit));
        pnet_diag_second(d, e->binary.right->span, "%s", unit_text(b.unit));
    }
    return unknown;
}

static struct value number_arithmetic(struct pnet_compilation *c, const struct pnet_expr *e,
    enum pnet_operator op, struct value a, struct value b)
{
    /* a percentage is a number; only lengths and angles are measured in something */
    enum pnet_unit ua = a.unit == PNET_UNIT_PERCENT ? PNET_UNIT_NONE : a.unit;
    enum pnet_unit ub = b.unit == PNET_UNIT_PERCENT ? PNET_UNIT_NONE : b.unit;
    enum pnet_unit unit = ua;
    double x = a.number, y = b.number, r;
    switch (op) {
    case PNET_OP_ADD:
    case PNET_OP_SUB:
        if (ua != ub) return units_differ(c, e, a, b);
        if (a.unit == PNET_UNIT_PERCENT && b.unit == PNET_UNIT_PERCENT) unit = PNET_UNIT_PERCENT;
        r = op == PNET_OP_ADD ? x + y : x - y;
        break;
    case PNET_OP_MUL:
        if (ua && ub) return units_differ(c, e, a, b);
        unit = ua ? ua : ub;
        r = x * y;
        break;
    case PNET_OP_DIV:
    case PNET_OP_MOD:
        if (ub && ua != ub) return units_differ(c, e, a, b);
        if (y == 0) {
            ERROR(c, e->span, "division by zero");
            return unknown;
        }
        unit = op == PNET_OP_DIV && ub ? PNET_UNIT_NONE : ua;
        r = op == PNET_OP_DIV ? x / y : x - y * floor(x / y);
        break;
    default: {
        if (ua != ub) return units_differ(c, e, a, b);
        bool t = op == PNET_OP_EQ   ? x == y
                 : op == PNET_OP_NE ? x != y
                 : op == PNET_OP_LT ? x < y
                 : op == PNET_OP_LE ? x <= y
                 : op == PNET_OP_GT ? x > y
                                    : x >= y;
        return boolean(t, e->span);
    }
    }
    if (!isfinite(r)) {
        ERROR(c, e->span, "the result is too large");
        return unknown;
    }
    return number(r, unit, e->span);
}

/* [a, b] * x is [a * x, b * x]; two lists go item by item. */
static struct value list_arithmetic(struct pnet_compilation *c, struct scope *s,
    const struct pnet_expr *e, enum pnet_operator op, struct value a, struct value b)
{
    int count = a.kind == V_LIST ? a.count : b.count;
    if (a.kind == V_LIST && b.kind == V_LIST && a.count != b.count) {
        ERROR(c, e->span, "the lists have different lengths: %d and %d", a.count, b.count);
        return unknown;
    }
    struct value r = {.kind = V_LIST, .span = e->span, .count = count, .capacity = count};
    r.items = pnet_arena_array(&c->arena, (size_t)count + 1, sizeof *r.items);
    for (int i = 0; r.items && i < count; i++)
        r.items[i] = pnet_spend_steps(c, e->span, 1)
                         ? pnet_evaluate_operator(c, s, e, op, a.kind == V_LIST ? a.items[i] : a,
                               b.kind == V_LIST ? b.items[i] : b)
                         : unknown;
    return r.items ? r : unknown;
}

static struct value tensor_arithmetic(struct pnet_compilation *c, struct scope *s,
    const struct pnet_expr *e, enum pnet_operator op, struct value a, struct value b)
{
    struct pnet_attr attr[PNET_MAX_ARGS];
    bool both = a.kind == V_TENSOR && b.kind == V_TENSOR;
    const char *name = !both ? "scale" : op == PNET_OP_MUL ? "mul" : "add";
    struct value other = a.kind == V_TENSOR ? b : a, in[2] = {a.kind == V_TENSOR ? a : b, b};
    bool known = op == PNET_OP_ADD || op == PNET_OP_SUB
                     ? both
                     : op == PNET_OP_MUL || (op == PNET_OP_DIV && !both && a.kind == V_TENSOR);
    bool plain = both || (other.kind == V_NUMBER && other.unit != PNET_UNIT_LENGTH &&
                             other.unit != PNET_UNIT_ANGLE);
    const struct pnet_op *row = pnet_op_find(name);
    if (!known || !plain || !row || !pnet_default_attrs(c, row, attr)) {
        ERROR(c, e->binary.op_span, "this cannot be computed from %s and %s", pnet_value_text(c, a),
            pnet_value_text(c, b));
        return unknown;
    }
    /* the number is the last argument of both rows: add(a, b, scale), scale(x, by) */
    int last = 0;
    while (row->args[last + 1].name) last++;
    if (!both || op == PNET_OP_SUB) {
        attr[last].set = true;
        attr[last].r = both ? -1 : op == PNET_OP_DIV ? 1 / other.number : other.number;
    }
    struct pnet_span spans[PNET_MAX_ARGS];
    for (int i = 0; i < PNET_MAX_ARGS; i++) spans[i] = e->span;
    return pnet_apply_op(c, s, e->binary.op_span, row, in, both ? 2 : 1, attr, spans, NULL);
}

struct value pnet_evaluate_operator(struct pnet_compilation *c, struct scope *s,
    const struct pnet_expr *e, enum pnet_operator op, struct value a, struct value b)
{
    if (a.kind == V_UNKNOWN || b.kind == V_UNKNOWN) return unknown;
    bool equality = op == PNET_OP_EQ || op == PNET_OP_NE;
    if (a.kind == V_NUMBER && b.kind == V_NUMBER) return number_arithmetic(c, e, op, a, b);
    if (equality && a.kind == b.kind && (a.kind == V_LEVEL || a.kind == V_CLOUD))
        return boolean((a.index == b.index) == (op == PNET_OP_EQ), e->span);
    if (equality && a.kind == b.kind && a.kind == V_BOOL)
        return boolean((a.truth == b.truth) == (op == PNET_OP_EQ), e->span);
    if (equality && a.kind == V_TEXT && b.kind == V_TEXT)
        return boolean((strcmp(a.text, b.text) == 0) == (op == PNET_OP_EQ), e->span);
    if (a.kind == V_TENSOR || b.kind == V_TENSOR) return tensor_arithmetic(c, s, e, op, a, b);
    bool numeric = op == PNET_OP_ADD || op == PNET_OP_SUB || op == PNET_OP_MUL || op == PNET_OP_DIV;
    if (numeric && ((a.kind == V_LIST && (b.kind == V_NUMBER || b.kind == V_LIST)) ||
                       (a.kind == V_NUMBER && b.kind == V_LIST)))
        return list_arithmetic(c, s, e, op, a, b);
    ERROR(c, e->binary.op_span, "this cannot be computed from %s and %s", pnet_value_text(c, a),
        pnet_value_text(c, b));
    return unknown;
}

static struct value evaluate_logic(
    struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e)
{
    const struct pnet_expr *sides[2] = {e->binary.left, e->binary.right};
    bool result = e->binary.op == PNET_OP_AND;
    for (int i = 0; i < (e->binary.op == PNET_OP_NOT ? 1 : 2); i++) {
        struct value v = pnet_evaluate_expr(c, s, sides[i]);
        if (v.kind == V_UNKNOWN) return unknown;
        if (v.kind != V_BOOL) {
            ERROR(c, sides[i]->span, "this is yes or no, not %s", pnet_value_text(c, v));
            return unknown;
        }
        if (e->binary.op == PNET_OP_NOT) return boolean(!v.truth, e->span);
        result = v.truth;
        if (v.truth == (e->binary.op == PNET_OP_OR))
            break; /* the right side does not matter any more */
    }
    return boolean(result, e->span);
}

static struct value evaluate_unary(
    struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e)
{
    struct value v = pnet_evaluate_expr(c, s, e->binary.left);
    if (v.kind == V_NUMBER) return number(-v.number, v.unit, e->span);
    return pnet_evaluate_operator(c, s, e, PNET_OP_MUL, v, number(-1, PNET_UNIT_NONE, e->span));
}

/* The name of anything that can be meant where a value stands. */
static struct value unknown_name(
    struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e)
{
    enum { MAX = 256 };
    const char *names[MAX];
    int n = 0;
    if (pnet_may_be_lost(c, e->name)) return unknown;
    struct pnet_diag *d = ERROR(c, e->span, "unknown name '%s'", e->name);
    if (!d) return unknown;
    for (struct scope *at = s; at; at = at->outer)
        for (int i = at->binding_count - 1; i >= 0 && n < MAX; i--)
            names[n++] = at->bindings[i]->name;
    const char *near = pnet_nearest(e->name, names, n);
    if (near)
        pnet_diag_help(d, "did you mean %s?", near);
    else if (pnet_op_find(e->name) || pnet_map_find(&c->definition_names, e->name))
        pnet_diag_help(d, "'%s' is a layer: call it, %s(..)", e->name, e->name);
    else if (pnet_is_choice(e->name))
        pnet_diag_help(d, "write \"%s\" to pass the word on", e->name);
    return unknown;
}

static struct value evaluate_name(
    struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e)
{
    struct binding *b = pnet_find_binding(s, e->name);
    if (pnet_is_lost(c, e->name)) return unknown;
    if (b) {
        if (b->use >= 0) c->uses[b->use].used = true;
        return b->value;
    }
    if (strcmp(e->name, "yes") == 0 || strcmp(e->name, "no") == 0)
        return boolean(e->name[0] == 'y', e->span);
    if (strcmp(e->name, "sample") == 0)
        return (struct value){.kind = V_LEVEL, .span = e->span, .index = c->plan.sample_level};
    return unknown_name(c, s, e);
}

static struct value evaluate_index_expr(
    struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e)
{
    struct value base = pnet_evaluate_expr(c, s, e->index.base),
                 i = pnet_evaluate_expr(c, s, e->index.index);
    if (base.kind == V_UNKNOWN) return unknown;
    if (base.kind != V_LIST) {
        ERROR(
            c, e->index.base->span, "only lists have items, this is %s", pnet_value_text(c, base));
        return unknown;
    }
    if (i.kind == V_UNKNOWN) return unknown;
    if (i.kind != V_NUMBER || i.unit || i.number != floor(i.number)) {
        ERROR(c, e->index.index->span, "an index is a whole number, not %s", pnet_value_text(c, i));
        return unknown;
    }
    bool there = i.number >= 0 && i.number < base.count;
    if (c->torn && (!there || base.items[(int)i.number].kind == V_NONE)) return unknown;
    if (!there) {
        struct pnet_diag *d =
            ERROR(c, e->index.index->span, "index %.0f is out of range", i.number);
        pnet_diag_label(
            d, base.count ? "the list has items 0 to %d" : "the list is empty", base.count - 1);
        if (base.span.end > base.span.begin) pnet_diag_second(d, base.span, "made here");
        return unknown;
    }
    struct value v = base.items[(int)i.number];
    if (v.kind != V_NONE) return v;
    ERROR(c, e->span, "item %.0f of the list was never given a value", i.number);
    return unknown;
}

static struct value evaluate_field(
    struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e)
{
    struct value base = pnet_evaluate_expr(c, s, e->field.base);
    if (base.kind == V_UNKNOWN) return unknown;
    if (base.kind != V_CLOUD) {
        ERROR(c, e->field.base->span, "only clouds have fields, this is %s",
            pnet_value_text(c, base));
        return unknown;
    }
    struct pnet_input *in = &c->plan.inputs[base.index];
    for (int i = 0; i < in->field_count; i++)
        if (strcmp(in->fields[i].name, e->field.name) == 0)
            return (struct value){
                .kind = V_TENSOR, .span = e->span, .index = c->first_tensor[base.index] + i};
    char key[2 * PNET_MAX_NAME + 2];
    snprintf(key, sizeof key, "%s.%s", in->name, e->field.name);
    if (pnet_map_find(&c->unknown_fields, key) || pnet_may_be_lost(c, e->field.name))
        return unknown;
    struct pnet_diag *d =
        ERROR(c, e->field.name_span, "input '%s' has no field '%s'", in->name, e->field.name);
    if (!d) return unknown;
    const char *names[MAX_FIELDS];
    for (int i = 0; i < in->field_count; i++) names[i] = in->fields[i].name;
    const char *near = pnet_nearest(e->field.name, names, in->field_count);
    if (near) pnet_diag_help(d, "did you mean %s?", near);
    return unknown;
}

static struct value evaluate_list(
    struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e)
{
    if (e->list.count > MAX_ITEMS) {
        ERROR(c, e->span, "the list has over %d items", MAX_ITEMS);
        return unknown;
    }
    struct value r = {
        .kind = V_LIST, .span = e->span, .count = e->list.count, .capacity = e->list.count};
    r.items = pnet_arena_array(&c->arena, (size_t)e->list.count + 1, sizeof *r.items);
    if (!r.items) return unknown;
    for (int i = 0; i < e->list.count; i++) r.items[i] = pnet_evaluate_expr(c, s, e->list.items[i]);
    return r;
}

static struct value evaluate_binary(
    struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e)
{
    if (e->binary.op == PNET_OP_AND || e->binary.op == PNET_OP_OR) return evaluate_logic(c, s, e);
    struct value a = pnet_evaluate_expr(c, s, e->binary.left),
                 b = pnet_evaluate_expr(c, s, e->binary.right);
    return pnet_evaluate_operator(c, s, e, e->binary.op, a, b);
}

static struct value evaluate_if(
    struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e)
{
    struct value t = pnet_evaluate_expr(c, s, e->conditional.condition);
    if (t.kind == V_BOOL)
        return pnet_evaluate_expr(c, s, t.truth ? e->conditional.then : e->conditional.otherwise);
    if (t.kind != V_UNKNOWN)
        ERROR(c, e->conditional.condition->span, "a condition is yes or no, not %s",
            pnet_value_text(c, t));
    return unknown;
}

static struct value evaluate_kind(
    struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e)
{
    switch (e->kind) {
    case PNET_EXPR_NUMBER: return number(e->number.value, e->number.unit, e->span);
    case PNET_EXPR_STRING: return (struct value){.kind = V_TEXT, .text = e->string};
    case PNET_EXPR_NAME: return evaluate_name(c, s, e);
    case PNET_EXPR_LIST: return evaluate_list(c, s, e);
    case PNET_EXPR_INDEX: return evaluate_index_expr(c, s, e);
    case PNET_EXPR_FIELD: return evaluate_field(c, s, e);
    case PNET_EXPR_CALL:
    case PNET_EXPR_PIPE: return pnet_evaluate_call(c, s, e);
    case PNET_EXPR_UNARY:
        return e->binary.op == PNET_OP_NOT ? evaluate_logic(c, s, e) : evaluate_unary(c, s, e);
    case PNET_EXPR_BINARY: return evaluate_binary(c, s, e);
    case PNET_EXPR_IF: return evaluate_if(c, s, e);
    }
    return unknown;
}

static void see(struct pnet_compilation *c, const struct pnet_expr *e, struct value v)
{
    if (e->kind == PNET_EXPR_NAME) pnet_seen_add(c, e->name_span, v);
    if (e->kind == PNET_EXPR_FIELD) pnet_seen_add(c, e->field.name_span, v);
    if (e->kind == PNET_EXPR_CALL || e->kind == PNET_EXPR_PIPE)
        pnet_seen_add(c, e->call.name_span, v);
}

struct value pnet_evaluate_expr(
    struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e)
{
    struct value v = unknown;
    if (pnet_descend(c, e->span) && !pnet_is_torn(c, e->span)) v = evaluate_kind(c, s, e);
    pnet_ascend(c);
    if (c->seen) see(c, e, v);
    if (e->kind != PNET_EXPR_NAME) v.span = e->span; /* a name keeps where it was given its value */
    return v;
}
