#include "lang/diag_internal.h"
#include "lang/internal.h"

#include <limits.h>
#include <string.h>

enum {
    TAB_STOP = 8,
    WINDOW = 160,    /* columns shown of a longer line */
    WINDOW_LEAD = 60 /* of them before the place */
};

/* The colours of a terminal, or nothing. */
struct palette {
    const char *bold, *severity[2], *second, *off;
};
static const struct palette plain = {"", {"", ""}, "", ""};
static const struct palette coloured = {
    "\033[1m", {"\033[1;31m", "\033[1;35m"}, "\033[36m", "\033[0m"};

static const char *const severity_words[] = {"error", "warning"};

struct range {
    uint32_t first, last;
};

static bool in_ranges(uint32_t code, const struct range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (code >= ranges[i].first && code <= ranges[i].last) return true;
    return false;
}

/* Tells whether the character would move the cursor, or change the direction of the text. */
static bool is_control(uint32_t code)
{
    static const struct range controls[] = {
        {0, 0x1f}, {0x7f, 0x9f}, {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}};
    return in_ranges(code, controls, sizeof controls / sizeof *controls);
}

void pnet_put_visible(const char *text, size_t length, FILE *out)
{
    length = strnlen(text, length);
    for (size_t at = 0; at < length;) {
        uint32_t code;
        int bytes = pnet_utf8_decode(text + at, length - at, &code);
        if (bytes && !is_control(code))
            fwrite(text + at, 1, (size_t)bytes, out);
        else if (bytes && code == '\n')
            fputs("\\n", out);
        else if (bytes && code == '\t')
            fputs("\\t", out);
        else if (bytes && code >= 0x80)
            fprintf(out, "\\u%04x", (unsigned)code);
        else
            fprintf(out, "\\x%02x", (unsigned)(unsigned char)text[at]);
        at += (size_t)(bytes ? bytes : 1);
    }
}

bool pnet_is_visible(const char *text)
{
    for (size_t length = strlen(text); length;) {
        uint32_t code;
        int bytes = pnet_utf8_decode(text, length, &code);
        if (!bytes || is_control(code)) return false;
        text += bytes;
        length -= (size_t)bytes;
    }
    return true;
}

/* Returns the columns that a character takes on a terminal (Unicode, annex 11: wide East Asian ones take two). */
static int display_width(uint32_t code)
{
    static const struct range none[] = {
        {0x300, 0x36f}, {0x200b, 0x200d}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfeff, 0xfeff}};
    static const struct range wide[] = {{0x1100, 0x115f}, {0x2e80, 0x303e}, {0x3041, 0xa4cf},
        {0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe30, 0xfe6f}, {0xff00, 0xff60}, {0xffe0, 0xffe6},
        {0x1f300, 0x1faff}, {0x20000, 0x3fffd}};
    if (code < 0x300) return 1;
    if (in_ranges(code, none, sizeof none / sizeof *none)) return 0;
    return in_ranges(code, wide, sizeof wide / sizeof *wide) ? 2 : 1;
}

/* One character of a line as it is shown: its bytes, and its columns from `column` on. */
struct cell {
    const char *text;
    int length; /* of `text` */
    int bytes;  /* of the source */
    int width;
};

static struct cell next_cell(const char *text, size_t length, int column)
{
    uint32_t code;
    int bytes = pnet_utf8_decode(text, length, &code);
    if (bytes && code == '\t')
        return (struct cell){
            "        ", TAB_STOP - column % TAB_STOP, 1, TAB_STOP - column % TAB_STOP};
    if (!bytes || is_control(code)) return (struct cell){"\xef\xbf\xbd", 3, bytes ? bytes : 1, 1};
    return (struct cell){text, bytes, bytes, display_width(code)};
}

enum { STOP_BYTES = 4096, STOPS = PNET_MAX_SOURCE_BYTES / STOP_BYTES + 2 };

/* Converts byte offsets of one line to columns. A line may be as long as a file, and is used many times, so the columns of some
   places are kept. */
struct ruler {
    struct pnet_span line;
    const char *text;
    size_t length;
    struct {
        uint32_t at;
        int column;
    } stops[STOPS];
    int count;
};

static void ruler_set(struct ruler *r, const struct pnet_sources *sources, struct pnet_span line)
{
    if (r->count && r->line.file == line.file && r->line.begin == line.begin) return;
    r->line = line;
    r->text = pnet_sources_get(sources, line.file)->text + line.begin;
    r->length = line.end - line.begin;
    r->count = 1;
    r->stops[0].at = 0;
    r->stops[0].column = 0;
}

/* Advances from a place that is shown at `column` while `at` and the column are below the ends. */
static void ruler_walk(const struct ruler *r, size_t *at, int *column, size_t end, int end_column)
{
    while (*at < end && *at < r->length && *column < end_column) {
        struct cell c = next_cell(r->text + *at, r->length - *at, *column);
        *at += (size_t)c.bytes;
        *column += c.width;
    }
}

/* Sets stops up to the offset or column; returns the last one before both. */
static int ruler_stop(struct ruler *r, size_t offset, int wanted)
{
    for (;;) {
        size_t at = r->stops[r->count - 1].at;
        int column = r->stops[r->count - 1].column;
        if (at + STOP_BYTES > offset || column >= wanted || r->count == STOPS) break;
        ruler_walk(r, &at, &column, at + STOP_BYTES, INT_MAX);
        if (at >= r->length) break;
        r->stops[r->count].at = (uint32_t)at;
        r->stops[r->count++].column = column;
    }
    int low = 0, high = r->count;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (r->stops[middle].at <= offset && r->stops[middle].column <= wanted)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Returns the column (from 0) at which byte `offset` of the line is shown. */
static int column_of(struct ruler *r, size_t offset)
{
    int stop = ruler_stop(r, offset, INT_MAX), column = r->stops[stop].column;
    size_t at = r->stops[stop].at;
    ruler_walk(r, &at, &column, offset, INT_MAX);
    return column;
}

/* Does the same, but counts at most `most` columns after byte `from`. */
static int column_within(struct ruler *r, size_t from, size_t offset, int most)
{
    int column = column_of(r, from), end = column + most;
    ruler_walk(r, &from, &column, offset, end);
    return column < end ? column : end;
}

/* An underlined part of a line. */
struct mark {
    int begin, end; /* columns of the whole line */
    bool second;
    const char *label; /* or NULL */
};

/* The state that the printing functions share. */
struct printer {
    const struct pnet_diags *diags;
    FILE *out;
    const struct palette *palette;
    struct ruler *ruler;
};

/* A line of source and the marks on it. */
struct snippet {
    FILE *out;
    const struct palette *palette;
    const char *severity_colour;
    struct ruler *ruler;
    uint32_t number;
    int from, to; /* columns shown */
    int width;    /* of the whole line, or more than is shown */
};

static void ruler_at(struct ruler *r, const struct pnet_sources *sources, struct pnet_span span)
{
    uint32_t number = pnet_source_line_at(sources, span.file, span.begin);
    ruler_set(r, sources, pnet_source_line(sources, span.file, number));
}

static struct snippet snippet_new(
    const struct pnet_diags *d, struct ruler *ruler, struct pnet_span span)
{
    struct snippet s = {.ruler = ruler};
    s.number = pnet_source_line_at(d->sources, span.file, span.begin);
    ruler_at(ruler, d->sources, span);
    size_t offset = span.begin - ruler->line.begin;
    int begin = column_of(ruler, offset);
    s.width = column_within(ruler, offset, ruler->length, WINDOW + 1);
    s.from = s.width > WINDOW && begin > WINDOW - WINDOW_LEAD ? begin - WINDOW_LEAD : 0;
    s.to = s.width > WINDOW ? s.from + WINDOW : s.width;
    return s;
}

static struct mark mark_new(const struct pnet_diags *d, struct ruler *ruler, struct pnet_span span,
    bool second, const char *label)
{
    ruler_at(ruler, d->sources, span);
    struct mark m = {.second = second, .label = label && *label ? label : NULL};
    size_t offset = span.begin - ruler->line.begin;
    m.begin = column_of(ruler, offset);
    m.end = column_within(ruler, offset, span.end - ruler->line.begin, 2 * WINDOW);
    if (m.end <= m.begin) m.end = m.begin + 1;
    return m;
}

static void print_source(const struct snippet *s)
{
    bool cut_left = s->from > 0, cut_right = s->to < s->width;
    fprintf(s->out, "%5u | %s", (unsigned)s->number, cut_left ? "..." : "");
    int first = s->from + (cut_left ? 3 : 0), last = s->to - (cut_right ? 3 : 0);
    int stop = ruler_stop(s->ruler, s->ruler->length, s->from),
        column = s->ruler->stops[stop].column;
    for (size_t at = s->ruler->stops[stop].at; at < s->ruler->length && column < last;) {
        struct cell c = next_cell(s->ruler->text + at, s->ruler->length - at, column);
        int shown = column + c.width;
        if (column >= first && shown <= last)
            fwrite(c.text, 1, (size_t)c.length, s->out);
        else
            for (int i = column > first ? column : first; i < shown && i < last; i++)
                fputc(' ', s->out);
        column = shown;
        at += (size_t)c.bytes;
    }
    fprintf(s->out, "%s\n", cut_right ? "..." : "");
}

/* Prints the line below, with one or two marks, and the label of the last mark after it. */
static void print_marks(const struct snippet *s, const struct mark *marks, int count)
{
    const struct mark *last = &marks[0];
    for (int i = 1; i < count; i++)
        if (marks[i].begin > last->begin) last = &marks[i];
    fputs("      | ", s->out);
    const char *colour = "";
    int end = s->from;
    for (int i = 0; i < count; i++)
        if (marks[i].end > end) end = marks[i].end;
    if (end > s->to + 1) end = s->to + 1;
    for (int column = s->from; column < end; column++) {
        char glyph = ' ';
        const char *wanted = "";
        for (int i = 0; i < count; i++) {
            const struct mark *m = &marks[i];
            if (column < m->begin || column >= m->end || (glyph != ' ' && m->second)) continue;
            glyph = m->second || column > m->begin ? '~' : '^';
            wanted = m->second ? s->palette->second : s->severity_colour;
        }
        if (wanted != colour) {
            fputs(*colour ? s->palette->off : "", s->out);
            fputs(wanted, s->out);
            colour = wanted;
        }
        fputc(glyph, s->out);
    }
    if (last->label) {
        fputc(' ', s->out);
        pnet_put_visible(last->label, SIZE_MAX, s->out);
    }
    fprintf(s->out, "%s\n", *colour ? s->palette->off : "");
}

static void print_snippets(const struct printer *p, const struct pnet_diag *diag)
{
    const struct pnet_diags *d = p->diags;
    struct mark marks[2] = {mark_new(d, p->ruler, diag->span, false, diag->label)};
    if (diag->has_second) marks[1] = mark_new(d, p->ruler, diag->second, true, diag->second_label);
    struct snippet s = snippet_new(d, p->ruler, diag->span);
    s.out = p->out;
    s.palette = p->palette;
    s.severity_colour = p->palette->severity[diag->severity];
    print_source(&s);
    if (!diag->has_second) {
        print_marks(&s, marks, 1);
        return;
    }
    struct pnet_place place = pnet_source_place(d->sources, diag->second.file, diag->second.begin);
    bool same_file = diag->second.file == diag->span.file;
    if (same_file && place.line == s.number && marks[1].begin >= s.from && marks[1].begin < s.to) {
        print_marks(&s, marks, 2);
        const struct mark *left = &marks[marks[0].begin >= marks[1].begin];
        if (left->label) print_marks(&s, left, 1);
        return;
    }
    print_marks(&s, marks, 1);
    struct snippet other = snippet_new(d, p->ruler, diag->second);
    other.out = p->out;
    other.palette = p->palette;
    if (!same_file) {
        fputs("  in ", p->out);
        pnet_put_visible(pnet_sources_get(d->sources, diag->second.file)->name, SIZE_MAX, p->out);
        fprintf(p->out, ":%u:%u:\n", (unsigned)place.line, (unsigned)place.column);
    }
    print_source(&other);
    print_marks(&other, marks + 1, 1);
}

static void print_help(const char *help, FILE *out)
{
    while (help) {
        const char *end = strchr(help, '\n');
        fputs("  help: ", out);
        pnet_put_visible(help, end ? (size_t)(end - help) : SIZE_MAX, out);
        fputc('\n', out);
        help = end ? end + 1 : NULL;
    }
}

static void print_chain(const struct pnet_diags *d, const struct pnet_source *s, FILE *out)
{
    while (s && s->included_from.end > s->included_from.begin) {
        struct pnet_span from = s->included_from;
        struct pnet_place place = pnet_source_place(d->sources, from.file, from.begin);
        s = pnet_sources_get(d->sources, from.file);
        if (!s) return;
        fputs("in file included from ", out);
        pnet_put_visible(s->name, SIZE_MAX, out);
        fprintf(out, ":%u:%u:\n", (unsigned)place.line, (unsigned)place.column);
    }
}

static void print_one(const struct printer *p, const struct pnet_diag *diag)
{
    const struct pnet_diags *d = p->diags;
    const struct palette *palette = p->palette;
    const struct pnet_source *source = pnet_sources_get(d->sources, diag->span.file);
    bool placed = source && diag->span.end > 0;
    print_chain(d, source, p->out);
    fputs(palette->bold, p->out);
    pnet_put_visible(source ? source->name : "pnet", SIZE_MAX, p->out);
    fputc(':', p->out);
    if (placed) {
        struct pnet_place place = pnet_source_place(d->sources, diag->span.file, diag->span.begin);
        fprintf(p->out, "%u:%u:", (unsigned)place.line, (unsigned)place.column);
    }
    fprintf(p->out, "%s %s%s:%s %s", palette->off, palette->severity[diag->severity],
        severity_words[diag->severity], palette->off, palette->bold);
    pnet_put_visible(diag->message, SIZE_MAX, p->out);
    fprintf(p->out, "%s\n", palette->off);
    if (placed) print_snippets(p, diag);
    print_help(diag->help, p->out);
}

/* Returns the message for the error that ended the compilation when memory was out and no diagnostic could be made; NULL: there
   was none. */
static const char *end_of_memory(const struct pnet_diags *d, char *text, size_t size)
{
    if (!d->arena->failed) return NULL;
    if (!d->arena->full) return "out of memory";
    snprintf(text, size, "the model is too large: it takes more than %d MiB of memory",
        PNET_MAX_BYTES >> 20);
    return text;
}

static const char *plural(int count)
{
    return count == 1 ? "" : "s";
}

void pnet_diags_print(const struct pnet_diags *d, FILE *out, bool colour)
{
    const struct pnet_diag *sorted[2 * PNET_DIAGS_KEPT];
    struct ruler ruler;
    ruler.count = 0;
    struct printer p = {d, out, colour ? &coloured : &plain, &ruler};
    pnet_diags_sorted(d, sorted);
    for (int i = 0; i < d->kept_count; i++) print_one(&p, sorted[i]);
    char text[96];
    struct pnet_diag memory = {.message = end_of_memory(d, text, sizeof text)};
    if (memory.message) print_one(&p, &memory);
    int errors = d->found[PNET_ERROR], warnings = d->found[PNET_WARNING];
    if (errors + warnings > d->kept_count)
        fprintf(
            out, "%d error%s, %d warning%s\n", errors, plural(errors), warnings, plural(warnings));
}

/* Bytes that are not UTF-8, which a file name may hold, become U+FFFD. */
static void json_string(const char *text, FILE *out)
{
    size_t length = strlen(text);
    fputc('"', out);
    for (size_t at = 0; at < length;) {
        uint32_t code;
        int bytes = pnet_utf8_decode(text + at, length - at, &code);
        if (!bytes)
            fputs("\\ufffd", out);
        else if (code == '"' || code == '\\')
            fprintf(out, "\\%c", (int)code);
        else if (is_control(code)) /* all of them have four digits */
            fprintf(out, "\\u%04x", (unsigned)code);
        else
            fwrite(text + at, 1, (size_t)bytes, out);
        at += (size_t)(bytes ? bytes : 1);
    }
    fputc('"', out);
}

static void json_text(const char *key, const char *text, FILE *out)
{
    fprintf(out, ", \"%s\": ", key);
    if (text && *text)
        json_string(text, out);
    else
        fputs("null", out);
}

static void json_place(const struct pnet_diags *d, struct pnet_span span, FILE *out)
{
    const struct pnet_source *source = pnet_sources_get(d->sources, span.file);
    struct pnet_place begin = pnet_source_place(d->sources, span.file, span.begin);
    struct pnet_place end = pnet_source_place(d->sources, span.file, span.end);
    fputs("{\"file\": ", out);
    json_string(source ? source->name : "", out);
    fprintf(out, ", \"line\": %u, \"column\": %u, \"end_line\": %u, \"end_column\": %u",
        (unsigned)begin.line, (unsigned)begin.column, (unsigned)end.line, (unsigned)end.column);
}

static void json_one(const struct pnet_diags *d, const struct pnet_diag *diag, FILE *out)
{
    json_place(d, diag->span, out);
    fprintf(out, ", \"severity\": \"%s\"", severity_words[diag->severity]);
    json_text("message", diag->message, out);
    json_text("label", diag->label, out);
    fputs(", \"second\": ", out);
    if (diag->has_second) {
        json_place(d, diag->second, out);
        json_text("label", diag->second_label, out);
        fputc('}', out);
    } else {
        fputs("null", out);
    }
    json_text("help", diag->help, out);
    fputc('}', out);
}

void pnet_diags_json(const struct pnet_diags *d, FILE *out)
{
    const struct pnet_diag *sorted[2 * PNET_DIAGS_KEPT];
    pnet_diags_sorted(d, sorted);
    fputc('[', out);
    for (int i = 0; i < d->kept_count; i++) {
        fputs(i ? ",\n " : "\n ", out);
        json_one(d, sorted[i], out);
    }
    char text[96];
    struct pnet_diag memory = {.message = end_of_memory(d, text, sizeof text)};
    if (memory.message) {
        fputs(d->kept_count ? ",\n " : "\n ", out);
        json_one(d, &memory, out);
    }
    fputs(d->kept_count || memory.message ? "\n]\n" : "]\n", out);
}
