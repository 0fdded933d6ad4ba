/* PLY, the Stanford polygon format (Turk, 1994): the element "vertex"; the others are passed over.
 */
#include "runtime/io/column.h"
#include "runtime/io/format.h"
#include "runtime/io/rows.h"
#include "runtime/io/text.h"
#include "runtime/io/writing.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENTS_MOST = 64 };

enum order { ASCII, LITTLE, BIG };

struct element {
    struct pnet_span name;
    uint64_t rows;
    struct pnet_columns columns;
};

struct ply {
    struct pnet_text text; /* after the header: at the first byte of the body */
    bool has_order;
    enum order order;
    int element_count;
    struct element elements[ELEMENTS_MOST];
};

static const struct {
    const char *name;
    enum pnet_scalar type;
} types[] = {
    {"char", PNET_I8},
    {"uchar", PNET_U8},
    {"short", PNET_I16},
    {"ushort", PNET_U16},
    {"int", PNET_I32},
    {"uint", PNET_U32},
    {"float", PNET_F32},
    {"double", PNET_F64},
    {"int8", PNET_I8},
    {"uint8", PNET_U8},
    {"int16", PNET_I16},
    {"uint16", PNET_U16},
    {"int32", PNET_I32},
    {"uint32", PNET_U32},
    {"float32", PNET_F32},
    {"float64", PNET_F64},
    /* Beyond the original, but written by several programs. */
    {"bool", PNET_U8},
    {"int64", PNET_I64},
    {"uint64", PNET_U64},
};

bool pnet_ply_probe(const struct pnet_bytes *b)
{
    return b->size > 3 && memcmp(b->data, "ply", 3) == 0 && memchr(" \t\r\n", b->data[3], 4);
}

static enum pnet_status parse_type(
    struct ply *p, struct pnet_span *line, enum pnet_scalar *type, struct pnet_error *e)
{
    struct pnet_span word;
    pnet_span_word(line, &word);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (!pnet_span_is(word, types[i].name)) continue;
        *type = types[i].type;
        return PNET_OK;
    }
    return pnet_text_error(&p->text, e, "expected a type (float, uchar, int ...), found \"%s\"",
        pnet_span_quote(word).text);
}

static enum pnet_status parse_format(struct ply *p, struct pnet_span line, struct pnet_error *e)
{
    static const char *const names[] = {"ascii", "binary_little_endian", "binary_big_endian"};
    struct pnet_span word, version;
    pnet_span_word(&line, &word);
    for (int i = 0; i < 3; i++) {
        if (!pnet_span_is(word, names[i])) continue;
        if (!pnet_span_word(&line, &version) || !pnet_span_is(version, "1.0"))
            return pnet_text_error(
                &p->text, e, "expected version 1.0, found \"%s\"", pnet_span_quote(version).text);
        p->order = (enum order)i;
        p->has_order = true;
        return PNET_OK;
    }
    return pnet_text_error(&p->text, e,
        "expected ascii, binary_little_endian or binary_big_endian, found \"%s\"",
        pnet_span_quote(word).text);
}

static enum pnet_status parse_element(struct ply *p, struct pnet_span line, struct pnet_error *e)
{
    struct pnet_span name, count;
    uint64_t rows;
    if (p->element_count == ELEMENTS_MOST)
        return pnet_text_error(&p->text, e, "more than %d elements", ELEMENTS_MOST);
    if (!pnet_span_word(&line, &name) || !pnet_span_word(&line, &count) ||
        !pnet_span_count(count, INT64_MAX, &rows))
        return pnet_text_error(&p->text, e, "expected: element NAME COUNT");
    p->elements[p->element_count++] = (struct element){.name = name, .rows = rows};
    return PNET_OK;
}

static enum pnet_status parse_property(struct ply *p, struct pnet_span line, struct pnet_error *e)
{
    if (!p->element_count) return pnet_text_error(&p->text, e, "property before the first element");
    struct pnet_columns *t = &p->elements[p->element_count - 1].columns;
    struct pnet_span rest = line, word;
    enum pnet_scalar type = PNET_U8, count_type = PNET_U8;
    bool list = pnet_span_word(&rest, &word) && pnet_span_is(word, "list");
    enum pnet_status status = PNET_OK;
    if (list) {
        line = rest;
        status = parse_type(p, &line, &count_type, e);
        if (status == PNET_OK && (count_type == PNET_F32 || count_type == PNET_F64))
            return pnet_text_error(
                &p->text, e, "expected an integer type for the length of a list");
    }
    if (status == PNET_OK) status = parse_type(p, &line, &type, e);
    if (status != PNET_OK) return status;
    if (!pnet_span_word(&line, &word)) return pnet_text_error(&p->text, e, "expected a name");
    struct pnet_column *c;
    status = pnet_columns_add(t, word, type, &c, pnet_text_place(&p->text).text, e);
    if (status != PNET_OK) return status;
    c->list = c->skip = list;
    c->count_type = count_type;
    c->swap = p->order == BIG;
    return PNET_OK;
}

static enum pnet_status parse_header(struct ply *p, struct pnet_error *e)
{
    struct pnet_span line, word;
    if (!pnet_text_line(&p->text, &line) || !pnet_span_word(&line, &word) ||
        !pnet_span_is(word, "ply"))
        return pnet_text_error(&p->text, e, "expected \"ply\"");
    enum pnet_status status = PNET_OK;
    while (status == PNET_OK) {
        if (!pnet_text_line(&p->text, &line))
            return pnet_text_error(&p->text, e, "the file ends, expected end_header");
        if (!pnet_span_word(&line, &word) || pnet_span_is(word, "comment") ||
            pnet_span_is(word, "obj_info"))
            continue;
        if (pnet_span_is(word, "end_header")) break;
        if (pnet_span_is(word, "format"))
            status = parse_format(p, line, e);
        else if (!p->has_order)
            return pnet_text_error(&p->text, e, "expected the line \"format ...\"");
        else if (pnet_span_is(word, "element"))
            status = parse_element(p, line, e);
        else if (pnet_span_is(word, "property"))
            status = parse_property(p, line, e);
        else
            return pnet_text_error(&p->text, e,
                "expected element, property, comment or end_header, found \"%s\"",
                pnet_span_quote(word).text);
    }
    if (status == PNET_OK && !p->has_order)
        return pnet_text_error(&p->text, e, "expected the line \"format ...\" before end_header");
    return status;
}

/* Returns the value of any integer type as an unsigned one; a negative value becomes too large for any file. */
static uint64_t load_count(const uint8_t *at, enum pnet_scalar type, bool swap)
{
    size_t size = pnet_scalar_size(type);
    uint64_t value = 0;
    assert(size);
    for (size_t i = 0; i < size; i++) value |= (uint64_t)at[i] << 8 * (swap ? size - 1 - i : i);
    bool negative = (type == PNET_I8 || type == PNET_I16 || type == PNET_I32 || type == PNET_I64) &&
                    value >> (8 * size - 1);
    return negative ? UINT64_MAX : value;
}

static enum pnet_status cut_short(
    const struct ply *p, const struct element *el, uint64_t row, struct pnet_error *e)
{
    return pnet_byte_error(p->text.path, (uint64_t)(p->text.end - p->text.begin), e,
        "the file ends in element \"%s\", row %" PRIu64 " of %" PRIu64,
        pnet_span_quote(el->name).text, row, el->rows);
}

/* Walks one binary row with lists from `at`, and copies its other values to `record` (or NULL). Returns the address after
   it; NULL: the file ends first. */
static const char *walk_row(
    const struct pnet_columns *t, const char *at, const char *end, uint8_t *record)
{
    for (int i = 0; i < t->count; i++) {
        const struct pnet_column *c = &t->items[i];
        size_t size = pnet_scalar_size(c->type), left = (size_t)(end - at);
        if (c->list) {
            size_t head = pnet_scalar_size(c->count_type);
            if (left < head) return NULL;
            uint64_t length = load_count((const uint8_t *)at, c->count_type, c->swap);
            if (length > (left - head) / size) return NULL;
            at += head + (size_t)length * size;
            continue;
        }
        if (left < size) return NULL;
        if (record) {
            memcpy(record, at, size);
            record += size;
        }
        at += size;
    }
    return at;
}

static bool has_lists(const struct pnet_columns *t)
{
    for (int i = 0; i < t->count; i++)
        if (t->items[i].list) return true;
    return false;
}

/* Skips an element before the vertices. */
static enum pnet_status pass_element(struct ply *p, struct element *el, struct pnet_error *e)
{
    struct pnet_columns *t = &el->columns;
    struct pnet_span line;
    if (!t->count) return PNET_OK;
    if (p->order == ASCII) {
        for (uint64_t row = 0; row < el->rows; row++)
            if (!pnet_text_full_line(&p->text, &line)) return cut_short(p, el, row, e);
        return PNET_OK;
    }
    if (!has_lists(t)) {
        size_t stride = pnet_columns_pack(t, (const uint8_t *)p->text.at);
        uint64_t there = (uint64_t)(p->text.end - p->text.at) / stride;
        if (el->rows > there) return cut_short(p, el, there, e);
        p->text.at += el->rows * stride;
        return PNET_OK;
    }
    for (uint64_t row = 0; row < el->rows; row++) {
        p->text.at = walk_row(t, p->text.at, p->text.end, NULL);
        if (!p->text.at) return cut_short(p, el, row, e);
    }
    return PNET_OK;
}

/* Parses text, or copies binary rows with lists, into records of the table's own. */
static enum pnet_status gather_rows(struct ply *p, struct element *el, struct pnet_error *e)
{
    struct pnet_columns *t = &el->columns;
    size_t stride = pnet_columns_stride(t), least = 0;
    /* In text a value takes at least a digit and a separator, in binary its own size. */
    for (int i = 0; i < t->count; i++)
        least += p->order == ASCII ? 2
                                   : pnet_scalar_size(t->items[i].list ? t->items[i].count_type
                                                                       : t->items[i].type);
    assert(least); /* there are columns: x, y and z */
    uint64_t there = ((uint64_t)(p->text.end - p->text.at) + 1) / least;
    if (el->rows > there) return cut_short(p, el, there, e);
    enum pnet_status status = pnet_bytes_fit(p->text.path, el->rows * stride, e);
    if (status != PNET_OK) return status;
    t->buffer = malloc(el->rows ? (size_t)el->rows * stride : 1);
    if (!t->buffer) return pnet_error_memory(e);
    pnet_columns_pack(t, t->buffer);

    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the columns free their buffer */
    struct pnet_span line;
    for (uint64_t row = 0; row < el->rows; row++) {
        if (p->order == ASCII) {
            if (!pnet_text_full_line(&p->text, &line)) return cut_short(p, el, row, e);
            status = pnet_columns_parse(t, (int64_t)row, &p->text, line, e);
            if (status != PNET_OK) return status;
            continue;
        }
        p->text.at = walk_row(t, p->text.at, p->text.end, t->buffer + row * stride);
        if (!p->text.at) return cut_short(p, el, row, e);
    }
    if (p->order == ASCII)
        for (int i = 0; i < t->count; i++) t->items[i].swap = false;
    return PNET_OK;
}

static enum pnet_status find_vertices(
    struct ply *p, struct element *el, struct pnet_rows *r, struct pnet_error *e)
{
    struct pnet_columns *t = &el->columns;
    enum pnet_status status = pnet_columns_axes(t, r->axis, pnet_text_place(&p->text).text, e);
    if (status != PNET_OK) return status;
    r->count = (int64_t)el->rows;
    if (p->order == ASCII || has_lists(t)) return gather_rows(p, el, e);
    r->records = (const uint8_t *)p->text.at;
    r->record = pnet_columns_pack(t, r->records);
    uint64_t there = (uint64_t)(p->text.end - p->text.at) / r->record;
    return el->rows > there ? cut_short(p, el, there, e) : PNET_OK;
}

static int find_vertex(const struct ply *p)
{
    int vertex = 0;
    while (vertex < p->element_count && !pnet_span_is(p->elements[vertex].name, "vertex")) vertex++;
    return vertex;
}

static void free_elements(struct ply *p)
{
    for (int i = 0; i < p->element_count; i++) pnet_columns_free(&p->elements[i].columns);
    p->element_count = 0;
}

static enum pnet_status read_head(struct ply *p, struct pnet_file_parts *f, struct pnet_error *e)
{
    for (;;) {
        struct pnet_error wrong;
        pnet_text_begin_head(&p->text, f);
        p->has_order = false;
        enum pnet_status status = parse_header(p, &wrong);
        bool again = pnet_text_end_head(&p->text, f, status);
        if (!again && status && e) *e = wrong;
        if (!again) return status;
        free_elements(p);
        status = pnet_file_parts_load_head(f, 2 * (uint64_t)f->head, e);
        if (status != PNET_OK) return status;
    }
}

/* Rows of text and rows with lists are no records, and are copied into some: the file has to be in memory. */
static enum pnet_status check_records(
    const struct ply *p, int vertex, const char *path, struct pnet_error *e)
{
    if (p->order == ASCII) return pnet_rows_whole(path, "a PLY in ascii", e);
    for (int i = 0; i <= vertex; i++)
        if (has_lists(&p->elements[i].columns))
            return pnet_rows_whole(path, "a PLY with lists in its vertices or before them", e);
    return PNET_OK;
}

enum pnet_status pnet_ply_open(struct pnet_file_parts *f, const struct pnet_cloud_hints *hints,
    struct pnet_rows *r, struct pnet_cloud *c, struct pnet_error *e)
{
    struct ply p = {.element_count = 0};
    (void)hints;
    enum pnet_status status = read_head(&p, f, e);
    int vertex = find_vertex(&p);
    if (status == PNET_OK && vertex == p.element_count)
        status = pnet_text_error(&p.text, e, "expected an element \"vertex\" in the header");
    if (status == PNET_OK && f->fd >= 0) status = check_records(&p, vertex, f->path, e);
    for (int i = 0; i < vertex && status == PNET_OK; i++)
        status = pass_element(&p, &p.elements[i], e);
    if (status == PNET_OK) status = find_vertices(&p, &p.elements[vertex], r, e);
    for (int i = 0; i < p.element_count && status == PNET_OK; i++)
        if (pnet_span_is(p.elements[i].name, "face")) c->faces = (int64_t)p.elements[i].rows;
    if (status == PNET_OK) {
        r->columns = p.elements[vertex].columns;
        p.elements[vertex].columns = (struct pnet_columns){.count = 0};
    }
    free_elements(&p);
    return status;
}

enum pnet_status pnet_ply_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e)
{
    return pnet_rows_read(
        pnet_ply_open, b, path, &(struct pnet_cloud_hints){.columns = NULL}, c, e);
}

bool pnet_ply_peek(const struct pnet_bytes *b, const char *path, struct pnet_cloud *c)
{
    struct ply p = {.element_count = 0};
    struct pnet_error e;
    int axis[3];
    pnet_text_begin(&p.text, b, path);
    bool ok = parse_header(&p, &e) == PNET_OK;
    int vertex = find_vertex(&p);
    ok = ok && vertex < p.element_count;
    struct pnet_columns *t = &p.elements[ok ? vertex : 0].columns;
    ok = ok && pnet_columns_axes(t, axis, path, &e) == PNET_OK &&
         pnet_columns_cloud(t, axis, 0, c, &e) == PNET_OK;
    free_elements(&p);
    return ok;
}

/* What is written: types of PLY, chosen by the values of all rows. */
struct writing {
    struct pnet_xyz_seen seen;
    double (*range)[2]; /* [fields] least and greatest value of 64-bit integers, and 0 */
    enum pnet_scalar xyz;
    enum pnet_scalar *as; /* [fields] */
};

static bool is_wide(const struct pnet_field *f)
{
    return f->type == PNET_I64 || f->type == PNET_U64;
}

static enum pnet_status begin_writing(struct pnet_writing *w, struct pnet_error *e)
{
    struct writing *own = w->own;
    const struct pnet_cloud *c = w->like;
    own->range = calloc((size_t)c->field_count + 1, sizeof *own->range);
    own->as = calloc((size_t)c->field_count + 1, sizeof *own->as);
    if (!own->range || !own->as) return pnet_error_memory(e);
    w->measures = pnet_xyz_depends(c);
    for (int i = 0; i < c->field_count; i++) w->measures |= is_wide(&c->fields[i]);
    return PNET_OK;
}

static enum pnet_status see_rows(
    struct pnet_writing *w, const struct pnet_cloud *c, struct pnet_error *e)
{
    struct writing *own = w->own;
    (void)e;
    pnet_xyz_see(&own->seen, c);
    for (int i = 0; i < c->field_count; i++) {
        for (int64_t row = 0; row < c->rows && is_wide(&c->fields[i]); row++) {
            double v = pnet_field_get(&c->fields[i], row);
            own->range[i][0] = fmin(own->range[i][0], v);
            own->range[i][1] = fmax(own->range[i][1], v);
        }
    }
    return PNET_OK;
}

/* PLY has no 64-bit integers: int, uint or double if they hold every value, else the name that some programs use. */
static enum pnet_scalar written_type(const struct pnet_field *f, const double range[2])
{
    if (!is_wide(f)) return f->type;
    if (range[0] >= INT32_MIN && range[1] <= INT32_MAX) return PNET_I32;
    if (range[0] >= 0 && range[1] <= UINT32_MAX) return PNET_U32;
    return range[0] > -0x1p53 && range[1] < 0x1p53 ? PNET_F64 : f->type;
}

static const char *type_name(enum pnet_scalar type)
{
    size_t i = 0;
    while (types[i].type != type) i++;
    return types[i].name;
}

static enum pnet_status write_head(struct pnet_writing *w, struct pnet_error *e)
{
    struct writing *own = w->own;
    const struct pnet_cloud *c = w->like;
    (void)e;
    own->xyz = pnet_xyz_type(c, &own->seen);
    fprintf(w->f, "ply\nformat binary_little_endian 1.0\nelement vertex %" PRId64 "\n", w->rows);
    for (int a = 0; a < 3; a++) fprintf(w->f, "property %s %c\n", type_name(own->xyz), 'x' + a);
    for (int i = 0; i < c->field_count; i++) {
        char name[256];
        own->as[i] = written_type(&c->fields[i], own->range[i]);
        pnet_name_word(c->fields[i].name, name, sizeof name);
        fprintf(w->f, "property %s %s\n", type_name(own->as[i]), name);
    }
    fputs("end_header\n", w->f);
    return PNET_OK;
}

static enum pnet_status put_rows(
    struct pnet_writing *w, const struct pnet_cloud *piece, struct pnet_error *e)
{
    const struct writing *own = w->own;
    return pnet_cloud_records(piece, own->xyz, own->as, w->f, e);
}

static void free_writing(struct pnet_writing *w)
{
    struct writing *own = w->own;
    free(own->range);
    free(own->as);
}

const struct pnet_writing_kind pnet_ply_writing = {.size = sizeof(struct writing),
    .begin = begin_writing,
    .see = see_rows,
    .head = write_head,
    .put = put_rows,
    .free = free_writing};
