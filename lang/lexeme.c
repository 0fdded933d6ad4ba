#include "lang/lexeme.h"
#include "lang/internal.h"
#include "parser.h"

static char kind_of(int token)
{
    if (pnet_token_is_keyword(token)) return PNET_LEXEME_KEYWORD;
    switch (token) {
    case TOKEN_NAME: return PNET_LEXEME_NAME;
    case TOKEN_NUMBER: return PNET_LEXEME_NUMBER;
    case TOKEN_STRING: return PNET_LEXEME_STRING;
    case TOKEN_ARROW: return PNET_LEXEME_ARROW;
    case TOKEN_LPAREN: return '(';
    case TOKEN_RPAREN: return ')';
    case TOKEN_LBRACKET: return '[';
    case TOKEN_RBRACKET: return ']';
    case TOKEN_LBRACE: return '{';
    case TOKEN_RBRACE: return '}';
    case TOKEN_ASSIGN: return '=';
    case TOKEN_COMMA: return ',';
    case TOKEN_COLON: return ':';
    case TOKEN_DOT: return '.';
    default: return PNET_LEXEME_OPERATOR;
    }
}

static struct pnet_lexeme lexeme_of(struct pnet_span span, char kind, bool first)
{
    return (struct pnet_lexeme){
        .begin = span.begin, .end = span.end, .kind = kind, .first_on_line = first};
}

bool pnet_lexemes_scan(
    struct pnet_arena *a, const char *text, size_t length, struct pnet_lexemes *out)
{
    *out = (struct pnet_lexemes){0};
    if (length > PNET_MAX_SOURCE_BYTES) return false;
    struct pnet_tokens t = {0};
    struct pnet_scan scan = {.arena = a, .tokens = &t};
    if (!pnet_scan_text(&scan, text, length)) return false;
    out->items = pnet_arena_array(a, t.count + t.comment_count, sizeof *out->items);
    if (!out->items) return false;
    size_t comment = 0;
    for (size_t i = 0; i < t.count; i++) {
        for (; comment < t.comment_count && t.comments[comment].next == i; comment++)
            out->items[out->count++] =
                lexeme_of(t.comments[comment].span, PNET_LEXEME_COMMENT, false);
        if (t.items[i].kind == TOKEN_END) break;
        out->items[out->count++] = lexeme_of(t.items[i].span, kind_of(t.items[i].kind),
            (t.items[i].flags & PNET_TOKEN_FIRST_ON_LINE) != 0);
    }
    return true;
}

const char *pnet_keyword(int index)
{
    for (int kind = TOKEN_PNET; kind <= TOKEN_NOT; kind++)
        if (index-- == 0) return pnet_token_word_of(kind);
    return NULL;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool pnet_is_name(const char *text, size_t length)
{
    if (!length || length > PNET_MAX_NAME || !is_letter(text[0])) return false;
    for (size_t i = 0; i < length; i++)
        if (!is_letter(text[i]) && !(text[i] >= '0' && text[i] <= '9')) return false;
    return pnet_token_word(text, length) == TOKEN_NAME;
}
