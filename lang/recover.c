/* Finds the token at which parsing continues after a syntax error: the next line start outside of brackets, a keyword, or a
   closing brace. The grammar has `error SYNC` in every list; SYNC is sent after the skipped tokens. */
#include "lang/internal.h"
#include "parser.h"

#include <assert.h>

static int kind_at(const struct pnet_parser *p, size_t i)
{
    return p->tokens.items[i].kind;
}

static bool first_on_line(const struct pnet_parser *p, size_t i)
{
    return p->tokens.items[i].flags & PNET_TOKEN_FIRST_ON_LINE;
}

static bool is_opening(int kind)
{
    return kind == TOKEN_LPAREN || kind == TOKEN_LBRACKET || kind == TOKEN_LBRACE;
}

static bool closes(int opening, int kind)
{
    return (opening == TOKEN_LPAREN && kind == TOKEN_RPAREN) ||
           (opening == TOKEN_LBRACKET && kind == TOKEN_RBRACKET) ||
           (opening == TOKEN_LBRACE && kind == TOKEN_RBRACE);
}

static void too_deep(struct pnet_parser *p, struct pnet_span span)
{
    if (!p->all->stopped)
        pnet_diag_help(pnet_diag_new(p->all->diags, PNET_ERROR, span, "this is nested too deeply"),
            "the limit is %d", PNET_MAX_NESTING);
    p->all->stopped = true;
}

static void track_brackets(struct pnet_parser *p, size_t i)
{
    int kind = kind_at(p, i);
    p->depth_before = p->depth;
    if (p->depth && closes(kind_at(p, p->open[p->depth - 1]), kind)) {
        p->depth--;
    } else if (is_opening(kind)) {
        if (p->depth == PNET_MAX_NESTING)
            too_deep(p, p->tokens.items[i].span);
        else
            p->open[p->depth++] = i;
    }
}

int pnet_tree_lex(union pnet_value *value, struct pnet_span *span, struct pnet_parser *p)
{
    uint32_t here = p->next < p->tokens.count ? p->tokens.items[p->next].span.begin : 0;
    *span = (struct pnet_span){p->file, here, here};
    if (p->start) {
        int kind = p->start;
        p->start = 0;
        return kind;
    }
    if (p->synthetic) {
        int kind = p->synthetic;
        p->synthetic = 0;
        return kind;
    }
    if (p->closers) {
        p->closers--;
        p->depth--;
        return TOKEN_RBRACE;
    }
    if (p->next == p->tokens.count) return 0;
    track_brackets(p, p->next);
    if (p->all->stopped) return 0;
    const struct pnet_token *t = &p->tokens.items[p->next++];
    *value = t->value;
    *span = t->span;
    return t->kind;
}

void pnet_tree_error(const struct pnet_span *span, struct pnet_parser *p, const char *message)
{
    (void)message;
    too_deep(p, *span);
}

static bool is_item_keyword(int kind)
{
    return kind >= TOKEN_INCLUDE && kind <= TOKEN_METRIC;
}

/* Tells whether a statement may begin at `i`: not after a token that still needs an operand. */
static bool may_begin(const struct pnet_parser *p, size_t i)
{
    if (i == 0) return true;
    int before = kind_at(p, i - 1);
    return pnet_token_ends_operand(before) || before == TOKEN_LBRACE || before == TOKEN_RBRACE;
}

enum pnet_level pnet_recover_level(const struct pnet_parser *p, int depth, int *braces)
{
    while (depth && kind_at(p, p->open[depth - 1]) != TOKEN_LBRACE) depth--;
    *braces = depth;
    if (!depth) return PNET_LEVEL_FILE;
    size_t brace = p->open[depth - 1];
    bool fields = brace >= 2 && kind_at(p, brace - 2) == TOKEN_INPUT;
    return fields ? PNET_LEVEL_FIELDS : PNET_LEVEL_BODY;
}

bool pnet_recover_swallowed(const struct pnet_parser *p, size_t at, int depth, size_t *start)
{
    int braces;
    bool fields = pnet_recover_level(p, depth, &braces) == PNET_LEVEL_FIELDS;
    if (kind_at(p, at) != (fields ? TOKEN_COLON : TOKEN_ASSIGN)) return false;
    size_t i = at;
    while (i > p->resumed && !first_on_line(p, i)) i--;
    if (i <= p->resumed || i == at || kind_at(p, i) != TOKEN_NAME || may_begin(p, i)) return false;
    if (i + 1 != at && kind_at(p, i + 1) != TOKEN_LBRACKET) return false;
    *start = i;
    return true;
}

/* Returns the bytes before the first token of the line of token `i`. */
static uint32_t line_indent(const struct pnet_parser *p, size_t i)
{
    while (i && !first_on_line(p, i)) i--;
    const char *text = pnet_sources_get(p->all->sources, p->file)->text;
    uint32_t begin = p->tokens.items[i].span.begin, at = begin;
    while (at && text[at - 1] != '\n') at--;
    return begin - at;
}

bool pnet_recover_outside(const struct pnet_parser *p, size_t i, int depth)
{
    int braces;
    pnet_recover_level(p, depth, &braces);
    if (!braces || kind_at(p, i) == TOKEN_END) return true;
    return first_on_line(p, i) && line_indent(p, i) <= line_indent(p, p->open[braces - 1]);
}

/* Returns false if memory is out. Done once for a file, so that a line with many errors is not searched for each. */
static bool make_stops(struct pnet_parser *p)
{
    if (p->stops) return true;
    p->stops = pnet_arena_array(p->all->arena, p->tokens.count, sizeof *p->stops);
    for (size_t i = p->tokens.count; p->stops && i-- > 0;) {
        int kind = kind_at(p, i);
        bool stop = kind == TOKEN_END || kind == TOKEN_LBRACE || kind == TOKEN_RBRACE ||
                    first_on_line(p, i);
        p->stops[i] = stop ? (uint32_t)i : p->stops[i + 1];
    }
    return p->stops != NULL;
}

/* Tells whether the error was in the head of a loop, a branch, a net or a block: then its body is still parsed. A body must
   begin on the line of the error, or on the next. */
static bool find_body(struct pnet_parser *p, size_t at, enum pnet_level level, size_t *body)
{
    bool head = false;
    for (size_t i = at; !head && i-- > p->resumed;) {
        int kind = kind_at(p, i);
        bool branch =
            kind == TOKEN_IF && (may_begin(p, i) || (i > 1 && kind_at(p, i - 1) == TOKEN_ELSE &&
                                                        kind_at(p, i - 2) == TOKEN_RBRACE));
        if (level == PNET_LEVEL_BODY)
            head = branch || kind == TOKEN_FOR;
        else
            head = kind == TOKEN_NET || kind == TOKEN_BLOCK;
        if (!head && (kind == TOKEN_LBRACE || kind == TOKEN_RBRACE || kind == TOKEN_RETURN ||
                         kind == TOKEN_FOR || is_item_keyword(kind)))
            return false;
    }
    if (!head || level == PNET_LEVEL_FIELDS) return false;
    if (!make_stops(p)) return false;
    *body = p->stops[at];
    return kind_at(p, *body) == TOKEN_LBRACE;
}

/* The tokens skipped since an error, and the place of the error. */
struct skip {
    const struct pnet_parser *p;
    size_t from;
    enum pnet_level level;
    int depth;  /* of the open brackets at `from` */
    int round;  /* open since the innermost open brace, without those in `braces` */
    int braces; /* opened since `from` */
};

/* Tells whether parsing can continue at `i`, outside of braces opened since the error. */
static bool resumes(const struct skip *s, size_t i)
{
    const struct pnet_parser *p = s->p;
    int kind = kind_at(p, i);
    if (kind == TOKEN_END) return true;
    int next = kind_at(p, i + 1);
    bool body = s->level == PNET_LEVEL_BODY;
    if (kind == TOKEN_RBRACE) return s->level != PNET_LEVEL_FILE;
    bool line = first_on_line(p, i) && may_begin(p, i);
    if (is_item_keyword(kind) && s->level == PNET_LEVEL_FILE)
        return next == TOKEN_NAME || next == TOKEN_STRING;
    if (body && (kind == TOKEN_FOR || kind == TOKEN_RETURN)) return true;
    /* A statement begins inside of brackets: they were never closed. */
    if (kind == TOKEN_NAME) return line && (!s->round || next == TOKEN_ASSIGN);
    if (body && kind == TOKEN_IF) return line && !s->round;
    /* A token that does not belong here is an error of its own, except at `from`, where that error was reported. */
    bool foreign =
        is_item_keyword(kind) || kind == TOKEN_FOR || kind == TOKEN_RETURN || kind == TOKEN_IF;
    return foreign && line && !s->round && i > s->from;
}

/* Returns the token at which to continue, `from` or a later one. */
static size_t find_resume(struct skip s)
{
    for (size_t i = s.from;; i++) {
        int kind = kind_at(s.p, i);
        if (kind == TOKEN_END) return i;
        if (is_item_keyword(kind) && first_on_line(s.p, i) && pnet_recover_outside(s.p, i, s.depth))
            return i;
        if (!s.braces && resumes(&s, i)) return i;
        if (kind == TOKEN_LBRACE) s.braces++;
        if (kind == TOKEN_RBRACE && s.braces) s.braces--;
        if (s.braces) continue;
        if (kind == TOKEN_LPAREN || kind == TOKEN_LBRACKET) s.round++;
        if ((kind == TOKEN_RPAREN || kind == TOKEN_RBRACKET) && s.round) s.round--;
    }
}

/* Returns the token with which the statement that fails at `at` begins, or an earlier one. */
static size_t find_begin(const struct pnet_parser *p, size_t at, int depth, int braces)
{
    size_t i = depth > braces ? p->open[braces] : at;
    while (i > p->resumed) {
        i--;
        int kind = kind_at(p, i);
        if (kind == TOKEN_LBRACE || kind == TOKEN_RBRACE) return i;
        if (is_item_keyword(kind) || kind == TOKEN_FOR || (first_on_line(p, i) && may_begin(p, i)))
            return i;
    }
    return i;
}

/* Keeps the names that the tokens [begin, end) may declare or assign: the tree lacks them. */
static void keep_lost(struct pnet_parser *p, size_t begin, size_t end)
{
    struct pnet_parse *all = p->all;
    for (size_t i = begin > p->lost ? begin : p->lost; i < end; i++) {
        if (kind_at(p, i) != TOKEN_NAME) continue;
        int before = i ? kind_at(p, i - 1) : TOKEN_END, next = kind_at(p, i + 1);
        bool declares = first_on_line(p, i) || pnet_token_is_keyword(before) ||
                        before == TOKEN_LBRACE || before == TOKEN_RBRACE || next == TOKEN_ASSIGN ||
                        next == TOKEN_COLON || next == TOKEN_LBRACKET;
        struct pnet_lost_name *lost = declares ? pnet_arena_alloc(all->arena, sizeof *lost) : NULL;
        if (!lost) continue;
        *lost = (struct pnet_lost_name){p->tokens.items[i].value.text, all->lost};
        all->lost = lost;
    }
    if (end > p->lost) p->lost = end;
}

/* Returns the token behind the body that begins with the brace at `i`. */
static size_t body_end(const struct pnet_parser *p, size_t i)
{
    for (int open = 0; kind_at(p, i) != TOKEN_END; i++) {
        if (kind_at(p, i) == TOKEN_LBRACE) open++;
        if (kind_at(p, i) == TOKEN_RBRACE && --open == 0) return i + 1;
    }
    return i;
}

void pnet_recover(struct pnet_parser *p, uint64_t expected)
{
    if (p->all->stopped) return;
    /* Tokens are made up only where they fit, so the misfit is a real one. */
    assert(p->next > 0 && !p->synthetic && !p->closers);
    size_t at = p->next - 1, target;
    int depth = p->depth_before, braces;
    struct pnet_mistake mistake = {.p = p, .at = at, .expected = expected, .depth = depth};
    pnet_mistake_report(&mistake);

    enum pnet_level level = pnet_recover_level(p, depth, &braces);
    bool again = p->failed == at + 1; /* it did not fit where it should have: skip it */
    p->failed = at + 1;
    p->synthetic = TOKEN_SYNC;
    if (again && kind_at(p, at) == TOKEN_END) {
        p->all->stopped = true;
        return;
    }
    if (!again && pnet_recover_swallowed(p, at, depth, &target)) {
        p->next = target;
    } else if (!again && find_body(p, at, level, &target)) {
        p->synthetic = TOKEN_BODY;
        p->next = target;
    } else {
        struct skip skip = {.p = p,
            .from = again ? at + 1 : at,
            .level = level,
            .depth = depth,
            .round = depth - braces};
        p->next = target = find_resume(skip);
        int kind = kind_at(p, target);
        if (target == at && (kind == TOKEN_END || is_item_keyword(kind))) p->closers = braces;
    }
    size_t behind = p->synthetic == TOKEN_BODY ? body_end(p, target) : target;
    keep_lost(p, find_begin(p, at, depth, braces), behind);
    p->depth = braces;
    p->resumed = target;
}
