/* textDocument/completion: what may stand at a place, with what is known of it. */
#include "compiler/lsp/context.h"
#include "compiler/lsp/internal.h"
#include "compiler/op_page.h"

#include <string.h>

/* CompletionItemKind of the protocol. */
enum {
    ITEM_FUNCTION = 3,
    ITEM_FIELD = 5,
    ITEM_VARIABLE = 6,
    ITEM_CLASS = 7,
    ITEM_MODULE = 9,
    ITEM_PROPERTY = 10,
    ITEM_KEYWORD = 14,
    ITEM_ENUM_MEMBER = 20,
    ITEM_CONSTANT = 21
};

struct completion {
    struct server *server;
    struct pnet_arena arena;
    struct context c;
    const struct pnet_index *x;
    const char *definition; /* the name of the block or net around the place; NULL: none */
    struct map done;        /* names that are listed */
    struct pnet_json *j;
};

/* `detail`, `doc`: NULL where there is none. `doc` is Markdown. */
static void put(
    struct completion *m, const char *label, int kind, const char *detail, const char *doc)
{
    if (pnet_map_find(&m->done, label)) return;
    pnet_map_get(&m->arena, &m->done, label, 1);
    pnet_json_begin(m->j, NULL, '{');
    pnet_json_string(m->j, "label", label);
    pnet_json_int(m->j, "kind", kind);
    if (detail) pnet_json_string(m->j, "detail", detail);
    if (doc && *doc) {
        pnet_json_begin(m->j, "documentation", '{');
        pnet_json_string(m->j, "kind", m->server->markdown_completion ? "markdown" : "plaintext");
        pnet_json_string(m->j, "value", doc);
        pnet_json_end(m->j, '}');
    }
    pnet_json_end(m->j, '}');
}

static void put_words(struct completion *m, const char *const *words, int kind)
{
    for (; *words; words++) put(m, *words, kind, NULL, NULL);
}

static bool takes_pipe(const struct pnet_op *op)
{
    enum pnet_arg_type t = op->args[0].type;
    return op->args[0].name && (t == PNET_ARG_VALUE || t == PNET_ARG_LABEL ||
                                   t == PNET_ARG_VALUES || t == PNET_ARG_ANY || t == PNET_ARG_POSE);
}

/* What a declaration begins with, on one line. */
static const char *declaration(struct completion *m, const struct symbol *s)
{
    struct pnet_span span = s->declaration;
    const struct pnet_source *source = pnet_sources_get(m->x->sources, span.file);
    if (!source || span.end > source->length || span.end <= span.begin) return NULL;
    size_t length = strcspn(source->text + span.begin, "\r\n");
    if (length > span.end - span.begin) length = span.end - span.begin;
    return pnet_arena_copy(&m->arena, source->text + span.begin, length);
}

static void put_calls(struct completion *m, bool piped)
{
    for (int i = 0; i < m->x->symbol_count; i++) {
        const struct symbol *s = &m->x->symbols[i];
        if (s->kind == SYMBOL_BLOCK || s->kind == SYMBOL_NET)
            put(m, s->name, s->kind == SYMBOL_BLOCK ? ITEM_FUNCTION : ITEM_CLASS, declaration(m, s),
                s->doc);
    }
    for (int i = 0; i < pnet_op_count; i++)
        if (!piped || takes_pipe(pnet_ops[i]))
            put(m, pnet_ops[i]->name, ITEM_FUNCTION, pnet_ops[i]->summary, pnet_ops[i]->doc);
    const struct pnet_builtin_info *b;
    for (int i = 0; !piped && (b = pnet_builtin_info(i)); i++)
        put(m, b->name, ITEM_FUNCTION, b->synopsis, b->meaning);
}

/* A name with what it was, or how it is declared. */
static void put_name(struct completion *m, const struct symbol *s)
{
    bool constant = s->kind == SYMBOL_PARAM || s->kind == SYMBOL_CONST;
    int kind = constant ? ITEM_CONSTANT : s->kind == SYMBOL_INPUT ? ITEM_MODULE : ITEM_VARIABLE;
    const char *value = pnet_compilation_value(m->x->compilation, s->declared);
    put(m, s->name, kind, value ? value : declaration(m, s), s->doc);
}

static bool is_local(const struct completion *m, const struct symbol *s)
{
    bool value = s->kind == SYMBOL_VALUE || s->kind == SYMBOL_LOOP || s->kind == SYMBOL_PARAMETER;
    return value && s->item && m->definition && strcmp(s->item->name, m->definition) == 0;
}

/* The name of a lexeme, in the arena; NULL: memory is out. */
static const char *name_of(struct completion *m, const struct pnet_lexeme *l)
{
    return pnet_arena_copy(&m->arena, m->c.text + l->begin, l->end - l->begin);
}

/* Names of a block or net from its text, which may lack what the tree needs. */
static void put_written(struct completion *m)
{
    const struct context *c = &m->c;
    const struct pnet_lexeme *all = c->lexemes.items;
    int round = 0;
    for (size_t i = c->definition + 1; i < c->at; i++) {
        if (all[i].kind == '(') round++;
        if (all[i].kind == ')' && round) round--;
        if (all[i].kind != PNET_LEXEME_NAME || i + 1 >= c->lexemes.count) continue;
        char before = all[i - 1].kind, next = all[i + 1].kind;
        bool head = round && i < c->definition + 3;
        bool assigned = !round && all[i].first_on_line && (next == '=' || next == '[');
        bool inline_ = !round && before == '{' && next == '=';
        if (!head && !assigned && !inline_ && !pnet_lexeme_is(c, &all[i - 1], "for")) continue;
        const char *name = name_of(m, &all[i]);
        if (name) put(m, name, ITEM_VARIABLE, NULL, NULL);
    }
}

static void put_values(struct completion *m)
{
    for (int i = 0; i < m->x->symbol_count; i++)
        if (is_local(m, &m->x->symbols[i])) put_name(m, &m->x->symbols[i]);
    if (m->definition) put_written(m);
    if (m->definition && pnet_lexeme_is(&m->c, &m->c.lexemes.items[m->c.definition], "block"))
        put(m, "in", ITEM_VARIABLE, "the input of the block", NULL);
    for (int i = 0; i < m->x->symbol_count; i++) {
        const struct symbol *s = &m->x->symbols[i];
        bool global = s->kind == SYMBOL_PARAM || s->kind == SYMBOL_CONST ||
                      s->kind == SYMBOL_INPUT || (s->kind == SYMBOL_VALUE && !s->item);
        if (global) put_name(m, s);
    }
}

static void put_expression(struct completion *m)
{
    static const char *const words[] = {"if", "not", NULL}, *const values[] = {
                                                                "yes", "no", "sample", NULL};
    put_values(m);
    put_words(m, values, ITEM_CONSTANT);
    put_calls(m, false);
    put_words(m, words, ITEM_KEYWORD);
}

/* "mean|max|sum" */
static void put_choices(struct completion *m, const struct pnet_arg *arg)
{
    for (const char *at = arg->choices; at && *at;) {
        size_t length = strcspn(at, "|");
        const char *choice = pnet_arena_copy(&m->arena, at, length);
        if (choice)
            put(m, choice, ITEM_ENUM_MEMBER,
                arg->standard && strcmp(arg->standard, choice) == 0 ? "default" : NULL, NULL);
        at += length + (at[length] == '|');
    }
}

/* The values that one argument of a layer takes. */
static void put_argument_values(struct completion *m, const struct pnet_arg *arg)
{
    static const char *const truth[] = {"yes", "no", NULL};
    if (arg && arg->type == PNET_ARG_CHOICE)
        put_choices(m, arg);
    else if (arg && arg->type == PNET_ARG_BOOL)
        put_words(m, truth, ITEM_CONSTANT);
    else
        put_expression(m);
}

/* Was `name=` written in the call before the place? */
static bool is_given(struct completion *m, const char *name)
{
    const struct pnet_lexeme *all = m->c.lexemes.items;
    int depth = 0;
    for (size_t i = m->c.arguments; i + 1 < m->c.at; i++) {
        if (all[i].kind == '(' || all[i].kind == '[') depth++;
        if (all[i].kind == ')' || all[i].kind == ']') depth--;
        if (!depth && all[i].kind == PNET_LEXEME_NAME && all[i + 1].kind == '=' &&
            pnet_lexeme_is(&m->c, &all[i], name))
            return true;
    }
    return false;
}

static void put_argument_name(
    struct completion *m, const char *name, const char *detail, const char *doc)
{
    const char *label = is_given(m, name) ? NULL : pnet_arena_printf(&m->arena, "%s=", name);
    if (label) put(m, label, ITEM_PROPERTY, detail, doc);
}

/* The argument that the next value without a name is for; NULL: none. */
static const struct pnet_arg *positional(const struct completion *m, const struct pnet_op *op)
{
    int at = m->c.position + (m->c.piped && op->args[0].type != PNET_ARG_VALUES);
    for (int i = 0; i <= at && i < PNET_MAX_ARGS && op->args[i].name; i++)
        if (i == at || op->args[i].type == PNET_ARG_VALUES) return &op->args[i];
    return NULL;
}

static void put_op_arguments(struct completion *m, const struct pnet_op *op)
{
    char type[PNET_ARGUMENT_TEXT], help[PNET_ARGUMENT_TEXT];
    const struct pnet_arg *next = positional(m, op);
    for (int i = m->c.piped ? 1 : 0; i < PNET_MAX_ARGS && op->args[i].name; i++)
        put_argument_name(m, op->args[i].name, pnet_argument_type(&op->args[i], type),
            pnet_argument_help(&op->args[i], help));
    if (next && next->type == PNET_ARG_CHOICE) put_choices(m, next);
}

static void put_arguments(struct completion *m)
{
    const char *name = name_of(m, m->c.call);
    const struct pnet_item *item = name ? pnet_index_definition(m->x, name) : NULL;
    const struct pnet_op *op = name && !item ? pnet_op_find(name) : NULL;
    for (const struct pnet_param_decl *p = item ? item->params : NULL; p; p = p->next) {
        const struct pnet_source *source = pnet_sources_get(m->x->sources, p->name_span.file);
        uint32_t end = p->value  ? p->value->span.end
                       : p->type ? p->type_span.end
                                 : p->name_span.end;
        const char *detail = source ? pnet_arena_copy(&m->arena, source->text + p->name_span.begin,
                                          end - p->name_span.begin)
                                    : NULL;
        put_argument_name(m, p->name, detail, NULL);
    }
    if (op) put_op_arguments(m, op);
    if (item || op) put_argument_name(m, "name", "names the weights in place of their path", NULL);
    put_expression(m);
}

static void put_value_of_argument(struct completion *m)
{
    const char *name = name_of(m, m->c.call);
    const struct pnet_op *op =
        name && !pnet_index_definition(m->x, name) ? pnet_op_find(name) : NULL;
    const struct pnet_arg *arg = NULL;
    for (int i = 0; op && i < PNET_MAX_ARGS && op->args[i].name; i++)
        if (pnet_lexeme_is(&m->c, m->c.argument, op->args[i].name)) arg = &op->args[i];
    put_argument_values(m, arg);
}

static void put_fields_of(struct completion *m, const struct pnet_item *input)
{
    for (int i = 0; i < m->x->symbol_count; i++) {
        const struct symbol *s = &m->x->symbols[i];
        if (s->kind == SYMBOL_FIELD && (!input || s->item == input))
            put(m, s->name, ITEM_FIELD, declaration(m, s), s->doc);
    }
}

/* Of the input that the name stands for; of all, where that is not known. */
static void put_fields(struct completion *m)
{
    const char *name = name_of(m, m->c.base), *cloud = NULL;
    if (!name) return;
    for (int i = 0; i < m->x->symbol_count && !cloud; i++) {
        const struct symbol *s = &m->x->symbols[i];
        if (is_local(m, s) && strcmp(s->name, name) == 0)
            cloud = pnet_compilation_cloud(m->x->compilation, s->declared);
    }
    const struct pnet_item *input = pnet_index_input(m->x, cloud ? cloud : name);
    put_fields_of(m, input && input->kind == PNET_ITEM_INPUT ? input : NULL);
}

static void put_wanted(struct completion *m)
{
    static const char *const items[] = {"include", "param", "const", "input", "block", "net",
        "loss", "metric", NULL},
                             *const head[] = {"pnet 1", NULL},
                             *const statements[] = {"for", "if", "else", "return", "out", NULL},
                             *const operators[] = {"and", "or", "then", "else", "per", NULL},
                             *const types[] = {"position", "feature", "class", NULL},
                             *const per[] = {"point", "cloud", NULL},
                             *const pose[] = {"pose", NULL}, *const cloud[] = {"cloud", NULL};
    switch (m->c.wanted) {
    case WANT_NOTHING: break;
    case WANT_ITEM: put_words(m, m->c.at ? items : head, ITEM_KEYWORD); break;
    case WANT_STATEMENT:
        put_words(m, statements, ITEM_KEYWORD);
        put_values(m);
        break;
    case WANT_EXPRESSION: put_expression(m); break;
    case WANT_OPERATOR: put_words(m, operators, ITEM_KEYWORD); break;
    case WANT_STAGE: put_calls(m, true); break;
    case WANT_ARGUMENT: put_arguments(m); break;
    case WANT_VALUE: put_value_of_argument(m); break;
    case WANT_FIELD: put_fields(m); break;
    case WANT_FIELD_TYPE: put_words(m, types, ITEM_KEYWORD); break;
    case WANT_PER: put_words(m, per, ITEM_KEYWORD); break;
    case WANT_INPUT_TYPE: put_words(m, pose, ITEM_KEYWORD); break;
    case WANT_PARAMETER_TYPE: put_words(m, cloud, ITEM_KEYWORD); break;
    }
}

void pnet_lsp_completion(struct server *s, json_t *params, struct reply *r)
{
    struct spot spot;
    if (!pnet_lsp_spot(s, params, r, &spot)) return;
    struct completion m = {.server = s, .x = spot.index, .j = &r->result};
    pnet_json_begin(m.j, NULL, '[');
    bool found = pnet_context_find(
        &m.arena, spot.document->held.text, spot.document->held.length, spot.offset, &m.c);
    if (found && m.c.definition + 1 < m.c.lexemes.count &&
        m.c.lexemes.items[m.c.definition + 1].kind == PNET_LEXEME_NAME)
        m.definition = name_of(&m, &m.c.lexemes.items[m.c.definition + 1]);
    if (found) put_wanted(&m);
    pnet_json_end(m.j, ']');
    s->no_memory |= m.arena.failed;
    pnet_arena_free(&m.arena);
}
