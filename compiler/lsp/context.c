/* Finds what may stand at a place from the pieces of the text before it: the tree has no place for what is being written. */
#include "compiler/lsp/context.h"

#include <string.h>

/* Brackets that are open at the place, by their lexemes. */
struct brackets {
    size_t *open;
    size_t depth;
};

bool pnet_lexeme_is(const struct context *c, const struct pnet_lexeme *l, const char *word)
{
    size_t length = strlen(word);
    return l && l->end - l->begin == length && memcmp(c->text + l->begin, word, length) == 0;
}

/* Lexeme `i` before the place; NULL: there is none. */
static const struct pnet_lexeme *before(const struct context *c, size_t back)
{
    size_t seen = 0;
    for (size_t i = c->at; i-- > 0;)
        if (c->lexemes.items[i].kind != PNET_LEXEME_COMMENT && ++seen == back)
            return &c->lexemes.items[i];
    return NULL;
}

static bool is_kind(const struct pnet_lexeme *l, char kind)
{
    return l && l->kind == kind;
}

/* Statements of the file stand in no bracket: those before them were not closed. */
static bool begins_item(const struct context *c, const struct pnet_lexeme *l)
{
    static const char *const words[] = {
        "include", "param", "const", "input", "block", "net", "loss", "metric"};
    if (l->kind != PNET_LEXEME_KEYWORD || !l->first_on_line) return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (pnet_lexeme_is(c, l, words[i])) return true;
    return false;
}

static void find_brackets(const struct context *c, struct brackets *b)
{
    for (size_t i = 0; i < c->at; i++) {
        const struct pnet_lexeme *l = &c->lexemes.items[i];
        if (begins_item(c, l)) b->depth = 0;
        if (l->kind == '(' || l->kind == '[' || l->kind == '{') b->open[b->depth++] = i;
        char opening = l->kind == ')' ? '(' : l->kind == ']' ? '[' : l->kind == '}' ? '{' : 0;
        /* a closing brace also ends what was not closed inside */
        size_t depth = b->depth;
        while (opening && depth && c->lexemes.items[b->open[depth - 1]].kind != opening) depth--;
        if (opening && depth && (opening == '{' || depth == b->depth)) b->depth = depth - 1;
    }
}

/* The block or net whose body the innermost open brace begins, and the kind of the brace: of an input, or a body. */
static bool find_body(struct context *c, const struct brackets *b, bool *fields)
{
    *fields = false;
    for (size_t d = b->depth; d-- > 0;) {
        size_t i = b->open[d];
        if (c->lexemes.items[i].kind != '{') continue;
        *fields = i >= 2 && pnet_lexeme_is(c, &c->lexemes.items[i - 2], "input");
        if (*fields) return true;
        break;
    }
    for (size_t d = 0; d < b->depth; d++) {
        size_t i = b->open[d];
        if (c->lexemes.items[i].kind != '{') continue;
        while (i-- > 0) {
            const struct pnet_lexeme *l = &c->lexemes.items[i];
            bool definition = pnet_lexeme_is(c, l, "block") || pnet_lexeme_is(c, l, "net");
            if (l->kind == PNET_LEXEME_KEYWORD && definition) {
                c->definition = i;
                return true;
            }
            if (begins_item(c, l)) return false;
        }
        return false;
    }
    return false;
}

static bool ends_operand(const struct pnet_lexeme *l)
{
    return l->kind == PNET_LEXEME_NAME || l->kind == PNET_LEXEME_NUMBER ||
           l->kind == PNET_LEXEME_STRING || l->kind == ')' || l->kind == ']';
}

/* Is the word at `offset`, or what will be written there, the first of its line? */
static bool on_new_line(const struct context *c, const struct pnet_lexeme *last, uint32_t begin)
{
    for (uint32_t i = last ? last->end : 0; i < begin; i++)
        if (c->text[i] == '\n') return true;
    return !last;
}

/* In the brackets of a call: which argument, and is its name written already? */
static void find_argument(struct context *c, size_t bracket)
{
    const struct pnet_lexeme *all = c->lexemes.items, *last = before(c, 1);
    c->arguments = bracket + 1;
    int depth = 0;
    bool named = false, empty = true;
    for (size_t i = bracket + 1; i < c->at; i++) {
        char kind = all[i].kind;
        if (kind == PNET_LEXEME_COMMENT) continue;
        if (kind == '(' || kind == '[') depth++;
        if (kind == ')' || kind == ']') depth--;
        if (depth == 0 && kind == '=') named = true;
        if (depth == 0 && kind == ',') {
            c->position += !named && !empty;
            named = false;
            empty = true;
        } else {
            empty = false;
        }
    }
    if (is_kind(last, '(') || is_kind(last, ',')) {
        c->wanted = WANT_ARGUMENT;
    } else if (is_kind(last, '=') && is_kind(before(c, 2), PNET_LEXEME_NAME) &&
               (is_kind(before(c, 3), '(') || is_kind(before(c, 3), ','))) {
        c->argument = before(c, 2);
        c->wanted = WANT_VALUE;
    }
}

static bool is_one_of(
    const struct context *c, const struct pnet_lexeme *l, const char *const *words)
{
    for (; *words; words++)
        if (pnet_lexeme_is(c, l, *words)) return true;
    return false;
}

static void find_in_input(struct context *c, const struct pnet_lexeme *last)
{
    if (is_kind(last, ':'))
        c->wanted = WANT_FIELD_TYPE;
    else if (is_kind(last, PNET_LEXEME_KEYWORD) && pnet_lexeme_is(c, last, "per"))
        c->wanted = WANT_PER;
    else
        c->wanted = WANT_NOTHING;
}

/* What stands in round brackets: parameters of a declaration, or arguments. */
static void find_in_brackets(struct context *c, size_t bracket, const struct pnet_lexeme *last)
{
    const struct pnet_lexeme *all = c->lexemes.items;
    const struct pnet_lexeme *name = bracket >= 1 ? &all[bracket - 1] : NULL,
                             *head = bracket >= 2 ? &all[bracket - 2] : NULL;
    if (!is_kind(name, PNET_LEXEME_NAME)) return;
    if (is_kind(head, PNET_LEXEME_KEYWORD) &&
        (pnet_lexeme_is(c, head, "block") || pnet_lexeme_is(c, head, "net"))) {
        if (is_kind(last, ':'))
            c->wanted = WANT_PARAMETER_TYPE;
        else if (is_kind(last, '(') || is_kind(last, ','))
            c->wanted = WANT_NOTHING;
        return;
    }
    c->call = name;
    c->piped = is_kind(head, PNET_LEXEME_ARROW);
    find_argument(c, bracket);
}

static void find_wanted(struct context *c, const struct brackets *b, uint32_t begin)
{
    static const char *const declares[] = {"pnet", "include", "param", "const", "input", "block",
        "net", "loss", "metric", "for", NULL};
    const struct pnet_lexeme *last = before(c, 1);
    bool fields, body = find_body(c, b, &fields);
    char innermost = b->depth ? c->lexemes.items[b->open[b->depth - 1]].kind : 0;
    c->wanted = WANT_EXPRESSION;
    if (is_kind(last, PNET_LEXEME_KEYWORD) && is_one_of(c, last, declares)) {
        c->wanted = WANT_NOTHING;
    } else if (is_kind(last, '.')) {
        c->base = before(c, 2);
        c->wanted = is_kind(c->base, PNET_LEXEME_NAME) ? WANT_FIELD : WANT_NOTHING;
    } else if (is_kind(last, PNET_LEXEME_ARROW)) {
        c->wanted = WANT_STAGE;
    } else if (innermost == '{' && fields) {
        find_in_input(c, last);
    } else if (innermost != '(' && innermost != '[' &&
               (!last || last->kind == '{' || last->kind == '}' ||
                   (ends_operand(last) && on_new_line(c, last, begin)))) {
        c->wanted = body ? WANT_STATEMENT : WANT_ITEM;
    } else if (last && (ends_operand(last) || last->kind == '}')) {
        c->wanted = WANT_OPERATOR;
    } else if (innermost == '(') {
        find_in_brackets(c, b->open[b->depth - 1], last);
    } else if (is_kind(last, ':')) {
        c->wanted = WANT_INPUT_TYPE;
    }
}

bool pnet_context_find(
    struct pnet_arena *a, const char *text, size_t length, uint32_t offset, struct context *c)
{
    *c = (struct context){.text = text};
    if (!pnet_lexemes_scan(a, text, length, &c->lexemes)) return false;
    struct pnet_lexeme *all = c->lexemes.items;
    c->definition = c->lexemes.count;
    size_t n = 0;
    while (n < c->lexemes.count && all[n].end < offset) n++;
    c->at = n;
    uint32_t begin = offset;
    if (n < c->lexemes.count && all[n].begin < offset) { /* inside of a piece, or at its end */
        char kind = all[n].kind;
        bool inside = offset < all[n].end;
        bool open = kind == PNET_LEXEME_STRING &&
                    (all[n].end - all[n].begin < 2 || text[all[n].end - 1] != '"');
        if (kind == PNET_LEXEME_COMMENT || kind == PNET_LEXEME_NUMBER || open ||
            (kind == PNET_LEXEME_STRING && inside))
            return true; /* nothing */
        if (kind == PNET_LEXEME_NAME || kind == PNET_LEXEME_KEYWORD)
            begin = all[n].begin;
        else if (!inside)
            c->at = n + 1;
    }
    struct brackets b = {.open = pnet_arena_array(a, c->at + 1, sizeof *b.open)};
    if (!b.open) return false;
    find_brackets(c, &b);
    find_wanted(c, &b, begin);
    return true;
}
