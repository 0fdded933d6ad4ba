/* LAS (ASPRS LAS specification 1.4 - R15, and 1.0 to 1.5 as far as they agree), point formats 0 to 10; compressed points by
   laz.h. */
#include "runtime/io/column.h"
#include "runtime/io/format.h"
#include "runtime/io/las_system.h"
#include "runtime/io/laz.h"
#include "runtime/io/text.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* Offsets in the header. */
enum {
    VERSION = 24,
    HEADER_SIZE = 94,
    POINT_OFFSET = 96,
    VLR_COUNT = 100,
    POINT_FORMAT = 104,
    RECORD_LENGTH = 105,
    LEGACY_COUNT = 107,
    SCALES = 131,
    SHIFTS = 155,
    HEADER_LEAST = 227,
    WAVES_OFFSET = 227,
    HEADER_WAVES_LEAST = 235,
    EVLR_OFFSET = 235,
    EVLR_COUNT = 243,
    COUNT64 = 247,
    HEADER64_LEAST = 375,
    VLR_SIZE = 54,
    EVLR_SIZE = 60,
    EXTRA_SIZE = 192, /* of the description of one extra dimension */
};

struct las {
    const struct pnet_bytes *b;
    const char *path;
    unsigned minor, format;
    bool compressed;
    size_t header_size, record;
    uint64_t points_at, rows;
    const uint8_t *points;
    struct pnet_columns columns;
    struct pnet_las_system system;
};

static uint64_t load(const struct pnet_bytes *b, uint64_t at, int bytes)
{
    uint64_t v = 0;
    memcpy(&v, b->data + at, (size_t)bytes);
    return v;
}

static double load_double(const struct pnet_bytes *b, uint64_t at)
{
    double v;
    memcpy(&v, b->data + at, sizeof v);
    return v;
}

static bool is_las(const struct pnet_bytes *b)
{
    return b->size >= 4 && memcmp(b->data, "LASF", 4) == 0;
}

bool pnet_laz_probe(const struct pnet_bytes *b)
{
    return is_las(b) && b->size > POINT_FORMAT && b->data[POINT_FORMAT] >> 6;
}

bool pnet_las_probe(const struct pnet_bytes *b)
{
    return is_las(b) && !pnet_laz_probe(b);
}

static size_t format_size(unsigned format)
{
    static const uint8_t sizes[] = {20, 28, 26, 34, 57, 63, 30, 36, 38, 59, 67};
    return sizes[format];
}

/* Returns how many records there is room for before the end of the file, or before what else may follow the points. */
static uint64_t count_records(const struct las *l)
{
    const struct pnet_bytes *b = l->b;
    assert(l->record); /* no point format is empty */
    uint64_t end = b->size, waves = 0, extended = 0;
    if (l->minor >= 3 && l->header_size >= HEADER_WAVES_LEAST) waves = load(b, WAVES_OFFSET, 8);
    if (l->minor >= 4 && l->header_size >= HEADER64_LEAST && load(b, EVLR_COUNT, 4))
        extended = load(b, EVLR_OFFSET, 8);
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
        return pnet_byte_error(l->path, LEGACY_COUNT, e,
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
    if (b->size < HEADER_LEAST)
        return pnet_byte_error(l->path, b->size, e, "the file ends within the header");
    l->minor = b->data[VERSION + 1];
    l->header_size = (size_t)load(b, HEADER_SIZE, 2);
    l->points_at = load(b, POINT_OFFSET, 4);
    l->format = b->data[POINT_FORMAT] & 0x3f;
    l->compressed = b->data[POINT_FORMAT] >> 6;
    l->record = (size_t)load(b, RECORD_LENGTH, 2);
    if (b->data[VERSION] != 1 || l->minor > 5)
        return pnet_byte_error(l->path, VERSION, e, "expected LAS 1.0 to 1.5, found %u.%u",
            b->data[VERSION], l->minor);
    if (b->data[POINT_FORMAT] >> 6 == 3)
        return pnet_byte_error(l->path, POINT_FORMAT, e,
            "the points are compressed in an old way of LASzip, which is not read");
    if (l->format > 10)
        return pnet_byte_error(
            l->path, POINT_FORMAT, e, "expected point format 0 to 10, found %u", l->format);
    if (l->header_size < HEADER_LEAST || l->header_size > b->size)
        return pnet_byte_error(l->path, HEADER_SIZE, e, "a header of %zu bytes in a file of %zu",
            l->header_size, b->size);
    if (l->points_at < l->header_size || l->points_at > b->size)
        return pnet_byte_error(l->path, POINT_OFFSET, e,
            "points at byte %" PRIu64 " of a file of %zu", l->points_at, b->size);
    if (l->record < format_size(l->format))
        return pnet_byte_error(l->path, RECORD_LENGTH, e,
            "expected %zu bytes a point or more in format %u, found %zu", format_size(l->format),
            l->format, l->record);
    l->rows = load(b, LEGACY_COUNT, 4);
    if (l->minor >= 4 && l->header_size >= HEADER64_LEAST && load(b, COUNT64, 8))
        l->rows = load(b, COUNT64, 8);
    return l->compressed ? PNET_OK : check_count(l, e);
}

void pnet_las_doubt(const struct pnet_bytes *b, const char *path, int names, char text[120])
{
    (void)names;
    struct las l = {.b = b, .path = path};
    struct pnet_error e;
    text[0] = '\0';
    if (parse_header(&l, &e) == PNET_OK && !l.compressed && count_records(&l) > l.rows)
        snprintf(text, 120, "the header counts %" PRIu64 " points, %" PRIu64 " more records follow",
            l.rows, count_records(&l) - l.rows);
}

/* Adds a column of every record, `at` bytes from its start. */
static enum pnet_status add(struct las *l, struct pnet_span name, enum pnet_scalar type, size_t at,
    struct pnet_column **added, struct pnet_error *e)
{
    struct pnet_column *c;
    enum pnet_status status = pnet_columns_add(&l->columns, name, type, &c, l->path, e);
    if (status != PNET_OK) return status;
    c->data = l->points + (l->rows ? at : 0);
    c->stride = l->record;
    if (added) *added = c;
    return PNET_OK;
}

struct dimension {
    const char *name;
    enum pnet_scalar type;
    uint8_t at, low, bits;
    double scale; /* 0: as it is */
};

/* Dimensions that formats 0 to 5 share, and those that 6 to 10 share; the last one has no name. */
static const struct dimension legacy[] = {{"intensity", PNET_U16, 12, 0, 0, 0},
    {"return_number", PNET_U8, 14, 0, 3, 0}, {"number_of_returns", PNET_U8, 14, 3, 3, 0},
    {"classification", PNET_U8, 15, 0, 5, 0}, {"scan_angle", PNET_I8, 16, 0, 0, 1},
    {"user_data", PNET_U8, 17, 0, 0, 0}, {"point_source_id", PNET_U16, 18, 0, 0, 0},
    {"synthetic", PNET_U8, 15, 5, 1, 0}, {"key_point", PNET_U8, 15, 6, 1, 0},
    {"withheld", PNET_U8, 15, 7, 1, 0}, {"scan_direction_flag", PNET_U8, 14, 6, 1, 0},
    {"edge_of_flight_line", PNET_U8, 14, 7, 1, 0}, {NULL, PNET_U8, 0, 0, 0, 0}};
static const struct dimension modern[] = {{"intensity", PNET_U16, 12, 0, 0, 0},
    {"return_number", PNET_U8, 14, 0, 4, 0}, {"number_of_returns", PNET_U8, 14, 4, 4, 0},
    {"classification", PNET_U8, 16, 0, 0, 0}, {"user_data", PNET_U8, 17, 0, 0, 0},
    {"scan_angle", PNET_I16, 18, 0, 0, 0.006}, {"point_source_id", PNET_U16, 20, 0, 0, 0},
    {"synthetic", PNET_U8, 15, 0, 1, 0}, {"key_point", PNET_U8, 15, 1, 1, 0},
    {"withheld", PNET_U8, 15, 2, 1, 0}, {"overlap", PNET_U8, 15, 3, 1, 0},
    {"scanner_channel", PNET_U8, 15, 4, 2, 0}, {"scan_direction_flag", PNET_U8, 15, 6, 1, 0},
    {"edge_of_flight_line", PNET_U8, 15, 7, 1, 0}, {NULL, PNET_U8, 0, 0, 0, 0}};

/* Offsets of dimensions that only some formats have; 0: not present. */
static const struct {
    uint8_t gps_time, red, nir;
} optional[] = {{0, 0, 0}, {20, 0, 0}, {0, 20, 0}, {20, 28, 0}, {20, 0, 0}, {20, 28, 0}, {22, 0, 0},
    {22, 30, 0}, {22, 30, 36}, {22, 0, 0}, {22, 30, 36}};

static enum pnet_status add_dimensions(struct las *l, struct pnet_error *e)
{
    static const char *const axes[] = {"x", "y", "z"}, *const colours[] = {"red", "green", "blue"};
    enum pnet_status status = PNET_OK;
    struct pnet_column *c;
    for (size_t a = 0; a < 3 && status == PNET_OK; a++) {
        status = add(l, pnet_span_of(axes[a]), PNET_I32, 4 * a, &c, e);
        if (status != PNET_OK) return status;
        c->scaled = true;
        c->scale = load_double(l->b, SCALES + 8 * a);
        c->shift = load_double(l->b, SHIFTS + 8 * a);
    }
    const struct dimension *d = l->format < 6 ? legacy : modern;
    for (; d->name; d++) {
        status = add(l, pnet_span_of(d->name), d->type, d->at, &c, e);
        if (status != PNET_OK) return status;
        c->low = d->low;
        c->bits = d->bits;
        c->scaled = d->scale > 0;
        c->scale = d->scale;
    }
    size_t time = optional[l->format].gps_time, red = optional[l->format].red,
           nir = optional[l->format].nir;
    if (time) status = add(l, pnet_span_of("gps_time"), PNET_F64, time, NULL, e);
    for (size_t k = 0; k < 3 && red && status == PNET_OK; k++)
        status = add(l, pnet_span_of(colours[k]), PNET_U16, red + 2 * k, NULL, e);
    if (nir && status == PNET_OK) status = add(l, pnet_span_of("nir"), PNET_U16, nir, NULL, e);
    return status;
}

/* One description of an extra dimension: types 1 to 10 are scalars, the next tens pairs and triples
   of them (withdrawn, still found); 0 is undocumented bytes. */
static enum pnet_status add_extra(struct las *l, uint64_t at, size_t *byte, struct pnet_error *e)
{
    static const enum pnet_scalar known[] = {PNET_U8, PNET_I8, PNET_U16, PNET_I16, PNET_U32,
        PNET_I32, PNET_U64, PNET_I64, PNET_F32, PNET_F64};
    const uint8_t *d = l->b->data + at;
    unsigned type = d[2], options = d[3];
    if (type == 0) {
        *byte += options;
        return PNET_OK;
    }
    if (type > 30)
        return pnet_byte_error(
            l->path, at + 2, e, "extra dimension: expected type 0 to 30, found %u", type);
    enum pnet_scalar scalar = known[(type - 1) % 10];
    size_t width = (type - 1) / 10 + 1, size = pnet_scalar_size(scalar);
    if (*byte + width * size > l->record)
        return pnet_byte_error(
            l->path, at, e, "extra dimension beyond the %zu bytes of a point", l->record);
    const char *text = (const char *)d + 4;
    struct pnet_span name = {text, text + strnlen(text, 32)};
    for (size_t k = 0; k < width; k++, *byte += size) {
        struct pnet_column *c;
        enum pnet_status status = add(l, name, scalar, *byte, &c, e);
        if (status != PNET_OK) return status;
        c->number = width > 1 ? (int)k : -1;
        c->scaled = options & 0x18;
        c->scale = options & 8 ? load_double(l->b, at + 112 + 8 * k) : 1;
        c->shift = options & 16 ? load_double(l->b, at + 136 + 8 * k) : 0;
    }
    return PNET_OK;
}

/* The records after the points of a LAS 1.4 file. Errors in them do not make the points unreadable, and are ignored. */
static void read_extended_vlrs(struct las *l)
{
    if (l->minor < 4 || l->header_size < HEADER64_LEAST) return;
    uint64_t at = load(l->b, EVLR_OFFSET, 8), count = load(l->b, EVLR_COUNT, 4), size = l->b->size;
    for (uint64_t i = 0; i < count && at <= size && size - at >= EVLR_SIZE; i++) {
        uint64_t length = load(l->b, at + 20, 8), body = at + EVLR_SIZE;
        if (length > size - body) return;
        pnet_las_system_note(&l->system, l->b, at, body, length);
        at = body + length;
    }
}

/* A record between header and points. */
struct vlr {
    uint64_t at, body, length;
};

/* Moves to record `i`, from the one before it. */
static enum pnet_status next_vlr(
    const struct las *l, uint64_t i, struct vlr *v, struct pnet_error *e)
{
    uint64_t at = i ? v->body + v->length : l->header_size;
    if (l->points_at - at < VLR_SIZE)
        return pnet_byte_error(l->path, at, e,
            "expected %" PRIu64 " variable length records before the points, found %" PRIu64,
            load(l->b, VLR_COUNT, 4), i);
    *v = (struct vlr){.at = at, .body = at + VLR_SIZE, .length = load(l->b, at + 20, 2)};
    if (v->length > l->points_at - v->body)
        return pnet_byte_error(l->path, at + 20, e,
            "variable length record %" PRIu64 " of %" PRIu64 " bytes runs into the points", i,
            v->length);
    return PNET_OK;
}

static bool is_vlr(const struct las *l, const struct vlr *v, const char *user, unsigned id)
{
    return memcmp(l->b->data + v->at + 2, user, strlen(user) + 1) == 0 &&
           load(l->b, v->at + 18, 2) == id;
}

/* Decodes compressed points into a buffer of the columns. */
static enum pnet_status unpack(struct las *l, struct pnet_error *e)
{
    uint64_t count = load(l->b, VLR_COUNT, 4), i = 0;
    struct vlr v = {.at = 0};
    for (; i < count; i++) {
        enum pnet_status status = next_vlr(l, i, &v, e);
        if (status != PNET_OK) return status;
        if (is_vlr(l, &v, "laszip encoded", 22204)) break;
    }
    if (i == count)
        return pnet_byte_error(l->path, POINT_FORMAT, e,
            "the points are compressed (LAZ), but no record \"laszip encoded\" says how");
    struct pnet_laz z = {.b = l->b,
        .path = l->path,
        .format = l->format,
        .record = l->record,
        .least = format_size(l->format),
        .points_at = l->points_at,
        .rows = l->rows,
        .vlr_at = v.body,
        .vlr_size = v.length};
    enum pnet_status status = pnet_laz_unpack(&z, &l->columns.buffer, e);
    l->points = l->columns.buffer;
    return status;
}

/* Walks the records between header and points, and reads those about extra bytes and coordinates. */
static enum pnet_status parse_vlrs(struct las *l, struct pnet_error *e)
{
    uint64_t count = load(l->b, VLR_COUNT, 4);
    size_t byte = format_size(l->format);
    struct vlr v = {.at = 0};
    for (uint64_t i = 0; i < count; i++) {
        enum pnet_status status = next_vlr(l, i, &v, e);
        if (status != PNET_OK) return status;
        bool extra = is_vlr(l, &v, "LASF_Spec", 4);
        for (uint64_t k = 0; extra && (k + 1) * EXTRA_SIZE <= v.length; k++) {
            status = add_extra(l, v.body + k * EXTRA_SIZE, &byte, e);
            if (status != PNET_OK) return status;
        }
        pnet_las_system_note(&l->system, l->b, v.at, v.body, v.length);
    }
    read_extended_vlrs(l);
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

enum pnet_status pnet_las_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e)
{
    static const int axis[3] = {0, 1, 2};
    struct las l = {.b = b, .path = path};
    enum pnet_status status = parse_header(&l, e);
    if (status == PNET_OK && l.compressed)
        status = unpack(&l, e);
    else if (status == PNET_OK)
        l.points = b->data + l.points_at;
    if (status == PNET_OK) status = add_dimensions(&l, e);
    if (status == PNET_OK) status = parse_vlrs(&l, e);
    if (status == PNET_OK) take_units(&l, c);
    if (status == PNET_OK) status = pnet_columns_cloud(&l.columns, axis, (int64_t)l.rows, c, e);
    pnet_columns_free(&l.columns);
    return status;
}

bool pnet_las_peek(const struct pnet_bytes *b, const char *path, struct pnet_cloud *c)
{
    (void)path;
    static const char *const colours[] = {"red", "green", "blue"};
    unsigned format = b->size > POINT_FORMAT ? b->data[POINT_FORMAT] & 0x3f : 255;
    if (format >= sizeof optional / sizeof *optional) return false;
    for (int k = 0; k < 3 && optional[format].red; k++)
        if (!pnet_cloud_add(c, colours[k], PNET_U16)) return false;
    return true;
}
