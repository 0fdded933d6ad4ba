#include "lang/diag_internal.h"
#include "lang/internal.h"

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

/* Would the character move the cursor, or turn the direction of the text? */
static bool is_control(uint32_t code)
{
    static const struct range controls[] = {
        {0, 0x1f}, {0x7f, 0x9f}, {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}};
    return in_ranges(code, controls, sizeof controls / sizeof *controls);
}

/* Columns a character takes on a terminal (Unicode, annex 11: wide East Asian ones take two). */
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

/* One character of a line as it is shown: its bytes and the columns it takes from `column` on. */
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

/* Column (from 0) at which byte `offset` of a line is shown. */
static int column_of(const char *line, size_t length, size_t offset)
{
    int column = 0;
    for (size_t at = 0; at < offset && at < length;) {
        struct cell c = next_cell(line + at, length - at, column);
        at += (size_t)c.bytes;
        column += c.width;
    }
    return column;
}

/* Something underlined on a line. */
struct mark {
    int begin, end; /* columns of the whole line */
    bool second;
    const char *label; /* or NULL */
};

/* A line of source and what is marked on it. */
struct snippet {
    FILE *out;
    const struct palette *palette;
    const char *severity_colour;
    const char *text;
    size_t length;
    uint32_t number;
    int from, to; /* columns shown */
    int width;    /* of the whole line */
};

static struct snippet snippet_new(const struct pnet_diags *d, struct pnet_span span)
{
    struct snippet s = {0};
    s.number = pnet_source_place(d->sources, span.file, span.begin).line;
    struct pnet_span line = pnet_source_line(d->sources, span.file, s.number);
    s.text = pnet_sources_get(d->sources, span.file)->text + line.begin;
    s.length = line.end - line.begin;
    s.width = column_of(s.text, s.length, s.length);
    int begin = column_of(s.text, s.length, span.begin - line.begin);
    s.from = s.width > WINDOW && begin > WINDOW - WINDOW_LEAD ? begin - WINDOW_LEAD : 0;
    s.to = s.width > WINDOW ? s.from + WINDOW : s.width;
    return s;
}

static struct mark mark_new(
    const struct pnet_diags *d, struct pnet_span span, bool second, const char *label)
{
    uint32_t number = pnet_source_place(d->sources, span.file, span.begin).line;
    struct pnet_span line = pnet_source_line(d->sources, span.file, number);
    const char *text = pnet_sources_get(d->sources, span.file)->text + line.begin;
    size_t length = line.end - line.begin;
    struct mark m = {.second = second, .label = label && *label ? label : NULL};
    m.begin = column_of(text, length, span.begin - line.begin);
    m.end = column_of(text, length, span.end - line.begin);
    if (m.end <= m.begin) m.end = m.begin + 1;
    return m;
}

static void print_source(const struct snippet *s)
{
    bool cut_left = s->from > 0, cut_right = s->to < s->width;
    fprintf(s->out, "%5u | %s", (unsigned)s->number, cut_left ? "..." : "");
    int column = 0, first = s->from + (cut_left ? 3 : 0), last = s->to - (cut_right ? 3 : 0);
    for (size_t at = 0; at < s->length && column < last;) {
        struct cell c = next_cell(s->text + at, s->length - at, column);
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

/* The line below, with one or two marks; the label of the last stands behind it. */
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
    if (last->label) fprintf(s->out, " %s", last->label);
    fprintf(s->out, "%s\n", *colour ? s->palette->off : "");
}

static void print_snippets(const struct pnet_diags *d, const struct pnet_diag *diag, FILE *out,
    const struct palette *palette)
{
    struct snippet s = snippet_new(d, diag->span);
    s.out = out;
    s.palette = palette;
    s.severity_colour = palette->severity[diag->severity];
    struct mark marks[2] = {mark_new(d, diag->span, false, diag->label)};
    print_source(&s);
    if (!diag->has_second) {
        print_marks(&s, marks, 1);
        return;
    }
    marks[1] = mark_new(d, diag->second, true, diag->second_label);
    struct pnet_place place = pnet_source_place(d->sources, diag->second.file, diag->second.begin);
    bool same_file = diag->second.file == diag->span.file;
    if (same_file && place.line == s.number && marks[1].begin >= s.from && marks[1].begin < s.to) {
        print_marks(&s, marks, 2);
        const struct mark *left = &marks[marks[0].begin >= marks[1].begin];
        if (left->label) print_marks(&s, left, 1);
        return;
    }
    print_marks(&s, marks, 1);
    struct snippet other = snippet_new(d, diag->second);
    other.out = out;
    other.palette = palette;
    if (!same_file) {
        const char *name = pnet_sources_get(d->sources, diag->second.file)->name;
        fprintf(out, "  in %s:%u:%u:\n", name, (unsigned)place.line, (unsigned)place.column);
    }
    print_source(&other);
    print_marks(&other, marks + 1, 1);
}

static void print_help(const char *help, FILE *out)
{
    while (help) {
        const char *end = strchr(help, '\n');
        fprintf(out, "  help: %.*s\n", (int)(end ? end - help : (ptrdiff_t)strlen(help)), help);
        help = end ? end + 1 : NULL;
    }
}

static void print_chain(const struct pnet_diags *d, const struct pnet_source *s, FILE *out)
{
    while (s && s->included_from.end > s->included_from.begin) {
        struct pnet_span from = s->included_from;
        struct pnet_place place = pnet_source_place(d->sources, from.file, from.begin);
        s = pnet_sources_get(d->sources, from.file);
        if (s)
            fprintf(out, "in file included from %s:%u:%u:\n", s->name, (unsigned)place.line,
                (unsigned)place.column);
    }
}

static void print_one(const struct pnet_diags *d, const struct pnet_diag *diag, FILE *out,
    const struct palette *palette)
{
    const struct pnet_source *source = pnet_sources_get(d->sources, diag->span.file);
    bool placed = source && diag->span.end > 0;
    print_chain(d, source, out);
    fprintf(out, "%s%s:", palette->bold, source ? source->name : "pnet");
    if (placed) {
        struct pnet_place place = pnet_source_place(d->sources, diag->span.file, diag->span.begin);
        fprintf(out, "%u:%u:", (unsigned)place.line, (unsigned)place.column);
    }
    fprintf(out, "%s %s%s:%s %s%s%s\n", palette->off, palette->severity[diag->severity],
        severity_words[diag->severity], palette->off, palette->bold, diag->message, palette->off);
    if (placed) print_snippets(d, diag, out, palette);
    print_help(diag->help, out);
}

static const char *plural(int count)
{
    return count == 1 ? "" : "s";
}

void pnet_diags_print(const struct pnet_diags *d, FILE *out, bool colour)
{
    const struct pnet_diag *sorted[2 * PNET_DIAGS_KEPT];
    pnet_diags_sorted(d, sorted);
    for (int i = 0; i < d->kept_count; i++)
        print_one(d, sorted[i], out, colour ? &coloured : &plain);
    int errors = d->found[PNET_ERROR], warnings = d->found[PNET_WARNING];
    if (errors + warnings > d->kept_count)
        fprintf(
            out, "%d error%s, %d warning%s\n", errors, plural(errors), warnings, plural(warnings));
}

/* Bytes that are no UTF-8 (a file name may hold any) become U+FFFD. */
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
        else if (code < 0x20)
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

void pnet_diags_json(const struct pnet_diags *d, FILE *out)
{
    const struct pnet_diag *sorted[2 * PNET_DIAGS_KEPT];
    pnet_diags_sorted(d, sorted);
    fputc('[', out);
    for (int i = 0; i < d->kept_count; i++) {
        const struct pnet_diag *diag = sorted[i];
        fputs(i ? ",\n " : "\n ", out);
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
    fputs(d->kept_count ? "\n]\n" : "]\n", out);
}
