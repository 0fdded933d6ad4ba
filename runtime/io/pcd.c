/* PCD, the format of the Point Cloud Library (Rusu and Cousins, 2011), versions 0.5 to 0.7. */
#include "runtime/io/column.h"
#include "runtime/io/format.h"
#include "runtime/io/lzf.h"
#include "runtime/io/rows.h"
#include "runtime/io/text.h"
#include "runtime/io/writing.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum data { ASCII, BINARY, COMPRESSED };

/* Words of the header lines as they are; sizes and types are in lines of their own. */
struct pcd {
    struct pnet_text text; /* after the header: at the first byte of the body */
    struct pnet_span fields, sizes, types, counts;
    uint64_t width, height, points;
    bool has_width, has_height, has_points;
    enum data data;
    uint64_t rows;
    struct pnet_columns columns;
    size_t stride; /* of binary records */
};

static bool is_comment(struct pnet_span line)
{
    struct pnet_span word;
    return !pnet_span_word(&line, &word) || *word.at == '#';
}

bool pnet_pcd_probe(const struct pnet_bytes *b)
{
    static const char *const keys[] = {"VERSION", "FIELDS", "COLUMNS"};
    struct pnet_bytes head = {.data = b->data, .size = b->size < 4096 ? b->size : 4096};
    struct pnet_text t;
    struct pnet_span line, word;
    pnet_text_begin(&t, &head, "");
    while (pnet_text_line(&t, &line)) {
        if (is_comment(line)) continue;
        pnet_span_word(&line, &word);
        for (int i = 0; i < 3; i++)
            if (pnet_span_is(word, keys[i])) return true;
        return false;
    }
    return false;
}

static enum pnet_status parse_number(
    struct pcd *p, struct pnet_span line, uint64_t *value, bool *given, struct pnet_error *e)
{
    struct pnet_span word;
    pnet_span_word(&line, &word);
    if (!pnet_span_count(word, INT64_MAX, value))
        return pnet_text_error(
            &p->text, e, "expected a number of points, found \"%s\"", pnet_span_quote(word).text);
    *given = true;
    return PNET_OK;
}

static enum pnet_status parse_data(struct pcd *p, struct pnet_span line, struct pnet_error *e)
{
    static const char *const names[] = {"ascii", "binary", "binary_compressed"};
    struct pnet_span word;
    pnet_span_word(&line, &word);
    for (int i = 0; i < 3; i++) {
        if (!pnet_span_is(word, names[i])) continue;
        p->data = (enum data)i;
        return PNET_OK;
    }
    return pnet_text_error(&p->text, e,
        "expected DATA ascii, binary or binary_compressed, found \"%s\"",
        pnet_span_quote(word).text);
}

/* Parses the header, including the line DATA. */
static enum pnet_status parse_header(struct pcd *p, struct pnet_error *e)
{
    struct pnet_span line, key;
    while (pnet_text_line(&p->text, &line)) {
        enum pnet_status status = PNET_OK;
        if (is_comment(line)) continue;
        pnet_span_word(&line, &key);
        if (pnet_span_is(key, "FIELDS") || pnet_span_is(key, "COLUMNS"))
            p->fields = line;
        else if (pnet_span_is(key, "SIZE"))
            p->sizes = line;
        else if (pnet_span_is(key, "TYPE"))
            p->types = line;
        else if (pnet_span_is(key, "COUNT"))
            p->counts = line;
        else if (pnet_span_is(key, "WIDTH"))
            status = parse_number(p, line, &p->width, &p->has_width, e);
        else if (pnet_span_is(key, "HEIGHT"))
            status = parse_number(p, line, &p->height, &p->has_height, e);
        else if (pnet_span_is(key, "POINTS"))
            status = parse_number(p, line, &p->points, &p->has_points, e);
        else if (pnet_span_is(key, "DATA"))
            return parse_data(p, line, e);
        else if (!pnet_span_is(key, "VERSION") && !pnet_span_is(key, "VIEWPOINT"))
            return pnet_text_error(&p->text, e, "expected a line of a PCD header, found \"%s\"",
                pnet_span_quote(key).text);
        if (status != PNET_OK) return status;
    }
    return pnet_text_error(&p->text, e, "the file ends, expected the line DATA");
}

/* POINTS is the number of points; some programs leave WIDTH and HEIGHT at 0. */
static enum pnet_status count_rows(struct pcd *p, struct pnet_error *e)
{
    if (!p->has_points && !(p->has_width && p->has_height))
        return pnet_text_error(&p->text, e, "expected POINTS, or WIDTH and HEIGHT, before DATA");
    uint64_t product;
    if (__builtin_mul_overflow(p->width, p->height, &product) || product > INT64_MAX)
        return pnet_text_error(&p->text, e, "WIDTH times HEIGHT is beyond 64 bits");
    p->rows = p->has_points ? p->points : product;
    if (p->has_points && product && product != p->points)
        return pnet_text_error(&p->text, e,
            "POINTS is %" PRIu64 ", but WIDTH times HEIGHT is %" PRIu64, p->points, product);
    return PNET_OK;
}

static bool find_type(char letter, uint64_t size, enum pnet_scalar *type)
{
    static const struct {
        char letter;
        uint8_t size;
        enum pnet_scalar type;
    } known[] = {{'I', 1, PNET_I8}, {'U', 1, PNET_U8}, {'I', 2, PNET_I16}, {'U', 2, PNET_U16},
        {'I', 4, PNET_I32}, {'U', 4, PNET_U32}, {'I', 8, PNET_I64}, {'U', 8, PNET_U64},
        {'F', 4, PNET_F32}, {'F', 8, PNET_F64}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].letter != letter || known[i].size != size) continue;
        *type = known[i].type;
        return true;
    }
    return false;
}

/* A field of COUNT n is n columns. */
static enum pnet_status add_field(struct pcd *p, struct pnet_span name, enum pnet_scalar type,
    uint64_t count, struct pnet_error *e)
{
    for (uint64_t k = 0; k < count; k++) {
        struct pnet_column *c;
        enum pnet_status status = pnet_columns_add(&p->columns, name, type, &c, p->text.path, e);
        if (status != PNET_OK) return status;
        c->number = count > 1 ? (int)k : -1;
        c->skip = pnet_span_is(name, "_"); /* what fills up a struct */
    }
    return PNET_OK;
}

static enum pnet_status list_fields(struct pcd *p, struct pnet_error *e)
{
    struct pnet_span name, size, letter, count;
    while (pnet_span_word(&p->fields, &name)) {
        uint64_t bytes = 0, n = 1;
        enum pnet_scalar type;
        bool sized = pnet_span_word(&p->sizes, &size) && pnet_span_count(size, 8, &bytes);
        if (!sized || !pnet_span_word(&p->types, &letter) || pnet_span_size(letter) != 1 ||
            !find_type(*letter.at, bytes, &type))
            return pnet_text_error(&p->text, e,
                "field \"%s\": expected TYPE I, U or F and a SIZE it can have, before DATA",
                pnet_span_quote(name).text);
        if (p->counts.at &&
            (!pnet_span_word(&p->counts, &count) || !pnet_span_count(count, INT32_MAX, &n)))
            return pnet_text_error(
                &p->text, e, "field \"%s\": expected a COUNT", pnet_span_quote(name).text);
        enum pnet_status status = add_field(p, name, type, n, e);
        if (status != PNET_OK) return status;
    }
    return PNET_OK;
}

static enum pnet_status cut_short(const struct pcd *p, uint64_t rows, struct pnet_error *e)
{
    return pnet_byte_error(p->text.path, (uint64_t)(p->text.end - p->text.begin), e,
        "the file ends after %" PRIu64 " points, expected %" PRIu64, rows, p->rows);
}

static enum pnet_status read_ascii(struct pcd *p, struct pnet_error *e)
{
    struct pnet_columns *t = &p->columns;
    size_t stride = pnet_columns_stride(t);
    /* A value takes at least a digit and a separator. */
    uint64_t there = ((uint64_t)(p->text.end - p->text.at) + 1) / (2 * (uint64_t)t->count);
    if (p->rows > there) return cut_short(p, there, e);
    enum pnet_status status = pnet_bytes_fit(p->text.path, p->rows * stride, e);
    if (status != PNET_OK) return status;
    t->buffer = malloc(p->rows ? (size_t)p->rows * stride : 1);
    if (!t->buffer) return pnet_error_memory(e);
    pnet_columns_pack(t, t->buffer);
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the columns free their buffer */
    struct pnet_span line;
    for (uint64_t row = 0; row < p->rows; row++) {
        if (!pnet_text_full_line(&p->text, &line)) return cut_short(p, row, e);
        status = pnet_columns_parse(t, (int64_t)row, &p->text, line, e);
        if (status != PNET_OK) return status;
    }
    return PNET_OK;
}

static enum pnet_status read_binary(struct pcd *p, struct pnet_error *e)
{
    p->stride = pnet_columns_pack(&p->columns, (const uint8_t *)p->text.at);
    uint64_t there = (uint64_t)(p->text.end - p->text.at) / p->stride;
    return p->rows > there ? cut_short(p, there, e) : PNET_OK;
}

/* The body has two sizes, then the fields, each with all its values together, compressed by LZF. */
static enum pnet_status read_compressed(struct pcd *p, struct pnet_error *e)
{
    struct pnet_columns *t = &p->columns;
    const uint8_t *at = (const uint8_t *)p->text.at;
    uint64_t left = (uint64_t)(p->text.end - p->text.at),
             here = (uint64_t)(p->text.at - p->text.begin);
    uint32_t packed, unpacked;
    if (p->rows == 0 && left < 8) return PNET_OK; /* an empty cloud has no body in some files */
    if (left < 8)
        return pnet_byte_error(p->text.path, here, e, "the file ends, expected two sizes");
    memcpy(&packed, at, 4);
    memcpy(&unpacked, at + 4, 4);
    size_t stride = pnet_columns_stride(t);
    if (unpacked % stride || unpacked / stride != p->rows)
        return pnet_byte_error(p->text.path, here + 4, e,
            "expected %" PRIu64 " points of %zu bytes, found %" PRIu32 " bytes", p->rows, stride,
            unpacked);
    if (packed > left - 8)
        return pnet_byte_error(p->text.path, here, e,
            "expected %" PRIu32 " compressed bytes, found %" PRIu64, packed, left - 8);
    if (unpacked / PNET_LZF_RATIO > packed)
        return pnet_byte_error(p->text.path, here + 4, e,
            "%" PRIu32 " compressed bytes cannot hold %" PRIu32, packed, unpacked);
    enum pnet_status status = pnet_bytes_fit(p->text.path, unpacked, e);
    if (status != PNET_OK) return status;
    t->buffer = malloc(unpacked ? unpacked : 1);
    if (!t->buffer) return pnet_error_memory(e);
    if (!pnet_lzf_unpack(at + 8, packed, t->buffer, unpacked))
        return pnet_byte_error(p->text.path, here + 8, e, "the compressed data is damaged");

    const uint8_t *plane = t->buffer;
    for (int i = 0; i < t->count;) {
        int n = 1; /* columns of this field */
        while (i + n < t->count && t->items[i + n].number == n) n++;
        size_t size = pnet_scalar_size(t->items[i].type);
        for (int k = 0; k < n; k++, i++) {
            t->items[i].data = plane + (size_t)k * size;
            t->items[i].stride = (size_t)n * size;
        }
        plane += p->rows * (uint64_t)n * size;
    }
    return PNET_OK;
}

static bool has_column(const struct pnet_columns *t, const char *name)
{
    for (int i = 0; i < t->count; i++)
        if (pnet_span_is(t->items[i].name, name)) return true;
    return false;
}

/* rgb and rgba are four bytes in one value, blue first, whatever its type says: they become red,
   green, blue (and alpha), as other formats have them. */
static enum pnet_status split_colour(struct pcd *p, struct pnet_error *e)
{
    static const char *const parts[] = {"red", "green", "blue", "alpha"};
    static const int byte[] = {2, 1, 0, 3};
    struct pnet_columns *t = &p->columns;
    if (has_column(t, "red") || has_column(t, "green") || has_column(t, "blue")) return PNET_OK;
    for (int i = 0, end = t->count; i < end; i++) {
        struct pnet_column whole = t->items[i];
        bool alpha = pnet_span_is(whole.name, "rgba");
        if (whole.number >= 0 || pnet_scalar_size(whole.type) != 4) continue;
        if (!alpha && !pnet_span_is(whole.name, "rgb")) continue;
        t->items[i].skip = true;
        for (int k = 0; k < 3 + alpha; k++) {
            struct pnet_column *c;
            enum pnet_status status =
                pnet_columns_add(t, pnet_span_of(parts[k]), PNET_U8, &c, p->text.path, e);
            if (status != PNET_OK) return status;
            c->data = whole.data ? whole.data + byte[k] : NULL; /* no points, no data */
            c->stride = whole.stride;
        }
        return PNET_OK;
    }
    return PNET_OK;
}

static enum pnet_status find_rows(struct pcd *p, struct pnet_rows *r, struct pnet_error *e)
{
    enum pnet_status status = count_rows(p, e);
    if (status == PNET_OK) status = list_fields(p, e);
    if (status == PNET_OK)
        status = pnet_columns_axes(&p->columns, r->axis, pnet_text_place(&p->text).text, e);
    if (status != PNET_OK) return status;
    switch (p->data) {
    case ASCII: status = read_ascii(p, e); break;
    case BINARY: status = read_binary(p, e); break;
    case COMPRESSED: status = read_compressed(p, e); break;
    }
    return status == PNET_OK ? split_colour(p, e) : status;
}

static enum pnet_status read_head(struct pcd *p, struct pnet_file_parts *f, struct pnet_error *e)
{
    for (;;) {
        struct pnet_error wrong;
        *p = (struct pcd){.width = 0};
        pnet_text_begin_head(&p->text, f);
        enum pnet_status status = parse_header(p, &wrong);
        bool again = pnet_text_end_head(&p->text, f, status);
        if (!again && status && e) *e = wrong;
        if (!again) return status;
        status = pnet_file_parts_load_head(f, 2 * (uint64_t)f->head, e);
        if (status != PNET_OK) return status;
    }
}

enum pnet_status pnet_pcd_open(struct pnet_file_parts *f, const struct pnet_cloud_hints *hints,
    struct pnet_rows *r, struct pnet_cloud *c, struct pnet_error *e)
{
    struct pcd p;
    (void)hints, (void)c;
    enum pnet_status status = read_head(&p, f, e);
    if (status == PNET_OK && f->fd >= 0 && p.data != BINARY)
        return pnet_rows_whole(f->path,
            p.data == ASCII ? "a PCD of DATA ascii" : "a PCD of DATA binary_compressed", e);
    const char *body = p.text.at;
    if (status == PNET_OK) status = find_rows(&p, r, e);
    r->columns = p.columns;
    r->count = (int64_t)p.rows;
    r->records = (const uint8_t *)body;
    r->record = p.stride;
    return status;
}

enum pnet_status pnet_pcd_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e)
{
    return pnet_rows_read(
        pnet_pcd_open, b, path, &(struct pnet_cloud_hints){.columns = NULL}, c, e);
}

/* The reverse of split_colour, in a copy of the fields: `packed` gets the values of rgb or rgba, or NULL if the cloud has no
   colours in bytes. The values of other fields are not copied. */
static enum pnet_status pack_colour(
    const struct pnet_cloud *c, struct pnet_cloud *copy, uint32_t **packed, struct pnet_error *e)
{
    const struct pnet_field *part[4] = {pnet_cloud_field(c, "red"), pnet_cloud_field(c, "green"),
        pnet_cloud_field(c, "blue"), pnet_cloud_field(c, "alpha")};
    *copy = *c;
    *packed = NULL;
    copy->fields = calloc((size_t)c->field_count + 1, sizeof *copy->fields);
    if (!copy->fields) return pnet_error_memory(e);
    if (c->field_count) memcpy(copy->fields, c->fields, (size_t)c->field_count * sizeof *c->fields);
    if (pnet_cloud_field(c, "rgb") || pnet_cloud_field(c, "rgba")) return PNET_OK;
    for (int k = 0; k < 3; k++)
        if (!part[k] || part[k]->type != PNET_U8) return PNET_OK;
    int parts = part[3] && part[3]->type == PNET_U8 ? 4 : 3;

    static const char *const names[] = {"rgb", "rgba"};
    *packed = calloc(c->rows ? (size_t)c->rows : 1, sizeof **packed);
    if (!*packed) {
        free(copy->fields);
        return pnet_error_memory(e);
    }
    static const int shift[] = {16, 8, 0, 24};
    copy->field_count = 0;
    for (int i = 0; i < c->field_count; i++) {
        int k = 0;
        while (k < parts && part[k] != &c->fields[i]) k++;
        if (k == parts) {
            copy->fields[copy->field_count++] = c->fields[i];
            continue;
        }
        const uint8_t *from = c->fields[i].data;
        for (int64_t row = 0; row < c->rows; row++)
            (*packed)[row] |= (uint32_t)from[row] << shift[k];
    }
    copy->fields[copy->field_count++] = (struct pnet_field){
        .name = (char *)(uintptr_t)names[parts - 3], .type = PNET_U32, .data = *packed};
    return PNET_OK;
}

static void write_word_line(FILE *f, const char *key, const struct pnet_cloud *c,
    enum pnet_scalar xyz, void (*word)(FILE *f, enum pnet_scalar type))
{
    fputs(key, f);
    for (int a = 0; a < 3; a++) word(f, xyz);
    for (int i = 0; i < c->field_count; i++) word(f, c->fields[i].type);
    fputc('\n', f);
}

static void write_size(FILE *f, enum pnet_scalar type)
{
    fprintf(f, " %zu", pnet_scalar_size(type));
}

static void write_letter(FILE *f, enum pnet_scalar type)
{
    bool real = type == PNET_F32 || type == PNET_F64;
    bool is_signed = type == PNET_I8 || type == PNET_I16 || type == PNET_I32 || type == PNET_I64;
    fprintf(f, " %c", real ? 'F' : is_signed ? 'I' : 'U');
}

static void write_one(FILE *f, enum pnet_scalar type)
{
    (void)type;
    fputs(" 1", f);
}

struct writing {
    struct pnet_xyz_seen seen;
    enum pnet_scalar xyz;
};

static enum pnet_status begin_writing(struct pnet_writing *w, struct pnet_error *e)
{
    (void)e;
    w->measures = pnet_xyz_depends(w->like);
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

static enum pnet_status write_head(struct pnet_writing *w, struct pnet_error *e)
{
    struct writing *own = w->own;
    struct pnet_cloud names = *w->like, copy;
    uint32_t *packed;
    names.rows = 0;
    enum pnet_status status = pack_colour(&names, &copy, &packed, e);
    if (status != PNET_OK) return status;
    own->xyz = pnet_xyz_type(w->like, &own->seen);
    fputs("# .PCD v0.7 - Point Cloud Data file format\nVERSION 0.7\nFIELDS x y z", w->f);
    for (int i = 0; i < copy.field_count; i++) {
        char name[256];
        pnet_name_word(copy.fields[i].name, name, sizeof name);
        fprintf(w->f, " %s", name);
    }
    fputc('\n', w->f);
    write_word_line(w->f, "SIZE", &copy, own->xyz, write_size);
    write_word_line(w->f, "TYPE", &copy, own->xyz, write_letter);
    write_word_line(w->f, "COUNT", &copy, own->xyz, write_one);
    fprintf(w->f,
        "WIDTH %" PRId64 "\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS %" PRId64 "\nDATA binary\n",
        w->rows, w->rows);
    free(copy.fields);
    free(packed);
    return PNET_OK;
}

static enum pnet_status put_rows(
    struct pnet_writing *w, const struct pnet_cloud *piece, struct pnet_error *e)
{
    const struct writing *own = w->own;
    struct pnet_cloud copy;
    uint32_t *packed;
    enum pnet_status status = pack_colour(piece, &copy, &packed, e);
    if (status != PNET_OK) return status;
    status = pnet_cloud_records(&copy, own->xyz, NULL, w->f, e);
    free(copy.fields);
    free(packed);
    return status;
}

const struct pnet_writing_kind pnet_pcd_writing = {.size = sizeof(struct writing),
    .begin = begin_writing,
    .see = see_rows,
    .head = write_head,
    .put = put_rows};
