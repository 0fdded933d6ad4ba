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

struct unpacker {
    const struct pnet_laz *z;
    struct pnet_laz_layout layout;
    unsigned compressor;
    uint32_t chunk_size;
    struct pnet_laz_state state;
    struct pnet_laz_pointwise *pointwise; /* one of three, by the layout */
    struct pnet_laz_old *old;
    struct pnet_laz_layered *layered;
    uint8_t *records;
    uint64_t done, room; /* records */
    /* the chunks: where the next one begins, where all end, and the table of their counts and sizes */
    uint64_t at, end, chunks;
    struct pnet_laz_decoder table;
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
static enum pnet_status check_items(struct unpacker *u, struct pnet_error *e)
{
    const struct pnet_laz *z = u->z;
    unsigned count = (unsigned)load(z->b, z->vlr_at + ITEM_COUNT, 2), known = 0;
    const uint8_t *types = items_of[z->format];
    while (known < ITEMS_MOST && types[known]) known++;
    if (count != known + (u->layout.extra > 0) || (z->vlr_size - ITEMS) / ITEM_SIZE < count)
        return pnet_byte_error(z->path, z->vlr_at + ITEM_COUNT, e,
            "expected %u compressed items for point format %u and %zu bytes a point, found %u",
            known + (u->layout.extra > 0), z->format, z->record, count);
    for (unsigned i = 0; i < count; i++) {
        uint64_t at = z->vlr_at + ITEMS + ITEM_SIZE * (uint64_t)i;
        unsigned type = (unsigned)load(z->b, at, 2), version = (unsigned)load(z->b, at + 4, 2);
        size_t size = (size_t)load(z->b, at + 2, 2);
        unsigned expected = i < known ? types[i] : z->format < 6 ? BYTE : BYTE14;
        size_t bytes = i < known ? item_size(expected) : u->layout.extra;
        if (type != expected || size != bytes)
            return pnet_byte_error(z->path, at, e,
                "compressed item %u: expected type %u of %zu bytes, found type %u of %zu", i,
                expected, bytes, type, size);
        unsigned least = z->format < 6 ? 1 : 3;
        if (version < least || version > least + 1 || (i && version != u->layout.version))
            return pnet_byte_error(z->path, at + 4, e,
                "compressed item %u: expected version %u or %u, found %u", i, least, least + 1,
                version);
        u->layout.version = version;
    }
    return PNET_OK;
}

static enum pnet_status parse_vlr(struct unpacker *u, struct pnet_error *e)
{
    const struct pnet_laz *z = u->z;
    if (z->format > 8 || z->format == 4 || z->format == 5)
        return pnet_error_set(e, PNET_BAD_DATA,
            "%.400s: compressed points with waveforms (format %u) are not read: convert the file "
            "first, for example with pdal translate IN.laz OUT.las",
            z->path, z->format);
    if (z->vlr_size < ITEMS)
        return pnet_byte_error(z->path, z->vlr_at, e,
            "expected a record \"laszip encoded\" of %d bytes or more, found %" PRIu64, ITEMS,
            z->vlr_size);
    u->compressor = (unsigned)load(z->b, z->vlr_at + COMPRESSOR, 2);
    unsigned coder = (unsigned)load(z->b, z->vlr_at + CODER, 2);
    bool layered = u->compressor == LAYERED;
    if (u->compressor < UNCHUNKED || u->compressor > LAYERED || layered != (z->format >= 6))
        return pnet_byte_error(z->path, z->vlr_at + COMPRESSOR, e,
            "expected compressor %s for point format %u, found %u", z->format < 6 ? "1 or 2" : "3",
            z->format, u->compressor);
    if (coder)
        return pnet_byte_error(z->path, z->vlr_at + CODER, e, "expected coder 0, found %u", coder);
    u->chunk_size = (uint32_t)load(z->b, z->vlr_at + CHUNK_SIZE, 4);
    if (u->compressor != UNCHUNKED && !u->chunk_size)
        return pnet_byte_error(z->path, z->vlr_at + CHUNK_SIZE, e, "chunks of 0 points");
    u->layout.format = z->format;
    u->layout.record = z->record;
    u->layout.extra = z->record - z->least;
    return check_items(u, e);
}

static enum pnet_status interrupted(const struct pnet_laz *z, uint64_t bytes, struct pnet_error *e)
{
    return pnet_byte_error(z->path, z->points_at, e,
        "the header says 0 points, but %" PRIu64
        " bytes of compressed points follow: its writer was interrupted; write the number of "
        "points into the header",
        bytes);
}

/* Finds the chunks, and begins the table of their sizes. It stands where the 8 bytes before the chunks say; where they say -1,
   where the last 8 of the file do. */
static enum pnet_status find_chunks(struct unpacker *u, struct pnet_error *e)
{
    const struct pnet_laz *z = u->z;
    uint64_t size = z->b->size;
    u->at = z->points_at;
    u->end = size;
    if (u->compressor == UNCHUNKED) {
        u->chunks = z->rows > 0;
        return PNET_OK;
    }
    if (size - u->at < 8)
        return pnet_byte_error(z->path, size, e, "the file ends before its compressed points");
    uint64_t table = load(z->b, u->at, 8);
    u->at += 8;
    if (table == UINT64_MAX) table = load(z->b, size - 8, 8);
    if (table == z->points_at)
        return pnet_byte_error(z->path, z->points_at, e,
            "there is no table of the compressed points: their writer was interrupted");
    if (table < u->at || table > size || size - table < TABLE_HEAD)
        return pnet_byte_error(z->path, z->points_at, e,
            "a table of compressed points at byte %" PRIu64 " of a file of %" PRIu64, table, size);
    u->end = table;
    u->chunks = load(z->b, table + 4, 4);
    if (load(z->b, table, 4))
        return pnet_byte_error(z->path, table, e, "expected a table of version 0");
    if (!z->rows) { /* a chunk without points may be there */
        u->chunks = 0;
        return u->end - u->at < z->record ? PNET_OK : interrupted(z, u->end - u->at, e);
    }
    if (u->chunks > u->end - u->at)
        return pnet_byte_error(z->path, table + 4, e,
            "a table of %" PRIu64 " chunks, of %" PRIu64 " bytes together", u->chunks,
            u->end - u->at);
    u->table_state.epoch = 1;
    u->table_of = calloc(1, sizeof *u->table_of);
    if (!u->table_of) return pnet_error_memory(e);
    if (u->chunks)
        pnet_laz_begin(
            &u->table, &u->table_state, z->b->data + table + TABLE_HEAD, z->b->data + size);
    return PNET_OK;
}

static enum pnet_status make_decoder(struct unpacker *u, struct pnet_error *e)
{
    const struct pnet_laz_layout *l = &u->layout;
    bool layered = u->compressor == LAYERED;
    if (u->end - u->at < u->z->record)
        return pnet_byte_error(u->z->path, u->at, e, "the file ends before its compressed points");
    if (layered)
        u->layered = pnet_laz_layered_new(l);
    else if (l->version == 1)
        u->old = pnet_laz_old_new(l);
    else
        u->pointwise = pnet_laz_pointwise_new(l);
    return u->layered || u->old || u->pointwise ? PNET_OK : pnet_error_memory(e);
}

/* Makes room for another record. */
static enum pnet_status grow(struct unpacker *u, struct pnet_error *e)
{
    enum { FIRST = 1 << 10 };
    uint64_t left = u->z->rows - u->room, more = u->room ? u->room : FIRST;
    if (more > left) more = left;
    enum pnet_status status = pnet_bytes_fit(u->z->path, more * u->z->record, e);
    if (status != PNET_OK) return status;
    uint8_t *grown = realloc(u->records, (size_t)((u->room + more) * u->z->record));
    if (!grown) return pnet_error_memory(e);
    u->records = grown;
    u->room += more;
    return PNET_OK;
}

struct chunk {
    uint64_t index, at, size;
    uint64_t most;   /* points that it has; the last one may have fewer */
    uint64_t points; /* of them that the header counts */
};

static enum pnet_status bad_chunk(
    const struct unpacker *u, const struct chunk *c, struct pnet_error *e, const char *wrong)
{
    return pnet_byte_error(u->z->path, c->at, e,
        "compressed chunk %" PRIu64 " (%" PRIu64 " points) is damaged: %s", c->index, c->points,
        wrong);
}

static enum pnet_status decode_chunk(
    struct unpacker *u, const struct chunk *c, struct pnet_error *e)
{
    const uint8_t *data = u->z->b->data + c->at;
    size_t record = u->z->record;
    struct pnet_laz_decoder d = {.at = NULL};
    const char *wrong;
    if (!c->points) return PNET_OK;
    if (c->size < record) return bad_chunk(u, c, e, "it has no first point");
    u->state.epoch++;
    if (u->layered) {
        if (!pnet_laz_layered_begin(
                u->layered, &u->state, data, (size_t)c->size, c->points, &wrong))
            return bad_chunk(u, c, e, wrong);
    } else {
        pnet_laz_begin(&d, &u->state, data + record, data + c->size);
        if (u->pointwise)
            pnet_laz_pointwise_begin(u->pointwise, data);
        else
            pnet_laz_old_begin(u->old, data);
    }
    for (uint64_t i = 0; i < c->points; i++) {
        enum pnet_status status = u->done < u->room ? PNET_OK : grow(u, e);
        if (status != PNET_OK) return status;
        uint8_t *next = u->records + u->done * record;
        if (i == 0)
            memcpy(next, data, record);
        else if (u->layered)
            pnet_laz_layered_next(u->layered, next);
        else if (u->pointwise)
            pnet_laz_pointwise_next(u->pointwise, &d, next - record, next);
        else
            pnet_laz_old_next(u->old, &d, next - record, next);
        if (u->state.no_memory) return pnet_error_memory(e);
        if (u->state.damaged) return bad_chunk(u, c, e, "it ends too early, or is not well-formed");
        u->done++;
    }
    if (!u->layered && c->points == c->most && d.at != d.end)
        return bad_chunk(u, c, e, "bytes are left over");
    return PNET_OK;
}

/* Reads the points and the size of the next chunk. */
static enum pnet_status next_chunk(struct unpacker *u, struct chunk *c, struct pnet_error *e)
{
    uint64_t left = u->z->rows - u->done;
    c->at = u->at;
    c->size = u->end - u->at;
    c->most = UINT64_MAX;
    c->points = left;
    if (u->compressor == UNCHUNKED) return PNET_OK;
    c->most = u->chunk_size;
    if (u->chunk_size == variable_chunks) {
        u->last_count = pnet_laz_integer(&u->table, u->table_of, 32, 0, u->last_count);
        c->most = u->last_count;
    }
    if (c->most < left) c->points = c->most;
    u->last_size = pnet_laz_integer(&u->table, u->table_of, 32, 1, u->last_size);
    if (u->table_state.no_memory) return pnet_error_memory(e);
    if (u->table_state.damaged || u->last_size > c->size)
        return pnet_byte_error(u->z->path, u->end, e,
            "the table of compressed points gives chunk %" PRIu64 " more bytes than there are",
            c->index);
    c->size = u->last_size;
    u->at += c->size;
    return PNET_OK;
}

static enum pnet_status decode_chunks(struct unpacker *u, struct pnet_error *e)
{
    struct chunk c = {.index = 0};
    for (; c.index < u->chunks && u->done < u->z->rows; c.index++) {
        enum pnet_status status = next_chunk(u, &c, e);
        if (status == PNET_OK) status = decode_chunk(u, &c, e);
        if (status != PNET_OK) return status;
    }
    if (u->done < u->z->rows)
        return pnet_byte_error(u->z->path, u->end, e,
            "the compressed points end after %" PRIu64 " points, the header says %" PRIu64, u->done,
            u->z->rows);
    return PNET_OK;
}

enum pnet_status pnet_laz_unpack(const struct pnet_laz *z, uint8_t **records, struct pnet_error *e)
{
    struct unpacker u = {.z = z};
    *records = NULL;
    enum pnet_status status = parse_vlr(&u, e);
    if (status == PNET_OK && z->rows / PNET_LAZ_POINTS_A_BYTE > z->b->size)
        status = pnet_byte_error(z->path, z->b->size, e,
            "the header says %" PRIu64 " points, more than a file of %zu bytes holds", z->rows,
            z->b->size);
    if (status == PNET_OK) status = find_chunks(&u, e);
    if (status == PNET_OK && z->rows) status = make_decoder(&u, e);
    if (status == PNET_OK) status = decode_chunks(&u, e);
    if (status == PNET_OK && !u.records) u.records = malloc(1);
    if (status == PNET_OK && !u.records) status = pnet_error_memory(e);
    if (status != PNET_OK) {
        free(u.records);
        u.records = NULL;
    }
    *records = u.records;
    free(u.pointwise);
    free(u.old);
    free(u.layered);
    free(u.table_of);
    pnet_laz_state_free(&u.state);
    pnet_laz_state_free(&u.table_state);
    return status;
}
