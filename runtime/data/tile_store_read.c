#include "runtime/data/tile_store_own.h"

#include "runtime/data/stretches.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READ_ROWS = 8192, CURSOR_ROWS_MOST = 512, CURSOR_BYTES = 32 << 20 };

/* ---- tiles ---- */

/* Points of several tiles, in the order in which they were read. */
struct gathered {
    char *records;
    struct pnet_placed_row *rows;
    int64_t count, room;
    int64_t *end, stretches; /* of each tile */
    int64_t own[2];          /* from, to: those of the tile itself */
    char *chunk;             /* READ_ROWS records */
    int64_t *chunk_rows;
};

struct box {
    double low[3], high[3];
};

static bool add_point(
    const struct pnet_tile_store *s, struct gathered *g, const char *record, int64_t row)
{
    if (g->count == g->room) {
        int64_t room = g->room ? 2 * g->room : READ_ROWS;
        char *records = realloc(g->records, (size_t)room * s->bytes);
        if (records) g->records = records;
        struct pnet_placed_row *rows =
            records ? realloc(g->rows, (size_t)room * sizeof *rows) : NULL;
        if (!rows) return false;
        g->rows = rows;
        g->room = room;
    }
    memcpy(g->records + (size_t)g->count * s->bytes, record, s->bytes);
    g->rows[g->count] = (struct pnet_placed_row){row, g->count};
    g->count++;
    return true;
}

static bool holds(const struct box *b, const char *record)
{
    float p[3];
    memcpy(p, record, sizeof p);
    for (int k = 0; k < 3; k++)
        if ((double)p[k] < b->low[k] || (double)p[k] > b->high[k]) return false;
    return true;
}

/* Adds the points of a tile that lie in the box. */
static enum pnet_status add_tile_points(const struct pnet_tile_store *s, const struct stored *t,
    const struct box *b, struct gathered *g, struct pnet_error *e)
{
    int64_t before = g->count;
    for (int64_t from = 0; from < t->count; from += READ_ROWS) {
        int64_t n = t->count - from < READ_ROWS ? t->count - from : READ_ROWS;
        uint64_t at = (uint64_t)(t->first + from);
        enum pnet_status st =
            pnet_store_read(s, POINTS, g->chunk, (size_t)n * s->bytes, at * s->bytes, e);
        if (!st)
            st = pnet_store_read(s, ROWS, g->chunk_rows, (size_t)n * sizeof *g->chunk_rows,
                at * sizeof *g->chunk_rows, e);
        if (st) return st;
        for (int64_t i = 0; i < n; i++) {
            const char *record = g->chunk + (size_t)i * s->bytes;
            if (holds(b, record) && !add_point(s, g, record, g->chunk_rows[i]))
                return pnet_error_memory(e);
        }
    }
    if (g->count > before) g->end[g->stretches++] = g->count;
    return PNET_OK;
}

static enum pnet_status gather(
    const struct pnet_tile_store *s, int64_t tile, struct gathered *g, struct pnet_error *e)
{
    struct box b;
    double reach = pnet_tiling_reach(&s->o.tiling, s->largest);
    for (int k = 0; k < 3; k++) {
        b.low[k] = (double)s->tiles[tile].low[k] - reach;
        b.high[k] = (double)s->tiles[tile].high[k] + reach;
    }
    g->chunk = malloc(READ_ROWS * s->bytes);
    g->chunk_rows = malloc(READ_ROWS * sizeof *g->chunk_rows);
    g->end = malloc((size_t)s->count * sizeof *g->end + 1);
    enum pnet_status st = g->chunk && g->chunk_rows && g->end ? PNET_OK : pnet_error_memory(e);
    for (int64_t t = 0; t < s->count && !st; t++) {
        const struct stored *other = &s->tiles[t];
        bool apart = false;
        for (int k = 0; k < 3; k++)
            apart |= (double)other->low[k] > b.high[k] || (double)other->high[k] < b.low[k];
        if (apart) continue;
        if (t == tile) g->own[0] = g->count;
        st = add_tile_points(s, other, &b, g, e);
        if (t == tile) g->own[1] = g->count;
    }
    return st;
}

static void release(struct gathered *g)
{
    free(g->records);
    free(g->rows);
    free(g->end);
    free(g->chunk);
    free(g->chunk_rows);
}

static void unpack(
    const struct pnet_tile_store *s, const char *record, struct pnet_batch_input *to, int64_t row)
{
    const struct pnet_input *in = &s->o.inputs[s->o.input];
    memcpy(to->xyz + 3 * row, record, 3 * sizeof *to->xyz);
    record += 3 * sizeof *to->xyz;
    for (int k = 0; k < in->field_count; k++) {
        size_t bytes = pnet_stored_bytes(&in->fields[k]);
        if (bytes) memcpy((char *)to->fields[k] + (size_t)row * bytes, record, bytes);
        record += bytes;
    }
}

/* Makes a batch of the points, in the order of their rows. */
static enum pnet_status make_batch(const struct pnet_tile_store *s, struct gathered *g,
    struct pnet_batch **b, bool *is_own, struct pnet_error *e)
{
    const int64_t none[2] = {0, 0}, all[2] = {0, g->count};
    const int64_t **splits = malloc((size_t)s->o.input_count * sizeof *splits + 1);
    struct pnet_placed_row *room = malloc((size_t)g->count * sizeof *room + 1);
    enum pnet_status st = splits && room ? PNET_OK : pnet_error_memory(e);
    for (int i = 0; i < s->o.input_count && !st; i++) splits[i] = i == s->o.input ? all : none;
    if (!st) st = pnet_batch_new(s->o.inputs, s->o.input_count, 1, splits, b, e);
    if (!st) {
        const struct pnet_placed_row *rows =
            pnet_merge_stretches(g->rows, room, g->end, g->stretches);
        (*b)->inputs[s->o.input].largest = s->largest;
        for (int64_t i = 0; i < g->count; i++) {
            unpack(s, g->records + (size_t)rows[i].at * s->bytes, &(*b)->inputs[s->o.input], i);
            is_own[i] = rows[i].at >= g->own[0] && rows[i].at < g->own[1];
        }
    }
    free(splits);
    free(room);
    return st;
}

enum pnet_status pnet_tile_store_take(const struct pnet_tile_store *s, int64_t tile,
    struct pnet_batch **b, bool **is_own, struct pnet_error *e)
{
    struct gathered g = {.count = 0};
    *b = NULL;
    *is_own = NULL;
    enum pnet_status st = gather(s, tile, &g, e);
    if (!st && !(*is_own = malloc((size_t)g.count + 1))) st = pnet_error_memory(e);
    if (!st) st = make_batch(s, &g, b, *is_own, e);
    release(&g);
    if (!st) return PNET_OK;
    free(*is_own);
    *is_own = NULL;
    return st;
}

enum pnet_status pnet_tile_store_give(
    struct pnet_tile_store *s, int64_t tile, const void *values, struct pnet_error *e)
{
    const struct stored *t = &s->tiles[tile];
    const char one = 1;
    enum pnet_status st = pnet_store_write(s, VALUES, values, (size_t)t->count * s->o.value_bytes,
        (uint64_t)t->first * s->o.value_bytes, e);
    /* the mark of a tile is not on the disk before its values */
    if (!st && fdatasync(s->fd[VALUES]) && errno != EINVAL) st = pnet_store_failed(s, VALUES, e);
    if (!st) st = pnet_store_write(s, DONE, &one, 1, sizeof(struct head) + (uint64_t)tile, e);
    if (!st) s->done[tile] = true;
    return st;
}

/* ---- values in the order of rows ---- */

/* Returns to the first row of each tile. */
static enum pnet_status begin_values(struct pnet_tile_store *s, struct pnet_error *e)
{
    enum { LEAST = 16 };
    int64_t each = s->count ? CURSOR_BYTES / (int64_t)sizeof(int64_t) / s->count : 0;
    s->cursor_rows = each < LEAST ? LEAST : each > CURSOR_ROWS_MOST ? CURSOR_ROWS_MOST : each;
    for (int64_t t = 0; t < s->count; t++) {
        struct stored *tile = &s->tiles[t];
        tile->filled = 0;
        if (!tile->rows) tile->rows = malloc((size_t)s->cursor_rows * sizeof *tile->rows);
        if (!tile->rows) return pnet_error_memory(e);
    }
    return PNET_OK;
}

/* Takes the values of the rows of a tile that are next and lie before `end`. */
static enum pnet_status take_values(const struct pnet_tile_store *s, struct stored *t,
    int64_t first, int64_t end, char *values, bool *there, struct pnet_error *e)
{
    char few[CURSOR_ROWS_MOST * 16], *room = few;
    size_t each = s->o.value_bytes;
    enum pnet_status st = PNET_OK;
    if ((size_t)s->cursor_rows * each > sizeof few) room = malloc((size_t)s->cursor_rows * each);
    if (!room) return pnet_error_memory(e);
    while (t->filled < t->count && !st) {
        int64_t at = t->filled % s->cursor_rows, left = t->count - (t->filled - at), n = 0;
        if (left > s->cursor_rows) left = s->cursor_rows;
        if (at == 0)
            st = pnet_store_read(s, ROWS, t->rows, (size_t)left * sizeof *t->rows,
                (uint64_t)(t->first + t->filled) * sizeof *t->rows, e);
        while (!st && at + n < left && t->rows[at + n] < end) n++;
        if (st || !n) break;
        st = pnet_store_read(
            s, VALUES, room, (size_t)n * each, (uint64_t)(t->first + t->filled) * each, e);
        for (int64_t i = 0; i < n && !st; i++) {
            int64_t row = t->rows[at + i] - first;
            memcpy(values + (size_t)row * each, room + (size_t)i * each, each);
            there[row] = true;
        }
        t->filled += n;
        if (at + n < left) break;
    }
    if (room != few) free(room);
    return st;
}

enum pnet_status pnet_tile_store_values(struct pnet_tile_store *s, int64_t first, int64_t count,
    void *values, bool *there, struct pnet_error *e)
{
    enum pnet_status st = first == 0 ? begin_values(s, e) : PNET_OK;
    memset(there, 0, (size_t)count);
    for (int64_t t = 0; t < s->count && !st; t++)
        st = take_values(s, &s->tiles[t], first, first + count, values, there, e);
    return st;
}
