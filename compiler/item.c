/* Names to graph: the items of a file, in their order. */
#include "compiler/internal.h"

#include "runtime/plan/reserved.h"

#include <math.h>
#include <string.h>

static const char *set_text(const struct pnet_compilation *c, const char *name, int *which)
{
    size_t n = strlen(name);
    for (int i = c->options.set_count - 1; i >= 0; i--) {
        const char *s = c->options.sets[i];
        if (strncmp(s, name, n) == 0 && s[n] == '=') {
            *which = i;
            return s + n + 1;
        }
    }
    return NULL;
}

static void declare_param(struct pnet_compilation *c, const struct pnet_item *item)
{
    struct value v = pnet_evaluate_expr(c, c->global, item->value);
    int which;
    const char *text = item->kind == PNET_ITEM_PARAM ? set_text(c, item->name, &which) : NULL;
    if (text) {
        const char *name = pnet_arena_printf(&c->arena, "--set %s", item->name);
        struct pnet_expr *e =
            name ? pnet_parse_expr(&c->arena, c->sources, c->diags, name, text, strlen(text))
                 : NULL;
        struct value given = e ? pnet_evaluate_expr(c, c->global, e) : unknown;
        if (given.kind != V_UNKNOWN && v.kind != V_UNKNOWN) {
            bool same = given.kind == v.kind && (v.kind != V_NUMBER || given.unit == v.unit);
            if (!same) {
                struct pnet_diag *d = ERROR(c, e->span, "%s is %s here, not %s", item->name,
                    pnet_value_text(c, v), pnet_value_text(c, given));
                pnet_diag_second(d, item->span, "declared here");
                given = unknown;
            }
        }
        v = given;
    }
    v.span = item->name_span;
    pnet_bind_value(c, c->global, item->name, v, item->name_span, true);
}

static bool field_size(struct pnet_compilation *c, const struct pnet_field_decl *f, int32_t *size)
{
    if (!f->size) {
        *size = 1;
        return true;
    }
    struct value v = pnet_evaluate_expr(c, c->global, f->size);
    if (v.kind == V_UNKNOWN) return false;
    if (v.kind != V_NUMBER || v.unit || v.number != floor(v.number) || v.number < 1 ||
        v.number > 65536) {
        ERROR(c, f->size->span, "the size of a field is a whole number from 1 to 65536, not %s",
            pnet_value_text(c, v));
        return false;
    }
    *size = (int32_t)v.number;
    return true;
}

/* False: what the field is remains unknown. */
static bool declare_field(
    struct pnet_compilation *c, const struct pnet_field_decl *f, struct pnet_input_field *out)
{
    static const char *const types[] = {"position", "feature", "class"};
    int32_t size;
    if (!field_size(c, f, &size)) return false;
    *out = (struct pnet_input_field){.name = f->name, .width = 1, .unused = true};
    if (strcmp(f->type, "position") == 0) {
        *out = (struct pnet_input_field){
            .name = f->name, .kind = PNET_INPUT_POSITION, .width = 3, .unused = true};
        if (f->size) ERROR(c, f->size->span, "a position has three coordinates and takes no size");
    } else if (strcmp(f->type, "feature") == 0) {
        out->kind = PNET_INPUT_FEATURE;
        out->width = size;
    } else if (strcmp(f->type, "class") == 0) {
        out->kind = PNET_INPUT_CLASS;
        out->classes = size;
        if (!f->size) {
            struct pnet_diag *d = ERROR(c, f->type_span, "how many classes? class needs a count");
            pnet_diag_help(d, "write %s : class[13] per point", f->name);
            return false;
        }
    } else {
        struct pnet_diag *d = ERROR(c, f->type_span, "a field is no '%s'", f->type);
        const char *near = pnet_nearest(f->type, types, 3);
        if (near)
            pnet_diag_help(d, "did you mean %s?", near);
        else
            pnet_diag_help(d, "fields are position, feature[n] or class[n]");
        return false;
    }
    if (f->per && strcmp(f->per, "cloud") == 0) {
        out->per_cloud = true;
        if (out->kind == PNET_INPUT_POSITION) ERROR(c, f->per_span, "positions are per point");
    } else if (f->per && strcmp(f->per, "point") != 0) {
        pnet_diag_help(
            ERROR(c, f->per_span, "a field is not per %s", f->per), "per point, or per cloud");
        return false;
    }
    return true;
}

/* Adds an input and returns its index; -1: memory is out. */
static int new_input(struct pnet_compilation *c, struct pnet_input in)
{
    int index = c->plan.input_count;
    struct pnet_input *inputs = pnet_arena_array(&c->arena, (size_t)index + 1, sizeof *inputs);
    if (!inputs) return -1;
    if (index) memcpy(inputs, c->plan.inputs, (size_t)index * sizeof *inputs);
    inputs[index] = in;
    c->plan.inputs = inputs;
    return c->plan.input_count++;
}

/* input T : pose */
static void declare_pose(struct pnet_compilation *c, const struct pnet_item *item)
{
    pnet_bind_value(
        c, c->global, item->name, unknown, item->name_span, true); /* until it is known */
    if (strcmp(item->input_type, "pose") != 0) {
        static const char *const types[] = {"pose"};
        struct pnet_diag *d =
            ERROR(c, item->input_type_span, "there is no input of type '%s'", item->input_type);
        if (pnet_nearest(item->input_type, types, 1))
            pnet_diag_help(d, "did you mean pose?");
        else
            pnet_diag_help(
                d, "inputs are poses, and clouds: input %s { xyz : position }", item->name);
        return;
    }
    for (int i = 0; i < c->plan.input_count; i++)
        if (pnet_input_is_pose(&c->plan.inputs[i])) {
            ERROR(c, item->name_span, "a model has one pose, and '%s' is there already",
                c->plan.inputs[i].name);
            return;
        }
    struct pnet_input_field *field = pnet_arena_alloc(&c->arena, sizeof *field);
    if (!field) return;
    *field = (struct pnet_input_field){
        .name = "pose", .kind = PNET_INPUT_POSE, .width = 16, .per_cloud = true, .unused = true};
    int index = new_input(c,
        (struct pnet_input){.name = item->name, .fields = field, .field_count = 1, .unused = true});
    if (index < 0) return;
    struct pnet_plan_tensor t = {.role = PNET_ROLE_INPUT,
        .input = index,
        .node = -1,
        .of = -1,
        .name = item->name,
        .type = {PNET_F32, 16, c->plan.sample_level, 0, true}};
    struct value v = {.kind = V_POSE,
        .span = item->name_span,
        .index = pnet_plan_add_tensor(c, t, item->name_span)};
    pnet_bind_value(c, c->global, item->name, v, item->name_span, true);
}

static void declare_input(struct pnet_compilation *c, const struct pnet_item *item)
{
    if (item->input_type) {
        declare_pose(c, item);
        return;
    }
    int count = 0, index = c->plan.input_count;
    for (const struct pnet_field_decl *f = item->fields; f; f = f->next) count++;
    if (count > MAX_FIELDS || c->plan.level_count >= MAX_LEVELS) {
        if (count > MAX_FIELDS)
            ERROR(c, item->name_span, "input '%s' has over %d fields", item->name, MAX_FIELDS);
        else
            ERROR(c, item->name_span, "too many levels: at most %d", MAX_LEVELS);
        pnet_bind_value(c, c->global, item->name, unknown, item->name_span, true);
        return;
    }
    struct pnet_input_field *fields =
        pnet_arena_array(&c->arena, (size_t)count + 1, sizeof *fields);
    if (!fields) return;
    struct pnet_level_info level = {
        .kind = PNET_GEO_INPUT, .input = index, .finer = -1, .name = item->name};
    int level_index = pnet_plan_add_level(c, level), n = 0, positions = 0;
    c->first_tensor[index] = c->plan.tensor_count;
    for (const struct pnet_field_decl *f = item->fields; f; f = f->next) {
        for (int i = 0; i < n; i++)
            if (strcmp(fields[i].name, f->name) == 0)
                ERROR(c, f->name_span, "field '%s' stands twice", f->name);
        const char *name = pnet_arena_printf(&c->arena, "%s.%s", item->name, f->name);
        if (!name) return;
        if (!declare_field(c, f, &fields[n])) {
            pnet_map_get(&c->arena, &c->unknown_fields, name, 1);
            continue;
        }
        positions += fields[n].kind == PNET_INPUT_POSITION;
        struct pnet_plan_tensor t = {.role = PNET_ROLE_INPUT,
            .input = index,
            .field = n,
            .node = -1,
            .of = -1,
            .name = name};
        t.type = (struct pnet_type){fields[n].kind == PNET_INPUT_CLASS ? PNET_I32 : PNET_F32,
            fields[n].width, fields[n].per_cloud ? c->plan.sample_level : level_index,
            fields[n].classes, false};
        pnet_plan_add_tensor(c, t, f->name_span);
        n++;
    }
    if (positions > 1 || (!positions && n == count && !c->torn)) {
        struct pnet_diag *d = ERROR(c, item->name_span, "input '%s' has %s position", item->name,
            positions ? "more than one" : "no");
        if (!positions) pnet_diag_help(d, "add xyz : position");
    }
    if (new_input(
            c, (struct pnet_input){
                   .name = item->name, .fields = fields, .field_count = n, .unused = true}) < 0)
        return;
    struct value v = {.kind = V_CLOUD, .span = item->name_span, .index = index};
    pnet_bind_value(c, c->global, item->name, v, item->name_span, true);
}

/* May the loss or metric be called so? */
static bool check_objective_name(struct pnet_compilation *c, const struct pnet_item *item)
{
    const char *what = item->kind == PNET_ITEM_METRIC ? "metric" : "loss";
    if (pnet_name_is_reserved(item->name)) {
        pnet_diag_help(ERROR(c, item->name_span, "a %s cannot be called '%s'", what, item->name),
            "checkpoints and reports use that name themselves: choose another one");
        return false;
    }
    int *known = pnet_map_get(&c->arena, &c->objective_names, item->name, 0);
    if (!known) return false;
    if (++*known > 1)
        ERROR(c, item->name_span, "there is a loss or metric '%s' already", item->name);
    if (c->objective_names.count > MAX_OBJECTIVES) {
        ERROR(c, item->name_span, "too many losses and metrics: at most %d", MAX_OBJECTIVES);
        c->stopped = true;
    }
    return *known == 1 && !c->stopped;
}

static void declare_objective(struct pnet_compilation *c, const struct pnet_item *item)
{
    bool good = check_objective_name(c, item), metric = item->kind == PNET_ITEM_METRIC;
    c->has_loss |= !metric;
    c->global->value_path = item->name;
    struct value v = pnet_evaluate_expr(c, c->global, item->value);
    /* inference runs this too: the node marks a value as scores of classes */
    if (v.kind == V_UNKNOWN || c->options.purpose == PNET_FOR_INFERENCE) return;
    const struct pnet_plan_tensor *t = v.kind == V_TENSOR ? &c->plan.tensors[v.index] : NULL;
    if (!t || t->type.level != c->plan.scalar_level ||
        (!metric && (t->type.width != 1 || t->type.type != PNET_F32)) ||
        (metric && (t->node < 0 || c->plan.nodes[t->node].op->class_ != PNET_METRIC))) {
        struct pnet_diag *d = ERROR(c, item->value->span, "%s '%s' is %s",
            metric ? "metric" : "loss", item->name, pnet_value_text(c, v));
        pnet_diag_help(d, metric ? "a metric is the result of accuracy(), iou() and the like"
                                 : "a loss is one number for the batch, as cross_entropy() gives");
        return;
    }
    if (!good) return;
    pnet_plan_add_objective(c, (struct pnet_objective){.name = item->name,
                                   .doc = item->doc,
                                   .metric = metric,
                                   .tensor = v.index,
                                   .node = metric ? t->node : -1});
}

/* Is it the first of its name? The others were reported. */
static bool is_first(const struct pnet_compilation *c, const struct pnet_item *item)
{
    int *first = pnet_map_find(&c->item_names, item->name);
    return first && c->items[*first] == item;
}

static void run_item(struct pnet_compilation *c, const struct pnet_item *item)
{
    switch (item->kind) {
    case PNET_ITEM_PARAM:
    case PNET_ITEM_CONST:
        if (is_first(c, item)) declare_param(c, item);
        break;
    case PNET_ITEM_INPUT:
        if (is_first(c, item)) declare_input(c, item);
        break;
    case PNET_ITEM_LOSS:
    case PNET_ITEM_METRIC: declare_objective(c, item); break;
    case PNET_ITEM_ASSIGN: pnet_run_statements(c, c->global, item->stmt); break;
    case PNET_ITEM_INCLUDE:
    case PNET_ITEM_BLOCK:
    case PNET_ITEM_NET: break;
    }
}

/* Checks a block or net before it is used. False: its parameters are wrong. */
static bool check_definition(struct pnet_compilation *c, const struct pnet_item *item)
{
    if (pnet_op_find(item->name))
        ERROR(c, item->name_span, "'%s' is a layer already: a block or net needs another name",
            item->name);
    int count = 0;
    bool good = true;
    for (const struct pnet_param_decl *p = item->params; p; p = p->next, count++) {
        const struct pnet_param_decl *q = item->params;
        while (q != p && strcmp(p->name, q->name) != 0) q = q->next;
        if (q != p)
            pnet_diag_second(ERROR(c, p->name_span, "parameter '%s' stands twice", p->name),
                q->name_span, "first here");
        bool typed = !p->type || strcmp(p->type, "cloud") == 0;
        if (!typed) ERROR(c, p->type_span, "a parameter's type is cloud, or left out");
        good = good && q == p && typed;
        if (count < MAX_ARGUMENTS) continue;
        ERROR(c, p->name_span, "'%s' has over %d parameters", item->name, MAX_ARGUMENTS);
        return false;
    }
    return good;
}

/* Blocks, nets, params, consts and inputs share one name space. */
static void collect_names(struct pnet_compilation *c)
{
    int count = 0, n = 0, d = 0;
    for (const struct pnet_item *i = c->file->items; i; i = i->next) count++;
    c->items = pnet_arena_array(&c->arena, (size_t)count + 1, sizeof(struct pnet_item *));
    c->definitions = pnet_arena_array(&c->arena, (size_t)count + 1, sizeof *c->definitions);
    if (!c->items || !c->definitions) return;
    for (const struct pnet_item *i = c->file->items; i; i = i->next) {
        if (i->kind == PNET_ITEM_INCLUDE || i->kind == PNET_ITEM_ASSIGN ||
            i->kind == PNET_ITEM_LOSS || i->kind == PNET_ITEM_METRIC)
            continue;
        int *first = pnet_map_get(&c->arena, &c->item_names, i->name, n);
        if (!first) return;
        if (*first != n) {
            struct pnet_diag *e = ERROR(c, i->name_span, "'%s' is declared twice", i->name);
            pnet_diag_second(e, c->items[*first]->name_span, "first here");
            continue;
        }
        c->items[n++] = i;
        if (i->kind != PNET_ITEM_BLOCK && i->kind != PNET_ITEM_NET) continue;
        bool good = check_definition(c, i);
        if (!pnet_map_get(&c->arena, &c->definition_names, i->name, d)) return;
        c->definitions[d++] = (struct definition){.item = i, .broken = !good, .input = -1};
    }
    c->definition_count = d;
}

/* The params nearest to what was meant are looked for among the first of them. */
static void unknown_param(struct pnet_compilation *c, const char *set, const char *name)
{
    enum { MAX_PARAMS_LISTED = 256 };
    const char *names[MAX_PARAMS_LISTED];
    int count = 0;
    for (const struct pnet_item *i = c->file->items; i && count < MAX_PARAMS_LISTED; i = i->next)
        if (i->kind == PNET_ITEM_PARAM) names[count++] = i->name;
    struct pnet_diag *d =
        strchr(set, '=')
            ? ERROR(c, (struct pnet_span){0}, "--set %s: the model has no param '%s'", set, name)
            : ERROR(c, (struct pnet_span){0}, "--set %s: expected name=value", set);
    const char *near = d ? pnet_nearest(name, names, count) : NULL;
    if (near) pnet_diag_help(d, "did you mean %s?", near);
}

static void check_sets(struct pnet_compilation *c)
{
    for (int s = 0; s < c->options.set_count; s++) {
        const char *text = c->options.sets[s], *equals = strchr(text, '=');
        const char *name =
            pnet_arena_copy(&c->arena, text, equals ? (size_t)(equals - text) : strlen(text));
        int *item = name ? pnet_map_find(&c->item_names, name) : NULL;
        bool known = item && c->items[*item]->kind == PNET_ITEM_PARAM;
        if (name && !(known && equals)) unknown_param(c, text, name);
    }
}

void pnet_warn_unused(struct pnet_compilation *c)
{
    for (int i = 0; i < c->use_count; i++)
        if (!c->uses[i].used && (c->has_loss || !c->uses[i].result)) {
            struct pnet_diag *d = pnet_diag_new(
                c->diags, PNET_WARNING, c->uses[i].span, "'%s' is never used", c->uses[i].name);
            pnet_diag_label(d, "given a value here");
        }
}

void pnet_elaborate(struct pnet_compilation *c)
{
    struct scope *global = pnet_arena_alloc(&c->arena, sizeof *global);
    struct map *counters = pnet_arena_alloc(&c->arena, sizeof *counters);
    if (!global || !counters) return;
    global->prefix = "";
    global->value_path = "";
    global->counters = counters;
    c->global = global;
    c->plan.scalar_level = pnet_plan_add_level(
        c, (struct pnet_level_info){
               .kind = PNET_GEO_SCALAR, .input = -1, .finer = -1, .name = "scalar"});
    c->plan.sample_level = pnet_plan_add_level(
        c, (struct pnet_level_info){
               .kind = PNET_GEO_SAMPLE, .input = -1, .finer = -1, .name = "sample"});
    collect_names(c);
    check_sets(c);
    for (const struct pnet_item *i = c->file->items; i && pnet_spend_steps(c, i->span, 1);
         i = i->next)
        run_item(c, i);
}
