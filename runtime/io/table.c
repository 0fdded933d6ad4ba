/* Tables in text: XYZ, CSV, TXT, PTS. One point a line; values separated by blanks, or by commas, semicolons or single tabs with
   blanks around them. Before the first point there may be any number of comments (# // %), and after these a line of names,
   or the number of points alone on a line. */
#include "runtime/io/column.h"
#include "runtime/io/format.h"
#include "runtime/io/matrix.h"
#include "runtime/io/text.h"
#include "runtime/io/writing.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct table {
    struct pnet_text text;
    struct pnet_span *names; /* [name_count], or NULL */
    int name_count;
    bool named;   /* names come from a line of their own, not from a comment */
    bool counted; /* the file says how many points it holds */
    uint64_t count;
    char
        separator; /* of the points: , or ; or a tab, or a blank for blanks and tabs in any number */
    bool indented; /* the lines of points begin with tabs that separate nothing */
    bool commas;   /* every point so far may have decimal commas */
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Tells whether a character around values means nothing. */
static bool is_filler(char c, char separator)
{
    return c == ' ' || (c == '\t' && separator != '\t');
}

static struct pnet_span trim(struct pnet_span s)
{
    while (s.at < s.end && is_blank(*s.at)) s.at++;
    while (s.end > s.at && is_blank(s.end[-1])) s.end--;
    return s;
}

/* Takes the comment's mark away; false: not a comment. */
static bool uncomment(struct pnet_span *line)
{
    struct pnet_span s = trim(*line);
    const char *start = s.at;
    if (s.end - s.at >= 2 && s.at[0] == '/' && s.at[1] == '/') s.at += 2;
    while (s.at < s.end && (*s.at == '#' || *s.at == '%')) s.at++;
    if (s.at > start) *line = s;
    return s.at > start;
}

/* A tab is the separator where there is one, and no value holds a blank: else blanks separate too. */
static char find_separator(struct pnet_span line)
{
    bool quoted = false, tab = false, value = false, blank = false, apart = false;
    for (const char *p = line.at; p < line.end; p++) {
        if (*p == '"')
            quoted = !quoted;
        else if (!quoted && (*p == ',' || *p == ';'))
            return *p;
        if (!quoted && *p == '\t') {
            tab = true;
            value = blank = false;
        } else if (!quoted && *p == ' ') {
            blank = value;
        } else {
            apart |= blank;
            value = true;
        }
    }
    return tab && !apart ? '\t' : ' ';
}

/* Takes the next value, without quotes, from the front of `line`. Returns false if there is none. A separator at the very
   end closes the last value and does not begin another. */
static bool take_value(struct pnet_span *line, char separator, struct pnet_span *value)
{
    const char *p = line->at, *end = line->end;
    while (p < end && is_filler(*p, separator)) p++;
    if (p == end) return false;
    if (*p == '"') {
        const char *close = memchr(p + 1, '"', (size_t)(end - p - 1));
        *value = (struct pnet_span){p + 1, close ? close : end};
        p = close ? close + 1 : end;
        while (p < end && is_filler(*p, separator)) p++;
    } else {
        value->at = p;
        while (p < end && *p != separator && !(separator == ' ' && *p == '\t')) p++;
        value->end = p;
        while (value->end > value->at && is_blank(value->end[-1])) value->end--;
    }
    if (p < end && *p == separator) p++;
    line->at = p;
    return true;
}

static int count_values(struct pnet_span line, int *numbers)
{
    char separator = find_separator(line);
    struct pnet_span value;
    double number;
    int n = 0;
    for (*numbers = 0; n <= PNET_COLUMNS_MOST && take_value(&line, separator, &value); n++)
        *numbers +=
            value.at < value.end && pnet_number_parse(value.at, value.end, &number) == value.end;
    return n;
}

/* Returns 0 to 2 for x, y and z; 3 to 5 for the coordinates of ParaView and VeloView, Points:0 and Points_m_XYZ:0; -1: the name
   is another one. */
static int axis_of(struct pnet_span name)
{
    static const char *const axes[] = {"x", "y", "z"}, *const arrays[] = {"Points", "Points_m_XYZ"};
    size_t n = pnet_span_size(name);
    for (int a = 0; a < 3; a++)
        if (pnet_span_is_nocase(name, axes[a])) return a;
    if (n < 2 || (name.end[-2] != ':' && name.end[-2] != '_') || name.end[-1] < '0' ||
        name.end[-1] > '2')
        return -1;
    for (int i = 0; i < 2; i++)
        if (pnet_span_is_nocase((struct pnet_span){name.at, name.end - 2}, arrays[i]))
            return 3 + name.end[-1] - '0';
    return -1;
}

/* Tells whether names have all coordinates, of either kind. */
static bool names_axes_apart(struct pnet_span line, char separator)
{
    struct pnet_span value;
    unsigned seen = 0;
    while (take_value(&line, separator, &value)) {
        int axis = axis_of(value);
        if (axis >= 0) seen |= 1U << axis;
    }
    return (seen & 7) == 7 || (seen & 070) == 070;
}

/* Names in quotes or between tabs may have blanks. */
static char find_name_separator(struct pnet_span line)
{
    char separator = find_separator(line);
    bool tabs = memchr(line.at, '\t', pnet_span_size(line)) != NULL;
    return separator == ' ' && tabs && names_axes_apart(line, '\t') ? '\t' : separator;
}

static enum pnet_status take_names(struct table *t, struct pnet_span line, struct pnet_error *e)
{
    char separator = find_name_separator(line);
    struct pnet_span rest = line, value;
    int n = 0;
    while (n <= PNET_COLUMNS_MOST && take_value(&rest, separator, &value)) n++;
    if (n > PNET_COLUMNS_MOST)
        return pnet_text_error(&t->text, e, "more than %d columns", PNET_COLUMNS_MOST);
    struct pnet_span *names = calloc((size_t)n + 1, sizeof *names);
    if (!names) return pnet_error_memory(e);
    for (int i = 0; i < n; i++) take_value(&line, separator, &names[i]);
    free(t->names);
    t->names = names;
    t->name_count = n;
    return PNET_OK;
}

/* a,b, : the last value is missing, if one was to come. */
static bool is_open(struct pnet_span line, char separator)
{
    while (line.end > line.at && is_filler(line.end[-1], separator)) line.end--;
    return separator != ' ' && line.end > line.at && line.end[-1] == separator;
}

/* A comment names the columns if x, y and z are among its words. */
static bool names_axes(struct pnet_span line)
{
    return names_axes_apart(line, find_name_separator(line));
}

/* Reads up to the first point, whose line is in `line`; *found false: there is none. */
static enum pnet_status parse_head(
    struct table *t, struct pnet_span *line, bool *found, struct pnet_error *e)
{
    while ((*found = pnet_text_full_line(&t->text, line))) {
        enum pnet_status status = PNET_OK;
        int numbers;
        if (uncomment(line)) {
            if (!t->named && names_axes(*line)) status = take_names(t, *line, e);
            if (status != PNET_OK) return status;
            continue;
        }
        int n = count_values(*line, &numbers);
        if (numbers == 1 && n == 1 && !t->counted && !t->named) {
            if (!pnet_span_count(trim(*line), INT64_MAX, &t->count))
                return pnet_text_error(&t->text, e, "expected a number of points, found \"%s\"",
                    pnet_span_quote(*line).text);
            t->counted = true;
            continue;
        }
        if (numbers > 0 || t->named) return PNET_OK;
        if (pnet_span_decimal_commas(*line, false))
            return pnet_text_error_commas(&t->text, *line, e);
        if (!names_axes(*line))
            return pnet_text_error(&t->text, e,
                "expected numbers, or names with x, y and z, found \"%s\"",
                pnet_span_quote(*line).text);
        t->named = true;
        status = take_names(t, *line, e);
        if (status != PNET_OK) return status;
    }
    return PNET_OK;
}

/* Returns the number of columns. `line`: of the first point, if it was found. */
static int find_width(struct table *t, struct pnet_span line, bool found)
{
    int numbers, n = found ? count_values(line, &numbers) : 3;
    if (t->names && (t->named || !found))
        return t->name_count; /* a line may leave the last value open */
    if (t->names && t->name_count == n + 1 && is_open(line, find_separator(line))) return n + 1;
    if (t->names && t->name_count != n) {
        free(t->names); /* the comment was a sentence */
        t->names = NULL;
    }
    return n;
}

/* Names of the values that follow the coordinates in Leica's PTS. */
static const struct pnet_span *pts_names(
    const struct table *t, int width, struct pnet_span names[7])
{
    static const char *const four[] = {"intensity", "red", "green", "blue"};
    if (!pnet_path_ends(t->text.path, ".pts") || (width != 4 && width != 6 && width != 7))
        return NULL;
    const char *const *words = width == 6 ? four + 1 : four;
    for (int i = 3; i < width; i++) names[i] = pnet_span_of(words[i - 3]);
    return names;
}

static enum pnet_status find_axes(
    const struct table *t, int width, int axis[3], struct pnet_error *e)
{
    unsigned seen = 0;
    for (int a = 0; a < 3; a++) axis[a] = a;
    if (!t->names) return PNET_OK;
    for (int i = 0; i < width; i++) {
        int a = axis_of(t->names[i]);
        if (a >= 0) seen |= 1U << a;
        if (a >= 3) axis[a - 3] = i;
    }
    if ((seen & 7) != 7 && (seen & 070) == 070) return PNET_OK;
    struct pnet_columns columns = {.count = 0};
    enum pnet_status status = PNET_OK;
    for (int i = 0; i < width && status == PNET_OK; i++)
        status = pnet_columns_add(&columns, t->names[i], PNET_F64, NULL, t->text.path, e);
    if (status == PNET_OK)
        status = pnet_columns_axes(&columns, axis, pnet_text_place(&t->text).text, e);
    pnet_columns_free(&columns);
    return status;
}

/* 1,5,2,25,3,0 under three names */
static bool is_doubled(const struct table *t, const struct pnet_matrix *m, struct pnet_span line)
{
    int numbers, n = count_values(line, &numbers);
    return t->named && t->separator == ',' && n == 2 * m->width && numbers == n &&
           !memchr(line.at, '.', pnet_span_size(line));
}

static enum pnet_status parse_values(struct table *t, struct pnet_matrix *m, struct pnet_span line,
    double *row, struct pnet_error *e)
{
    struct pnet_span rest = line, value;
    char separator = t->separator;
    int k = 0;
    if (separator == '\t' && find_separator(line) == ' ') separator = ' ';
    for (; k < m->width && take_value(&rest, separator, &value); k++)
        if (!pnet_matrix_set(m, row, k, value))
            return pnet_text_error(&t->text, e, "column %d: expected a number, found \"%s\"", k + 1,
                pnet_span_quote(value).text);
    if (k == m->width - 1 && is_open(line, separator))
        pnet_matrix_set(m, row, k++, (struct pnet_span){NULL, NULL});
    if (k < m->width)
        return pnet_text_error(&t->text, e, "expected %d values, found %d", m->width, k);
    rest = trim(rest);
    if (rest.at < rest.end)
        return pnet_text_error(&t->text, e,
            "expected %d values and no more, found \"%s\" behind them", m->width,
            pnet_span_quote(rest).text);
    return PNET_OK;
}

static enum pnet_status parse_row(struct table *t, struct pnet_matrix *m, struct pnet_span line,
    double *row, struct pnet_error *e)
{
    if (t->indented) line = trim(line);
    enum pnet_status status = parse_values(t, m, line, row, e);
    if (status == PNET_OK) t->commas = t->commas && pnet_span_decimal_commas(line, true);
    if (status == PNET_BAD_DATA &&
        (pnet_span_decimal_commas(line, false) || is_doubled(t, m, line)))
        return pnet_text_error_commas(&t->text, line, e);
    return status;
}

/* After the counted points there may be a second scan, with a count of its own. Other text is ignored. */
static bool another_scan(struct table *t, struct pnet_span line)
{
    uint64_t more;
    return pnet_span_count(trim(line), INT64_MAX, &more) &&
           !__builtin_add_overflow(t->count, more, &t->count);
}

static enum pnet_status parse_rows(
    struct table *t, struct pnet_matrix *m, struct pnet_span line, struct pnet_error *e)
{
    bool more = true;
    struct pnet_text first = t->text;
    struct pnet_span first_line = line;
    t->separator = find_separator(line);
    t->commas = pnet_span_decimal_commas(line, true);
    while (more) {
        struct pnet_span comment = line;
        if (t->counted && (uint64_t)m->rows == t->count) {
            if (!another_scan(t, line)) break;
        } else if (!uncomment(&comment)) {
            uint64_t length = pnet_span_size(line) + 1;
            double *row = pnet_matrix_row(m, (uint64_t)(t->text.end - t->text.at) / length);
            if (!row) return pnet_error_memory(e);
            enum pnet_status status = parse_row(t, m, line, row, e);
            if (status != PNET_OK) return status;
        }
        more = pnet_text_full_line(&t->text, &line);
    }
    if (!t->commas || !m->rows) return PNET_OK;
    return pnet_text_error_commas(&first, first_line, e);
}

bool pnet_table_probe(const struct pnet_bytes *b)
{
    bool digit = false;
    for (size_t i = 0; i < b->size && i < 4096; i++) {
        uint8_t c = b->data[i];
        if ((c < 32 && c != '\n' && c != '\r' && c != '\t') || c == 127) return false;
        digit |= c >= '0' && c <= '9';
    }
    return digit;
}

enum pnet_status pnet_table_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e)
{
    struct table t = {.separator = ' '};
    struct pnet_matrix m = {.width = 0};
    struct pnet_span line, pts[7] = {{NULL, NULL}}; /* the coordinates have no names */
    bool found;
    int axis[3], width;
    pnet_text_begin(&t.text, b, path);
    if (b->size >= 3 && memcmp(b->data, "\xef\xbb\xbf", 3) == 0)
        t.text.at += 3; /* a mark of UTF-8 */
    enum pnet_status status = parse_head(&t, &line, &found, e);
    if (status != PNET_OK) goto out;
    /* Without a line of names, an empty first cell is indentation, not a missing coordinate. */
    t.indented = found && !t.named && *line.at == '\t';
    if (t.indented) line = trim(line);
    width = find_width(&t, line, found);
    /* A cloud may be empty only if its file says so: by names, or by a count of 0. */
    if (!found && !t.names && !(t.counted && t.count == 0))
        status = pnet_text_error(&t.text, e, "the file ends, expected points: x y z");
    else if (width < 3 && found && pnet_span_decimal_commas(line, false))
        status = pnet_text_error_commas(&t.text, line, e);
    else if (width < 3 || width > PNET_COLUMNS_MOST)
        status = pnet_text_error(
            &t.text, e, "expected 3 to %d values (x y z ...), found %d", PNET_COLUMNS_MOST, width);
    if (status == PNET_OK) status = find_axes(&t, width, axis, e);
    if (status == PNET_OK && !pnet_matrix_begin(&m, width)) status = pnet_error_memory(e);
    if (status == PNET_OK && found) status = parse_rows(&t, &m, line, e);
    if (status == PNET_OK && t.counted && (uint64_t)m.rows != t.count)
        status = pnet_text_error(&t.text, e,
            "expected %" PRIu64 " points as the file says, found %" PRId64, t.count, m.rows);
    if (status == PNET_OK)
        status =
            pnet_matrix_cloud(&m, t.names ? t.names : pts_names(&t, width, pts), axis, path, c, e);
out:
    pnet_matrix_free(&m);
    free(t.names);
    return status;
}

/* Text to be written, collected because numbers are short, and a call of the stream for each would be slower than printing
   it. */
struct sink {
    FILE *f;
    size_t used;
    char text[1 << 14];
};
enum { VALUE_MOST = 40 };

static void flush(struct sink *s)
{
    fwrite(s->text, 1, s->used, s->f);
    s->used = 0;
}

/* Makes room for a value and one character before or after it. */
static char *make_room(struct sink *s)
{
    if (sizeof s->text - s->used < VALUE_MOST + 2) flush(s);
    return s->text + s->used;
}

static void write_value(struct sink *s, char before, const struct pnet_field *f, int64_t row)
{
    char *to = make_room(s);
    int n;
    *to++ = before;
    if (f->type == PNET_I64)
        n = snprintf(to, VALUE_MOST, "%" PRId64, ((const int64_t *)f->data)[row]);
    else if (f->type == PNET_U64)
        n = snprintf(to, VALUE_MOST, "%" PRIu64, ((const uint64_t *)f->data)[row]);
    else
        n = pnet_number_print(to, VALUE_MOST, pnet_field_get(f, row), f->type == PNET_F32);
    s->used += (size_t)n + 1;
}

struct writing {
    struct pnet_xyz_seen seen;
    bool single; /* coordinates are float32 */
    char separator;
    struct sink sink;
};

static enum pnet_status begin_writing(struct pnet_writing *w, struct pnet_error *e)
{
    struct writing *own = w->own;
    (void)e;
    own->separator = pnet_path_ends(w->path, ".csv") ? ',' : ' ';
    own->sink.f = w->f;
    w->measures = w->like->xyz_type == PNET_F32;
    return PNET_OK;
}

static enum pnet_status see_rows(
    struct pnet_writing *w, const struct pnet_cloud *piece, struct pnet_error *e)
{
    struct writing *own = w->own;
    (void)e;
    pnet_xyz_see(&own->seen, piece);
    return PNET_OK;
}

/* Writes the head. CSV begins with the names; other files with a comment of the names, if there are more than x y z or no
   points at all. PTS begins with the number of points. */
static enum pnet_status write_head(struct pnet_writing *w, struct pnet_error *e)
{
    struct writing *own = w->own;
    const struct pnet_cloud *c = w->like;
    char separator = own->separator;
    bool csv = pnet_path_ends(w->path, ".csv");
    (void)e;
    own->single = pnet_xyz_type(c, &own->seen) == PNET_F32;
    if (pnet_path_ends(w->path, ".pts")) fprintf(w->f, "%" PRId64 "\n", w->rows);
    if (!csv && !c->field_count && w->rows) return PNET_OK;
    fprintf(w->f, "%sx%cy%cz", csv ? "" : "# ", separator, separator);
    for (int i = 0; i < c->field_count; i++) {
        char name[256];
        pnet_name_word(c->fields[i].name, name, sizeof name);
        for (char *p = name; *p; p++)
            if (*p == ',' || *p == ';' || *p == '"') *p = '_';
        fprintf(w->f, "%c%s", separator, name);
    }
    fputc('\n', w->f);
    return PNET_OK;
}

static enum pnet_status put_rows(
    struct pnet_writing *w, const struct pnet_cloud *c, struct pnet_error *e)
{
    struct writing *own = w->own;
    struct sink *s = &own->sink;
    (void)e;
    for (int64_t row = 0; row < c->rows && !ferror(w->f); row++) {
        for (int a = 0; a < 3; a++) {
            double v = pnet_cloud_coordinate(c, row, a);
            char *to = make_room(s);
            int n = pnet_number_print(to, VALUE_MOST, v, own->single);
            to[n] = a < 2 ? own->separator : '\0';
            s->used += (size_t)n + (a < 2);
        }
        for (int i = 0; i < c->field_count; i++) write_value(s, own->separator, &c->fields[i], row);
        *make_room(s) = '\n';
        s->used++;
    }
    flush(s);
    return PNET_OK;
}

const struct pnet_writing_kind pnet_table_writing = {.size = sizeof(struct writing),
    .begin = begin_writing,
    .see = see_rows,
    .head = write_head,
    .put = put_rows};
