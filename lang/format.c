/* The canonical form of a file. Tokens are only moved, so the tree does not change: each statement gets a line of its own, and
   line breaks inside of a statement stay. */
#include "lang/format_internal.h"
#include "parser.h"

#include <assert.h>
#include <string.h>

enum {
    INDENT = 2,
    CONTINUATION = 4, /* indent of a line that continues outside of brackets */
    LINE_WIDTH = 100, /* of a block on one line */
    ALIGN_MAX = 12,   /* columns: names that differ by more are not aligned */
    COMMENT_GAP = 2,
    NONE = -1
};

/* Consecutive lines of one kind are aligned. */
enum alignment {
    ALIGN_NONE,
    ALIGN_DECLARATION,
    ALIGN_OBJECTIVE,
    ALIGN_INPUT,
    ALIGN_ASSIGN,
    ALIGN_FIELD
};

struct line {
    uint32_t begin, end; /* tokens; none: the line is a comment */
    int indent;
    bool blank;         /* an empty line precedes it */
    bool demoted;       /* its doc comment documents nothing, and stays so */
    uint8_t alignment;  /* of enum alignment */
    int32_t comment;    /* at its end, or NONE */
    uint32_t pads[2];   /* tokens to align, 0: none */
    int16_t padding[2]; /* spaces before them, beyond their gap */
    int column;         /* of the comment */
};

struct formatter {
    struct pnet_arena *arena;
    const struct pnet_source *source;
    const struct pnet_sources *sources;
    struct pnet_tokens tokens;
    const struct pnet_spacing *spacing;
    struct line *lines;
    size_t count, capacity;
    size_t comment;    /* the next comment to place */
    uint32_t position; /* end of the last placed code or comment in the text */
    char *out;         /* the result, of at most PNET_MAX_SOURCE_BYTES */
    size_t length, room;
    bool too_large;
};

static int kind_at(const struct formatter *f, size_t i)
{
    return f->tokens.items[i].kind;
}

static bool first_on_line(const struct formatter *f, size_t i)
{
    return f->tokens.items[i].flags & PNET_TOKEN_FIRST_ON_LINE;
}

static int span_width(const struct formatter *f, struct pnet_span span)
{
    int width = 0;
    for (uint32_t i = span.begin; i < span.end; i++) width += (f->source->text[i] & 0xc0) != 0x80;
    return width;
}

/* Returns the columns of tokens [begin, end) on one line, without padding. */
static int width_of(const struct formatter *f, size_t begin, size_t end)
{
    int width = 0;
    for (size_t i = begin; i < end; i++)
        width += (i > begin && f->spacing[i].gap) + span_width(f, f->tokens.items[i].span);
    return width;
}

/* Tells whether the source has an empty line before `begin`. */
static bool blank_before(const struct formatter *f, uint32_t begin)
{
    int newlines = 0;
    for (uint32_t i = f->position; i < begin; i++) newlines += f->source->text[i] == '\n';
    return newlines > 1;
}

static struct line *last_line(struct formatter *f)
{
    return f->count ? &f->lines[f->count - 1] : NULL;
}

/* Allocates as many lines as there can be: one for each comment on a line of its own, and one for each token that may begin a
   line. A token after a comment is the first on its line. */
static bool make_lines(struct formatter *f)
{
    size_t count = 1;
    for (size_t i = 0; i < f->tokens.comment_count; i++) count += f->tokens.comments[i].own_line;
    for (size_t i = 0; i < f->tokens.count; i++)
        count += f->spacing[i].begins || first_on_line(f, i) || kind_at(f, i) == TOKEN_RBRACE;
    f->lines = pnet_arena_array(f->arena, count, sizeof *f->lines);
    f->capacity = count;
    return f->lines != NULL;
}

static struct line *add_line(struct formatter *f, size_t begin, int indent, bool blank)
{
    assert(f->lines && f->count < f->capacity);
    const struct line *before = last_line(f);
    bool opened =
        before && before->end > before->begin && kind_at(f, before->end - 1) == TOKEN_LBRACE;
    struct line *line = &f->lines[f->count++];
    *line = (struct line){.begin = (uint32_t)begin,
        .end = (uint32_t)begin,
        .indent = indent,
        .blank = blank && before && !opened,
        .comment = NONE};
    return line;
}

/* Returns the token that a doc comment after code, on a line with tokens [begin, end), documents; or `end`. */
static size_t documented(const struct formatter *f, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        bool branch = i > 1 && kind_at(f, i) == TOKEN_IF && kind_at(f, i - 1) == TOKEN_ELSE &&
                      kind_at(f, i - 2) == TOKEN_RBRACE;
        if (f->spacing[i].begins || branch) return i;
    }
    return end;
}

/* Places a comment after code: at the end of the last line, but a doc comment stays with the declaration it documents if its
   line was split. Returns true if it is on the last line, which then is complete. */
static bool put_trailing(struct formatter *f, const struct pnet_comment *c)
{
    size_t at = f->count - 1, begin = c->next - 1;
    struct line *line = &f->lines[at];
    line->comment = (int32_t)f->comment;
    if (!c->is_doc) return true;
    while (begin && !first_on_line(f, begin)) begin--;
    size_t was = documented(f, begin, c->next), is = documented(f, line->begin, line->end);
    if (was == c->next) line->demoted = is != line->end;
    if (was == c->next || was == is) return true;
    line->comment = NONE;
    while (at && (f->lines[at].begin > was || f->lines[at].end <= was)) at--;
    f->lines[at].comment = (int32_t)f->comment;
    return false;
}

/* Places comments before token `i`. Returns true if the token then cannot be on the last line. */
static bool put_comments(struct formatter *f, size_t i, int indent)
{
    bool closed = false;
    for (; f->comment < f->tokens.comment_count; f->comment++) {
        const struct pnet_comment *c = &f->tokens.comments[f->comment];
        if (c->next != i) break;
        if (c->own_line) {
            struct line *line = add_line(f, i, indent, blank_before(f, c->span.begin));
            line->comment = (int32_t)f->comment;
            closed = true;
        } else if (put_trailing(f, c)) {
            closed = true;
        }
        f->position = c->span.end;
    }
    return closed;
}

/* Places one token, on a new line if required or if a comment precedes it. */
static void put_token(struct formatter *f, size_t i, bool newline, int indent, int comment_indent)
{
    struct pnet_span span = f->tokens.items[i].span;
    bool commented = put_comments(f, i, comment_indent);
    struct line *line = last_line(f);
    if (newline || commented) {
        bool blank = f->spacing[i].begins && blank_before(f, span.begin);
        line = add_line(f, i, indent, blank);
    }
    line->end = (uint32_t)i + 1;
    f->position = span.end;
}

static bool is_opening(int kind)
{
    return kind == TOKEN_LPAREN || kind == TOKEN_LBRACKET;
}

static bool is_closing(int kind)
{
    return kind == TOKEN_RPAREN || kind == TOKEN_RBRACKET;
}

/* Tells whether a line break of the source before token `i`, inside of a statement, stays. */
static bool keeps_break(const struct formatter *f, size_t i)
{
    int kind = kind_at(f, i);
    if (!first_on_line(f, i) || kind == TOKEN_ASSIGN || kind == TOKEN_COLON) return false;
    return f->spacing[i].gap || is_opening(kind_at(f, i - 1)) || is_closing(kind);
}

/* Places tokens [begin, end), of a statement or of the head of a block. */
static void put_segment(struct formatter *f, size_t begin, size_t end, int indent, bool newline)
{
    int openers[PNET_MAX_NESTING] = {0}; /* indent of the line that each open bracket stands on */
    int depth = 0;
    for (size_t i = begin; i < end; i++) {
        int kind = kind_at(f, i), inside = indent + CONTINUATION, here;
        if (depth) inside = openers[depth - 1] + INDENT;
        here = depth && is_closing(kind) ? openers[depth - 1] : inside;
        if (i == begin)
            put_token(f, i, newline, indent, indent);
        else
            put_token(f, i, keeps_break(f, i), here, inside);
        const struct line *line = last_line(f);
        if (is_opening(kind)) openers[depth++] = line->indent;
        if (is_closing(kind) && depth) depth--;
    }
}

/* Returns the brace after a head that begins at `i`. */
static size_t find_brace(const struct formatter *f, size_t i)
{
    while (kind_at(f, i) != TOKEN_LBRACE) i++;
    return i;
}

/* Returns the last brace of the block that begins at `i`, with all its `else` parts. */
static size_t find_end(const struct formatter *f, size_t i)
{
    for (;;) {
        size_t last = f->spacing[find_brace(f, i)].match;
        if (kind_at(f, last + 1) != TOKEN_ELSE) return last;
        i = last + 1;
    }
}

/* Blocks that were written on one line stay there while they are short. */
static bool fits_one_line(const struct formatter *f, size_t i, int indent)
{
    size_t last = find_end(f, i);
    int width = indent;
    for (size_t k = i; k <= last && width <= LINE_WIDTH; k++) {
        if (k > i && first_on_line(f, k)) return false;
        if (kind_at(f, k) == TOKEN_LBRACE && f->spacing[k].begun > 1) return false;
        width += (k > i && f->spacing[k].gap) + span_width(f, f->tokens.items[k].span);
    }
    return width <= LINE_WIDTH;
}

static size_t put_statement(struct formatter *f, size_t i, int indent, bool newline);

/* Places `{`, the content and `}`; returns the token after it. */
static size_t put_block(struct formatter *f, size_t brace, int indent, bool one_line)
{
    size_t i = brace + 1, last = f->spacing[brace].match;
    put_token(f, brace, false, indent, indent);
    while (i < last) i = put_statement(f, i, indent + INDENT, !one_line);
    put_token(f, last, !one_line, indent, indent + INDENT);
    return last + 1;
}

static size_t put_compound(struct formatter *f, size_t i, int indent, bool newline)
{
    bool one_line = !newline || fits_one_line(f, i, indent);
    size_t brace = find_brace(f, i);
    put_segment(f, i, brace, indent, newline);
    i = put_block(f, brace, indent, one_line);
    while (kind_at(f, i) == TOKEN_ELSE) {
        brace = find_brace(f, i);
        put_segment(f, i, brace, indent, false);
        i = put_block(f, brace, indent, one_line);
    }
    return i;
}

/* Sets how the line that begins with token `i` is aligned with its neighbours. */
static void set_alignment(const struct formatter *f, struct line *line)
{
    size_t i = line->begin;
    int kind = kind_at(f, i), second = kind_at(f, i + 1);
    switch (kind) {
    case TOKEN_PARAM:
    case TOKEN_CONST:
    case TOKEN_LOSS:
    case TOKEN_METRIC:
        line->alignment = kind <= TOKEN_CONST ? ALIGN_DECLARATION : ALIGN_OBJECTIVE;
        line->pads[0] = (uint32_t)i + 1;
        line->pads[1] = (uint32_t)i + 2;
        break;
    case TOKEN_INPUT:
        if (kind_at(f, line->end - 1) == TOKEN_LBRACE) break; /* its fields follow below */
        line->alignment = ALIGN_INPUT;
        line->pads[0] = (uint32_t)i + 2;
        break;
    case TOKEN_NAME:
        if (second != TOKEN_ASSIGN && second != TOKEN_COLON) break;
        line->alignment = second == TOKEN_ASSIGN ? ALIGN_ASSIGN : ALIGN_FIELD;
        line->pads[0] = (uint32_t)i + 1;
        break;
    default: break;
    }
    if (line->pads[0] >= line->end || line->pads[1] >= line->end) line->alignment = ALIGN_NONE;
}

/* Places a statement, field or item; returns the token after it. */
static size_t put_statement(struct formatter *f, size_t i, int indent, bool newline)
{
    int kind = kind_at(f, i);
    bool compound = kind == TOKEN_FOR || kind == TOKEN_IF || kind == TOKEN_NET ||
                    kind == TOKEN_BLOCK ||
                    (kind == TOKEN_INPUT && kind_at(f, i + 2) == TOKEN_LBRACE);
    if (compound) return put_compound(f, i, indent, newline);
    size_t end = i + 1;
    while (
        !f->spacing[end].begins && kind_at(f, end) != TOKEN_RBRACE && kind_at(f, end) != TOKEN_END)
        end++;
    put_segment(f, i, end, indent, newline);
    return end;
}

static void put_file(struct formatter *f)
{
    size_t end = f->tokens.count - 1;
    put_segment(f, 0, 2, 0, true);
    for (size_t i = 2; i < end;) i = put_statement(f, i, 0, true);
    put_comments(f, end, 0);
    for (size_t i = 0; i < f->count; i++) {
        struct line *line = &f->lines[i];
        if (line->end > line->begin && f->spacing[line->begin].begins) set_alignment(f, line);
    }
}

/* Returns the columns of the code of a line up to token `end`. */
static int padded_width(const struct formatter *f, const struct line *line, size_t end)
{
    int width = width_of(f, line->begin, end);
    for (int k = 0; k < 2; k++)
        if (line->pads[k] && line->pads[k] < end) width += line->padding[k];
    return width;
}

static void align_group(struct formatter *f, struct line *lines, size_t count)
{
    for (int k = 0; k < 2 && lines->pads[k]; k++) {
        int least = INT32_MAX, most = 0;
        for (size_t i = 0; i < count; i++) {
            int width = padded_width(f, &lines[i], lines[i].pads[k]);
            if (width < least) least = width;
            if (width > most) most = width;
        }
        if (most - least > ALIGN_MAX) continue;
        for (size_t i = 0; i < count; i++)
            lines[i].padding[k] = (int16_t)(most - padded_width(f, &lines[i], lines[i].pads[k]));
    }
}

/* Comments go to the leftmost column that any of them had, if the code leaves room for that. */
static void align_comments(struct formatter *f, struct line *lines, size_t count)
{
    int room = 0, column = INT32_MAX;
    for (size_t i = 0; i < count; i++) {
        if (lines[i].comment == NONE) continue;
        struct pnet_span span = f->tokens.comments[lines[i].comment].span;
        int had = (int)pnet_source_place(f->sources, 0, span.begin).column - 1;
        int width = lines[i].indent + padded_width(f, &lines[i], lines[i].end);
        if (width + COMMENT_GAP > room) room = width + COMMENT_GAP;
        if (had < column) column = had;
    }
    for (size_t i = 0; i < count; i++) lines[i].column = column > room ? column : room;
}

static bool is_comment_line(const struct line *line)
{
    return line->begin == line->end;
}

static void align_lines(struct formatter *f)
{
    for (size_t i = 0, end; i < f->count; i = end) {
        struct line *line = &f->lines[i];
        for (end = i + 1; end < f->count; end++) {
            const struct line *next = &f->lines[end];
            if (next->blank || next->indent != line->indent || is_comment_line(next) ||
                next->alignment != line->alignment)
                break;
        }
        if (line->alignment != ALIGN_NONE) align_group(f, line, end - i);
    }
    for (size_t i = 0, end; i < f->count; i = end) {
        struct line *line = &f->lines[i];
        for (end = i + 1; end < f->count && !is_comment_line(line); end++) {
            const struct line *next = &f->lines[end];
            if (next->blank || next->indent != line->indent || is_comment_line(next)) break;
        }
        if (!is_comment_line(line)) align_comments(f, line, end - i);
    }
}

/* Makes room for `length` bytes more. Returns NULL if the result would be too large or memory is out; then nothing more is
   written. */
static char *make_text(struct formatter *f, size_t length)
{
    if (length > PNET_MAX_SOURCE_BYTES - f->length) f->too_large = true;
    if (f->too_large) return NULL;
    if (f->length + length > f->room) {
        size_t room = f->room ? f->room : f->source->length + 256;
        while (room < f->length + length) room *= 2;
        char *grown = pnet_arena_alloc(f->arena, room + 1);
        if (!grown) return NULL;
        if (f->length) memcpy(grown, f->out, f->length);
        f->out = grown;
        f->room = room;
    }
    f->length += length;
    return f->out + f->length - length;
}

static void put_char(struct formatter *f, char c, int count)
{
    char *to = count > 0 ? make_text(f, (size_t)count) : NULL;
    if (to) memset(to, c, (size_t)count);
}

static void put_span(struct formatter *f, struct pnet_span span)
{
    char *to = make_text(f, span.end - span.begin);
    if (to) memcpy(to, f->source->text + span.begin, span.end - span.begin);
}

static void put_line(struct formatter *f, const struct line *line)
{
    if (line->blank) put_char(f, '\n', 1);
    put_char(f, ' ', line->indent);
    for (size_t i = line->begin; i < line->end; i++) {
        for (int k = 0; k < 2; k++)
            if (line->pads[k] == i && i > line->begin) put_char(f, ' ', line->padding[k]);
        if (i > line->begin && f->spacing[i].gap) put_char(f, ' ', 1);
        put_span(f, f->tokens.items[i].span);
    }
    if (line->comment != NONE) {
        struct pnet_span span = f->tokens.comments[line->comment].span;
        while (strchr(" \t\r", f->source->text[span.end - 1])) span.end--;
        span.begin += line->demoted;
        int width = line->indent + padded_width(f, line, line->end);
        if (!is_comment_line(line)) put_char(f, ' ', line->column - width);
        put_span(f, span);
    }
    put_char(f, '\n', 1);
}

const char *pnet_format(struct pnet_arena *a, const struct pnet_sources *s,
    const struct pnet_file *file, size_t *length)
{
    struct formatter f = {.arena = a, .sources = s, .source = pnet_sources_get(s, 0)};
    struct pnet_scan scan = {.arena = a, .tokens = &f.tokens};
    if (!file || !f.source || !pnet_scan_text(&scan, f.source->text, f.source->length)) return NULL;
    f.spacing = pnet_spacing_new(a, &f.tokens);
    if (!f.spacing || !make_lines(&f)) return NULL;
    put_file(&f);
    align_lines(&f);
    for (size_t i = 0; i < f.count && !f.too_large && !a->failed; i++) put_line(&f, &f.lines[i]);
    if (f.too_large || a->failed) return NULL;
    *length = f.length;
    return f.out;
}
