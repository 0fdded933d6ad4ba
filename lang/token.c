#include "lang/internal.h"
#include "lang/number.h"
#include "parser.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* In the order of the tokens in parser.y. */
static const struct {
    int kind;
    const char *text; /* text in messages */
    const char *word; /* of keywords: as written */
} kinds[] = {
    {TOKEN_END, "the end of the file", NULL},
    {TOKEN_START_FILE, "a file", NULL},
    {TOKEN_START_EXPR, "an expression", NULL},
    {TOKEN_SYNC, "a statement", NULL},
    {TOKEN_BODY, "a body", NULL},
    {TOKEN_PNET, "'pnet'", "pnet"},
    {TOKEN_INCLUDE, "'include'", "include"},
    {TOKEN_PARAM, "'param'", "param"},
    {TOKEN_CONST, "'const'", "const"},
    {TOKEN_INPUT, "'input'", "input"},
    {TOKEN_BLOCK, "'block'", "block"},
    {TOKEN_NET, "'net'", "net"},
    {TOKEN_LOSS, "'loss'", "loss"},
    {TOKEN_METRIC, "'metric'", "metric"},
    {TOKEN_FOR, "'for'", "for"},
    {TOKEN_RETURN, "'return'", "return"},
    {TOKEN_IF, "'if'", "if"},
    {TOKEN_THEN, "'then'", "then"},
    {TOKEN_ELSE, "'else'", "else"},
    {TOKEN_PER, "'per'", "per"},
    {TOKEN_AND, "'and'", "and"},
    {TOKEN_OR, "'or'", "or"},
    {TOKEN_NOT, "'not'", "not"},
    {TOKEN_NAME, "a name", NULL},
    {TOKEN_NUMBER, "a number", NULL},
    {TOKEN_STRING, "a text in quotes", NULL},
    {TOKEN_ARROW, "'->'", NULL},
    {TOKEN_RANGE, "'..'", NULL},
    {TOKEN_EQ, "'=='", NULL},
    {TOKEN_NE, "'!='", NULL},
    {TOKEN_LT, "'<'", NULL},
    {TOKEN_LE, "'<='", NULL},
    {TOKEN_GT, "'>'", NULL},
    {TOKEN_GE, "'>='", NULL},
    {TOKEN_ASSIGN, "'='", NULL},
    {TOKEN_PLUS, "'+'", NULL},
    {TOKEN_MINUS, "'-'", NULL},
    {TOKEN_STAR, "'*'", NULL},
    {TOKEN_SLASH, "'/'", NULL},
    {TOKEN_PERCENT, "'%'", NULL},
    {TOKEN_LPAREN, "'('", NULL},
    {TOKEN_RPAREN, "')'", NULL},
    {TOKEN_LBRACKET, "'['", NULL},
    {TOKEN_RBRACKET, "']'", NULL},
    {TOKEN_LBRACE, "'{'", NULL},
    {TOKEN_RBRACE, "'}'", NULL},
    {TOKEN_COMMA, "','", NULL},
    {TOKEN_COLON, "':'", NULL},
    {TOKEN_DOT, "'.'", NULL},
};
enum { KIND_COUNT = sizeof kinds / sizeof *kinds };
_Static_assert(KIND_COUNT == TOKEN_DOT - TOKEN_END + 1, "one row a token");
_Static_assert(KIND_COUNT <= 64, "a set of tokens is one word");

int pnet_token_word(const char *text, size_t length)
{
    for (int i = 0; i < KIND_COUNT; i++) {
        const char *word = kinds[i].word;
        if (word && word[0] == text[0] && strlen(word) == length && !memcmp(word, text, length))
            return kinds[i].kind;
    }
    return TOKEN_NAME;
}

const char *pnet_token_text(int kind)
{
    return kinds[kind - TOKEN_END].text;
}

const char *pnet_token_word_of(int kind)
{
    return kinds[kind - TOKEN_END].word;
}

bool pnet_token_is_keyword(int kind)
{
    return kinds[kind - TOKEN_END].word != NULL;
}

bool pnet_token_ends_operand(int kind)
{
    return kind == TOKEN_NAME || kind == TOKEN_NUMBER || kind == TOKEN_STRING ||
           kind == TOKEN_RPAREN || kind == TOKEN_RBRACKET;
}

/* scale > 0: the number times it; < 0: divided by it, which rounds once and not twice. */
static const struct unit {
    const char *name;
    enum pnet_unit unit;
    double scale;
    const char *stem; /* first letters of its full name */
} units[] = {
    {"m", PNET_UNIT_LENGTH, 1, "met"},
    {"cm", PNET_UNIT_LENGTH, -100, "cen"},
    {"mm", PNET_UNIT_LENGTH, -1000, "mil"},
    {"km", PNET_UNIT_LENGTH, 1000, "kil"},
    {"deg", PNET_UNIT_ANGLE, 0.017453292519943295, "deg"},
    {"rad", PNET_UNIT_ANGLE, 1, "rad"},
    {"%", PNET_UNIT_PERCENT, -100, "per"},
};
enum { UNIT_COUNT = sizeof units / sizeof *units };

/* Tells whether the word has one letter too many, too few, or wrong, and at least one right. */
static bool is_near(const char *word, size_t length, const char *name)
{
    size_t other = strlen(name);
    if (length > other + 1 || other > length + 1) return false;
    size_t shortest = length < other ? length : other, front = 0, back = 0;
    while (front < shortest && word[front] == name[front]) front++;
    while (back < shortest - front && word[length - 1 - back] == name[other - 1 - back]) back++;
    size_t longest = length > other ? length : other;
    return front + back > 0 && front + back + 1 >= longest;
}

static const struct unit *nearest_unit(const char *word, size_t length)
{
    for (int i = 0; i < UNIT_COUNT; i++)
        if (strlen(units[i].name) == length && !strncasecmp(units[i].name, word, length))
            return &units[i];
    for (int i = 0; i < UNIT_COUNT; i++)
        if (length >= 3 && !strncasecmp(units[i].stem, word, 3)) return &units[i];
    for (int i = 0; i < UNIT_COUNT; i++)
        if (is_near(word, length, units[i].name)) return &units[i];
    return NULL;
}

static const struct unit *find_unit(struct pnet_scan *scan, const char *digits, size_t digit_count,
    const char *word, size_t length, struct pnet_span span)
{
    for (int i = 0; i < UNIT_COUNT; i++)
        if (strlen(units[i].name) == length && !memcmp(units[i].name, word, length))
            return &units[i];
    if (!scan->diags) return NULL;
    span.begin += (uint32_t)digit_count;
    int shown = length > 40 ? 40 : (int)length;
    struct pnet_diag *d =
        pnet_diag_new(scan->diags, PNET_ERROR, span, "unknown unit '%.*s'", shown, word);
    const struct unit *near = nearest_unit(word, length);
    if (near && digit_count < 40)
        pnet_diag_help(d, "did you mean %.*s%s?", (int)digit_count, digits, near->name);
    else
        pnet_diag_help(d, "the units are mm cm m km deg rad %%");
    return NULL;
}

const char *pnet_token_name(
    struct pnet_scan *scan, const char *text, size_t length, struct pnet_span span)
{
    if (length > PNET_MAX_NAME && scan->diags)
        pnet_diag_help(pnet_diag_new(scan->diags, PNET_ERROR, span, "the name is too long"),
            "the limit is %d characters", PNET_MAX_NAME);
    return pnet_arena_copy(scan->arena, text, length > PNET_MAX_NAME ? PNET_MAX_NAME : length);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Returns the number of bytes that are digits, point and exponent; the rest is the unit. */
static size_t numeric_length(const char *text, size_t length)
{
    size_t at = 0;
    while (at < length && is_digit(text[at])) at++;
    if (at < length && text[at] == '.') at++;
    while (at < length && is_digit(text[at])) at++;
    if (at < length && (text[at] == 'e' || text[at] == 'E')) {
        size_t exponent = at + 1;
        if (exponent < length && (text[exponent] == '+' || text[exponent] == '-')) exponent++;
        if (exponent < length && is_digit(text[exponent])) {
            while (exponent < length && is_digit(text[exponent])) exponent++;
            at = exponent;
        }
    }
    return at;
}

static void bad_number(
    struct pnet_scan *scan, struct pnet_span span, const char *message, const char *help)
{
    if (!scan->diags) return;
    struct pnet_diag *d = pnet_diag_new(scan->diags, PNET_ERROR, span, "%s", message);
    if (help) pnet_diag_help(d, "%s", help);
}

/* `1.` and `.5` */
static void check_point(struct pnet_scan *scan, const char *digits, size_t length, const char *unit,
    size_t unit_length, struct pnet_span span)
{
    bool front = digits[0] == '.', back = digits[length - 1] == '.';
    if (!front && !back) return;
    const char *help = NULL;
    if (length + unit_length <= 40)
        help = pnet_arena_printf(scan->arena, "write %s%s%s%.*s", front ? "0" : "", digits,
            back ? "0" : "", (int)unit_length, unit);
    bad_number(scan, span, "a number has digits on both sides of its point", help);
}

struct pnet_number pnet_token_number(
    struct pnet_scan *scan, const char *text, size_t length, struct pnet_span span)
{
    struct pnet_number n = {0};
    size_t digit_count = numeric_length(text, length);
    char *digits = pnet_arena_copy(scan->arena, text, digit_count);
    if (!digits) return n;
    check_point(scan, digits, digit_count, text + digit_count, length - digit_count, span);
    n.value = pnet_plain_number(digits);
    n.is_integer = digit_count == length && !strpbrk(digits, ".eE");
    bool nonzero = digits[strspn(digits, "0.")] >= '1' && digits[strspn(digits, "0.")] <= '9';
    if (nonzero && n.value < 2.2250738585072014e-308)
        bad_number(scan, span, "the number is too small", NULL);
    if (length > digit_count) {
        const struct unit *unit =
            find_unit(scan, digits, digit_count, text + digit_count, length - digit_count, span);
        if (unit) {
            n.unit = unit->unit;
            n.value = unit->scale > 0 ? n.value * unit->scale : n.value / -unit->scale;
        }
    }
    if (!isfinite(n.value)) {
        bad_number(scan, span, "the number is too large", NULL);
        n.value = 1;
    } else if (n.is_integer && n.value > 9007199254740992.0) {
        bad_number(
            scan, span, "the whole number is too large", "above 2^53, not all of them exist");
    }
    return n;
}

const char *pnet_token_string(
    struct pnet_scan *scan, const char *text, size_t length, struct pnet_span span)
{
    char *out = pnet_arena_alloc(scan->arena, length + 1);
    if (!out) return NULL;
    size_t at = 1, n = 0;
    while (at < length && text[at] != '"') {
        if (text[at] == '\\') {
            char next = at + 1 < length ? text[at + 1] : 0;
            if (next && next != '"' && next != '\\' && scan->diags) {
                struct pnet_span place = {span.file, span.begin + (uint32_t)at, 0};
                place.end = place.begin + 1;
                pnet_diag_help(
                    pnet_diag_new(scan->diags, PNET_ERROR, place, "unexpected '\\' in a text"),
                    "\\\" is a quote, \\\\ a backslash");
            }
            at += next == '"' || next == '\\';
        }
        if (at < length) out[n++] = text[at++];
    }
    if (at >= length && scan->diags) {
        struct pnet_diag *d = pnet_diag_new(scan->diags, PNET_ERROR, span, "the text has no end");
        pnet_diag_help(d, "close it with \" on the same line");
    }
    return out;
}

/* Characters that a keyboard or a word processor writes in place of others. */
static const char *look_alike(uint32_t code)
{
    switch (code) {
    case 0x201c:
    case 0x201d:
    case 0x201e:
    case 0xab:
    case 0xbb: return "write text in straight quotes: \"..\"";
    case 0x2192:
    case 0x21d2: return "a pipe is written ->";
    case 0x2010:
    case 0x2011:
    case 0x2012:
    case 0x2013:
    case 0x2014:
    case 0x2212: return "minus is written -";
    case 0xd7:
    case 0x22c5:
    case 0xb7: return "times is written *";
    case 0x2264: return "write <=";
    case 0x2265: return "write >=";
    case 0x2260: return "write !=";
    case 0x2026: return "a range is written a..b";
    case 0xb0: return "degrees are written 5deg";
    case 0xa0:
    case 0x202f:
    case 0x3000: return "a space is wanted here";
    default: return NULL;
    }
}

void pnet_token_bad(struct pnet_scan *scan, const char *text, size_t length, struct pnet_span span)
{
    scan->bad = true;
    if (!scan->diags) return;
    uint32_t code = 0;
    int bytes = pnet_utf8_decode(text, length, &code);
    struct pnet_diag *d;
    bool unseen = code <= 0x20 || (code >= 0x7f && code <= 0xa0) ||
                  (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202f) ||
                  (code >= 0x2060 && code <= 0x206f) || code == 0xfeff;
    if (!unseen)
        d = pnet_diag_new(
            scan->diags, PNET_ERROR, span, "unexpected character '%.*s'", bytes, text);
    else
        d = pnet_diag_new(
            scan->diags, PNET_ERROR, span, "unexpected character U+%04X", (unsigned)code);
    const char *help = look_alike(code);
    if (help)
        pnet_diag_help(d, "%s", help);
    else if (code >= 0x80)
        pnet_diag_help(d, "names are made of a-z, A-Z, 0-9 and _; comments may have any character");
}
