/* Calls: layers of the op table, blocks, nets, and the few functions of the language itself. */
#include "compiler/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct value none = {.kind = V_NONE};

/* The call as written, sorted into places. */
struct arguments {
    const struct pnet_expr *expr;
    const char *name;       /* name="..", which overrides the path; or NULL */
    struct value piped;     /* NONE where nothing is piped in */
    int count;              /* of the others */
    struct {
        const char *name; /* NULL: positional */
        struct pnet_span name_span;
        const struct pnet_expr *expr;
    } items[64];
};

static bool collect(struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e, struct value piped,
    struct arguments *a)
{
    bool named = false;
    *a = (struct arguments){.expr = e, .piped = piped};
    for (const struct pnet_call_arg *arg = e->call.args; arg; arg = arg->next) {
        if (arg->name && strcmp(arg->name, "name") == 0) {
            struct value v = evaluate(c, s, arg->value);
            if (v.kind == V_NONE) return false;
            if (v.kind != V_TEXT || !*v.text) {
                ERROR(c, arg->value->span, "name= takes a text in quotes");
                return false;
            }
            a->name = v.text;
            continue;
        }
        if (named && !arg->name) {
            pnet_diag_label(ERROR(c, arg->value->span, "a positional argument stands behind a named one"), "move it forward, or name it");
            return false;
        }
        named = arg->name != NULL;
        if (a->count == 64) {
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

static bool is_value_arg(const struct pnet_arg *arg)
{
    return arg->type == PNET_ARG_VALUE || arg->type == PNET_ARG_LABEL || arg->type == PNET_ARG_VALUES || arg->type == PNET_ARG_ANY;
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

bool default_attrs(struct pnet_compilation *c, const struct pnet_op *op, struct pnet_attr *attr)
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
        default: attr[i].r = strtod(arg->standard, NULL); break;
        }
    }
    return true;
}

static bool wrong_type(struct pnet_compilation *c, struct pnet_span span, const struct pnet_op *op,
    const struct pnet_arg *arg, const char *wanted, struct value v)
{
    struct pnet_diag *d = ERROR(c, span, "%s() takes %s for %s", op->name, wanted, arg->name);
    pnet_diag_label(d, "this is %s", describe(c, v));
    return false;
}

static bool check_range(struct pnet_compilation *c, struct pnet_span span, const struct pnet_op *op,
    const struct pnet_arg *arg, double x)
{
    if ((arg->min == 0 && arg->max == 0) || (x >= arg->min && x <= arg->max)) return true;
    const char *unit = arg->type == PNET_ARG_LENGTH ? "m" : "";
    struct pnet_diag *d = ERROR(c, span, "%s of %s() is out of range", arg->name, op->name);
    pnet_diag_label(d, "from %g%s to %g%s", arg->min, unit, arg->max, unit);
    return false;
}

static bool number_attr(struct pnet_compilation *c, struct pnet_span span, const struct pnet_op *op,
    const struct pnet_arg *arg, struct value v, struct pnet_attr *attr)
{
    bool length = arg->type == PNET_ARG_LENGTH;
    if (v.kind != V_NUMBER) return wrong_type(c, span, op, arg, length ? "a length" : "a number", v);
    if (length && v.unit != PNET_UNIT_LENGTH) {
        struct pnet_diag *d = ERROR(c, span, "%s of %s() needs a unit", arg->name, op->name);
        pnet_diag_label(d, "this is %s", describe(c, v));
        pnet_diag_help(d, "write %gcm, or %gm", v.number * 100, v.number);
        return false;
    }
    if (!length && (v.unit == PNET_UNIT_LENGTH || v.unit == PNET_UNIT_ANGLE))
        return wrong_type(c, span, op, arg, "a plain number", v);
    if (!check_range(c, span, op, arg, v.number)) return false;
    if (arg->type == PNET_ARG_INT) {
        if (v.number != floor(v.number) || fabs(v.number) > 1e15) return wrong_type(c, span, op, arg, "a whole number", v);
        attr->i = (int64_t)v.number;
    } else {
        attr->r = v.number;
    }
    return true;
}

static bool choice_attr(struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e, const struct pnet_op *op,
    const struct pnet_arg *arg, struct pnet_attr *attr)
{
    struct value v = {.kind = V_WORD};
    if (e->kind == PNET_EXPR_NAME && !find_binding(s, e->name))
        v.text = e->name;
    else
        v = evaluate(c, s, e);
    if (v.kind == V_NONE) return false;
    if (v.kind != V_WORD && v.kind != V_TEXT) return wrong_type(c, e->span, op, arg, arg->choices, v);
    attr->i = find_choice(arg->choices, v.text);
    if (attr->i >= 0) return true;
    struct pnet_diag *d = ERROR(c, e->span, "%s of %s() cannot be '%s'", arg->name, op->name, v.text);
    pnet_diag_help(d, "one of %s", arg->choices);
    return false;
}

static bool list_attr(struct pnet_compilation *c, const struct pnet_expr *e, const struct pnet_op *op,
    const struct pnet_arg *arg, struct value v, struct pnet_attr *attr)
{
    if (v.kind != V_LIST || v.count > PNET_MAX_LIST) return wrong_type(c, e->span, op, arg, "a list of numbers", v);
    double *items = pnet_arena_array(&c->arena, (size_t)v.count + 1, sizeof *items);
    if (!items) return false;
    for (int i = 0; i < v.count; i++) {
        if (v.items[i].kind != V_NUMBER) return wrong_type(c, e->span, op, arg, "a list of numbers", v.items[i]);
        if (!check_range(c, e->span, op, arg, v.items[i].number)) return false;
        items[i] = v.items[i].number;
    }
    attr->list.items = items;
    attr->list.count = v.count;
    return true;
}

static bool set_attr(struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e, const struct pnet_op *op,
    const struct pnet_arg *arg, struct pnet_attr *attr)
{
    attr->set = true;
    if (arg->type == PNET_ARG_CHOICE) return choice_attr(c, s, e, op, arg, attr);
    struct value v = evaluate(c, s, e);
    if (v.kind == V_NONE) return false;
    switch (arg->type) {
    case PNET_ARG_BOOL:
        if (v.kind != V_BOOL) return wrong_type(c, e->span, op, arg, "yes or no", v);
        attr->i = v.truth;
        return true;
    case PNET_ARG_LEVEL:
        if (v.kind != V_LEVEL) return wrong_type(c, e->span, op, arg, "a level", v);
        attr->i = v.index;
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

static bool unknown_argument(struct pnet_compilation *c, struct pnet_span span, const char *function, const char *name,
    const char *const *names, int count)
{
    struct pnet_diag *d = ERROR(c, span, "%s() has no argument '%s'", function, name);
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

/* What a layer's arguments come to. */
struct bound {
    struct value in[PNET_MAX_IN];
    struct pnet_span in_span[PNET_MAX_IN];
    int in_count;
    struct pnet_attr attr[PNET_MAX_ARGS];
    struct pnet_span span[PNET_MAX_ARGS];
    bool given[PNET_MAX_ARGS];
};

static bool add_input(struct pnet_compilation *c, const struct pnet_op *op, int arg, struct value v, struct pnet_span span,
    struct bound *b)
{
    const struct pnet_arg *a = &op->args[arg];
    if (v.kind == V_NONE) return false;
    if (v.kind != V_TENSOR)
        return wrong_type(c, span, op, a, a->type == PNET_ARG_LABEL ? "labels" : "features", v);
    enum pnet_scalar type = c->plan.tensors[v.index].type.type;
    if (a->type == PNET_ARG_LABEL && type != PNET_I32) return wrong_type(c, span, op, a, "labels", v);
    if ((a->type == PNET_ARG_VALUE || a->type == PNET_ARG_VALUES) && type == PNET_I32) {
        pnet_diag_label(ERROR(c, span, "%s() takes features for %s", op->name, a->name), "these are labels");
        return false;
    }
    if (b->in_count == PNET_MAX_IN) {
        ERROR(c, span, "%s() takes at most %d values", op->name, PNET_MAX_IN);
        return false;
    }
    b->given[arg] = true;
    b->in_span[b->in_count] = span;
    b->in[b->in_count++] = v;
    return true;
}

/* Values fill the value arguments in order; what is left over goes to the other arguments in order. */
static bool bind_arguments(struct pnet_compilation *c, struct scope *s, const struct pnet_op *op,
    const struct arguments *a, struct bound *b)
{
    int next = 0;
    *b = (struct bound){0};
    default_attrs(c, op, b->attr);
    for (int i = 0; i < PNET_MAX_ARGS; i++) b->span[i] = a->expr->call.name_span;
    if (a->piped.kind != V_NONE) {
        if (!op->args[0].name || !is_value_arg(&op->args[0])) {
            ERROR(c, a->expr->call.name_span, "%s() takes no value from a pipe", op->name);
            return false;
        }
        if (!add_input(c, op, 0, a->piped, a->piped.span, b)) return false;
        next = op->args[0].type == PNET_ARG_VALUES ? 0 : 1;
    }
    for (int i = 0; i < a->count; i++) {
        const struct pnet_expr *e = a->items[i].expr;
        int arg = a->items[i].name ? find_arg(op, a->items[i].name) : next;
        if (arg < 0) {
            const char *names[PNET_MAX_ARGS];
            int n = 0;
            for (int k = 0; k < PNET_MAX_ARGS && op->args[k].name; k++) names[n++] = op->args[k].name;
            return unknown_argument(c, a->items[i].name_span, op->name, a->items[i].name, names, n);
        }
        if (arg >= PNET_MAX_ARGS || !op->args[arg].name) {
            ERROR(c, e->span, "%s() takes no more arguments", op->name);
            return false;
        }
        bool many = op->args[arg].type == PNET_ARG_VALUES;
        if (b->given[arg] && !many) {
            ERROR(c, e->span, "%s of %s() is given twice", op->args[arg].name, op->name);
            return false;
        }
        if (is_value_arg(&op->args[arg])) {
            if (!add_input(c, op, arg, evaluate(c, s, e), e->span, b)) return false;
        } else if (!set_attr(c, s, e, op, &op->args[arg], &b->attr[arg])) {
            return false;
        }
        b->given[arg] = true;
        b->span[arg] = e->span;
        if (!a->items[i].name && !many) next++;
    }
    for (int i = 0; i < PNET_MAX_ARGS && op->args[i].name; i++)
        if (!b->given[i] && !op->args[i].standard) {
            struct pnet_diag *d = ERROR(c, a->expr->call.name_span, "%s() needs %s", op->name, op->args[i].name);
            pnet_diag_help(d, "%s: %s", op->args[i].name, op->args[i].help);
            return false;
        }
    return true;
}

/* "prefix.value.op", with _2, _3 where the same stands there already. */
static const char *op_path(struct pnet_compilation *c, struct scope *s, const char *op, const char *name)
{
    const char *dot = *s->prefix && *s->value_path ? "." : "";
    const char *base = name ? pnet_arena_printf(&c->arena, "%s%s%s", s->prefix, *s->prefix ? "." : "", name)
                            : pnet_arena_printf(&c->arena, "%s%s%s.%s", s->prefix, dot, s->value_path, op);
    if (!base || name) return base;
    if (*base == '.') base++;
    int *count = map_get(&c->arena, s->counters, base, 0);
    if (!count) return NULL;
    return ++*count == 1 ? base : pnet_arena_printf(&c->arena, "%s_%d", base, *count);
}

/* The rule's complaint, with what the inputs are and where they come from. */
static void report_rule(struct pnet_compilation *c, struct pnet_span span, const struct pnet_rule *r, const struct value *in,
    int in_count, const struct pnet_span *in_spans, const struct pnet_span *arg_spans)
{
    struct pnet_span at = r->error_arg >= 0 ? arg_spans[r->error_arg] : span;
    struct pnet_diag *d = ERROR(c, at, "%s", r->error);
    char label[512] = "", text[96];
    for (int i = 0; i < in_count && i < 4; i++) {
        int tensor = in[i].index;
        struct pnet_span made = c->tensor_spans[tensor];
        const char *name = source_text(c, in_spans ? in_spans[i] : span);
        size_t n = strlen(label);
        snprintf(label + n, sizeof label - n, "%s%s is %s", i ? ", " : "", name ? name : i ? "the other" : "the input",
            pnet_type_text(c->plan.levels, c->plan.tensors[tensor].type, text));
        n = strlen(label);
        if (made.end > made.begin && n > 1 && made.file == at.file && made.begin != at.begin)
            snprintf(label + n, sizeof label - n, " (line %u)", pnet_source_place(c->sources, made.file, made.begin).line);
    }
    pnet_diag_label(d, "%s", label);
    if (r->error_in >= 0 && r->error_in < in_count) {
        struct pnet_span made = c->tensor_spans[in[r->error_in].index];
        bool here = made.file == at.file && pnet_source_place(c->sources, made.file, made.begin).line == pnet_source_place(c->sources, at.file, at.begin).line;
        if (made.end > made.begin && !here) pnet_diag_second(d, made, "made here");
    }
    if (*r->help) pnet_diag_help(d, "%s", r->help);
}

static bool same_shape(const struct pnet_param_info *a, const struct pnet_param_info *b)
{
    return a->dims == b->dims && memcmp(a->shape, b->shape, (size_t)a->dims * sizeof a->shape[0]) == 0;
}

/* The parameter `path.suffix`: new, or that of an earlier use of the same net. */
static int take_param(struct pnet_compilation *c, struct scope *s, struct pnet_span span, const char *path,
    const struct pnet_param_info *info)
{
    const char *name = pnet_arena_printf(&c->arena, "%s.%s", path, info->suffix);
    int *known = name ? map_get(&c->arena, &c->param_names, name, -1) : NULL;
    if (!known) return -1;
    if (*known >= 0) {
        if (c->param_use[*known] == s->net_use || !s->net_use) {
            struct pnet_diag *d = ERROR(c, span, "there is a parameter '%s' already", name);
            pnet_diag_help(d, "give one of the two layers a name of its own: name=\"..\"");
            return -1;
        }
        if (!same_shape(&c->plan.params[*known].info, info)) {
            struct pnet_diag *d = ERROR(c, span, "the uses of the net need different shapes for '%s'", name);
            pnet_diag_help(d, "a block has fresh weights at each use");
            return -1;
        }
        c->param_use[*known] = s->net_use;
        return *known;
    }
    int64_t count = 1;
    for (int i = 0; i < info->dims; i++)
        if (__builtin_mul_overflow(count, info->shape[i], &count) || count > (int64_t)1 << 40) {
            ERROR(c, span, "the weights of '%s' are too large", name);
            return -1;
        }
    int index = add_param(c, (struct pnet_plan_param){.info = *info, .name = name, .count = count, .last_use = -1});
    if (c->arena.failed) return -1;
    *map_get(&c->arena, &c->param_names, name, index) = index;
    c->param_use[index] = s->net_use;
    return index;
}

static uint32_t draw_stream(struct pnet_compilation *c, const char *path)
{
    uint32_t h = 2166136261u;
    for (const char *p = path; *p; p++) h = (h ^ (uint8_t)*p) * 16777619u;
    int *uses = map_get(&c->arena, &c->draws, path, 0);
    return uses ? h + 0x9E3779B9u * (uint32_t)(*uses)++ : h;
}

static void mark_scores(struct pnet_compilation *c, const struct pnet_node *n)
{
    /* what a loss or metric compares with labels holds scores: inference then tells classes */
    for (int i = 1; i < n->in_count; i++) {
        struct pnet_type label = c->plan.tensors[n->in[i]].type;
        if (label.type == PNET_I32 && n->op->class_ != PNET_LAYER && c->plan.tensors[n->in[0]].type.width == label.classes)
            c->plan.tensors[n->in[0]].type.classes = label.classes;
    }
}

struct value apply_op(struct pnet_compilation *c, struct scope *s, struct pnet_span span, const struct pnet_op *op,
    const struct value *in, int in_count, const struct pnet_attr *attr, const struct pnet_span *arg_spans, const char *name)
{
    struct pnet_type types[PNET_MAX_IN];
    for (int i = 0; i < in_count; i++) types[i] = c->plan.tensors[in[i].index].type;
    struct pnet_rule r = {.attr = attr, .in = types, .in_count = in_count, .levels = c->plan.levels,
        .level_count = c->plan.level_count, .sample_level = c->plan.sample_level, .scalar_level = c->plan.scalar_level,
        .degrade = c->options.degrade, .error_arg = -1, .error_in = -1};
    const char *path = op_path(c, s, op->name, name);
    struct pnet_span in_spans[PNET_MAX_IN];
    for (int i = 0; i < in_count; i++) in_spans[i] = in[i].span;
    if (!path) return none;
    if (!op->rule(&r)) {
        report_rule(c, span, &r, in, in_count, in_spans, arg_spans);
        return none;
    }
    if (*r.warning) pnet_diag_new(c->diags, PNET_WARNING, span, "%s", r.warning);
    if (c->plan.node_count >= MAX_NODES) {
        ERROR(c, span, "the model is too large: over %d nodes", MAX_NODES);
        return none;
    }
    struct pnet_node n = {.op = op, .in_count = in_count, .param_count = r.param_count, .saved_count = r.saved_count,
        .geo_count = r.geo_count, .path = path, .draw = draw_stream(c, path)};
    n.line = span.file == 0 ? pnet_source_place(c->sources, span.file, span.begin).line : 0;
    memcpy(n.attr, attr, sizeof n.attr);
    for (int i = 0; i < in_count; i++) n.in[i] = in[i].index;
    for (int i = 0; i < r.param_count; i++) {
        n.param[i] = take_param(c, s, span, path, &r.params[i]);
        if (n.param[i] < 0) return none;
    }
    int index = c->plan.node_count;
    n.out = add_tensor(c, (struct pnet_plan_tensor){.type = r.out, .role = PNET_ROLE_RESULT, .name = path, .node = index, .of = -1}, span);
    for (int i = 0; i < r.saved_count; i++)
        n.saved[i] = add_tensor(c, (struct pnet_plan_tensor){.type = r.saved[i].type, .role = PNET_ROLE_SAVED, .name = path,
                                       .node = index, .of = r.saved[i].training_only ? 1 : -1}, span);
    for (int i = 0; i < r.geo_count; i++) {
        n.geo[i] = add_geo(c, r.geo[i]);
        n.forward_forms[i] = r.geo[i].forward_forms;
        n.backward_forms[i] = r.geo[i].backward_forms;
    }
    add_node(c, n);
    if (c->arena.failed) return none;
    mark_scores(c, &n);
    return (struct value){.kind = V_TENSOR, .span = span, .index = n.out};
}

/* The run config may weigh classes where the model does not. */
static void weigh_classes(struct pnet_compilation *c, const struct pnet_op *op, struct bound *b)
{
    if (op->class_ != PNET_LOSS || !c->options.class_weight_count) return;
    for (int i = 0; i < PNET_MAX_ARGS && op->args[i].name; i++)
        if (op->args[i].type == PNET_ARG_REALS && strcmp(op->args[i].name, "weights") == 0 && !b->attr[i].set) {
            b->attr[i].set = true;
            b->attr[i].list.items = c->options.class_weights;
            b->attr[i].list.count = c->options.class_weight_count;
        }
}

static struct value call_op(struct pnet_compilation *c, struct scope *s, const struct pnet_op *op, const struct arguments *a)
{
    struct bound b;
    if (!bind_arguments(c, s, op, a, &b)) return none;
    weigh_classes(c, op, &b);
    for (int i = 0; i < b.in_count; i++) b.in[i].span = b.in_span[i];
    struct value v = apply_op(c, s, a->expr->call.name_span, op, b.in, b.in_count, b.attr, b.span, a->name);
    return v;
}

/* Blocks and nets. */

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
        struct pnet_diag *d = ERROR(c, e ? e->span : p->name_span, "'%s' is a cloud, not %s", p->name, describe(c, v));
        pnet_diag_second(d, p->name_span, "declared here");
        return false;
    }
    bind(c, callee, p->name, v, p->name_span, true);
    return true;
}

static bool bind_parameters(struct pnet_compilation *c, struct scope *caller, struct scope *callee,
    const struct pnet_item *item, const struct arguments *a, int first_positional, int skip)
{
    const char *names[64];
    int n = 0, position = first_positional;
    for (const struct pnet_param_decl *p = item->params; p && n < 64; p = p->next) names[n++] = p->name;
    for (int i = 0; i < a->count; i++) {
        bool known = !a->items[i].name;
        for (int k = 0; k < n && !known; k++) known = strcmp(names[k], a->items[i].name) == 0;
        if (!known) return unknown_argument(c, a->items[i].name_span, item->name, a->items[i].name, names, n);
    }
    int index = 0;
    for (const struct pnet_param_decl *p = item->params; p; p = p->next, index++) {
        const struct pnet_expr *e = NULL;
        if (index < skip) continue;
        if (position < a->count && !a->items[position].name) e = a->items[position++].expr;
        for (int i = 0; i < a->count; i++)
            if (a->items[i].name && strcmp(a->items[i].name, p->name) == 0) {
                if (e) {
                    ERROR(c, a->items[i].name_span, "%s of %s() is given twice", p->name, item->name);
                    return false;
                }
                e = a->items[i].expr;
            }
        if (!e && !p->value) {
            struct pnet_diag *d = ERROR(c, a->expr->call.name_span, "%s() needs %s", item->name, p->name);
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

static struct value run_body(struct pnet_compilation *c, struct scope *callee, struct definition *d, struct pnet_span span)
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
        struct pnet_diag *e = ERROR(c, d->item->name_span, "%s '%s' has no result", block ? "block" : "net", d->item->name);
        pnet_diag_help(e, "%s", block ? "give `out` a value" : "end it with return");
    }
    return none;
}

static struct value call_block(struct pnet_compilation *c, struct scope *s, struct definition *d, const struct arguments *a)
{
    struct scope callee = {.outer = c->global, .value_path = "", .counters = s->counters, .net_use = s->net_use};
    struct value in = a->piped;
    int first = 0;
    if (in.kind == V_NONE) {
        if (!a->count || a->items[0].name) {
            pnet_diag_help(ERROR(c, a->expr->call.name_span, "%s() needs an input", d->item->name), "pipe it in: x -> %s(..)", d->item->name);
            return none;
        }
        in = evaluate(c, s, a->items[first++].expr);
        if (in.kind == V_NONE) return none;
    }
    callee.prefix = op_path(c, s, d->item->name, a->name);
    if (!callee.prefix) return none;
    bind(c, &callee, "in", in, a->expr->span, false);
    if (!bind_parameters(c, s, &callee, d->item, a, first, 0)) return none;
    return run_body(c, &callee, d, a->expr->call.name_span);
}

static struct value call_net(struct pnet_compilation *c, struct scope *s, struct definition *d, const struct arguments *a)
{
    struct map counters = {0}; /* each use starts to count again, and so finds the same names */
    struct scope callee = {.outer = c->global, .prefix = a->name ? a->name : d->item->name, .value_path = "",
        .counters = &counters, .net_use = ++c->net_uses};
    int skip = 0;
    if (a->piped.kind != V_NONE) {
        if (!d->item->params) {
            ERROR(c, a->expr->call.name_span, "%s() takes no arguments", d->item->name);
            return none;
        }
        bind(c, &callee, d->item->params->name, a->piped, d->item->params->name_span, true);
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

/* grid, level, width and the arithmetic functions. */

static bool nests(double coarse, double fine, int32_t *factor)
{
    double ratio = coarse / fine, whole = round(ratio);
    *factor = (int32_t)whole;
    return whole >= 1 && whole <= 1 << 20 && fabs(ratio - whole) <= 1e-6 * whole;
}

/* The level of `input` with that grid, sampled from `finer`; made where it is missing. */
static int grid_level(struct pnet_compilation *c, int input, int finer, double base, int32_t factor)
{
    for (int i = 0; i < c->plan.level_count; i++) {
        const struct pnet_level_info *l = &c->plan.levels[i];
        if (l->kind == PNET_LEVEL_GRID && l->input == input && l->grid.base == (float)base && l->grid.factor == factor && l->finer == finer)
            return i;
    }
    struct pnet_level_info l = {.kind = PNET_LEVEL_GRID, .input = input, .finer = finer, .cell = base * factor,
        .grid = {(float)base, (float)(1 / base), factor}};
    return add_level(c, l);
}

struct value builtin_grid(struct pnet_compilation *c, struct pnet_span span, struct value from, struct value cells)
{
    struct value single[1] = {cells}, *items = cells.kind == V_LIST ? cells.items : single;
    int count = cells.kind == V_LIST ? cells.count : 1, finer = -1, input;
    double base = 0;
    if (from.kind == V_CLOUD) {
        input = from.index;
        for (int i = 0; i < c->plan.level_count; i++)
            if (c->plan.levels[i].kind == PNET_LEVEL_INPUT && c->plan.levels[i].input == input) finer = i;
    } else if (from.kind == V_LEVEL && c->plan.levels[from.index].input >= 0) {
        finer = from.index;
        input = c->plan.levels[finer].input;
        if (c->plan.levels[finer].grid.base > 0) base = c->plan.levels[finer].cell / c->plan.levels[finer].grid.factor;
    } else {
        ERROR(c, span, "grid() samples a cloud or a level, not %s", describe(c, from));
        return none;
    }
    struct value r = {.kind = V_LIST, .span = span, .count = count, .capacity = count};
    r.items = pnet_arena_array(&c->arena, (size_t)count + 1, sizeof *r.items);
    int32_t last = base > 0 ? c->plan.levels[finer].grid.factor : 1;
    for (int i = 0; r.items && i < count; i++) {
        struct pnet_span at = items[i].span.end > items[i].span.begin ? items[i].span : span;
        int32_t factor = 1;
        if (items[i].kind != V_NUMBER || items[i].unit != PNET_UNIT_LENGTH || items[i].number < 1e-6 || items[i].number > 1e5) {
            struct pnet_diag *d = ERROR(c, at, "a cell size is a length from 1e-6 m to 100 km, not %s", describe(c, items[i]));
            if (items[i].kind == V_NUMBER && !items[i].unit) pnet_diag_help(d, "write %gcm, or %gm", items[i].number * 100, items[i].number);
            return none;
        }
        if (base == 0) base = items[i].number;
        if (!nests(items[i].number, base, &factor) || factor % last) {
            struct pnet_diag *d = ERROR(c, at, "cell sizes do not nest: %gm is no whole multiple of %gm", items[i].number, base * last);
            pnet_diag_help(d, "write the finer cells first, each a whole multiple of the one before");
            return none;
        }
        if (c->plan.level_count >= MAX_LEVELS) {
            ERROR(c, at, "too many levels: at most %d", MAX_LEVELS);
            return none;
        }
        last = factor;
        if (!(c->plan.levels[finer].kind == PNET_LEVEL_GRID && c->plan.levels[finer].grid.factor == factor && c->plan.levels[finer].grid.base == (float)base))
            finer = grid_level(c, input, finer, base, factor);
        r.items[i] = (struct value){.kind = V_LEVEL, .span = at, .index = finer};
    }
    if (!r.items || c->arena.failed) return none;
    return cells.kind == V_LIST ? r : r.items[0];
}

static struct value call_number_function(struct pnet_compilation *c, const struct pnet_expr *e, const struct value *v, int count)
{
    const char *f = e->call.name;
    struct value r = v[0];
    for (int i = 0; i < count; i++)
        if (v[i].kind != V_NUMBER || v[i].unit != v[0].unit) {
            ERROR(c, e->span, "%s() takes numbers of one unit, not %s", f, describe(c, v[i]));
            return none;
        }
    for (int i = 1; i < count; i++)
        r.number = strcmp(f, "min") == 0 ? fmin(r.number, v[i].number) : fmax(r.number, v[i].number);
    if (strcmp(f, "floor") == 0) r.number = floor(r.number);
    if (strcmp(f, "ceil") == 0) r.number = ceil(r.number);
    if (strcmp(f, "round") == 0) r.number = round(r.number);
    return r;
}

static const struct {
    const char *name;
    int least, most;
} builtins[] = {{"grid", 2, 2}, {"level", 1, 1}, {"width", 1, 1}, {"len", 1, 1}, {"min", 1, 16}, {"max", 1, 16},
    {"floor", 1, 1}, {"ceil", 1, 1}, {"round", 1, 1}};
enum { BUILTINS = sizeof builtins / sizeof builtins[0] };

static struct value call_builtin(struct pnet_compilation *c, struct scope *s, int which, const struct arguments *a)
{
    const struct pnet_expr *e = a->expr;
    struct value v[17];
    int count = 0;
    if (a->piped.kind != V_NONE) v[count++] = a->piped;
    for (int i = 0; i < a->count && count < 17; i++) {
        if (a->items[i].name) {
            ERROR(c, a->items[i].name_span, "%s() has no argument '%s'", e->call.name, a->items[i].name);
            return none;
        }
        v[count] = evaluate(c, s, a->items[i].expr);
        if (v[count++].kind == V_NONE) return none;
    }
    if (count < builtins[which].least || count > builtins[which].most) {
        ERROR(c, e->call.name_span, "%s() takes %s%d argument%s, not %d", e->call.name,
            builtins[which].least < builtins[which].most ? "at least " : "", builtins[which].least,
            builtins[which].least == 1 ? "" : "s", count);
        return none;
    }
    if (which == 0) return builtin_grid(c, e->span, v[0], v[1]);
    if (which > 3) return call_number_function(c, e, v, count);
    if (which == 3 ? v[0].kind != V_LIST : v[0].kind != V_TENSOR) {
        if (which == 1 && v[0].kind == V_CLOUD) {
            for (int i = 0; i < c->plan.level_count; i++)
                if (c->plan.levels[i].kind == PNET_LEVEL_INPUT && c->plan.levels[i].input == v[0].index)
                    return (struct value){.kind = V_LEVEL, .span = e->span, .index = i};
        }
        ERROR(c, e->span, "%s() asks about %s, not %s", e->call.name, which == 3 ? "a list" : "features", describe(c, v[0]));
        return none;
    }
    const struct pnet_type t = which == 3 ? (struct pnet_type){0} : c->plan.tensors[v[0].index].type;
    if (which == 1) return (struct value){.kind = V_LEVEL, .span = e->span, .index = t.level};
    return (struct value){.kind = V_NUMBER, .span = e->span, .number = which == 2 ? t.width : v[0].count};
}

static struct value unknown_function(struct pnet_compilation *c, const struct pnet_expr *e)
{
    const char *names[512];
    int n = 0;
    for (int i = 0; i < pnet_op_count && n < 256; i++) names[n++] = pnet_ops[i]->name;
    for (int i = 0; i < BUILTINS; i++) names[n++] = builtins[i].name;
    for (int i = 0; i < c->definition_count && n < 512; i++) names[n++] = c->definitions[i].item->name;
    struct pnet_diag *d = ERROR(c, e->call.name_span, "there is no layer, block or net '%s'", e->call.name);
    const char *near = pnet_nearest(e->call.name, names, n);
    if (near)
        pnet_diag_help(d, "did you mean %s?", near);
    else
        pnet_diag_help(d, "pnetc ops lists the layers");
    return none;
}

static struct value dispatch(struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e, struct value piped)
{
    struct arguments a;
    if (!collect(c, s, e, piped, &a)) return none;
    int *definition = map_find(&c->definition_names, e->call.name);
    if (definition) {
        struct definition *d = &c->definitions[*definition];
        return d->item->kind == PNET_ITEM_BLOCK ? call_block(c, s, d, &a) : call_net(c, s, d, &a);
    }
    for (int i = 0; i < BUILTINS; i++)
        if (strcmp(builtins[i].name, e->call.name) == 0) return call_builtin(c, s, i, &a);
    const struct pnet_op *op = pnet_op_find(e->call.name);
    return op ? call_op(c, s, op, &a) : unknown_function(c, e);
}

static struct value repeat(struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e, struct value v)
{
    struct value times = evaluate(c, s, e->call.repeat);
    if (times.kind == V_NONE) return none;
    if (times.kind != V_NUMBER || times.unit || times.number != floor(times.number) || times.number < 0 || times.number > MAX_ITEMS) {
        ERROR(c, e->call.repeat->span, "a stage repeats a whole number of times, not %s", describe(c, times));
        return none;
    }
    const char *path = s->value_path;
    for (int i = 0; i < (int)times.number && v.kind != V_NONE && compilation_ok(c); i++) {
        s->value_path = pnet_arena_printf(&c->arena, "%s.r%d", path, i);
        if (!s->value_path) break;
        v = dispatch(c, s, e, v);
    }
    s->value_path = path;
    return v;
}

struct value evaluate_call(struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e)
{
    struct value piped = none;
    if (e->kind == PNET_EXPR_PIPE) {
        piped = evaluate(c, s, e->call.piped);
        if (piped.kind == V_NONE) return none;
        piped.span = e->call.piped->span;
        if (e->call.repeat) return repeat(c, s, e, piped);
    }
    return dispatch(c, s, e, piped);
}
