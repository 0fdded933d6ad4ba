/* Walks a tree once and notes what each name in it stands for. The rules are those of elaboration: a block or net has names of
   its own, then those of the file; calls look for blocks and nets, then functions of the language, then layers. */
#include "compiler/lsp/index.h"

#include <stdlib.h>
#include <string.h>

/* The walk of a tree. */
struct walk {
    struct pnet_index *x;
    const struct pnet_item *within; /* the block or net, NULL: the file */
    struct map locals;              /* its names */
};

static void *grow(struct pnet_arena *a, void *items, int count, int *capacity, size_t size)
{
    if (count < *capacity) return items;
    int bigger = *capacity ? 2 * *capacity : 256;
    void *grown = pnet_arena_array(a, (size_t)bigger, size);
    if (!grown) return NULL;
    if (count) memcpy(grown, items, (size_t)count * size);
    *capacity = bigger;
    return grown;
}

static int add_symbol(struct pnet_index *x, struct symbol s)
{
    struct symbol *grown =
        grow(&x->arena, x->symbols, x->symbol_count, &x->symbol_capacity, sizeof *grown);
    if (!grown) return -1;
    x->symbols = grown;
    x->symbols[x->symbol_count] = s;
    return x->symbol_count++;
}

static struct occurrence *occur(struct pnet_index *x, struct pnet_span span, int symbol, bool binds)
{
    if (symbol < 0 || span.end <= span.begin) return NULL;
    struct occurrence *grown = grow(
        &x->arena, x->occurrences, x->occurrence_count, &x->occurrence_capacity, sizeof *grown);
    if (!grown) return NULL;
    x->occurrences = grown;
    struct occurrence *o = &x->occurrences[x->occurrence_count++];
    *o = (struct occurrence){.span = span, .symbol = symbol, .binds = binds};
    return o;
}

/* The symbol under `key`; `s` becomes it where there is none. */
static int get(struct pnet_index *x, struct map *m, const char *key, struct symbol s)
{
    int *known = key ? pnet_map_find(m, key) : NULL;
    if (known) return *known;
    int index = key ? add_symbol(x, s) : -1;
    if (index < 0 || !pnet_map_get(&x->arena, m, key, index)) return -1;
    return index;
}

static int find(const struct map *m, const char *key)
{
    const int *known = pnet_map_find(m, key);
    return known ? *known : -1;
}

/* "cloud.rgb", "unit(w", "conv=kernel" */
static const char *member_key(
    struct pnet_index *x, const char *owner, char separator, const char *name)
{
    return pnet_arena_printf(&x->arena, "%s%c%s", owner, separator, name);
}

static int find_member(struct pnet_index *x, const char *owner, char separator, const char *name)
{
    const char *key = member_key(x, owner, separator, name);
    return key ? find(&x->members, key) : -1;
}

/* ---- what the file declares ---- */

static struct pnet_span join(struct pnet_span a, struct pnet_span b)
{
    if (b.file == a.file && b.end > a.end) a.end = b.end;
    return a;
}

static const char *text_of(const struct pnet_index *x, struct pnet_span span)
{
    const struct pnet_source *s = pnet_sources_get(x->sources, span.file);
    return s && span.end <= s->length ? s->text : NULL;
}

/* The declaration of a block or net without its body. */
static struct pnet_span head_of(const struct pnet_index *x, const struct pnet_item *item)
{
    struct pnet_span head = item->span;
    const char *text = text_of(x, head);
    uint32_t from = item->name_span.end;
    for (const struct pnet_param_decl *p = item->params; p; p = p->next)
        from = p->value ? p->value->span.end : p->type ? p->type_span.end : p->name_span.end;
    while (text && from < head.end && text[from] != '{') from++;
    while (text && from > head.begin && strchr(" \t\r\n", text[from - 1])) from--;
    head.end = from;
    return head;
}

static void declare_fields(struct pnet_index *x, const struct pnet_item *item)
{
    for (const struct pnet_field_decl *f = item->fields; f; f = f->next) {
        struct symbol s = {.kind = SYMBOL_FIELD,
            .name = f->name,
            .declared = f->name_span,
            .declaration = join(f->name_span, f->type_span),
            .doc = f->doc,
            .item = item};
        const char *text = text_of(x, item->span);
        if (f->size) {
            s.declaration = join(s.declaration, f->size->span);
            while (text && s.declaration.end < item->span.end && text[s.declaration.end - 1] != ']')
                s.declaration.end++;
        }
        if (f->per) s.declaration = join(s.declaration, f->per_span);
        int known = x->symbol_count;
        int index = get(x, &x->members, member_key(x, item->name, '.', f->name), s);
        occur(x, f->name_span, index, true);
        if (index < known) continue;
        int *first = pnet_map_get(&x->arena, &x->fields, f->name, index);
        if (first && *first != index) x->symbols[index].twin = x->symbols[*first].twin = true;
    }
}

static void declare_parameters(struct pnet_index *x, const struct pnet_item *item)
{
    for (const struct pnet_param_decl *p = item->params; p; p = p->next) {
        struct symbol s = {.kind = SYMBOL_PARAMETER,
            .name = p->name,
            .declared = p->name_span,
            .declaration = p->name_span,
            .item = item,
            .bound = true};
        if (p->type) s.declaration = join(s.declaration, p->type_span);
        if (p->value) s.declaration = join(s.declaration, p->value->span);
        occur(
            x, p->name_span, get(x, &x->members, member_key(x, item->name, '(', p->name), s), true);
    }
}

static void declare_item(struct pnet_index *x, const struct pnet_item *item)
{
    static const enum symbol_kind kinds[] = {[PNET_ITEM_INCLUDE] = SYMBOL_INCLUDE,
        [PNET_ITEM_PARAM] = SYMBOL_PARAM,
        [PNET_ITEM_CONST] = SYMBOL_CONST,
        [PNET_ITEM_INPUT] = SYMBOL_INPUT,
        [PNET_ITEM_BLOCK] = SYMBOL_BLOCK,
        [PNET_ITEM_NET] = SYMBOL_NET,
        [PNET_ITEM_LOSS] = SYMBOL_LOSS,
        [PNET_ITEM_METRIC] = SYMBOL_METRIC,
        [PNET_ITEM_ASSIGN] = SYMBOL_VALUE};
    bool defines = item->kind == PNET_ITEM_BLOCK || item->kind == PNET_ITEM_NET;
    struct symbol s = {.kind = kinds[item->kind],
        .name = item->name,
        .declared = item->name_span,
        .declaration = defines ? head_of(x, item) : item->span,
        .doc = item->doc,
        .bound = true,
        .file = -1};
    if (defines || item->kind == PNET_ITEM_INPUT) s.item = item;
    int index;
    switch (item->kind) {
    case PNET_ITEM_INCLUDE: {
        const struct pnet_source *source;
        for (uint32_t f = 0; (source = pnet_sources_get(x->sources, f)); f++)
            if (source->included_from.file == item->span.file &&
                source->included_from.end == item->span.end && item->span.end)
                s.file = f;
        index = add_symbol(x, s);
        break;
    }
    case PNET_ITEM_LOSS:
    case PNET_ITEM_METRIC:
        index = get(x, &x->members, member_key(x, item->name, '!', ""), s);
        break;
    case PNET_ITEM_BLOCK:
    case PNET_ITEM_NET: index = get(x, &x->definitions, item->name, s); break;
    default: index = get(x, &x->globals, item->name, s); break;
    }
    struct occurrence *o = occur(x, item->name_span, index, true);
    if (o) o->stmt = item->kind == PNET_ITEM_ASSIGN ? item->stmt : NULL;
    if (item->kind == PNET_ITEM_INPUT) declare_fields(x, item);
    if (defines) declare_parameters(x, item);
}

/* ---- names in expressions ---- */

static int word(struct pnet_index *x, const char *name)
{
    struct symbol s = {.kind = SYMBOL_WORD, .name = name};
    return get(x, &x->members, member_key(x, "", ' ', name), s);
}

/* The value that a name stands for, or -1. */
static int resolve(struct walk *w, const char *name)
{
    int local = w->within ? find(&w->locals, name) : -1, global = find(&w->x->globals, name);
    if (local < 0 || global < 0) return local >= 0 ? local : global;
    if (w->x->symbols[local].bound) return local;
    w->x->symbols[local].mixed = w->x->symbols[global].mixed = true;
    return global;
}

static void walk_expr(struct walk *w, const struct pnet_expr *e);

static void walk_name(struct walk *w, const struct pnet_expr *e)
{
    int symbol = resolve(w, e->name);
    bool block = w->within && w->within->kind == PNET_ITEM_BLOCK;
    bool known = !strcmp(e->name, "yes") || !strcmp(e->name, "no") || !strcmp(e->name, "sample") ||
                 (block && !strcmp(e->name, "in"));
    if (symbol < 0 && known) symbol = word(w->x, e->name);
    occur(w->x, e->name_span, symbol, false);
}

static int find_argument(const struct pnet_op *op, const char *name)
{
    for (int i = 0; i < PNET_MAX_ARGS && op->args[i].name; i++)
        if (strcmp(op->args[i].name, name) == 0) return i;
    return -1;
}

static void walk_op_argument(
    struct walk *w, const struct pnet_op *op, const struct pnet_call_arg *a, int at)
{
    const struct pnet_arg *arg =
        at >= 0 && at < PNET_MAX_ARGS && op->args[at].name ? &op->args[at] : NULL;
    if (a->name && arg) {
        struct symbol s = {.kind = SYMBOL_ARGUMENT, .name = arg->name, .op = op, .arg = arg};
        const char *key = member_key(w->x, op->name, '=', arg->name);
        occur(w->x, a->name_span, get(w->x, &w->x->members, key, s), false);
    }
    const struct pnet_expr *e = a->value;
    if (arg && arg->type == PNET_ARG_CHOICE && e->kind == PNET_EXPR_NAME && resolve(w, e->name) < 0)
        occur(w->x, e->name_span, word(w->x, e->name), false);
    else
        walk_expr(w, e);
}

static void walk_op(struct walk *w, const struct pnet_op *op, const struct pnet_expr *e)
{
    struct symbol s = {.kind = SYMBOL_OP, .name = op->name, .op = op};
    const char *key = member_key(w->x, op->name, '=', "");
    occur(w->x, e->call.name_span, get(w->x, &w->x->members, key, s), false);
    int next = e->kind == PNET_EXPR_PIPE && op->args[0].type != PNET_ARG_VALUES ? 1 : 0;
    for (const struct pnet_call_arg *a = e->call.args; a; a = a->next) {
        int at = a->name ? find_argument(op, a->name) : next;
        if (!a->name && next < PNET_MAX_ARGS && op->args[next].type != PNET_ARG_VALUES) next++;
        walk_op_argument(w, op, a, at);
    }
}

static void walk_call(struct walk *w, const struct pnet_expr *e)
{
    const char *name = e->call.name;
    int definition = find(&w->x->definitions, name);
    const struct pnet_op *op = NULL;
    if (definition >= 0) {
        occur(w->x, e->call.name_span, definition, false);
    } else {
        const struct pnet_builtin_info *b = NULL;
        for (int i = 0; (b = pnet_builtin_info(i)) && strcmp(b->name, name) != 0;) i++;
        struct symbol s = {.kind = SYMBOL_BUILTIN, .name = name, .builtin = b};
        if (b)
            occur(w->x, e->call.name_span,
                get(w->x, &w->x->members, member_key(w->x, name, '(', ""), s), false);
        else
            op = pnet_op_find(name);
    }
    if (op) {
        walk_op(w, op, e);
        return;
    }
    for (const struct pnet_call_arg *a = e->call.args; a; a = a->next) {
        if (a->name && definition >= 0)
            occur(w->x, a->name_span, find_member(w->x, name, '(', a->name), false);
        walk_expr(w, a->value);
    }
}

/* A field of an input by its name; of a parameter, of the input that it was. Where that is not known, or several were, the field
   may be that of each. */
static void walk_field(struct walk *w, const struct pnet_expr *e)
{
    struct pnet_index *x = w->x;
    const struct pnet_expr *base = e->field.base;
    walk_expr(w, base);
    int symbol = base->kind == PNET_EXPR_NAME ? resolve(w, base->name) : -1;
    const char *input = NULL;
    if (symbol >= 0 && x->symbols[symbol].kind == SYMBOL_INPUT) input = base->name;
    if (!input && base->kind == PNET_EXPR_NAME)
        input = pnet_compilation_cloud(x->compilation, base->name_span);
    if (input) {
        occur(x, e->field.name_span, find_member(x, input, '.', e->field.name), false);
        return;
    }
    int first = find(&x->fields, e->field.name);
    if (first >= 0) x->symbols[first].guessed = true;
    occur(x, e->field.name_span, first, false);
}

/* As deep as expressions nest: PNET_MAX_NESTING. */
static void walk_expr(struct walk *w, const struct pnet_expr *e)
{
    if (!e || w->x->arena.failed) return;
    switch (e->kind) {
    case PNET_EXPR_NUMBER:
    case PNET_EXPR_STRING: break;
    case PNET_EXPR_NAME: walk_name(w, e); break;
    case PNET_EXPR_LIST:
        for (int i = 0; i < e->list.count; i++) walk_expr(w, e->list.items[i]);
        break;
    case PNET_EXPR_INDEX:
        walk_expr(w, e->index.base);
        walk_expr(w, e->index.index);
        break;
    case PNET_EXPR_FIELD: walk_field(w, e); break;
    case PNET_EXPR_PIPE:
        walk_expr(w, e->call.piped);
        walk_call(w, e);
        walk_expr(w, e->call.repeat);
        break;
    case PNET_EXPR_CALL: walk_call(w, e); break;
    case PNET_EXPR_UNARY: walk_expr(w, e->binary.left); break;
    case PNET_EXPR_BINARY:
        walk_expr(w, e->binary.left);
        walk_expr(w, e->binary.right);
        break;
    case PNET_EXPR_IF:
        walk_expr(w, e->conditional.condition);
        walk_expr(w, e->conditional.then);
        walk_expr(w, e->conditional.otherwise);
        break;
    }
}

/* ---- statements ---- */

static void declare_local(struct walk *w, const char *name, struct pnet_span span, struct symbol s)
{
    s.name = name;
    s.declared = span;
    s.item = w->within;
    get(w->x, &w->locals, name, s);
}

/* Finds the names of a body before it is walked. */
static void declare_locals(struct walk *w, const struct pnet_stmt *st)
{
    for (; st && !w->x->arena.failed; st = st->next) {
        struct symbol s = {.kind = SYMBOL_VALUE, .declaration = st->span, .doc = st->doc};
        if (st->kind == PNET_STMT_ASSIGN) {
            declare_local(w, st->assign.name, st->assign.name_span, s);
        } else if (st->kind == PNET_STMT_FOR) {
            s.kind = SYMBOL_LOOP;
            s.declaration.end = st->loop.to->span.end;
            declare_local(w, st->loop.name, st->loop.name_span, s);
            declare_locals(w, st->loop.body);
        } else if (st->kind == PNET_STMT_IF) {
            declare_locals(w, st->conditional.then);
            declare_locals(w, st->conditional.otherwise);
        }
    }
}

/* A statement gives the name a value. */
static void bind(
    struct walk *w, const char *name, struct pnet_span span, const struct pnet_stmt *st)
{
    int symbol = find(w->within ? &w->locals : &w->x->globals, name);
    if (symbol < 0) return;
    w->x->symbols[symbol].bound = true;
    struct occurrence *o = occur(w->x, span, symbol, true);
    if (o) o->stmt = st;
}

static void walk_stmts(struct walk *w, const struct pnet_stmt *st)
{
    for (; st && !w->x->arena.failed; st = st->next) {
        switch (st->kind) {
        case PNET_STMT_ASSIGN:
            for (int i = 0; i < st->assign.index_count; i++) walk_expr(w, st->assign.indices[i]);
            walk_expr(w, st->assign.value);
            bind(w, st->assign.name, st->assign.name_span, st);
            break;
        case PNET_STMT_FOR:
            walk_expr(w, st->loop.from);
            walk_expr(w, st->loop.to);
            bind(w, st->loop.name, st->loop.name_span, st);
            walk_stmts(w, st->loop.body);
            break;
        case PNET_STMT_IF:
            walk_expr(w, st->conditional.condition);
            walk_stmts(w, st->conditional.then);
            walk_stmts(w, st->conditional.otherwise);
            break;
        case PNET_STMT_RETURN: walk_expr(w, st->value); break;
        }
    }
}

static void walk_item(struct walk *w, const struct pnet_item *item)
{
    w->within = NULL;
    walk_expr(w, item->value);
    for (const struct pnet_field_decl *f = item->fields; f; f = f->next) walk_expr(w, f->size);
    if (item->kind == PNET_ITEM_ASSIGN && item->stmt) { /* its name has been noted */
        for (int i = 0; i < item->stmt->assign.index_count; i++)
            walk_expr(w, item->stmt->assign.indices[i]);
        walk_expr(w, item->stmt->assign.value);
    }
    if (item->kind != PNET_ITEM_BLOCK && item->kind != PNET_ITEM_NET) return;
    w->within = item;
    w->locals = (struct map){0};
    for (const struct pnet_param_decl *p = item->params; p; p = p->next) {
        int symbol = find_member(w->x, item->name, '(', p->name);
        if (symbol >= 0) pnet_map_get(&w->x->arena, &w->locals, p->name, symbol);
        walk_expr(w, p->value);
    }
    declare_locals(w, item->stmt);
    walk_stmts(w, item->stmt);
}

static int compare(const void *left, const void *right)
{
    const struct pnet_span *a = &((const struct occurrence *)left)->span,
                           *b = &((const struct occurrence *)right)->span;
    if (a->file != b->file) return a->file < b->file ? -1 : 1;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

struct pnet_index *pnet_index_new(const struct pnet_compilation *c)
{
    struct pnet_index *x = calloc(1, sizeof *x);
    if (!x) return NULL;
    x->arena.limit = 256 << 20;
    x->compilation = c;
    x->sources = pnet_compilation_sources(c);
    const struct pnet_file *tree = pnet_compilation_tree(c);
    struct walk w = {.x = x};
    for (const struct pnet_item *i = tree ? tree->items : NULL; i && !x->arena.failed; i = i->next)
        declare_item(x, i);
    for (const struct pnet_item *i = tree ? tree->items : NULL; i && !x->arena.failed; i = i->next)
        walk_item(&w, i);
    if (x->occurrence_count)
        qsort(x->occurrences, (size_t)x->occurrence_count, sizeof *x->occurrences, compare);
    return x;
}

void pnet_index_free(struct pnet_index *x)
{
    if (!x) return;
    pnet_arena_free(&x->arena);
    free(x);
}

const struct occurrence *pnet_index_at(const struct pnet_index *x, uint32_t file, uint32_t offset)
{
    int low = 0, high = x->occurrence_count;
    while (low < high) { /* the first that begins behind the place */
        int middle = (low + high) / 2;
        const struct pnet_span *s = &x->occurrences[middle].span;
        if (s->file < file || (s->file == file && s->begin <= offset))
            low = middle + 1;
        else
            high = middle;
    }
    if (!low) return NULL;
    const struct occurrence *o = &x->occurrences[low - 1];
    return o->span.file == file && offset <= o->span.end ? o : NULL;
}

const struct occurrence *pnet_index_binding(const struct pnet_index *x, const struct occurrence *o)
{
    const struct occurrence *best = NULL;
    if (o->binds) return o;
    for (int i = 0; i < x->occurrence_count; i++) {
        const struct occurrence *b = &x->occurrences[i];
        if (b->symbol != o->symbol || !b->binds) continue;
        if (!best || (b < o && b->span.file == o->span.file)) best = b;
    }
    return best;
}

static const struct pnet_item *item_of(
    const struct pnet_index *x, const struct map *m, const char *name)
{
    int symbol = find(m, name);
    return symbol >= 0 ? x->symbols[symbol].item : NULL;
}

const struct pnet_item *pnet_index_input(const struct pnet_index *x, const char *name)
{
    return item_of(x, &x->globals, name);
}

const struct pnet_item *pnet_index_definition(const struct pnet_index *x, const char *name)
{
    return item_of(x, &x->definitions, name);
}

bool pnet_symbol_is_named(const struct symbol *s)
{
    return s->kind <= SYMBOL_LOOP;
}
