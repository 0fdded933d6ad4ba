/* Names to graph: runs statements, of the file and of the bodies of nets and blocks. */
#include "compiler/internal.h"

#include <math.h>
#include <string.h>

bool pnet_spend_steps(struct pnet_compilation *c, struct pnet_span span, int64_t steps)
{
    if (c->stopped || c->arena.failed) return false;
    c->steps += steps;
    if (c->steps <= MAX_STEPS && c->arena.total <= MAX_ELABORATED) return true;
    if (c->steps > MAX_STEPS)
        pnet_diag_help(ERROR(c, span, "the model takes too many steps to compile"),
            "the limit is %d: loops, and blocks in blocks, multiply them", MAX_STEPS);
    else
        pnet_diag_help(ERROR(c, span, "the model takes too much memory to compile"),
            "the limit is %d MiB", MAX_ELABORATED >> 20);
    c->stopped = true;
    return false;
}

bool pnet_descend(struct pnet_compilation *c, struct pnet_span span)
{
    if (++c->run_depth <= MAX_RUN_DEPTH) return pnet_spend_steps(c, span, 1);
    if (!c->stopped && !c->arena.failed)
        pnet_diag_help(ERROR(c, span, "blocks and nets are nested too deeply in expressions"),
            "the limit is %d statements and expressions inside of each other", MAX_RUN_DEPTH);
    c->stopped = true;
    return false;
}

void pnet_ascend(struct pnet_compilation *c)
{
    c->run_depth--;
}

struct binding *pnet_find_own_binding(struct scope *s, const char *name)
{
    int *index = pnet_map_find(&s->binding_names, name);
    return index ? s->bindings[*index] : NULL;
}

struct binding *pnet_find_binding(struct scope *s, const char *name)
{
    struct binding *b = NULL;
    for (; s && !b; s = s->outer) b = pnet_find_own_binding(s, name);
    return b;
}

/* One record for each place in the source that names a value, however often it runs. */
static int track_use(struct pnet_compilation *c, const char *name, struct pnet_span span)
{
    char place[32];
    snprintf(place, sizeof place, "%u:%u", span.file, span.begin);
    int *known = pnet_map_find(&c->use_places, place);
    if (known) return *known;
    const char *key = pnet_arena_printf(&c->arena, "%s", place);
    if (!key || !pnet_map_get(&c->arena, &c->use_places, key, c->use_count)) return -1;
    if (c->use_count == c->use_capacity) {
        int capacity = c->use_capacity ? 2 * c->use_capacity : 64;
        struct use *bigger = pnet_arena_array(&c->arena, (size_t)capacity, sizeof *bigger);
        if (!bigger) return -1;
        if (c->use_count) memcpy(bigger, c->uses, (size_t)c->use_count * sizeof *bigger);
        c->uses = bigger;
        c->use_capacity = capacity;
    }
    c->uses[c->use_count] = (struct use){.span = span, .name = name};
    return c->use_count++;
}

static struct binding *add_binding(struct pnet_compilation *c, struct scope *s, const char *name)
{
    if (s->binding_count == s->binding_capacity) {
        int capacity = s->binding_capacity ? 2 * s->binding_capacity : 8;
        struct binding **bigger =
            pnet_arena_array(&c->arena, (size_t)capacity, sizeof(struct binding *));
        if (!bigger) return NULL;
        if (s->binding_count)
            memcpy(bigger, s->bindings, (size_t)s->binding_count * sizeof(struct binding *));
        s->bindings = bigger;
        s->binding_capacity = capacity;
    }
    struct binding *b = pnet_arena_alloc(&c->arena, sizeof *b);
    if (!b || !pnet_map_get(&c->arena, &s->binding_names, name, s->binding_count)) return NULL;
    b->name = name;
    s->bindings[s->binding_count++] = b;
    return b;
}

/* Lists are values: giving one a second name makes a second list. */
static struct value copy_list(
    struct pnet_compilation *c, struct pnet_span span, struct value v, int depth)
{
    if (!pnet_spend_steps(c, span, v.count + 1)) return unknown;
    if (depth > MAX_LIST_DEPTH) {
        ERROR(c, span, "lists are nested more than %d deep", MAX_LIST_DEPTH);
        return unknown;
    }
    struct value r = v;
    r.capacity = v.count;
    r.items = pnet_arena_array(&c->arena, (size_t)v.count + 1, sizeof *r.items);
    for (int i = 0; r.items && i < v.count; i++)
        r.items[i] =
            v.items[i].kind == V_LIST ? copy_list(c, span, v.items[i], depth + 1) : v.items[i];
    return r.items ? r : unknown;
}

void pnet_bind_value(struct pnet_compilation *c, struct scope *s, const char *name, struct value v,
    struct pnet_span span, bool track)
{
    struct binding *b = pnet_find_own_binding(s, name);
    if (!b) b = add_binding(c, s, name);
    if (!b) return;
    b->value = v.kind == V_LIST ? copy_list(c, span, v, 1) : v;
    pnet_seen_add(c, span, b->value);
    b->use = track ? track_use(c, name, span) : -1;
    if (b->use < 0 || s != c->global || v.kind != V_TENSOR) return;
    c->uses[b->use].result = c->plan.tensors[v.index].role == PNET_ROLE_RESULT;
}

/* An item on the way to a level: g, then [0]. */
struct level_path {
    const struct level_path *outer; /* NULL: the name itself */
    const char *name;
    int index;
};

static const char *path_text(struct pnet_compilation *c, const struct level_path *p)
{
    const char *outer = p->outer ? path_text(c, p->outer) : p->name;
    return p->outer && outer ? pnet_arena_printf(&c->arena, "%s[%d]", outer, p->index) : outer;
}

/* Levels are called after the first name they are given, and after their cloud where there are
   several. */
static void name_levels(
    struct pnet_compilation *c, const struct level_path *path, const struct value *v)
{
    if (!pnet_spend_steps(c, v->span, 1)) return;
    if (v->kind == V_LIST)
        for (int i = 0; i < v->count; i++)
            name_levels(c, &(struct level_path){.outer = path, .index = i}, &v->items[i]);
    if (v->kind != V_LEVEL) return;
    struct pnet_level_info *l = &c->plan.levels[v->index];
    int clouds = 0;
    if (!pnet_level_unnamed(l)) return;
    for (int i = 0; i < c->plan.input_count; i++) clouds += !pnet_input_is_pose(&c->plan.inputs[i]);
    l->name = path_text(c, path);
    if (clouds > 1 && l->input >= 0)
        l->name = pnet_arena_printf(&c->arena, "%s.%s", c->plan.inputs[l->input].name, l->name);
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
static struct value *list_slot(
    struct pnet_compilation *c, struct pnet_span span, struct value *list, int64_t i)
{
    if (i >= list->capacity) {
        int capacity = list->capacity ? list->capacity : 8;
        while (capacity <= i) capacity *= 2;
        if (!pnet_spend_steps(c, span, capacity)) return NULL;
        struct value *bigger = pnet_arena_array(&c->arena, (size_t)capacity, sizeof *bigger);
        if (!bigger) return NULL;
        if (list->count) memcpy(bigger, list->items, (size_t)list->count * sizeof *bigger);
        list->items = bigger;
        list->capacity = capacity;
    }
    if (i >= list->count) list->count = (int)i + 1;
    return &list->items[i];
}

static bool evaluate_index(
    struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e, int64_t *index)
{
    struct value v = pnet_evaluate_expr(c, s, e);
    if (v.kind == V_UNKNOWN) return false;
    if (v.kind != V_NUMBER || v.unit != PNET_UNIT_NONE || v.number != floor(v.number)) {
        ERROR(c, e->span, "an index is a whole number, not %s", pnet_value_text(c, v));
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
    struct binding *b = pnet_find_own_binding(s, st->assign.name);
    if (b && b->value.kind == V_UNKNOWN) return;
    if (!b || b->value.kind != V_LIST) {
        struct value empty = {.kind = V_LIST, .span = st->span};
        pnet_bind_value(c, s, st->assign.name, empty, st->assign.name_span, true);
        b = pnet_find_own_binding(s, st->assign.name);
    }
    /* the list is used as a whole: one record for all its items */
    struct value *slot = b ? &b->value : NULL;
    for (int i = 0; i < st->assign.index_count && slot; i++) {
        if (slot->kind == V_UNKNOWN) return;
        if (slot->kind != V_LIST) *slot = (struct value){.kind = V_LIST, .span = st->span};
        slot = list_slot(c, st->span, slot, indices[i]);
    }
    if (slot) *slot = v.kind == V_LIST ? copy_list(c, st->span, v, st->assign.index_count + 1) : v;
}

static void run_assign(struct pnet_compilation *c, struct scope *s, const struct pnet_stmt *st)
{
    enum { MAX_INDICES = 8 };
    int64_t indices[MAX_INDICES] = {0};
    bool known = st->assign.index_count <= MAX_INDICES;
    if (!known) ERROR(c, st->span, "at most %d indices", MAX_INDICES);
    for (int i = 0; i < st->assign.index_count && i < MAX_INDICES; i++)
        if (!evaluate_index(c, s, st->assign.indices[i], &indices[i])) known = false;
    const char *outer_path = s->value_path;
    s->value_path = known ? assignment_path(c, s, st, indices) : st->assign.name;
    struct value v = pnet_evaluate_expr(c, s, st->assign.value);
    s->value_path = outer_path;
    v.span = st->assign.name_span;
    if (v.kind == V_TENSOR && v.index < c->tensor_span_capacity)
        c->tensor_spans[v.index] = st->assign.name_span;
    if (!known) {
        pnet_bind_value(c, s, st->assign.name, unknown, st->assign.name_span, false);
        return;
    }
    if (st->assign.index_count) {
        assign_indexed(c, s, st, indices, v);
        pnet_seen_add(c, st->assign.name_span, v);
        return;
    }
    name_levels(c, &(struct level_path){.name = st->assign.name}, &v);
    bool is_out = s->outer && strcmp(st->assign.name, "out") == 0;
    pnet_bind_value(c, s, st->assign.name, v, st->assign.name_span, !is_out);
}

/* Makes the names that these statements assign unknown. Called where a condition is unknown, so that it is unknown too whether
   the statements run. */
static void forget(struct pnet_compilation *c, struct scope *s, const struct pnet_stmt *st)
{
    for (; st && pnet_spend_steps(c, st->span, 1); st = st->next) {
        switch (st->kind) {
        case PNET_STMT_ASSIGN:
            pnet_bind_value(c, s, st->assign.name, unknown, st->assign.name_span, false);
            break;
        case PNET_STMT_FOR:
            pnet_bind_value(c, s, st->loop.name, unknown, st->loop.name_span, false);
            forget(c, s, st->loop.body);
            break;
        case PNET_STMT_IF:
            forget(c, s, st->conditional.then);
            forget(c, s, st->conditional.otherwise);
            break;
        case PNET_STMT_RETURN: s->unsure = true; break;
        }
    }
}

/* One end of a loop; false with an error where it is none, or unknown. */
static bool evaluate_end(
    struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e, int64_t *end)
{
    struct value v = pnet_evaluate_expr(c, s, e);
    if (v.kind == V_UNKNOWN) return false;
    if (v.kind != V_NUMBER || v.unit || v.number != floor(v.number) || fabs(v.number) > 1e6) {
        ERROR(c, e->span, "a loop runs between whole numbers, not %s", pnet_value_text(c, v));
        return false;
    }
    *end = (int64_t)v.number;
    return true;
}

static void run_for(struct pnet_compilation *c, struct scope *s, const struct pnet_stmt *st)
{
    int64_t a, b;
    bool known = evaluate_end(c, s, st->loop.from, &a);
    if (!evaluate_end(c, s, st->loop.to, &b) || !known) {
        pnet_bind_value(c, s, st->loop.name, unknown, st->loop.name_span, false);
        forget(c, s, st->loop.body);
        return;
    }
    int64_t step = a <= b ? 1 : -1;
    struct loop loop = {.name = st->loop.name, .outer = s->loops};
    int errors = pnet_diags_errors(c->diags);
    s->loops = &loop;
    for (int64_t i = a; step * i <= step * b && !s->returned && pnet_spend_steps(c, st->span, 1);
         i += step) {
        loop.value = i;
        struct value v = {.kind = V_NUMBER, .span = st->loop.name_span, .number = (double)i};
        pnet_bind_value(c, s, st->loop.name, v, st->loop.name_span, false);
        pnet_run_statements(c, s, st->loop.body);
        if (pnet_diags_errors(c->diags) > errors) { /* the next time would say the same */
            forget(c, s, st->loop.body);
            break;
        }
    }
    s->loops = loop.outer;
}

static void run_if(struct pnet_compilation *c, struct scope *s, const struct pnet_stmt *st)
{
    struct value v = pnet_evaluate_expr(c, s, st->conditional.condition);
    if (v.kind == V_BOOL) {
        pnet_run_statements(c, s, v.truth ? st->conditional.then : st->conditional.otherwise);
        return;
    }
    if (v.kind != V_UNKNOWN)
        ERROR(c, st->conditional.condition->span, "a condition is yes or no, not %s",
            pnet_value_text(c, v));
    forget(c, s, st->conditional.then);
    forget(c, s, st->conditional.otherwise);
}

static void run_return(struct pnet_compilation *c, struct scope *s, const struct pnet_stmt *st)
{
    const char *outer_path = s->value_path;
    s->value_path = "out";
    s->result = pnet_evaluate_expr(c, s, st->value);
    s->value_path = outer_path;
    s->returned = true;
    if (st->next)
        pnet_diag_label(
            pnet_diag_new(c->diags, PNET_WARNING, st->next->span, "nothing runs behind a return"),
            "never runs");
}

void pnet_run_statements(struct pnet_compilation *c, struct scope *s, const struct pnet_stmt *first)
{
    for (const struct pnet_stmt *st = first; st && !s->returned; st = st->next) {
        if (++c->statements > MAX_STATEMENTS && !c->stopped) {
            ERROR(c, st->span, "the model is too large: over %d statements run", MAX_STATEMENTS);
            c->stopped = true;
        }
        if (pnet_descend(c, st->span)) switch (st->kind) {
            case PNET_STMT_ASSIGN: run_assign(c, s, st); break;
            case PNET_STMT_FOR: run_for(c, s, st); break;
            case PNET_STMT_IF: run_if(c, s, st); break;
            case PNET_STMT_RETURN: run_return(c, s, st); break;
            }
        pnet_ascend(c);
        if (c->stopped || c->arena.failed) return;
    }
}
