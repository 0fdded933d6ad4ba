/* LAS (ASPRS LAS specification 1.4 - R15, and 1.0 to 1.5 as far as they agree), point formats 0 to 10; compressed points by
   laz.h. */
#include "runtime/io/las.h"
#include "runtime/io/column.h"
#include "runtime/io/format.h"
#include "runtime/io/las_system.h"
#include "runtime/io/laz.h"
#include "runtime/io/rows.h"
#include "runtime/io/text.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct las {
    struct pnet_file_parts *file;
    const struct pnet_bytes *b; /* of the file */
    const char *path;
    unsigned minor, format;
    bool compressed;
    size_t header_size, record;
    uint64_t points_at, rows;
    const uint8_t *points; /* the first record; of compressed points, of those in the buffer */
    struct pnet_las_layout layout; /* of what has been described until now */
    struct pnet_las_system system;
    /* of compressed points */
    struct pnet_laz_reader *laz;
    uint8_t *buffer;
    /* of files that are read in pieces */
    struct pnet_las_summary summary;
    bool dropped; /* some points are not kept */
};

static uint64_t load(const struct pnet_bytes *b, uint64_t at, size_t bytes)
{
    return pnet_las_load(b->data, at, bytes);
}

static bool is_las(const struct pnet_bytes *b)
{
    return b->size >= 4 && memcmp(b->data, "LASF", 4) == 0;
}

bool pnet_laz_probe(const struct pnet_bytes *b)
{
    return is_las(b) && b->size > LAS_POINT_FORMAT && b->data[LAS_POINT_FORMAT] >> 6;
}

bool pnet_las_probe(const struct pnet_bytes *b)
{
    return is_las(b) && !pnet_laz_probe(b);
}

/* Returns how many records there is room for before the end of the file, or before what else may follow the points. */
static uint64_t count_records(const struct las *l)
{
    const struct pnet_bytes *b = l->b;
    assert(l->record); /* no point format is empty */
    uint64_t end = b->size, waves = 0, extended = 0;
    if (l->minor >= 3 && l->header_size >= LAS_HEADER_WAVES_LEAST)
        waves = load(b, LAS_WAVES_OFFSET, 8);
    if (l->minor >= 4 && l->header_size >= LAS_HEADER64_LEAST && load(b, LAS_EVLR_COUNT, 4))
        extended = load(b, LAS_EVLR_OFFSET, 8);
    if (waves >= l->points_at && waves < end) end = waves;
    if (extended >= l->points_at && extended < end) end = extended;
    return (end - l->points_at) / l->record;
}

/* Of plain LAS: there are as many records as the header says, and some. */
static enum pnet_status check_count(const struct las *l, struct pnet_error *e)
{
    uint64_t there = (l->b->size - l->points_at) / l->record;
    if (l->rows > there)
        return pnet_byte_error(l->path, l->b->size, e,
            "the file ends after %" PRIu64 " points, the header says %" PRIu64, there, l->rows);
    there = count_records(l);
    if (!l->rows && there)
        return pnet_byte_error(l->path, LAS_COUNT32, e,
            "the header says 0 points, but %" PRIu64
            " records follow: its writer was interrupted; write their number into the header, for "
            "example with lasinfo -repair",
            there);
    return PNET_OK;
}

static enum pnet_status parse_header(struct las *l, struct pnet_error *e)
{
    const struct pnet_bytes *b = l->b;
    if (!is_las(b)) return pnet_byte_error(l->path, 0, e, "expected \"LASF\"");
    if (b->size < LAS_HEADER_LEAST)
        return pnet_byte_error(l->path, b->size, e, "the file ends within the header");
    l->minor = b->data[LAS_VERSION + 1];
    l->header_size = (size_t)load(b, LAS_HEADER_SIZE, 2);
    l->points_at = load(b, LAS_POINT_OFFSET, 4);
    l->format = b->data[LAS_POINT_FORMAT] & 0x3f;
    l->compressed = b->data[LAS_POINT_FORMAT] >> 6;
    l->record = (size_t)load(b, LAS_RECORD_LENGTH, 2);
    if (b->data[LAS_VERSION] != 1 || l->minor > 5)
        return pnet_byte_error(l->path, LAS_VERSION, e, "expected LAS 1.0 to 1.5, found %u.%u",
            b->data[LAS_VERSION], l->minor);
    if (b->data[LAS_POINT_FORMAT] >> 6 == 3)
        return pnet_byte_error(l->path, LAS_POINT_FORMAT, e,
            "the points are compressed in an old way of LASzip, which is not read");
    if (l->format > 10)
        return pnet_byte_error(
            l->path, LAS_POINT_FORMAT, e, "expected point format 0 to 10, found %u", l->format);
    if (l->header_size < LAS_HEADER_LEAST || l->header_size > b->size)
        return pnet_byte_error(l->path, LAS_HEADER_SIZE, e,
            "a header of %zu bytes in a file of %zu", l->header_size, b->size);
    if (l->points_at < l->header_size || l->points_at > b->size)
        return pnet_byte_error(l->path, LAS_POINT_OFFSET, e,
            "points at byte %" PRIu64 " of a file of %zu", l->points_at, b->size);
    if (l->record < pnet_las_format_size(l->format))
        return pnet_byte_error(l->path, LAS_RECORD_LENGTH, e,
            "expected %zu bytes a point or more in format %u, found %zu",
            pnet_las_format_size(l->format), l->format, l->record);
    l->rows = load(b, LAS_COUNT32, 4);
    if (l->minor >= 4 && l->header_size >= LAS_HEADER64_LEAST && load(b, LAS_COUNT64, 8))
        l->rows = load(b, LAS_COUNT64, 8);
    return l->compressed ? PNET_OK : check_count(l, e);
}

/* Adds the parts of an extra dimension. Types 1 to 10 are scalars, the next tens pairs and triples of them (withdrawn, still
   found); 0 is undocumented bytes. */
static enum pnet_status add_extra(struct las *l, uint64_t at, struct pnet_error *e)
{
    static const enum pnet_scalar known[] = {PNET_U8, PNET_I8, PNET_U16, PNET_I16, PNET_U32,
        PNET_I32, PNET_U64, PNET_I64, PNET_F32, PNET_F64};
    const uint8_t *d = l->b->data + at;
    unsigned type = d[2], options = d[3];
    int extra = l->layout.extras++;
    size_t left = l->record - l->layout.record;
    if (type == 0)
        return pnet_las_add_bytes(&l->layout, options < left ? options : left, extra)
                   ? PNET_OK
                   : pnet_error_memory(e);
    if (type > 30)
        return pnet_byte_error(
            l->path, at + 2, e, "extra dimension: expected type 0 to 30, found %u", type);
    enum pnet_scalar scalar = known[(type - 1) % 10];
    size_t width = (type - 1) / 10 + 1;
    if (width * pnet_scalar_size(scalar) > left)
        return pnet_byte_error(
            l->path, at, e, "extra dimension beyond the %zu bytes of a point", l->record);
    for (size_t k = 0; k < width; k++) {
        struct pnet_las_part *p = pnet_las_add(&l->layout, scalar);
        if (!p) return pnet_error_memory(e);
        memcpy(p->name, d + 4, LAS_EXTRA_NAME);
        p->extra = extra;
        p->number = width > 1 ? (int)k : -1;
        p->field = true;
        p->scaled = options & 0x18;
        p->scale = options & 8 ? pnet_las_load_double(l->b->data, at + 112 + 8 * k) : 1;
        p->shift = options & 16 ? pnet_las_load_double(l->b->data, at + 136 + 8 * k) : 0;
    }
    return PNET_OK;
}

/* The records after the points of a LAS 1.4 file. Errors in them do not make the points unreadable, and are ignored. */
static enum pnet_status read_extended_vlrs(struct las *l, struct pnet_error *e)
{
    if (l->minor < 4 || l->header_size < LAS_HEADER64_LEAST) return PNET_OK;
    uint64_t at = load(l->b, LAS_EVLR_OFFSET, 8), count = load(l->b, LAS_EVLR_COUNT, 4),
             size = l->b->size;
    for (uint64_t i = 0; i < count && at <= size && size - at >= LAS_EVLR_SIZE; i++) {
        enum pnet_status status = pnet_file_parts_load(l->file, at, LAS_EVLR_SIZE, e);
        if (status != PNET_OK) return status;
        uint64_t length = load(l->b, at + 20, 8), body = at + LAS_EVLR_SIZE;
        if (length > size - body) return PNET_OK;
        if (pnet_las_system_note(&l->system, l->b, at, body, length))
            status = pnet_file_parts_load(l->file, body, length, e);
        if (status != PNET_OK) return status;
        at = body + length;
    }
    return PNET_OK;
}

/* Moves to record `i`, from the one before it. */
static enum pnet_status next_vlr(
    const struct las *l, uint64_t i, struct pnet_las_vlr *v, struct pnet_error *e)
{
    uint64_t at = i ? v->body + v->length : l->header_size;
    if (l->points_at - at < LAS_VLR_SIZE)
        return pnet_byte_error(l->path, at, e,
            "expected %" PRIu64 " variable length records before the points, found %" PRIu64,
            load(l->b, LAS_VLR_COUNT, 4), i);
    pnet_las_next_vlr(l->b->data, i, v);
    if (v->length > l->points_at - v->body)
        return pnet_byte_error(l->path, at + 20, e,
            "variable length record %" PRIu64 " of %" PRIu64 " bytes runs into the points", i,
            v->length);
    return PNET_OK;
}

/* Finds out how compressed points are to be decoded. */
static enum pnet_status find_laz(struct las *l, struct pnet_laz *z, struct pnet_error *e)
{
    uint64_t count = load(l->b, LAS_VLR_COUNT, 4), i = 0;
    struct pnet_las_vlr v = {.at = 0};
    for (; i < count; i++) {
        enum pnet_status status = next_vlr(l, i, &v, e);
        if (status != PNET_OK) return status;
        if (pnet_las_is_laszip(l->b->data, &v)) break;
    }
    if (i == count)
        return pnet_byte_error(l->path, LAS_POINT_FORMAT, e,
            "the points are compressed (LAZ), but no record \"laszip encoded\" says how");
    *z = (struct pnet_laz){.file = l->file,
        .format = l->format,
        .record = l->record,
        .least = pnet_las_format_size(l->format),
        .points_at = l->points_at,
        .rows = l->rows,
        .vlr_at = v.body,
        .vlr_size = v.length};
    return PNET_OK;
}

/* Walks the records between header and points, and reads those about extra bytes and coordinates. */
static enum pnet_status parse_vlrs(struct las *l, struct pnet_error *e)
{
    uint64_t count = load(l->b, LAS_VLR_COUNT, 4);
    struct pnet_las_vlr v = {.at = 0};
    for (uint64_t i = 0; i < count; i++) {
        enum pnet_status status = next_vlr(l, i, &v, e);
        if (status != PNET_OK) return status;
        bool extra = pnet_las_is_extra(l->b->data, &v);
        for (uint64_t k = 0; extra && (k + 1) * LAS_EXTRA_SIZE <= v.length; k++) {
            status = add_extra(l, v.body + k * LAS_EXTRA_SIZE, e);
            if (status != PNET_OK) return status;
        }
        pnet_las_system_note(&l->system, l->b, v.at, v.body, v.length);
    }
    return read_extended_vlrs(l, e);
}

/* Finds out what lies where in a record. */
static enum pnet_status parse_layout(struct las *l, struct pnet_error *e)
{
    if (!pnet_las_begin(&l->layout, l->format)) return pnet_error_memory(e);
    for (size_t a = 0; a < 3; a++) {
        l->layout.parts[a].scale = pnet_las_load_double(l->b->data, LAS_SCALES + 8 * a);
        l->layout.parts[a].shift = pnet_las_load_double(l->b->data, LAS_SHIFTS + 8 * a);
    }
    enum pnet_status status = parse_vlrs(l, e);
    if (status != PNET_OK) return status;
    return pnet_las_add_bytes(&l->layout, l->record - l->layout.record, -1) ? PNET_OK
                                                                            : pnet_error_memory(e);
}

/* Makes a column of each coordinate and each field. */
static enum pnet_status add_columns(
    const struct las *l, struct pnet_columns *t, struct pnet_error *e)
{
    for (int i = 0; i < l->layout.count; i++) {
        const struct pnet_las_part *p = &l->layout.parts[i];
        struct pnet_span name = {p->name, p->name + strlen(p->name)};
        struct pnet_column *c;
        if (p->axis < 0 && !p->field) continue;
        enum pnet_status status = pnet_columns_add(t, name, p->type, &c, l->path, e);
        if (status != PNET_OK) return status;
        c->number = p->number;
        c->low = p->low;
        c->bits = p->bits;
        c->scaled = p->scaled;
        c->scale = p->scale;
        c->shift = p->shift;
        c->stride = l->record;
    }
    return PNET_OK;
}

/* Sets where the first record of the columns lies. */
static void place_columns(struct las *l, const uint8_t *points, struct pnet_rows *r)
{
    struct pnet_columns *t = &r->columns;
    int column = 0;
    for (int i = 0; i < l->layout.count && column < t->count; i++) {
        const struct pnet_las_part *p = &l->layout.parts[i];
        if (p->axis < 0 && !p->field) continue;
        t->items[column++].data = points + (l->rows ? p->at : 0);
    }
    l->points = r->records = points;
}

/* Tells whether the number of a scaled part follows from its rounded value, and rounded units. Each of at most eight operations
   is off by 2^-53 of its result; their sum must stay well below half a step. */
static bool follows(const struct pnet_las_part *p)
{
    size_t size = pnet_scalar_size(p->type);
    double most = ldexp(1, 8 * (int)size), step = fabs(p->scale);
    if (p->type == PNET_F32 || p->type == PNET_F64 || size == 8) return false;
    return 8 * ldexp(fabs(p->shift) + most * step, -53) < step / 4; /* not of NaN */
}

/* Decides which bytes of a record are kept: what no field holds, and numbers that do not follow from what the cloud has. */
static void choose_kept(struct pnet_las_kept *k, bool dropped)
{
    for (int i = 0; i < k->layout.count; i++) {
        struct pnet_las_part *p = &k->layout.parts[i];
        bool follow =
            p->axis >= 0 ? follows(p) && !dropped : p->field && (!p->scaled || follows(p));
        if (follow) continue;
        p->kept = k->width;
        k->width += p->size;
    }
}

/* Names the parts as the fields are called, which are in their order, and ties each field to its part. */
static void tie_fields(struct pnet_las_kept *k, struct pnet_cloud *c)
{
    int field = 0;
    for (int i = 0; i < k->layout.count; i++) {
        struct pnet_las_part *p = &k->layout.parts[i];
        if (!p->field) continue;
        snprintf(p->name, sizeof p->name, "%s", c->fields[field].name);
        c->fields[field++].part = i + 1;
    }
}

/* Begins what the cloud keeps, with a copy of the layout. NULL: out of memory. */
static struct pnet_las_kept *begin_kept(
    const struct las *l, bool dropped, int64_t rows, struct pnet_cloud *c)
{
    struct pnet_las_kept *k = calloc(1, sizeof *k);
    if (!k) return NULL;
    c->las = k;
    k->rows = rows;
    k->layout = l->layout;
    k->layout.parts = malloc((size_t)l->layout.count * sizeof *k->layout.parts);
    if (!k->layout.parts) return NULL;
    memcpy(k->layout.parts, l->layout.parts, (size_t)l->layout.count * sizeof *k->layout.parts);
    choose_kept(k, dropped);
    tie_fields(k, c);
    pnet_las_summary_begin(&k->summary);
    return k;
}

/* Keeps of k->rows records what the cloud does not hold otherwise. */
static enum pnet_status keep_records(
    struct pnet_las_kept *k, const uint8_t *points, const char *path, struct pnet_error *e)
{
    enum pnet_status status = pnet_bytes_fit(path, (uint64_t)k->rows * k->width, e);
    if (status != PNET_OK) return status;
    k->bytes = malloc((size_t)k->rows * k->width + 1);
    if (!k->bytes) return pnet_error_memory(e);
    pnet_las_summary_add(&k->summary, &k->layout, points, k->rows);
    for (int64_t row = 0; row < k->rows && k->width; row++) {
        const uint8_t *from = points + (size_t)row * k->layout.record;
        uint8_t *to = k->bytes + (size_t)row * k->width;
        for (int i = 0; i < k->layout.count; i++) {
            const struct pnet_las_part *p = &k->layout.parts[i];
            if (p->kept != PNET_LAS_NOT_KEPT) memcpy(to + p->kept, from + p->at, p->size);
        }
    }
    return PNET_OK;
}

/* A file that states no unit of z has that of x and y. */
static void take_units(const struct las *l, struct pnet_cloud *c)
{
    pnet_las_system_units(&l->system, l->b, c->unit);
    for (int i = 0; i < 2 && c->unit_of_file; i++) {
        const struct pnet_axis_unit *u =
            c->unit[i].kind == PNET_AXIS_UNSTATED ? &c->unit[0] : &c->unit[i];
        c->metres[i] = u->kind == PNET_AXIS_LENGTH ? u->size : 0;
    }
}

static enum pnet_status reserve(struct pnet_rows *r, int64_t rows, struct pnet_error *e)
{
    struct las *l = r->own;
    l->buffer = malloc((size_t)rows * l->record + 1);
    if (!l->buffer) return pnet_error_memory(e);
    place_columns(l, l->buffer, r);
    return PNET_OK;
}

static enum pnet_status decode(struct pnet_rows *r, int64_t rows, struct pnet_error *e)
{
    struct las *l = r->own;
    return pnet_laz_next(l->laz, (uint64_t)rows, l->buffer, e);
}

static void go_back(struct pnet_rows *r)
{
    struct las *l = r->own;
    pnet_laz_rewind(l->laz);
}

static void see(struct pnet_rows *r, const uint8_t *records, int64_t rows)
{
    struct las *l = r->own;
    pnet_las_summary_add(&l->summary, &l->layout, records, rows);
}

static enum pnet_status keep_file(
    struct pnet_rows *r, bool dropped, struct pnet_cloud *c, struct pnet_error *e)
{
    struct las *l = r->own;
    l->dropped = dropped;
    struct pnet_las_kept *k = begin_kept(l, dropped, r->count, c);
    if (!k) return pnet_error_memory(e);
    k->summary = l->summary;
    return pnet_las_keep_file(k, l->file, e);
}

static enum pnet_status keep_rows(
    const struct pnet_rows *r, const uint8_t *records, struct pnet_cloud *c, struct pnet_error *e)
{
    const struct las *l = r->own;
    struct pnet_las_kept *k = begin_kept(l, l->dropped, c->file_rows, c);
    return k ? keep_records(k, records, l->path, e) : pnet_error_memory(e);
}

static void close_las(struct pnet_rows *r)
{
    struct las *l = r->own;
    pnet_las_layout_free(&l->layout);
    pnet_laz_close(l->laz);
    free(l->buffer);
    free(l);
}

static const struct pnet_rows_kind plain = {
    .see = see, .keep_file = keep_file, .keep_rows = keep_rows, .close = close_las};
static const struct pnet_rows_kind compressed = {.reserve = reserve,
    .decode = decode,
    .rewind = go_back,
    .see = see,
    .keep_file = keep_file,
    .keep_rows = keep_rows,
    .close = close_las};

/* Finds where the points are, and how compressed ones are to be decoded. */
static enum pnet_status find_points(struct las *l, struct pnet_laz *z, struct pnet_error *e)
{
    enum pnet_status status = pnet_file_parts_load_head(l->file, LAS_HEADER_MOST, e);
    if (status == PNET_OK) status = parse_header(l, e);
    if (status == PNET_OK) status = pnet_file_parts_load_head(l->file, l->points_at, e);
    if (status == PNET_OK && l->compressed) status = find_laz(l, z, e);
    return status;
}

/* The points that are read have no error: what is wrong behind them is no reason to fail. */
enum pnet_status pnet_las_doubt(
    struct pnet_file_parts *f, int names, char text[120], struct pnet_error *e)
{
    (void)names;
    struct las l = {.file = f, .b = &f->bytes, .path = f->path};
    struct pnet_laz z;
    struct pnet_error wrong;
    uint64_t count = 0;
    text[0] = '\0';
    enum pnet_status status = find_points(&l, &z, &wrong);
    if (status == PNET_OK && l.compressed)
        status = pnet_laz_count(&z, &count, &wrong);
    else if (status == PNET_OK)
        count = count_records(&l);
    if (status == PNET_OK && count > l.rows)
        snprintf(text, 120, "the header counts %" PRIu64 " points, %" PRIu64 " %s follow", l.rows,
            count - l.rows, l.compressed ? "or more compressed points" : "more records");
    if (status == PNET_OK || status == PNET_BAD_DATA) return PNET_OK;
    if (e) *e = wrong;
    return status;
}

/* Opens the file but for compressed points, which `z` is about. */
static enum pnet_status open_las(struct pnet_file_parts *f, struct pnet_rows *r,
    struct pnet_cloud *c, struct pnet_laz *z, struct pnet_error *e)
{
    struct las *l = calloc(1, sizeof *l);
    if (!l) return pnet_error_memory(e);
    *l = (struct las){.file = f, .b = &f->bytes, .path = f->path};
    r->own = l;
    r->kind = &plain;
    pnet_las_summary_begin(&l->summary);
    enum pnet_status status = find_points(l, z, e);
    if (status == PNET_OK) status = parse_layout(l, e);
    if (status == PNET_OK) status = add_columns(l, &r->columns, e);
    if (status != PNET_OK) return status;
    take_units(l, c);
    for (int a = 0; a < 3; a++) r->axis[a] = a;
    r->count = (int64_t)l->rows;
    r->record = l->record;
    if (!l->compressed) place_columns(l, f->bytes.data + l->points_at, r);
    return PNET_OK;
}

enum pnet_status pnet_las_open(struct pnet_file_parts *f, const struct pnet_cloud_hints *hints,
    struct pnet_rows *r, struct pnet_cloud *c, struct pnet_error *e)
{
    struct pnet_laz z;
    (void)hints;
    enum pnet_status status = open_las(f, r, c, &z, e);
    struct las *l = r->own;
    if (status != PNET_OK || !l->compressed) return status;
    r->kind = &compressed;
    return pnet_laz_open(&z, &l->laz, e);
}

enum pnet_status pnet_las_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e)
{
    struct pnet_file_parts f = pnet_file_parts_of(b, path);
    struct pnet_rows r = {.count = 0};
    struct pnet_laz z;
    enum pnet_status status = open_las(&f, &r, c, &z, e);
    struct las *l = r.own;
    if (status == PNET_OK && l->compressed) {
        status = pnet_laz_unpack(&z, &l->buffer, e);
        if (status == PNET_OK) place_columns(l, l->buffer, &r);
    }
    if (status == PNET_OK) status = pnet_columns_cloud(&r.columns, r.axis, r.count, c, e);
    if (status == PNET_OK) status = keep_file(&r, c->rows < c->file_rows, c, e);
    if (status == PNET_OK) status = keep_records(c->las, l->points, path, e);
    if (status != PNET_OK) pnet_cloud_free(c);
    pnet_rows_close(&r);
    return status;
}

bool pnet_las_peek(const struct pnet_bytes *b, const char *path, struct pnet_cloud *c)
{
    (void)path;
    static const char *const colours[] = {"red", "green", "blue"};
    unsigned format = b->size > LAS_POINT_FORMAT ? b->data[LAS_POINT_FORMAT] & 0x3f : 255;
    if (format >= LAS_FORMATS) return false;
    for (int k = 0; k < 3 && pnet_las_has_colours(format); k++)
        if (!pnet_cloud_add(c, colours[k], PNET_U16)) return false;
    return true;
}
