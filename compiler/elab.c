/* Names to graph: runs the file's items and the bodies of nets and blocks, and leaves nodes behind.
 */
#include "compiler/internal.h"

#include <math.h>
#include <string.h>

struct binding *find_binding(struct scope *s, const char *name)
{
    for (; s; s = s->outer)
        for (struct binding *b = s->bindings; b; b = b->next)
            if (strcmp(b->name, name) == 0) return b;
    return NULL;
}

/* One record for each place in the source that names a value, however often it runs. */
static int track_use(struct pnet_compilation *c, const char *name, struct pnet_span span)
{
    const char *key = pnet_arena_printf(&c->arena, "%u:%u", span.file, span.begin);
    int *known = key ? map_get(&c->arena, &c->use_places, key, -1) : NULL;
    if (!known) return -1;
    if (*known >= 0) return *known;
    if (c->use_count == c->use_capacity) {
        int capacity = c->use_capacity ? 2 * c->use_capacity : 64;
        struct use *bigger = pnet_arena_array(&c->arena, (size_t)capacity, sizeof *bigger);
        if (!bigger) return -1;
        if (c->use_count) memcpy(bigger, c->uses, (size_t)c->use_count * sizeof *bigger);
        c->uses = bigger;
        c->use_capacity = capacity;
    }
    c->uses[c->use_count] = (struct use){.span = span, .name = name};
    *known = c->use_count;
    return c->use_count++;
}

void bind_value(struct pnet_compilation *c, struct scope *s, const char *name, struct value v,
    struct pnet_span span, bool track)
{
    struct binding *b = s->bindings;
    while (b && strcmp(b->name, name) != 0) b = b->next;
    if (!b) {
        b = pnet_arena_alloc(&c->arena, sizeof *b);
        if (!b) return;
        b->name = name;
        b->next = s->bindings;
        s->bindings = b;
    }
    b->value = v;
    b->use = track ? track_use(c, name, span) : -1;
}

/* Levels are called after the first name they are given, and after their cloud where there are
   several. */
static void name_levels(struct pnet_compilation *c, const char *name, const struct value *v)
{
    if (v->kind == V_LEVEL) {
        struct pnet_level_info *l = &c->plan.levels[v->index];
        int clouds = 0;
        for (int i = 0; i < c->plan.input_count; i++)
            clouds += !pnet_input_is_pose(&c->plan.inputs[i]);
        if (l->kind != PNET_GEO_GRID || l->name) return;
        l->name = clouds < 2
                      ? name
                      : pnet_arena_printf(&c->arena, "%s.%s", c->plan.inputs[l->input].name, name);
    } else if (v->kind == V_LIST) {
        for (int i = 0; i < v->count; i++)
            name_levels(c, pnet_arena_printf(&c->arena, "%s[%d]", name, i), &v->items[i]);
    }
}

/* "s.0", and the values of the loops around it that the index does not mention already. */
static const char *assignment_path(
    struct pnet_compilation *c, struct scope *s, const struct pnet_stmt *st, const int64_t *indices)
{
    const char *path = st->assign.name;
    for (int i = 0; i < st->assign.index_count && path; i++)
        path = pnet_arena_printf(&c->arena, "%s.%lld", path, (long long)indices[i]);
    const char *suffix = "";
    for (const struct loop *l = s->loops; l && suffix; l = l->outer) {
        bool mentioned = false;
        for (int i = 0; i < st->assign.index_count; i++) {
            const struct pnet_expr *e = st->assign.indices[i];
            mentioned |= e->kind == PNET_EXPR_NAME && strcmp(e->name, l->name) == 0;
        }
        if (!mentioned)
            suffix = pnet_arena_printf(&c->arena, ".%lld%s", (long long)l->value, suffix);
    }
    return path && suffix ? pnet_arena_printf(&c->arena, "%s%s", path, suffix) : "";
}

/* The slot list[i], the list grown with holes where needed. */
static struct value *list_slot(struct pnet_compilation *c, struct value *list, int64_t i)
{
    if (i >= list->capacity) {
        int capacity = list->capacity ? list->capacity : 8;
        while (capacity <= i) capacity *= 2;
        struct value *bigger = pnet_arena_array(&c->arena, (size_t)capacity, sizeof *bigger);
        if (!bigger) return NULL;
        if (list->count) memcpy(bigger, list->items, (size_t)list->count * sizeof *bigger);
        list->items = bigger;
        list->capacity = capacity;
    }
    if (i >= list->count) list->count = (int)i + 1;
    return &list->items[i];
}

/* Lists are values: giving one a second name makes a second list. */
static struct value copy_list(struct pnet_compilation *c, struct value v)
{
    struct value r = v;
    r.capacity = v.count;
    r.items = pnet_arena_array(&c->arena, (size_t)v.count + 1, sizeof *r.items);
    if (!r.items) return (struct value){0};
    for (int i = 0; i < v.count; i++)
        r.items[i] = v.items[i].kind == V_LIST ? copy_list(c, v.items[i]) : v.items[i];
    return r;
}

static bool evaluate_index(
    struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e, int64_t *index)
{
    struct value v = evaluate(c, s, e);
    if (v.kind == V_NONE) return false;
    if (v.kind != V_NUMBER || v.unit != PNET_UNIT_NONE || v.number != floor(v.number)) {
        ERROR(c, e->span, "an index is a whole number, not %s", describe(c, v));
        return false;
    }
    if (v.number < 0 || v.number >= MAX_ITEMS) {
        ERROR(c, e->span, "index %.0f is out of range: lists run from 0 to %d", v.number,
            MAX_ITEMS - 1);
        return false;
    }
    *index = (int64_t)v.number;
    return true;
}

static void assign_indexed(struct pnet_compilation *c, struct scope *s, const struct pnet_stmt *st,
    const int64_t *indices, struct value v)
{
    struct binding *b = s->bindings;
    while (b && strcmp(b->name, st->assign.name) != 0) b = b->next;
    struct value list =
        b && b->value.kind == V_LIST ? b->value : (struct value){.kind = V_LIST, .span = st->span};
    struct value *slot = &list;
    for (int i = 0; i < st->assign.index_count; i++) {
        if (slot->kind != V_LIST) *slot = (struct value){.kind = V_LIST, .span = st->span};
        slot = list_slot(c, slot, indices[i]);
        if (!slot) return;
    }
    *slot = v;
    if (b &&
        b->value.kind == V_LIST) /* the list is used as a whole: one record for all its items */
        b->value = list;
    else
        bind_value(c, s, st->assign.name, list, st->assign.name_span, true);
}

static void run_assign(struct pnet_compilation *c, struct scope *s, const struct pnet_stmt *st)
{
    enum { MAX_INDICES = 8 };
    int64_t indices[MAX_INDICES];
    if (st->assign.index_count > MAX_INDICES) {
        ERROR(c, st->span, "at most %d indices", MAX_INDICES);
        return;
    }
    for (int i = 0; i < st->assign.index_count; i++)
        if (!evaluate_index(c, s, st->assign.indices[i], &indices[i])) return;
    const char *outer_path = s->value_path;
    s->value_path = assignment_path(c, s, st, indices);
    struct value v = evaluate(c, s, st->assign.value);
    s->value_path = outer_path;
    v.span = st->assign.name_span;
    if (v.kind == V_TENSOR && v.index < c->tensor_span_capacity)
        c->tensor_spans[v.index] = st->assign.name_span;
    if (st->assign.index_count) {
        assign_indexed(c, s, st, indices, v);
        return;
    }
    if (v.kind == V_LIST) v = copy_list(c, v);
    name_levels(c, st->assign.name, &v);
    bool is_out = s->outer && strcmp(st->assign.name, "out") == 0;
    bind_value(c, s, st->assign.name, v, st->assign.name_span, !is_out);
}

static void run_for(struct pnet_compilation *c, struct scope *s, const struct pnet_stmt *st)
{
    struct value from = evaluate(c, s, st->loop.from), to = evaluate(c, s, st->loop.to);
    const struct value *ends[2] = {&from, &to};
    const struct pnet_expr *exprs[2] = {st->loop.from, st->loop.to};
    for (int i = 0; i < 2; i++) {
        if (ends[i]->kind == V_NONE) return;
        if (ends[i]->kind != V_NUMBER || ends[i]->unit ||
            ends[i]->number != floor(ends[i]->number) || fabs(ends[i]->number) > 1e6) {
            ERROR(c, exprs[i]->span, "a loop runs between whole numbers, not %s",
                describe(c, *ends[i]));
            return;
        }
    }
    int64_t a = (int64_t)from.number, b = (int64_t)to.number, step = a <= b ? 1 : -1;
    struct loop loop = {.name = st->loop.name, .outer = s->loops};
    s->loops = &loop;
    for (int64_t i = a; step * i <= step * b && !s->returned && compilation_ok(c); i += step) {
        loop.value = i;
        struct value v = {.kind = V_NUMBER, .span = st->loop.name_span, .number = (double)i};
        bind_value(c, s, st->loop.name, v, st->loop.name_span, false);
        run_statements(c, s, st->loop.body);
    }
    s->loops = loop.outer;
}

static void run_if(struct pnet_compilation *c, struct scope *s, const struct pnet_stmt *st)
{
    struct value v = evaluate(c, s, st->conditional.condition);
    if (v.kind == V_NONE) return;
    if (v.kind != V_BOOL) {
        ERROR(
            c, st->conditional.condition->span, "a condition is yes or no, not %s", describe(c, v));
        return;
    }
    run_statements(c, s, v.truth ? st->conditional.then : st->conditional.otherwise);
}

void run_statements(struct pnet_compilation *c, struct scope *s, const struct pnet_stmt *first)
{
    for (const struct pnet_stmt *st = first; st && !s->returned; st = st->next) {
        if (++c->statements == MAX_STATEMENTS)
            ERROR(c, st->span, "the model is too large: over %d statements run", MAX_STATEMENTS);
        if (c->statements >= MAX_STATEMENTS || c->arena.failed) return;
        switch (st->kind) {
        case PNET_STMT_ASSIGN: run_assign(c, s, st); break;
        case PNET_STMT_FOR: run_for(c, s, st); break;
        case PNET_STMT_IF: run_if(c, s, st); break;
        case PNET_STMT_RETURN: {
            const char *outer_path = s->value_path;
            s->value_path = "out";
            s->result = evaluate(c, s, st->value);
            s->value_path = outer_path;
            s->returned = true;
            if (st->next) {
                struct pnet_diag *d = pnet_diag_new(
                    c->diags, PNET_WARNING, st->next->span, "nothing runs behind a return");
                pnet_diag_label(d, "never runs");
            }
            break;
        }
        }
    }
}

/* Items of the file. */

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
    struct value v = evaluate(c, c->global, item->value);
    int which;
    const char *text = item->kind == PNET_ITEM_PARAM ? set_text(c, item->name, &which) : NULL;
    if (text) {
        const char *name = pnet_arena_printf(&c->arena, "--set %s", item->name);
        struct pnet_expr *e =
            name ? pnet_parse_expr(&c->arena, c->sources, c->diags, name, text, strlen(text))
                 : NULL;
        struct value given = e ? evaluate(c, c->global, e) : (struct value){0};
        if (e && given.kind != V_NONE && v.kind != V_NONE) {
            bool same = given.kind == v.kind && (v.kind != V_NUMBER || given.unit == v.unit);
            if (!same) {
                struct pnet_diag *d = ERROR(c, e->span, "%s is %s here, not %s", item->name,
                    describe(c, v), describe(c, given));
                pnet_diag_second(d, item->span, "declared here");
            }
        }
        v = given;
    }
    v.span = item->name_span;
    bind_value(c, c->global, item->name, v, item->name_span, true);
}

static bool field_size(struct pnet_compilation *c, const struct pnet_field_decl *f, int32_t *size)
{
    if (!f->size) {
        *size = 1;
        return true;
    }
    struct value v = evaluate(c, c->global, f->size);
    if (v.kind == V_NONE) return false;
    if (v.kind != V_NUMBER || v.unit || v.number != floor(v.number) || v.number < 1 ||
        v.number > 65536) {
        ERROR(c, f->size->span, "the size of a field is a whole number from 1 to 65536, not %s",
            describe(c, v));
        return false;
    }
    *size = (int32_t)v.number;
    return true;
}

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
    }
    return true;
}

/* Room for one more input behind those that are there; -1: memory is out. */
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
    struct value v = {
        .kind = V_POSE, .span = item->name_span, .index = add_tensor(c, t, item->name_span)};
    bind_value(c, c->global, item->name, v, item->name_span, true);
}

static void declare_input(struct pnet_compilation *c, const struct pnet_item *item)
{
    if (item->input_type) {
        declare_pose(c, item);
        return;
    }
    int count = 0, index = c->plan.input_count;
    for (const struct pnet_field_decl *f = item->fields; f; f = f->next) count++;
    struct pnet_input_field *fields =
        pnet_arena_array(&c->arena, (size_t)count + 1, sizeof *fields);
    if (!fields) return;
    struct pnet_level_info level = {
        .kind = PNET_GEO_INPUT, .input = index, .finer = -1, .name = item->name};
    int level_index = add_level(c, level), n = 0, positions = 0;
    for (const struct pnet_field_decl *f = item->fields; f; f = f->next) {
        for (int i = 0; i < n; i++)
            if (strcmp(fields[i].name, f->name) == 0)
                ERROR(c, f->name_span, "field '%s' stands twice", f->name);
        if (!declare_field(c, f, &fields[n])) continue;
        positions += fields[n].kind == PNET_INPUT_POSITION;
        struct pnet_plan_tensor t = {.role = PNET_ROLE_INPUT,
            .input = index,
            .field = n,
            .node = -1,
            .of = -1,
            .name = pnet_arena_printf(&c->arena, "%s.%s", item->name, f->name)};
        t.type = (struct pnet_type){fields[n].kind == PNET_INPUT_CLASS ? PNET_I32 : PNET_F32,
            fields[n].width, fields[n].per_cloud ? c->plan.sample_level : level_index,
            fields[n].classes, false};
        add_tensor(c, t, f->name_span);
        n++;
    }
    if (positions != 1) {
        struct pnet_diag *d = ERROR(c, item->name_span, "input '%s' has %s position", item->name,
            positions ? "more than one" : "no");
        if (!positions) pnet_diag_help(d, "add xyz : position");
    }
    if (new_input(
            c, (struct pnet_input){
                   .name = item->name, .fields = fields, .field_count = n, .unused = true}) < 0)
        return;
    struct value v = {.kind = V_CLOUD, .span = item->name_span, .index = index};
    bind_value(c, c->global, item->name, v, item->name_span, true);
}

static void declare_objective(struct pnet_compilation *c, const struct pnet_item *item)
{
    if (c->options.purpose ==
        PNET_FOR_INFERENCE) { /* still run: it tells what a value holds scores of */
        c->global->value_path = item->name;
        evaluate(c, c->global, item->value);
        return;
    }
    c->global->value_path = item->name;
    struct value v = evaluate(c, c->global, item->value);
    if (v.kind == V_NONE) return;
    bool metric = item->kind == PNET_ITEM_METRIC;
    const struct pnet_plan_tensor *t = v.kind == V_TENSOR ? &c->plan.tensors[v.index] : NULL;
    if (!t || t->type.level != c->plan.scalar_level ||
        (!metric && (t->type.width != 1 || t->type.type != PNET_F32)) ||
        (metric && (t->node < 0 || c->plan.nodes[t->node].op->class_ != PNET_METRIC))) {
        struct pnet_diag *d = ERROR(c, item->value->span, "%s '%s' is %s",
            metric ? "metric" : "loss", item->name, describe(c, v));
        pnet_diag_help(d, metric ? "a metric is the result of accuracy(), iou() and the like"
                                 : "a loss is one number for the batch, as cross_entropy() gives");
        return;
    }
    for (int i = 0; i < c->plan.objective_count; i++)
        if (strcmp(c->plan.objectives[i].name, item->name) == 0)
            ERROR(c, item->name_span, "there is a loss or metric '%s' already", item->name);
    add_objective(c, (struct pnet_objective){.name = item->name,
                         .doc = item->doc,
                         .metric = metric,
                         .tensor = v.index,
                         .node = metric ? t->node : -1});
}

static void run_item(struct pnet_compilation *c, const struct pnet_item *item)
{
    switch (item->kind) {
    case PNET_ITEM_PARAM:
    case PNET_ITEM_CONST: declare_param(c, item); break;
    case PNET_ITEM_INPUT: declare_input(c, item); break;
    case PNET_ITEM_LOSS:
    case PNET_ITEM_METRIC: declare_objective(c, item); break;
    case PNET_ITEM_ASSIGN: run_statements(c, c->global, item->stmt); break;
    case PNET_ITEM_INCLUDE:
    case PNET_ITEM_BLOCK:
    case PNET_ITEM_NET: break;
    }
}

/* Blocks, nets, params, consts and inputs share one name space. */
static void collect_names(struct pnet_compilation *c)
{
    struct map names = {0};
    const struct pnet_item **items = NULL;
    int count = 0, n = 0, d = 0;
    for (const struct pnet_item *i = c->file->items; i; i = i->next) count++;
    items = pnet_arena_array(&c->arena, (size_t)count + 1, sizeof *items);
    c->definitions = pnet_arena_array(&c->arena, (size_t)count + 1, sizeof *c->definitions);
    if (!items || !c->definitions) return;
    for (const struct pnet_item *i = c->file->items; i; i = i->next) {
        if (i->kind == PNET_ITEM_INCLUDE || i->kind == PNET_ITEM_ASSIGN ||
            i->kind == PNET_ITEM_LOSS || i->kind == PNET_ITEM_METRIC)
            continue;
        int *first = map_get(&c->arena, &names, i->name, n);
        if (!first) return;
        if (*first != n) {
            struct pnet_diag *e = ERROR(c, i->name_span, "'%s' is declared twice", i->name);
            pnet_diag_second(e, items[*first]->name_span, "first here");
            continue;
        }
        items[n++] = i;
        if (i->kind != PNET_ITEM_BLOCK && i->kind != PNET_ITEM_NET) continue;
        if (pnet_op_find(i->name))
            ERROR(c, i->name_span, "'%s' is a layer already: a block or net needs another name",
                i->name);
        if (!map_get(&c->arena, &c->definition_names, i->name, d)) return;
        c->definitions[d++] = (struct definition){.item = i, .result = -1, .input = -1};
    }
    c->definition_count = d;
}

static void check_sets(struct pnet_compilation *c)
{
    enum { MAX_PARAMS_LISTED = 64 };
    const char *names[MAX_PARAMS_LISTED];
    int count = 0;
    for (const struct pnet_item *i = c->file->items; i; i = i->next)
        if (i->kind == PNET_ITEM_PARAM && count < MAX_PARAMS_LISTED) names[count++] = i->name;
    for (int s = 0; s < c->options.set_count; s++) {
        const char *text = c->options.sets[s], *equals = strchr(text, '=');
        char name[128];
        size_t n = equals ? (size_t)(equals - text) : strlen(text);
        snprintf(name, sizeof name, "%.*s", (int)(n < 127 ? n : 127), text);
        bool known = false;
        for (int i = 0; i < count; i++) known |= strcmp(names[i], name) == 0;
        if (known && equals) continue;
        struct pnet_diag *d =
            equals ? ERROR(c, (struct pnet_span){0}, "--set %s: the model has no param '%s'", text,
                         name)
                   : ERROR(c, (struct pnet_span){0}, "--set %s: expected name=value", text);
        const char *near = pnet_nearest(name, names, count);
        if (near) pnet_diag_help(d, "did you mean %s?", near);
    }
}

void warn_unused(struct pnet_compilation *c)
{
    for (int i = 0; i < c->use_count; i++)
        if (!c->uses[i].used) {
            struct pnet_diag *d = pnet_diag_new(
                c->diags, PNET_WARNING, c->uses[i].span, "'%s' is never used", c->uses[i].name);
            pnet_diag_label(d, "given a value here");
        }
}

void elaborate(struct pnet_compilation *c)
{
    struct scope *global = pnet_arena_alloc(&c->arena, sizeof *global);
    struct map *counters = pnet_arena_alloc(&c->arena, sizeof *counters);
    if (!global || !counters) return;
    global->prefix = "";
    global->value_path = "";
    global->counters = counters;
    c->global = global;
    c->plan.scalar_level =
        add_level(c, (struct pnet_level_info){
                         .kind = PNET_GEO_SCALAR, .input = -1, .finer = -1, .name = "scalar"});
    c->plan.sample_level =
        add_level(c, (struct pnet_level_info){
                         .kind = PNET_GEO_SAMPLE, .input = -1, .finer = -1, .name = "sample"});
    collect_names(c);
    check_sets(c);
    for (const struct pnet_item *i = c->file->items; i && !c->arena.failed; i = i->next)
        run_item(c, i);
}
