#include "lang/internal.h"

#include <string.h>

static void stop(struct pnet_parser *p, struct pnet_span span, const char *message, int limit)
{
    if (!p->all->stopped)
        pnet_diag_help(pnet_diag_new(p->all->diags, PNET_ERROR, span, "%s", message),
            "the limit is %d", limit);
    p->all->stopped = true;
}

/* Allocates a node; NULL when one of the limits is reached. */
static void *node_new(struct pnet_parser *p, struct pnet_span span, size_t size, int height)
{
    if (height > PNET_MAX_NESTING) {
        stop(p, span, "this is nested too deeply", PNET_MAX_NESTING);
        return NULL;
    }
    if (++p->all->nodes > PNET_MAX_NODES) {
        stop(p, span, "there are too many expressions and statements", PNET_MAX_NODES);
        return NULL;
    }
    void *node = pnet_arena_alloc(p->all->arena, size);
    if (!node) p->all->stopped = true;
    return node;
}

static int height_of(const struct pnet_expr *e)
{
    return e ? e->height : 0;
}

static int taller(int height, const struct pnet_expr *e)
{
    return height_of(e) > height ? height_of(e) : height;
}

static int tallest_stmt(int height, struct pnet_stmts stmts)
{
    for (const struct pnet_stmt *s = stmts.first; s; s = s->next)
        if (s->height > height) height = s->height;
    return height;
}

/* `height`: of the tree below. */
static struct pnet_expr *expr_new(
    struct pnet_parser *p, enum pnet_expr_kind kind, struct pnet_span span, int height)
{
    struct pnet_expr *e = node_new(p, span, sizeof *e, height + 1);
    if (!e) return NULL;
    e->kind = kind;
    e->height = height + 1;
    e->span = span;
    return e;
}

static struct pnet_stmt *stmt_new(
    struct pnet_parser *p, enum pnet_stmt_kind kind, struct pnet_span span, int height)
{
    struct pnet_stmt *s = node_new(p, span, sizeof *s, height + 1);
    if (!s) return NULL;
    s->kind = kind;
    s->height = height + 1;
    s->span = span;
    return s;
}

struct pnet_expr *pnet_tree_number(
    struct pnet_parser *p, struct pnet_span span, struct pnet_number n)
{
    struct pnet_expr *e = expr_new(p, PNET_EXPR_NUMBER, span, 0);
    if (!e) return NULL;
    e->number.value = n.value;
    e->number.unit = n.unit;
    e->number.is_integer = n.is_integer;
    return e;
}

struct pnet_expr *pnet_tree_string(struct pnet_parser *p, struct pnet_span span, const char *text)
{
    struct pnet_expr *e = expr_new(p, PNET_EXPR_STRING, span, 0);
    if (e) e->string = text;
    return e;
}

struct pnet_expr *pnet_tree_name(struct pnet_parser *p, struct pnet_span span, const char *name)
{
    bool truth = !strcmp(name, "true") || !strcmp(name, "True");
    if (truth || !strcmp(name, "false") || !strcmp(name, "False"))
        pnet_diag_help(pnet_diag_new(p->all->diags, PNET_ERROR, span, "unexpected '%s'", name),
            "write %s", truth ? "yes" : "no");
    struct pnet_expr *e = expr_new(p, PNET_EXPR_NAME, span, 0);
    if (!e) return NULL;
    e->name = name;
    e->name_span = span;
    return e;
}

struct pnet_expr_cell *pnet_tree_cell(struct pnet_parser *p, struct pnet_expr *expr)
{
    struct pnet_expr_cell *cell = pnet_arena_alloc(p->all->arena, sizeof *cell);
    if (cell)
        cell->expr = expr;
    else
        p->all->stopped = true;
    return cell;
}

/* Returns the expressions of a chain as an array; `count` and `height` describe the chain. */
static struct pnet_expr **flatten(
    struct pnet_parser *p, struct pnet_exprs list, int *count, int *height)
{
    *count = *height = 0;
    for (const struct pnet_expr_cell *c = list.first; c; c = c->next) {
        ++*count;
        *height = taller(*height, c->expr);
    }
    struct pnet_expr **items =
        pnet_arena_array(p->all->arena, (size_t)*count, sizeof(struct pnet_expr *));
    if (!items) {
        p->all->stopped = true;
        return NULL;
    }
    int i = 0;
    for (const struct pnet_expr_cell *c = list.first; c; c = c->next) items[i++] = c->expr;
    return items;
}

struct pnet_expr *pnet_tree_list(
    struct pnet_parser *p, struct pnet_span span, struct pnet_exprs list)
{
    int count, height;
    struct pnet_expr **items = flatten(p, list, &count, &height);
    struct pnet_expr *e = items ? expr_new(p, PNET_EXPR_LIST, span, height) : NULL;
    if (!e) return NULL;
    e->list.items = items;
    e->list.count = count;
    return e;
}

struct pnet_expr *pnet_tree_index(
    struct pnet_parser *p, struct pnet_span span, struct pnet_expr *base, struct pnet_expr *index)
{
    struct pnet_expr *e = expr_new(p, PNET_EXPR_INDEX, span, taller(base->height, index));
    if (!e) return NULL;
    e->index.base = base;
    e->index.index = index;
    return e;
}

struct pnet_expr *pnet_tree_field(struct pnet_parser *p, struct pnet_span span,
    struct pnet_expr *base, const char *name, struct pnet_span name_span)
{
    struct pnet_expr *e = expr_new(p, PNET_EXPR_FIELD, span, base->height);
    if (!e) return NULL;
    e->field.base = base;
    e->field.name = name;
    e->field.name_span = name_span;
    return e;
}

struct pnet_call_arg *pnet_tree_arg(
    struct pnet_parser *p, const char *name, struct pnet_span name_span, struct pnet_expr *value)
{
    struct pnet_call_arg *a = pnet_arena_alloc(p->all->arena, sizeof *a);
    if (!a) {
        p->all->stopped = true;
        return NULL;
    }
    a->name = name;
    a->name_span = name_span;
    a->value = value;
    return a;
}

struct pnet_expr *pnet_tree_call(struct pnet_parser *p, struct pnet_span span, const char *name,
    struct pnet_span name_span, struct pnet_args args)
{
    int height = 0;
    for (const struct pnet_call_arg *a = args.first; a; a = a->next)
        height = taller(height, a->value);
    struct pnet_expr *e = expr_new(p, PNET_EXPR_CALL, span, height);
    if (!e) return NULL;
    e->call.name = name;
    e->call.name_span = name_span;
    e->call.args = args.first;
    return e;
}

struct pnet_expr *pnet_tree_pipe(struct pnet_parser *p, struct pnet_span span,
    struct pnet_expr *piped, struct pnet_expr *stage, struct pnet_expr *repeat)
{
    int below = taller(taller(stage->height - 1, piped), repeat);
    struct pnet_expr *e = expr_new(p, PNET_EXPR_PIPE, span, below);
    if (!e) return NULL;
    e->call = stage->call;
    e->call.piped = piped;
    e->call.repeat = repeat;
    return e;
}

struct pnet_expr *pnet_tree_operation(struct pnet_parser *p, struct pnet_span span,
    enum pnet_operator op, struct pnet_span op_span, struct pnet_expr *left,
    struct pnet_expr *right)
{
    enum pnet_expr_kind kind = right ? PNET_EXPR_BINARY : PNET_EXPR_UNARY;
    struct pnet_expr *e = expr_new(p, kind, span, taller(left->height, right));
    if (!e) return NULL;
    e->binary.op = op;
    e->binary.op_span = op_span;
    e->binary.left = left;
    e->binary.right = right;
    return e;
}

struct pnet_expr *pnet_tree_if(struct pnet_parser *p, struct pnet_span span,
    struct pnet_expr *condition, struct pnet_expr *then, struct pnet_expr *otherwise)
{
    int below = taller(taller(condition->height, then), otherwise);
    struct pnet_expr *e = expr_new(p, PNET_EXPR_IF, span, below);
    if (!e) return NULL;
    e->conditional.condition = condition;
    e->conditional.then = then;
    e->conditional.otherwise = otherwise;
    return e;
}

struct pnet_stmt *pnet_tree_assign(struct pnet_parser *p, struct pnet_span span, const char *name,
    struct pnet_span name_span, struct pnet_exprs indices, struct pnet_expr *value)
{
    int count, height;
    struct pnet_expr **items = flatten(p, indices, &count, &height);
    struct pnet_stmt *s = items ? stmt_new(p, PNET_STMT_ASSIGN, span, taller(height, value)) : NULL;
    if (!s) return NULL;
    s->assign.name = name;
    s->assign.name_span = name_span;
    s->assign.indices = items;
    s->assign.index_count = count;
    s->assign.value = value;
    return s;
}

struct pnet_stmt *pnet_tree_for(struct pnet_parser *p, struct pnet_span span, const char *name,
    struct pnet_span name_span, struct pnet_expr *from, struct pnet_expr *to,
    struct pnet_stmts body)
{
    int below = tallest_stmt(taller(from->height, to), body);
    struct pnet_stmt *s = stmt_new(p, PNET_STMT_FOR, span, below);
    if (!s) return NULL;
    s->loop.name = name;
    s->loop.name_span = name_span;
    s->loop.from = from;
    s->loop.to = to;
    s->loop.body = body.first;
    return s;
}

struct pnet_stmt *pnet_tree_branch(struct pnet_parser *p, struct pnet_span span,
    struct pnet_expr *condition, struct pnet_stmts then, struct pnet_stmts otherwise)
{
    int below = tallest_stmt(tallest_stmt(condition->height, then), otherwise);
    struct pnet_stmt *s = stmt_new(p, PNET_STMT_IF, span, below);
    if (!s) return NULL;
    s->conditional.condition = condition;
    s->conditional.then = then.first;
    s->conditional.otherwise = otherwise.first;
    return s;
}

struct pnet_stmt *pnet_tree_return(
    struct pnet_parser *p, struct pnet_span span, struct pnet_expr *value)
{
    struct pnet_stmt *s = stmt_new(p, PNET_STMT_RETURN, span, value->height);
    if (s) s->value = value;
    return s;
}

struct pnet_field_decl *pnet_tree_field_decl(struct pnet_parser *p, const char *name,
    struct pnet_span name_span, const char *type, struct pnet_span type_span)
{
    struct pnet_field_decl *f = node_new(p, name_span, sizeof *f, 1);
    if (!f) return NULL;
    f->name = name;
    f->name_span = name_span;
    f->type = type;
    f->type_span = type_span;
    return f;
}

struct pnet_param_decl *pnet_tree_param_decl(
    struct pnet_parser *p, const char *name, struct pnet_span name_span, struct pnet_expr *value)
{
    struct pnet_param_decl *d = node_new(p, name_span, sizeof *d, 1);
    if (!d) return NULL;
    d->name = name;
    d->name_span = name_span;
    d->value = value;
    return d;
}

struct pnet_item *pnet_tree_item(struct pnet_parser *p, enum pnet_item_kind kind,
    struct pnet_span span, const char *name, struct pnet_span name_span)
{
    struct pnet_item *i = node_new(p, span, sizeof *i, 1);
    if (!i) return NULL;
    i->kind = kind;
    i->span = span;
    i->name = name;
    i->name_span = name_span;
    return i;
}
