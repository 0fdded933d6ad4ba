/* Messages of syntax errors: the token found, the tokens expected, and help for usual mistakes. */
#include "lang/internal.h"
#include "parser.h"

#include <stdio.h>
#include <string.h>

#define BIT(name) ((uint64_t)1 << (TOKEN_##name - TOKEN_END))

enum { SHOWN = 40, MAX_PHRASES = 5 };

static const uint64_t statement_words = BIT(FOR) | BIT(RETURN) | BIT(IF);
static const uint64_t item_words = BIT(INCLUDE) | BIT(PARAM) | BIT(CONST) | BIT(INPUT) |
                                   BIT(BLOCK) | BIT(NET) | BIT(LOSS) | BIT(METRIC);
static const uint64_t comparisons = BIT(EQ) | BIT(NE) | BIT(LT) | BIT(LE) | BIT(GT) | BIT(GE);
static const uint64_t arithmetic = BIT(PLUS) | BIT(MINUS) | BIT(STAR) | BIT(SLASH) | BIT(PERCENT);
static const uint64_t operand_starts = BIT(NAME) | BIT(NUMBER) | BIT(STRING) | BIT(LPAREN) |
                                       BIT(LBRACKET) | BIT(MINUS) | BIT(NOT) | BIT(IF);

static int kind_at(const struct pnet_mistake *m, size_t i)
{
    return m->p->tokens.items[i].kind;
}

/* Returns the kind of the token `back` before the misfit; END if there is none. */
static int kind_before(const struct pnet_mistake *m, size_t back)
{
    return m->at >= back ? kind_at(m, m->at - back) : TOKEN_END;
}

static struct pnet_span span_at(const struct pnet_mistake *m, size_t i)
{
    return m->p->tokens.items[i].span;
}

static bool first_on_line(const struct pnet_mistake *m, size_t i)
{
    return m->p->tokens.items[i].flags & PNET_TOKEN_FIRST_ON_LINE;
}

static const char *source_text(const struct pnet_mistake *m, struct pnet_span span)
{
    return pnet_sources_get(m->p->all->sources, span.file)->text + span.begin;
}

static int shown_length(struct pnet_span span)
{
    return span.end - span.begin > SHOWN ? SHOWN : (int)(span.end - span.begin);
}

static bool expects(const struct pnet_mistake *m, uint64_t any)
{
    return (m->expected & any) != 0;
}

static bool found(const struct pnet_mistake *m, uint64_t any)
{
    return ((uint64_t)1 << (kind_at(m, m->at) - TOKEN_END)) & any;
}

/* Describes the misfit as it is written in the text. */
static void describe_found(const struct pnet_mistake *m, char *out, size_t size)
{
    struct pnet_span span = span_at(m, m->at);
    int length = shown_length(span), kind = kind_at(m, m->at);
    const char *text = source_text(m, span);
    if (kind == TOKEN_END) {
        snprintf(out, size, "%s", m->p->expr_alone ? "end" : "end of the file");
        return;
    }
    if (kind == TOKEN_STRING) {
        snprintf(out, size, "text in quotes");
        return;
    }
    snprintf(out, size, "'%.*s%s'", length, text, span.end - span.begin > SHOWN ? ".." : "");
}

/* Describes the expected tokens, most of them in named groups. */
struct phrases {
    const char *items[64];
    int count;
};

static void phrase(struct phrases *out, const char *text)
{
    out->items[out->count++] = text;
}

static void describe_expected(const struct pnet_mistake *m, struct phrases *out)
{
    uint64_t set = m->expected;
    /* After a whole operand any operator fits, and after a whole statement any statement: the message does not list them. */
    if (set & (BIT(PLUS) | BIT(ARROW)) && !(set & BIT(NUMBER))) {
        if (set & (BIT(RETURN) | BIT(PARAM) | BIT(END)))
            set &= found(m, BIT(END) | item_words) ? BIT(RBRACE) : 0;
        set &= ~(comparisons | arithmetic | BIT(ARROW) | BIT(LBRACKET) | BIT(LPAREN) | BIT(DOT) |
                 BIT(AND) | BIT(OR) | BIT(ASSIGN));
    }
    if (set & BIT(NUMBER)) {
        phrase(out, set & BIT(MINUS) ? "an expression" : "a count");
        set &= ~operand_starts;
    }
    if (set & BIT(RETURN)) {
        phrase(out, "a statement");
        set &= ~(statement_words | BIT(NAME));
    }
    if (set & BIT(PARAM)) {
        phrase(out, "a declaration");
        set &= ~(item_words | BIT(NAME) | BIT(END));
    }
    for (int kind = TOKEN_END; kind <= TOKEN_DOT; kind++)
        if (set >> (kind - TOKEN_END) & 1) phrase(out, pnet_token_text(kind));
}

static void describe(const struct pnet_mistake *m, char *out, size_t size)
{
    char what[SHOWN + 8];
    describe_found(m, what, sizeof what);
    int n = snprintf(out, size, "unexpected %s", what);
    struct phrases p = {.count = 0};
    describe_expected(m, &p);
    if (p.count > MAX_PHRASES) return;
    for (int i = 0; i < p.count; i++) {
        const char *separator = i == 0 ? ", expected " : i == p.count - 1 ? " or " : ", ";
        n += snprintf(out + n, size - (size_t)n, "%s%s", separator, p.items[i]);
    }
}

/* Tells whether token `i` is a unit that should have been written together with its number, as in `5 cm`. */
static bool is_stray_unit(const struct pnet_mistake *m, size_t i)
{
    static const char *const names[] = {"mm", "cm", "m", "km", "deg", "rad"};
    if (i == 0 || kind_at(m, i) != TOKEN_NAME || kind_at(m, i - 1) != TOKEN_NUMBER) return false;
    const struct pnet_token *t = &m->p->tokens.items[i];
    if (first_on_line(m, i) || t[-1].value.number.unit != PNET_UNIT_NONE) return false;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (!strcmp(t->value.text, names[k])) return true;
    return false;
}

/* Tells whether the misfit, or the token before it, is a word of the language used as a name. */
static bool is_reserved_name(const struct pnet_mistake *m, size_t *word)
{
    int kind = kind_at(m, m->at);
    bool before = kind == TOKEN_ASSIGN && m->at > 0 && m->expected == BIT(NAME);
    *word = m->at - (before ? 1 : 0);
    if (before) return pnet_token_is_keyword(kind_at(m, *word));
    if (!pnet_token_is_keyword(kind) || !expects(m, BIT(NAME))) return false;
    if (expects(m, BIT(NUMBER)) && found(m, BIT(AND) | BIT(OR) | BIT(THEN) | BIT(ELSE)))
        return false;
    if (kind_at(m, m->at + 1) == TOKEN_ASSIGN) return true;
    return !first_on_line(m, m->at) && !expects(m, BIT(RETURN) | BIT(PARAM));
}

/* Returns help that depends only on the expected or the found token. */
static const char *plain_help(const struct pnet_mistake *m)
{
    int braces;
    bool level_fields =
        pnet_recover_level(m->p, m->depth, &braces) == PNET_LEVEL_FIELDS && braces == m->depth;
    bool after_pipe = expects(m, BIT(ARROW)) && !expects(m, BIT(PLUS));
    if (found(m, item_words) && m->depth && !pnet_recover_outside(m->p, m->at, m->depth))
        return "write declarations outside of braces";
    if (expects(m, BIT(LBRACE)) && expects(m, BIT(COLON)))
        return "write input NAME { FIELD : TYPE } for a cloud, input NAME : TYPE for anything else";
    if (level_fields && found(m, BIT(COMMA))) return "write fields without commas";
    if (found(m, BIT(EQ)) && expects(m, BIT(ASSIGN)) && !expects(m, BIT(PLUS)))
        return "assign with =";
    if (found(m, BIT(ASSIGN)) && expects(m, BIT(EQ))) return "compare with ==";
    if (found(m, comparisons) && expects(m, BIT(PLUS) | BIT(AND)) && !after_pipe)
        return "comparisons do not chain: write a < b and b < c";
    if (found(m, arithmetic | comparisons | BIT(AND) | BIT(OR)) && after_pipe)
        return "put the pipe in parentheses to compute with it: (x -> f) + y";
    if (expects(m, BIT(ELSE)) && !found(m, BIT(LBRACE)) && expects(m, BIT(ARROW)))
        return "an `if` used as a value needs `else`: if c then a else b";
    if (expects(m, BIT(THEN))) return "in an expression: if c then a else b";
    if (found(m, BIT(COLON)) && kind_before(m, 1) == TOKEN_NAME && expects(m, BIT(ASSIGN)) &&
        expects(m, BIT(RPAREN)))
        return "a named argument is written name=value";
    if (found(m, BIT(NAME)) && m->expected == BIT(ASSIGN) && kind_before(m, 2) == TOKEN_FOR)
        return "write for i = a..b { }";
    if (found(m, BIT(LPAREN) | BIT(ARROW)) && m->expected == (BIT(ASSIGN) | BIT(LBRACKET)))
        return "a result needs a name: y = ..";
    if (found(m, BIT(NAME) | BIT(NUMBER) | BIT(LPAREN)) && kind_before(m, 1) == TOKEN_NUMBER &&
        m->p->tokens.items[m->at - 1].value.number.unit == PNET_UNIT_PERCENT)
        return "a % directly after a number is percent; for the remainder, leave a space: 7 % 2";
    return NULL;
}

/* Points at an open bracket if the misfit shows that its closing bracket was forgotten. */
static void add_bracket(const struct pnet_mistake *m, struct pnet_diag *d)
{
    bool closer = found(m, BIT(RPAREN) | BIT(RBRACKET) | BIT(RBRACE));
    size_t open = m->depth ? m->p->open[m->depth - 1] : 0;
    int opening = m->depth ? kind_at(m, open) : TOKEN_END;
    bool brace = found(m, BIT(RBRACE));
    if (closer && (opening == TOKEN_END || (opening == TOKEN_LBRACE && !brace))) {
        pnet_diag_label(d, "nothing is open here that it closes");
        return;
    }
    size_t start;
    bool swallowed = pnet_recover_swallowed(m->p, m->at, m->depth, &start);
    bool beyond = found(m, BIT(END) | item_words);
    if (opening == TOKEN_LBRACE) {
        beyond = beyond && expects(m, BIT(RBRACE)) && pnet_recover_outside(m->p, m->at, m->depth);
    } else {
        beyond = beyond || closer || found(m, BIT(LBRACE)) || first_on_line(m, m->at) || swallowed;
        beyond = beyond && expects(m, BIT(RPAREN) | BIT(RBRACKET));
    }
    if (beyond) pnet_diag_second(d, span_at(m, open), "opened here");
}

/* Tells whether a bracket, rather than a value, is missing after token `i`. */
static bool wants_closing(const struct pnet_mistake *m, size_t i)
{
    int kind = kind_at(m, i);
    return kind == TOKEN_LPAREN || kind == TOKEN_LBRACKET || kind == TOKEN_COMMA;
}

void pnet_mistake_report(const struct pnet_mistake *m)
{
    struct pnet_diags *diags = m->p->all->diags;
    const struct pnet_token *t = &m->p->tokens.items[m->at];
    /* Skipped characters at this place have been reported already. */
    if (t->flags & PNET_TOKEN_AFTER_BAD) return;
    if (m->at && t[-1].flags & PNET_TOKEN_AFTER_BAD) return;

    size_t start, word;
    if (pnet_recover_swallowed(m->p, m->at, m->depth, &start) && !wants_closing(m, start - 1)) {
        struct pnet_span span = span_at(m, start - 1);
        pnet_diag_new(diags, PNET_ERROR, span, "expected an expression after %s",
            pnet_token_text(kind_at(m, start - 1)));
        return;
    }
    size_t unit = is_stray_unit(m, m->at) ? m->at : m->at - 1;
    if (m->at && is_stray_unit(m, unit)) {
        struct pnet_span number = span_at(m, unit - 1), span = span_at(m, unit);
        struct pnet_diag *d = pnet_diag_new(
            diags, PNET_ERROR, span, "unexpected '%.*s'", shown_length(span), source_text(m, span));
        pnet_diag_help(d, "a unit is written together with its number: %.*s%.*s",
            shown_length(number), source_text(m, number), shown_length(span), source_text(m, span));
        return;
    }
    char message[512];
    describe(m, message, sizeof message);
    struct pnet_diag *d = pnet_diag_new(diags, PNET_ERROR, t->span, "%s", message);
    if (is_reserved_name(m, &word)) {
        struct pnet_span span = span_at(m, word);
        bool nameless =
            word != m->at && (kind_at(m, word) == TOKEN_LOSS || kind_at(m, word) == TOKEN_METRIC);
        if (nameless)
            pnet_diag_help(d, "name it: %.*s NAME = ..", shown_length(span), source_text(m, span));
        else
            pnet_diag_help(d, "'%.*s' is a reserved word: choose another name", shown_length(span),
                source_text(m, span));
    } else {
        const char *help = plain_help(m);
        if (help) pnet_diag_help(d, "%s", help);
    }
    add_bracket(m, d);
}
