/* Chooses the spaces between tokens by the kinds of tokens and the brackets around them. */
#include "lang/format_internal.h"
#include "parser.h"

/* The bracket around a token, or the file. */
struct frame {
    enum { FRAME_BRACE, FRAME_GROUP, FRAME_CALL, FRAME_PARAMS, FRAME_INDEX } kind;
    bool tight; /* operators have no spaces, because this bracket is in a named argument or index */
    bool named; /* CALL: after `name=`; PARAMS: after `:` */
    bool piped; /* the last operator was `->`: a `*` repeats the stage */
    size_t opening;
};

struct spacer {
    const struct pnet_token *tokens;
    struct pnet_spacing *rows;
    struct frame frames[PNET_MAX_NESTING + 1];
    int depth;   /* index of the innermost frame */
    bool params; /* the next `(` opens the parameters of a block or net */
    bool range;  /* in the head of a loop, `n-1..0` is one thing */
    bool glued;  /* no space between the last token and the next */
};

static bool is_statement_word(int kind)
{
    return kind == TOKEN_NAME || (kind >= TOKEN_INCLUDE && kind <= TOKEN_IF);
}

static bool begins(const struct spacer *s, size_t i)
{
    int before = i ? s->tokens[i - 1].kind : TOKEN_LBRACE;
    bool wanted =
        pnet_token_ends_operand(before) || before == TOKEN_LBRACE || before == TOKEN_RBRACE;
    return wanted && is_statement_word(s->tokens[i].kind) &&
           s->frames[s->depth].kind == FRAME_BRACE;
}

static bool is_tight(const struct spacer *s)
{
    const struct frame *f = &s->frames[s->depth];
    return f->tight || f->kind == FRAME_INDEX || (f->kind == FRAME_CALL && f->named) || s->range;
}

static void open_frame(struct spacer *s, size_t i, int kind, bool operand_before)
{
    struct frame frame = {.opening = i, .tight = kind != TOKEN_LBRACE && is_tight(s)};
    if (kind == TOKEN_LBRACE)
        frame.kind = FRAME_BRACE;
    else if (kind == TOKEN_LPAREN && operand_before)
        frame.kind = s->params ? FRAME_PARAMS : FRAME_CALL;
    else if (kind == TOKEN_LBRACKET && operand_before)
        frame.kind = FRAME_INDEX;
    else
        frame.kind = FRAME_GROUP;
    s->params = false;
    s->frames[++s->depth] = frame;
}

static void close_frame(struct spacer *s, size_t i)
{
    if (s->frames[s->depth].kind == FRAME_BRACE)
        s->rows[s->frames[s->depth].opening].match = (uint32_t)i;
    s->depth--;
}

/* `=`: without spaces for named arguments and for defaults without a type. */
static bool assign_gap(struct frame *f)
{
    if (f->kind == FRAME_CALL) {
        f->named = true;
        return false;
    }
    return f->kind != FRAME_PARAMS || f->named;
}

/* Sets the gap before token `i`, and whether a gap may follow it. */
static void space(struct spacer *s, size_t i)
{
    int kind = s->tokens[i].kind;
    bool operand_before = i && pnet_token_ends_operand(s->tokens[i - 1].kind);
    struct frame *f = &s->frames[s->depth];
    bool gap = !s->glued, glued = false;
    switch (kind) {
    case TOKEN_LPAREN:
    case TOKEN_LBRACKET:
        gap = gap && !operand_before;
        glued = true;
        open_frame(s, i, kind, operand_before);
        break;
    case TOKEN_LBRACE:
        s->range = false;
        open_frame(s, i, kind, operand_before);
        break;
    case TOKEN_RPAREN:
    case TOKEN_RBRACKET:
        gap = false;
        close_frame(s, i);
        break;
    case TOKEN_RBRACE: close_frame(s, i); break;
    case TOKEN_COMMA:
        gap = false;
        f->named = f->piped = false;
        break;
    case TOKEN_DOT:
    case TOKEN_RANGE:
        gap = false;
        glued = true;
        break;
    case TOKEN_COLON:
        gap = gap && f->kind != FRAME_PARAMS;
        f->named = true;
        break;
    case TOKEN_ASSIGN:
        gap = assign_gap(f);
        glued = !gap;
        f->piped = false;
        break;
    case TOKEN_ARROW: f->piped = true; break;
    case TOKEN_STAR:
        if (f->piped) break;
        /* fall through */
    case TOKEN_PLUS:
    case TOKEN_MINUS:
    case TOKEN_SLASH:
        if (!operand_before) { /* a sign */
            glued = true;
        } else if (is_tight(s)) {
            gap = false;
            glued = true;
        }
        f->piped = false;
        break;
    default: break;
    }
    s->rows[i].gap = gap;
    s->glued = glued;
}

struct pnet_spacing *pnet_spacing_new(struct pnet_arena *a, const struct pnet_tokens *t)
{
    struct pnet_spacing *rows = pnet_arena_array(a, t->count, sizeof *rows);
    struct spacer *s = pnet_arena_alloc(a, sizeof *s);
    if (!rows || !s) return NULL;
    s->tokens = t->items;
    s->rows = rows;
    s->frames[0] = (struct frame){.kind = FRAME_BRACE};
    for (size_t i = 0; i < t->count; i++) {
        int kind = t->items[i].kind;
        rows[i].begins = begins(s, i);
        if (rows[i].begins) {
            if (s->depth) rows[s->frames[s->depth].opening].begun++;
            s->frames[s->depth].piped = false;
            s->range = kind == TOKEN_FOR;
            s->params = kind == TOKEN_BLOCK || kind == TOKEN_NET;
        }
        space(s, i);
    }
    return rows;
}
