/* A node of the graph from an op, its inputs and attributes: shape rule, names, parameters. */
#include "compiler/call.h"

#include <string.h>

const char *pnet_op_path(
    struct pnet_compilation *c, struct scope *s, const char *op, const char *name)
{
    const char *dot = *s->prefix && *s->value_path ? "." : "";
    const char *base =
        name ? pnet_arena_printf(&c->arena, "%s%s%s", s->prefix, *s->prefix ? "." : "", name)
             : pnet_arena_printf(&c->arena, "%s%s%s.%s", s->prefix, dot, s->value_path, op);
    if (!base || name) return base;
    if (*base == '.') base++;
    int *count = pnet_map_get(&c->arena, s->counters, base, 0);
    if (!count) return NULL;
    return ++*count == 1 ? base : pnet_arena_printf(&c->arena, "%s_%d", base, *count);
}

/* The rule's complaint, with what the inputs are and where they come from. */
static void report_rule(struct pnet_compilation *c, struct pnet_span span,
    const struct pnet_rule *r, const struct value *in, int in_count,
    const struct pnet_span *in_spans, const struct pnet_span *arg_spans)
{
    struct pnet_span at = r->error_arg >= 0 ? arg_spans[r->error_arg] : span;
    struct pnet_diag *d = ERROR(c, at, "%s", r->error);
    if (!d) return;
    char label[512] = "", text[96];
    for (int i = 0; i < in_count && i < 4; i++) {
        int tensor = in[i].index;
        struct pnet_span made = c->tensor_spans[tensor];
        const char *name = pnet_span_text(c, in_spans ? in_spans[i] : span);
        size_t n = strlen(label);
        snprintf(label + n, sizeof label - n, "%s%s is %s", i ? ", " : "",
            name ? name
            : i  ? "the other"
                 : "the input",
            pnet_type_text(c->plan.levels, c->plan.tensors[tensor].type, text));
        n = strlen(label);
        if (made.end > made.begin && n > 1 && made.file == at.file && made.begin != at.begin)
            snprintf(label + n, sizeof label - n, " (line %u)",
                pnet_source_line_at(c->sources, made.file, made.begin));
    }
    pnet_diag_label(d, "%s", label);
    if (r->error_in >= 0 && r->error_in < in_count) {
        struct pnet_span made = c->tensor_spans[in[r->error_in].index];
        bool here =
            made.file == at.file && pnet_source_line_at(c->sources, made.file, made.begin) ==
                                        pnet_source_line_at(c->sources, at.file, at.begin);
        if (made.end > made.begin && !here) pnet_diag_second(d, made, "made here");
    }
    if (*r->help) pnet_diag_help(d, "%s", r->help);
}

static bool same_shape(const struct pnet_param_info *a, const struct pnet_param_info *b)
{
    return a->dims == b->dims &&
           memcmp(a->shape, b->shape, (size_t)a->dims * sizeof a->shape[0]) == 0;
}

/* Returns the parameter `path.suffix`: a new one, or the one that an earlier use of the same net made. */
static int take_param(struct pnet_compilation *c, struct scope *s, struct pnet_span span,
    const char *path, const struct pnet_param_info *info)
{
    const char *name = pnet_arena_printf(&c->arena, "%s.%s", path, info->suffix);
    int *known = name ? pnet_map_get(&c->arena, &c->param_names, name, -1) : NULL;
    if (!known) return -1;
    if (*known >= 0) {
        if (c->param_use[*known] == s->net_use || !s->net_use) {
            struct pnet_diag *d = ERROR(c, span, "there is a parameter '%s' already", name);
            pnet_diag_help(d, "give one of the two layers a name of its own: name=\"..\"");
            return -1;
        }
        if (!same_shape(&c->plan.params[*known].info, info)) {
            struct pnet_diag *d =
                ERROR(c, span, "the uses of the net need different shapes for '%s'", name);
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
    int index = pnet_plan_add_param(
        c, (struct pnet_plan_param){.info = *info, .name = name, .count = count, .last_use = -1});
    if (c->arena.failed) return -1;
    *pnet_map_get(&c->arena, &c->param_names, name, index) = index;
    c->param_use[index] = s->net_use;
    return index;
}

static uint32_t draw_stream(struct pnet_compilation *c, const char *path)
{
    uint32_t h = 2166136261u;
    for (const char *p = path; *p; p++) h = (h ^ (uint8_t)*p) * 16777619u;
    int *uses = pnet_map_get(&c->arena, &c->draws, path, 0);
    return uses ? h + 0x9E3779B9u * (uint32_t)(*uses)++ : h;
}

/* Steps counted for making a node, in addition to those of its expression. */
enum { APPLY_STEPS = 64 };

/* The result that a rule asks for: that of an earlier node, or of a new one. Returns the tensor; -1: an error was reported. */
static int take_read(struct pnet_compilation *c, struct scope *s, struct pnet_span span,
    const struct pnet_rule_read *q, const struct value *in)
{
    const struct value both[2] = {in[q->a], in[q->b]};
    const char *key =
        pnet_arena_printf(&c->arena, "%s %d %d", q->op->name, both[0].index, both[1].index);
    int *known = key ? pnet_map_get(&c->arena, &c->read_nodes, key, -1) : NULL;
    if (!known) return -1;
    if (*known >= 0) return *known;
    struct pnet_attr attr[PNET_MAX_ARGS];
    struct pnet_span at[PNET_MAX_ARGS];
    pnet_default_attrs(c, q->op, attr);
    for (int i = 0; i < PNET_MAX_ARGS; i++) at[i] = span;
    struct value v = pnet_apply_op(c, s, span, q->op, both, 2, attr, at, NULL);
    if (v.kind != V_TENSOR) return -1;
    known = pnet_map_find(&c->read_nodes, key); /* the call may have moved it */
    return *known = v.index;
}

/* Have the levels of all searches points with coordinates? */
static bool check_searches(
    struct pnet_compilation *c, struct pnet_span span, const char *name, const struct pnet_rule *r)
{
    for (int i = 0; i < 2 * r->geo_count; i++) {
        const struct pnet_geo_request *q = &r->geo[i / 2];
        const struct pnet_level_info *l = &c->plan.levels[i % 2 ? q->b : q->a];
        if (!(pnet_geo_kind(q->kind)->flags & PNET_GEO_SEARCHES) || l->input >= 0) continue;
        struct pnet_diag *d =
            ERROR(c, span, "%s() looks for neighbours, and %s has no coordinates", name, l->name);
        if (l->kind == PNET_GEO_POINTS)
            pnet_diag_help(d, "the points of %s are generated: their places are features", l->name);
        return false;
    }
    return true;
}

/* Enters the parameters, geometry and results that the rule asks for into the plan's tables. False: an error was reported. */
static bool take_rule(struct pnet_compilation *c, struct scope *s, struct pnet_span span,
    const struct pnet_rule *r, struct pnet_node *n)
{
    for (int i = 0; i < r->param_count; i++) {
        n->param[i] = take_param(c, s, span, n->path, &r->params[i]);
        if (n->param[i] < 0) return false;
    }
    int index = c->plan.node_count;
    struct pnet_type out = r->out;
    if (out.type == PNET_F32) out.classes = 0; /* what is made of scores is no scores */
    n->out = pnet_plan_add_tensor(c,
        (struct pnet_plan_tensor){
            .type = out, .role = PNET_ROLE_RESULT, .name = n->path, .node = index, .of = -1},
        span);
    for (int i = 0; i < r->saved_count; i++)
        n->saved[i] = pnet_plan_add_tensor(c,
            (struct pnet_plan_tensor){.type = r->saved[i].type,
                .role = PNET_ROLE_SAVED,
                .name = n->path,
                .node = index,
                .of = -1,
                .training_only = r->saved[i].training_only},
            span);
    for (int i = 0; i < r->geo_count; i++) {
        n->geo[i] = pnet_plan_add_geo(c, r->geo[i]);
        n->forward_forms[i] = r->geo[i].forward_forms;
        n->backward_forms[i] = r->geo[i].backward_forms;
    }
    return true;
}

/* A loss with labels takes the softmax itself; behind another one a network hardly learns. */
static void warn_of_softmax(struct pnet_compilation *c, struct pnet_span span,
    const struct pnet_op *op, const struct value *in, int in_count)
{
    if (op->class_ != PNET_LOSS || in_count < 2) return;
    const struct pnet_plan_tensor *scores = &c->plan.tensors[in[0].index],
                                  *label = &c->plan.tensors[in[1].index];
    if (label->type.type != PNET_I32 || scores->role != PNET_ROLE_RESULT ||
        strcmp(c->plan.nodes[scores->node].op->name, "softmax") != 0)
        return;
    struct pnet_diag *d = pnet_diag_new(c->diags, PNET_WARNING, span,
        "%s() takes scores, and takes their softmax itself", op->name);
    pnet_diag_help(d, "leave -> softmax out before the loss");
}

struct value pnet_apply_op(struct pnet_compilation *c, struct scope *s, struct pnet_span span,
    const struct pnet_op *op, const struct value *in, int in_count, const struct pnet_attr *attr,
    const struct pnet_span *arg_spans, const char *name)
{
    struct pnet_type types[PNET_MAX_IN];
    for (int i = 0; i < in_count; i++) types[i] = c->plan.tensors[in[i].index].type;
    struct pnet_rule r = {.attr = attr,
        .in = types,
        .in_count = in_count,
        .levels = c->plan.levels,
        .level_count = c->plan.level_count,
        .sample_level = c->plan.sample_level,
        .scalar_level = c->plan.scalar_level,
        .degrade = c->options.degrade,
        .error_arg = -1,
        .error_in = -1};
    if (!pnet_spend_steps(c, span, APPLY_STEPS)) return unknown;
    const char *path = pnet_op_path(c, s, op->name, name);
    struct pnet_span in_spans[PNET_MAX_IN];
    for (int i = 0; i < in_count; i++) in_spans[i] = in[i].span;
    if (!path) return unknown;
    if (!op->rule(&r)) {
        report_rule(c, span, &r, in, in_count, in_spans, arg_spans);
        return unknown;
    }
    if (!check_searches(c, span, op->name, &r)) return unknown;
    if (*r.warning) pnet_diag_new(c->diags, PNET_WARNING, span, "%s", r.warning);
    warn_of_softmax(c, span, op, in, in_count);
    int reads[PNET_MAX_READS];
    for (int i = 0; i < r.read_count; i++) {
        reads[i] = take_read(c, s, span, &r.reads[i], in);
        if (reads[i] < 0) return unknown;
    }
    if (c->plan.node_count >= MAX_NODES) {
        ERROR(c, span, "the model is too large: over %d nodes", MAX_NODES);
        c->stopped = true;
        return unknown;
    }
    struct pnet_node n = {.op = op,
        .in_count = in_count + r.read_count,
        .param_count = r.param_count,
        .saved_count = r.saved_count,
        .geo_count = r.geo_count,
        .path = path,
        .draw = draw_stream(c, path)};
    n.line = span.file == 0 ? pnet_source_line_at(c->sources, span.file, span.begin) : 0;
    memcpy(n.attr, attr, sizeof n.attr);
    for (int i = 0; i < in_count; i++) n.in[i] = in[i].index;
    for (int i = 0; i < r.read_count; i++) n.in[in_count + i] = reads[i];
    if (!take_rule(c, s, span, &r, &n)) return unknown;
    pnet_plan_add_node(c, n);
    if (c->arena.failed) return unknown;
    /* inference derives classes from scores */
    if (r.scores) c->plan.tensors[n.in[0]].type.classes = types[1].classes;
    return (struct value){.kind = V_TENSOR, .span = span, .index = n.out};
}
