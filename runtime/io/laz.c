#include "runtime/io/laz.h"
#include "runtime/io/format.h"
#include "runtime/io/laz_point.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Offsets in the record "laszip encoded". */
enum {
    COMPRESSOR = 0,
    CODER = 2,
    CHUNK_SIZE = 12,
    ITEM_COUNT = 32,
    ITEMS = 34,
    ITEM_SIZE = 6, /* type, size and version */
};
enum { UNCHUNKED = 1, CHUNKED = 2, LAYERED = 3 };
enum { TABLE_HEAD = 8 };
static const uint32_t variable_chunks = UINT32_MAX;

struct chunk {
    uint64_t index, at, size;
    uint64_t most;   /* points that it has; the last one may have fewer */
    uint64_t points; /* of them that the header counts */
};

struct pnet_laz_reader {
    struct pnet_laz z;
    struct pnet_laz_layout layout;
    unsigned compressor;
    uint32_t chunk_size;
    struct pnet_laz_state state;
    struct pnet_laz_pointwise *pointwise; /* one of three, by the layout */
    struct pnet_laz_old *old;
    struct pnet_laz_layered *layered;
    struct pnet_laz_decoder points; /* of the chunk; not of layered ones */
    uint8_t *last;                  /* the record before the next one of the chunk */
    uint64_t done;                  /* records */
    struct chunk chunk;
    uint64_t point; /* of the chunk, the next one */
    uint64_t begun; /* chunks */
    /* the chunks: where the next one begins, where all end, and the table of their counts and sizes */
    uint64_t first, at, end, table, chunks;
    struct pnet_laz_decoder table_at;
    struct pnet_laz_state table_state;
    struct pnet_laz_integer *table_of;
    uint32_t last_count, last_size;
};

static uint64_t load(const struct pnet_bytes *b, uint64_t at, size_t bytes)
{
    uint64_t v = 0;
    memcpy(&v, b->data + at, bytes);
    return v;
}

/* Items of a point in their order, by format; their sizes make the record, but for the extra bytes. */
enum item { BYTE, POINT10 = 6, GPSTIME11, RGB12, WAVEPACKET13, POINT14, RGB14, RGBNIR14 };
enum { WAVEPACKET14 = 13, BYTE14, ITEMS_MOST = 4 };
static const uint8_t items_of[][ITEMS_MOST] = {{POINT10}, {POINT10, GPSTIME11}, {POINT10, RGB12},
    {POINT10, GPSTIME11, RGB12}, {0}, {0}, {POINT14}, {POINT14, RGB14}, {POINT14, RGBNIR14}};

static size_t item_size(unsigned type)
{
    static const uint8_t sizes[] = {
        [POINT10] = 20, [GPSTIME11] = 8, [RGB12] = 6, [POINT14] = 30, [RGB14] = 6, [RGBNIR14] = 8};
    return sizes[type];
}

/* The items are those of the point format, the extra bytes last, all of one version. */
static enum pnet_status check_items(struct pnet_laz_reader *u, struct pnet_error *e)
{
    const struct pnet_laz *z = &u->z;
    unsigned count = (unsigned)load(&z->file->bytes, z->vlr_at + ITEM_COUNT, 2), known = 0;
    const uint8_t *types = items_of[z->format];
    while (known < ITEMS_MOST && types[known]) known++;
    if (count != known + (u->layout.extra > 0) || (z->vlr_size - ITEMS) / ITEM_SIZE < count)
        return pnet_byte_error(z->file->path, z->vlr_at + ITEM_COUNT, e,
            "expected %u compressed items for point format %u and %zu bytes a point, found %u",
            known + (u->layout.extra > 0), z->format, z->record, count);
    for (unsigned i = 0; i < count; i++) {
        uint64_t at = z->vlr_at + ITEMS + ITEM_SIZE * (uint64_t)i;
        unsigned type = (unsigned)load(&z->file->bytes, at, 2),
                 version = (unsigned)load(&z->file->bytes, at + 4, 2);
        size_t size = (size_t)load(&z->file->bytes, at + 2, 2);
        unsigned expected = i < known ? types[i] : z->format < 6 ? BYTE : BYTE14;
        size_t bytes = i < known ? item_size(expected) : u->layout.extra;
        if (type != expected || size != bytes)
            return pnet_byte_error(z->file->path, at, e,
                "compressed item %u: expected type %u of %zu bytes, found type %u of %zu", i,
                expected, bytes, type, size);
        unsigned least = z->format < 6 ? 1 : 3;
        if (version < least || version > least + 1 || (i && version != u->layout.version))
            return pnet_byte_error(z->file->path, at + 4, e,
                "compressed item %u: expected version %u or %u, found %u", i, least, least + 1,
                version);
        u->layout.version = version;
    }
    return PNET_OK;
}

static enum pnet_status parse_vlr(struct pnet_laz_reader *u, struct pnet_error *e)
{
    const struct pnet_laz *z = &u->z;
    if (z->format > 8 || z->format == 4 || z->format == 5)
        return pnet_error_set(e, PNET_BAD_DATA,
            "%.400s: compressed points with waveforms (format %u) are not read: convert the file "
            "first, for example with pdal translate IN.laz OUT.las",
            z->file->path, z->format);
    if (z->vlr_size < ITEMS)
        return pnet_byte_error(z->file->path, z->vlr_at, e,
            "expected a record \"laszip encoded\" of %d bytes or more, found %" PRIu64, ITEMS,
            z->vlr_size);
    u->compressor = (unsigned)load(&z->file->bytes, z->vlr_at + COMPRESSOR, 2);
    unsigned coder = (unsigned)load(&z->file->bytes, z->vlr_at + CODER, 2);
    bool layered = u->compressor == LAYERED;
    if (u->compressor < UNCHUNKED || u->compressor > LAYERED || layered != (z->format >= 6))
        return pnet_byte_error(z->file->path, z->vlr_at + COMPRESSOR, e,
            "expected compressor %s for point format %u, found %u", z->format < 6 ? "1 or 2" : "3",
            z->format, u->compressor);
    if (coder)
        return pnet_byte_error(
            z->file->path, z->vlr_at + CODER, e, "expected coder 0, found %u", coder);
    u->chunk_size = (uint32_t)load(&z->file->bytes, z->vlr_at + CHUNK_SIZE, 4);
    if (u->compressor != UNCHUNKED && !u->chunk_size)
        return pnet_byte_error(z->file->path, z->vlr_at + CHUNK_SIZE, e, "chunks of 0 points");
    u->layout.format = z->format;
    u->layout.record = z->record;
    u->layout.extra = z->record - z->least;
    return check_items(u, e);
}

static enum pnet_status interrupted(const struct pnet_laz *z, uint64_t bytes, struct pnet_error *e)
{
    return pnet_byte_error(z->file->path, z->points_at, e,
        "the header says 0 points, but %" PRIu64
        " bytes of compressed points follow: its writer was interrupted; write the number of "
        "points into the header",
        bytes);
}

/* Finds where the chunks lie, and the table of their sizes. It stands where the 8 bytes before the chunks say; where they say -1,
   where the last 8 of the file do. */
static enum pnet_status find_table(struct pnet_laz_reader *u, struct pnet_error *e)
{
    const struct pnet_laz *z = &u->z;
    uint64_t size = z->file->bytes.size;
    u->first = z->points_at;
    u->end = size;
    if (u->compressor == UNCHUNKED) return PNET_OK;
    if (size - u->first < 8)
        return pnet_byte_error(
            z->file->path, size, e, "the file ends before its compressed points");
    enum pnet_status status = pnet_file_parts_load_head(z->file, u->first + 8, e);
    if (status == PNET_OK) status = pnet_file_parts_load(z->file, size - 8, 8, e);
    if (status != PNET_OK) return status;
    u->table = load(&z->file->bytes, u->first, 8);
    u->first += 8;
    if (u->table == UINT64_MAX) u->table = load(&z->file->bytes, size - 8, 8);
    if (u->table == z->points_at)
        return pnet_byte_error(z->file->path, z->points_at, e,
            "there is no table of the compressed points: their writer was interrupted");
    if (u->table < u->first || u->table > size || size - u->table < TABLE_HEAD)
        return pnet_byte_error(z->file->path, z->points_at, e,
            "a table of compressed points at byte %" PRIu64 " of a file of %" PRIu64, u->table,
            size);
    u->end = u->table;
    return pnet_file_parts_load(z->file, u->table, size - u->table, e);
}

static enum pnet_status find_chunks(struct pnet_laz_reader *u, struct pnet_error *e)
{
    const struct pnet_laz *z = &u->z;
    enum pnet_status status = find_table(u, e);
    if (status != PNET_OK) return status;
    if (u->compressor == UNCHUNKED) {
        u->chunks = z->rows > 0;
        return PNET_OK;
    }
    u->chunks = load(&z->file->bytes, u->table + 4, 4);
    if (load(&z->file->bytes, u->table, 4))
        return pnet_byte_error(z->file->path, u->table, e, "expected a table of version 0");
    if (!z->rows) { /* a chunk without points may be there */
        u->chunks = 0;
        return u->end - u->first < z->record ? PNET_OK : interrupted(z, u->end - u->first, e);
    }
    if (u->chunks > u->end - u->first)
        return pnet_byte_error(z->file->path, u->table + 4, e,
            "a table of %" PRIu64 " chunks, of %" PRIu64 " bytes together", u->chunks,
            u->end - u->first);
    u->table_of = calloc(1, sizeof *u->table_of);
    return u->table_of ? PNET_OK : pnet_error_memory(e);
}

static enum pnet_status make_decoder(struct pnet_laz_reader *u, struct pnet_error *e)
{
    const struct pnet_laz_layout *l = &u->layout;
    bool layered = u->compressor == LAYERED;
    if (u->end - u->first < u->z.record)
        return pnet_byte_error(
            u->z.file->path, u->first, e, "the file ends before its compressed points");
    if (layered)
        u->layered = pnet_laz_layered_new(l);
    else if (l->version == 1)
        u->old = pnet_laz_old_new(l);
    else
        u->pointwise = pnet_laz_pointwise_new(l);
    u->last = malloc(u->z.record);
    return u->last && (u->layered || u->old || u->pointwise) ? PNET_OK : pnet_error_memory(e);
}

static enum pnet_status bad_chunk(
    const struct pnet_laz_reader *u, const struct chunk *c, struct pnet_error *e, const char *wrong)
{
    return pnet_byte_error(u->z.file->path, c->at, e,
        "compressed chunk %" PRIu64 " (%" PRIu64 " points) is damaged: %s", c->index, c->points,
        wrong);
}

/* Reads the points and the size of the next chunk. */
static enum pnet_status next_chunk(struct pnet_laz_reader *u, struct chunk *c, struct pnet_error *e)
{
    uint64_t left = u->z.rows - u->done;
    c->at = u->at;
    c->size = u->end - u->at;
    c->most = UINT64_MAX;
    c->points = left;
    if (u->compressor == UNCHUNKED) return PNET_OK;
    c->most = u->chunk_size;
    if (u->chunk_size == variable_chunks) {
        u->last_count = pnet_laz_integer(&u->table_at, u->table_of, 32, 0, u->last_count);
        c->most = u->last_count;
    }
    if (c->most < left) c->points = c->most;
    u->last_size = pnet_laz_integer(&u->table_at, u->table_of, 32, 1, u->last_size);
    if (u->table_state.no_memory) return pnet_error_memory(e);
    if (u->table_state.damaged || u->last_size > c->size)
        return pnet_byte_error(u->z.file->path, u->end, e,
            "the table of compressed points gives chunk %" PRIu64 " more bytes than there are",
            c->index);
    c->size = u->last_size;
    u->at += c->size;
    return PNET_OK;
}

/* Begins the chunk, which has points. */
static enum pnet_status begin_chunk(struct pnet_laz_reader *u, struct pnet_error *e)
{
    const struct chunk *c = &u->chunk;
    const char *wrong;
    if (c->size < u->z.record) return bad_chunk(u, c, e, "it has no first point");
    enum pnet_status status = pnet_file_parts_load(u->z.file, c->at, c->size, e);
    if (status != PNET_OK) return status;
    const uint8_t *data = u->z.file->bytes.data + c->at;
    u->state.epoch++;
    u->point = 0;
    memcpy(u->last, data, u->z.record);
    if (u->layered)
        return pnet_laz_layered_begin(
                   u->layered, &u->state, data, (size_t)c->size, c->points, &wrong)
                   ? PNET_OK
                   : bad_chunk(u, c, e, wrong);
    pnet_laz_begin(&u->points, &u->state, data + u->z.record, data + c->size);
    if (u->pointwise)
        pnet_laz_pointwise_begin(u->pointwise, data);
    else
        pnet_laz_old_begin(u->old, data);
    return PNET_OK;
}

static enum pnet_status end_chunk(struct pnet_laz_reader *u, struct pnet_error *e)
{
    const struct chunk *c = &u->chunk;
    if (!u->layered && c->points == c->most && u->points.at != u->points.end)
        return bad_chunk(u, c, e, "bytes are left over");
    pnet_file_parts_drop(u->z.file, c->at, c->size);
    return PNET_OK;
}

/* Decodes points of the chunk, as many as are left of it and at most `rows`, which it takes off. */
static enum pnet_status decode_points(
    struct pnet_laz_reader *u, uint64_t *rows, uint8_t *next, struct pnet_error *e)
{
    size_t record = u->z.record;
    uint64_t left = u->chunk.points - u->point, some = left < *rows ? left : *rows;
    const uint8_t *last = u->last;
    for (uint64_t i = 0; i < some; i++, last = next, next += record) {
        if (u->point + i == 0)
            memcpy(next, last, record);
        else if (u->layered)
            pnet_laz_layered_next(u->layered, next);
        else if (u->pointwise)
            pnet_laz_pointwise_next(u->pointwise, &u->points, last, next);
        else
            pnet_laz_old_next(u->old, &u->points, last, next);
        if (u->state.no_memory) return pnet_error_memory(e);
        if (u->state.damaged)
            return bad_chunk(u, &u->chunk, e, "it ends too early, or is not well-formed");
    }
    if (some) memcpy(u->last, last, record);
    u->point += some;
    u->done += some;
    *rows -= some;
    return u->point == u->chunk.points ? end_chunk(u, e) : PNET_OK;
}

enum pnet_status pnet_laz_next(
    struct pnet_laz_reader *u, uint64_t rows, uint8_t *records, struct pnet_error *e)
{
    enum pnet_status status = PNET_OK;
    while (rows && status == PNET_OK) {
        if (u->point == u->chunk.points) {
            if (u->begun == u->chunks)
                return pnet_byte_error(u->z.file->path, u->end, e,
                    "the compressed points end after %" PRIu64 " points, the header says %" PRIu64,
                    u->done, u->z.rows);
            u->point = 0;
            u->chunk.index = u->begun++;
            status = next_chunk(u, &u->chunk, e);
            if (status == PNET_OK && u->chunk.points) status = begin_chunk(u, e);
            if (status != PNET_OK || !u->chunk.points) continue;
        }
        uint64_t before = rows;
        status = decode_points(u, &rows, records, e);
        records += (before - rows) * u->z.record;
    }
    return status;
}

void pnet_laz_rewind(struct pnet_laz_reader *u)
{
    const struct pnet_bytes *b = &u->z.file->bytes;
    u->done = u->point = u->begun = 0;
    u->chunk = (struct chunk){.index = 0};
    u->at = u->first;
    u->last_count = u->last_size = 0;
    if (!u->table_of || !u->chunks) return;
    u->table_state.epoch++;
    pnet_laz_begin(
        &u->table_at, &u->table_state, b->data + u->table + TABLE_HEAD, b->data + b->size);
}

enum pnet_status pnet_laz_open(
    const struct pnet_laz *z, struct pnet_laz_reader **r, struct pnet_error *e)
{
    uint64_t size = z->file->bytes.size;
    *r = NULL;
    struct pnet_laz_reader *u = calloc(1, sizeof *u);
    if (!u) return pnet_error_memory(e);
    u->z = *z;
    enum pnet_status status = parse_vlr(u, e);
    if (status == PNET_OK && z->rows / PNET_LAZ_POINTS_A_BYTE > size)
        status = pnet_byte_error(z->file->path, size, e,
            "the header says %" PRIu64 " points, more than a file of %" PRIu64 " bytes holds",
            z->rows, size);
    if (status == PNET_OK) status = find_chunks(u, e);
    if (status == PNET_OK && z->rows) status = make_decoder(u, e);
    if (status != PNET_OK) {
        pnet_laz_close(u);
        return status;
    }
    pnet_laz_rewind(u);
    *r = u;
    return PNET_OK;
}

void pnet_laz_close(struct pnet_laz_reader *u)
{
    if (!u) return;
    free(u->pointwise);
    free(u->old);
    free(u->layered);
    free(u->last);
    free(u->table_of);
    pnet_laz_state_free(&u->state);
    pnet_laz_state_free(&u->table_state);
    free(u);
}

/* Sets *count to the points that a chunk holds at least. */
static enum pnet_status count_chunk(
    struct pnet_laz_reader *u, const struct chunk *c, uint64_t *count, struct pnet_error *e)
{
    size_t record = u->z.record;
    bool last = c->index + 1 == u->chunks;
    *count = c->most;
    if (!last || u->chunk_size == variable_chunks) return PNET_OK;
    *count = c->size >= record;
    if (u->compressor != LAYERED || c->size < record + 4) return PNET_OK;
    /* behind the first point */
    enum pnet_status status = pnet_file_parts_load(u->z.file, c->at + record, 4, e);
    if (status == PNET_OK) *count = load(&u->z.file->bytes, c->at + record, 4);
    return status;
}

/* Tells whether bytes of the last chunk are left over behind the points that the header counts, `before` of them before it: an
   encoder of points one by one ends its chunk where the decoder ends. */
static enum pnet_status find_surplus(struct pnet_laz_reader *u, const struct chunk *c,
    uint64_t before, bool *found, struct pnet_error *e)
{
    uint64_t rows = 1;
    *found = false;
    if (u->layered || u->z.rows <= before || u->z.rows - before >= c->most) return PNET_OK;
    uint8_t *record = malloc(u->z.record);
    if (!record) return pnet_error_memory(e);
    u->chunk = *c;
    u->chunk.points = u->z.rows - before;
    enum pnet_status status = begin_chunk(u, e);
    for (uint64_t left = u->chunk.points; left && status == PNET_OK; left--, rows = 1)
        status = decode_points(u, &rows, record, e);
    *found = status == PNET_OK && u->points.at != u->points.end;
    free(record);
    return status;
}

enum pnet_status pnet_laz_count(const struct pnet_laz *z, uint64_t *count, struct pnet_error *e)
{
    struct pnet_laz_reader *u;
    struct chunk c = {.index = 0};
    uint64_t found = 0, some = 0;
    bool surplus = false;
    *count = 0;
    enum pnet_status status = pnet_laz_open(z, &u, e);
    if (status != PNET_OK) return status;
    uint64_t chunks = u->compressor == UNCHUNKED ? 0 : u->chunks;
    for (; c.index < chunks && status == PNET_OK; c.index++) {
        status = next_chunk(u, &c, e);
        if (status == PNET_OK) status = count_chunk(u, &c, &some, e);
        if (status == PNET_OK) found += some;
    }
    if (status == PNET_OK && chunks && found <= z->rows)
        status = find_surplus(u, &c, found - some, &surplus, e);
    if (surplus) found = z->rows + 1;
    pnet_laz_close(u);
    if (status == PNET_OK) *count = found;
    return status;
}

/* Doubles the room for records, up to all that the header counts. */
static enum pnet_status grow(
    const struct pnet_laz *z, uint64_t *room, uint8_t **records, struct pnet_error *e)
{
    enum { FIRST = 1 << 10 };
    uint64_t more = *room ? 2 * *room : FIRST;
    if (more > z->rows) more = z->rows;
    enum pnet_status status = pnet_bytes_fit(z->file->path, more * z->record, e);
    if (status != PNET_OK) return status;
    uint8_t *grown = realloc(*records, (size_t)(more * z->record) + 1);
    if (!grown) return pnet_error_memory(e);
    *records = grown;
    *room = more;
    return PNET_OK;
}

enum pnet_status pnet_laz_unpack(const struct pnet_laz *z, uint8_t **records, struct pnet_error *e)
{
    struct pnet_laz_reader *r;
    uint64_t room = 0, done = 0;
    *records = NULL;
    enum pnet_status status = pnet_laz_open(z, &r, e);
    do {
        if (status == PNET_OK) status = grow(z, &room, records, e);
        if (status == PNET_OK)
            status = pnet_laz_next(r, room - done, *records + done * z->record, e);
        done = room;
    } while (status == PNET_OK && done < z->rows);
    if (status != PNET_OK) {
        free(*records);
        *records = NULL;
    }
    pnet_laz_close(r);
    return status;
}
