#include "runtime/data/tile_store_own.h"

#include "runtime/data/stretches.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const names[FILES] = {"points", "rows", "values", "done"};
static const char magic[8] = "PNETTILE";

/* ---- files ---- */

enum pnet_status pnet_store_failed(
    const struct pnet_tile_store *s, enum pnet_store_file file, struct pnet_error *e)
{
    return pnet_error_set(
        e, PNET_FAILED, "%.400s/%s: %s", s->folder, names[file], strerror(errno ? errno : EIO));
}

enum pnet_status pnet_store_write(const struct pnet_tile_store *s, enum pnet_store_file file,
    const void *data, size_t bytes, uint64_t at, struct pnet_error *e)
{
    for (const char *from = data; bytes;) {
        ssize_t n = pwrite(s->fd[file], from, bytes, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return pnet_store_failed(s, file, e);
        from += n;
        at += (uint64_t)n;
        bytes -= (size_t)n;
    }
    return PNET_OK;
}

enum pnet_status pnet_store_read(const struct pnet_tile_store *s, enum pnet_store_file file,
    void *data, size_t bytes, uint64_t at, struct pnet_error *e)
{
    for (char *to = data; bytes;) {
        ssize_t n = pread(s->fd[file], to, bytes, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = 0;
        if (n <= 0) return pnet_store_failed(s, file, e);
        to += n;
        at += (uint64_t)n;
        bytes -= (size_t)n;
    }
    return PNET_OK;
}

static void name_file(const struct pnet_tile_store *s, int file, char path[PNET_PATH_MOST + 16])
{
    snprintf(path, PNET_PATH_MOST + 16, "%s/%s", s->folder, names[file]);
}

/* Makes the folder, or finds the one of an earlier store. */
static enum pnet_status make_folder(const struct pnet_tile_store *s, struct pnet_error *e)
{
    struct head h;
    char path[PNET_PATH_MOST + 16];
    if (mkdir(s->folder, 0777) == 0) return PNET_OK;
    if (errno != EEXIST)
        return pnet_error_set(e, PNET_FAILED, "%.400s: %s", s->folder, strerror(errno));
    name_file(s, DONE, path);
    FILE *f = fopen(path, "rb");
    bool ours = f && fread(&h, sizeof h, 1, f) == 1 && memcmp(h.magic, magic, sizeof magic) == 0;
    if (f) fclose(f);
    if (ours || (rmdir(s->folder) == 0 && mkdir(s->folder, 0777) == 0)) return PNET_OK;
    return pnet_error_set(e, PNET_USAGE,
        "%.400s is in the way, where tiles are kept: remove it, or write the result elsewhere",
        s->folder);
}

enum pnet_status pnet_tile_store_open(
    const struct pnet_tile_store_options *o, struct pnet_tile_store **store, struct pnet_error *e)
{
    const struct pnet_input *in = &o->inputs[o->input];
    struct head h = {.key = 0};
    struct pnet_tile_store *s = *store = calloc(1, sizeof *s);
    if (!s) return pnet_error_memory(e);
    s->o = *o;
    s->last = -1;
    s->bytes = 3 * sizeof(float);
    for (int k = 0; k < in->field_count; k++) s->bytes += pnet_stored_bytes(&in->fields[k]);
    for (int f = 0; f < FILES; f++) s->fd[f] = -1;
    snprintf(s->folder, sizeof s->folder, "%s", o->folder);
    enum pnet_status st = make_folder(s, e);
    for (int f = FILES - 1; f >= 0 && !st; f--) {
        char path[PNET_PATH_MOST + 16];
        name_file(s, f, path);
        s->fd[f] = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (s->fd[f] < 0) st = pnet_store_failed(s, (enum pnet_store_file)f, e);
        /* with its head the folder is known as a store's */
        if (st || f != DONE || pread(s->fd[f], &h, sizeof h, 0) == (ssize_t)sizeof h) continue;
        memcpy(h.magic, magic, sizeof magic);
        st = pnet_store_write(s, (enum pnet_store_file)f, &h, sizeof h, 0, e);
    }
    if (!st) return PNET_OK;
    pnet_tile_store_close(s, true);
    *store = NULL;
    return st;
}

void pnet_tile_store_close(struct pnet_tile_store *s, bool keep)
{
    if (!s) return;
    for (int f = 0; f < FILES; f++) {
        char path[PNET_PATH_MOST + 16];
        if (s->fd[f] >= 0) close(s->fd[f]);
        name_file(s, f, path);
        if (!keep) unlink(path);
    }
    if (!keep) rmdir(s->folder);
    for (int64_t t = 0; t < s->count; t++) free(s->tiles[t].rows);
    free(s->tiles);
    free(s->table);
    free(s->done);
    free(s);
}

/* ---- which tile ---- */

static uint64_t mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return h ^ h >> 29;
}

static int64_t *entry_of(const struct pnet_tile_store *s, const int32_t place[3])
{
    uint64_t h = UINT64_C(0xCBF29CE484222325);
    for (int k = 0; k < 3; k++) h = mix(h, (uint32_t)place[k]);
    int64_t at = (int64_t)(h & (uint64_t)(s->table_size - 1));
    while (s->table[at] >= 0 &&
           memcmp(s->tiles[s->table[at]].place, place, sizeof s->tiles->place) != 0)
        at = (at + 1) & (s->table_size - 1);
    return &s->table[at];
}

/* Fills the table with the present tiles. */
static bool fill_table(struct pnet_tile_store *s, int64_t size)
{
    int64_t *table = malloc((size_t)size * sizeof *table);
    if (!table) return false;
    for (int64_t i = 0; i < size; i++) table[i] = -1;
    free(s->table);
    s->table = table;
    s->table_size = size;
    for (int64_t t = 0; t < s->count; t++) *entry_of(s, s->tiles[t].place) = t;
    return true;
}

/* Makes a tile of that place; -1: out of memory. */
static int64_t add_tile(struct pnet_tile_store *s, const int32_t place[3])
{
    enum { TILES_FIRST = 64 };
    if (s->count == s->room) {
        int64_t room = s->room ? 2 * s->room : TILES_FIRST;
        struct stored *tiles = realloc(s->tiles, (size_t)room * sizeof *tiles);
        if (!tiles) return -1;
        s->tiles = tiles;
        s->room = room;
        if (!fill_table(s, 4 * room)) return -1;
    }
    int64_t t = s->count++;
    s->tiles[t] = (struct stored){
        .low = {INFINITY, INFINITY, INFINITY}, .high = {-INFINITY, -INFINITY, -INFINITY}};
    memcpy(s->tiles[t].place, place, sizeof s->tiles[t].place);
    *entry_of(s, place) = t;
    return t;
}

/* Returns the number of the tile of a point; -1: there is none. Neighbours in a file often lie in one tile. */
static int64_t find_tile(struct pnet_tile_store *s, const int32_t place[3])
{
    if (s->last >= 0 && memcmp(s->tiles[s->last].place, place, sizeof s->tiles->place) == 0)
        return s->last;
    s->last = s->table ? *entry_of(s, place) : -1;
    return s->last;
}

enum pnet_status pnet_tile_store_count(
    struct pnet_tile_store *s, int64_t rows, const float *xyz, struct pnet_error *e)
{
    for (int64_t i = 0; i < rows; i++) {
        int32_t place[3];
        pnet_tiling_place(&s->o.tiling, xyz + 3 * i, place);
        int64_t t = find_tile(s, place);
        if (t < 0) t = s->last = add_tile(s, place);
        if (t < 0) return pnet_error_memory(e);
        for (int k = 0; k < 3; k++) {
            float x = xyz[3 * i + k];
            s->tiles[t].low[k] = fminf(s->tiles[t].low[k], x);
            s->tiles[t].high[k] = fmaxf(s->tiles[t].high[k], x);
            s->largest = fmaxf(s->largest, fabsf(x));
        }
        s->tiles[t].count++;
    }
    s->points += rows;
    return PNET_OK;
}

static int by_place(const void *a, const void *b)
{
    const struct stored *x = a, *y = b;
    for (int k = 0; k < 3; k++)
        if (x->place[k] != y->place[k]) return x->place[k] < y->place[k] ? -1 : 1;
    return 0;
}

enum pnet_status pnet_tile_store_turn(struct pnet_tile_store *s, struct pnet_error *e)
{
    int64_t first = 0;
    if (s->count) qsort(s->tiles, (size_t)s->count, sizeof *s->tiles, by_place);
    for (int64_t t = 0; t < s->count; t++) {
        s->tiles[t].first = first;
        first += s->tiles[t].count;
    }
    s->last = -1;
    s->done = calloc((size_t)s->count + 1, sizeof *s->done);
    bool ok = s->done && (!s->count || fill_table(s, s->table_size));
    return ok ? PNET_OK : pnet_error_memory(e);
}

/* ---- points ---- */

static void pack(const struct pnet_tile_store *s, const struct pnet_sample *p, int64_t i, char *to)
{
    memcpy(to, p->xyz + 3 * i, 3 * sizeof *p->xyz);
    to += 3 * sizeof *p->xyz;
    for (int k = 0; k < p->input->field_count; k++) {
        size_t bytes = pnet_stored_bytes(&s->o.inputs[s->o.input].fields[k]);
        if (bytes) memcpy(to, (const char *)p->fields[k] + (size_t)i * bytes, bytes);
        to += bytes;
    }
}

static int by_tile(const void *a, const void *b)
{
    const struct pnet_placed_row *x = a, *y = b; /* row: the tile; at: the point */
    if (x->row != y->row) return x->row < y->row ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* Writes the points of one tile, which follow each other in `sorted`. */
static enum pnet_status put_tile(struct pnet_tile_store *s, const struct pnet_sample *points,
    const int64_t *row, const struct pnet_placed_row *sorted, int64_t count, char *records,
    int64_t *rows, struct pnet_error *e)
{
    struct stored *t = &s->tiles[sorted->row];
    if (t->filled + count > t->count)
        return pnet_error_set(e, PNET_FAILED, "the file has changed while it was read");
    for (int64_t i = 0; i < count; i++) {
        pack(s, points, sorted[i].at, records + (size_t)i * s->bytes);
        rows[i] = row[sorted[i].at];
    }
    uint64_t at = (uint64_t)(t->first + t->filled);
    t->filled += count;
    enum pnet_status st =
        pnet_store_write(s, POINTS, records, (size_t)count * s->bytes, at * s->bytes, e);
    return st ? st
              : pnet_store_write(s, ROWS, rows, (size_t)count * sizeof *rows, at * sizeof *rows, e);
}

/* Hashes what is put, so that values of other points are not taken for those of these. */
static void hash_points(
    struct pnet_tile_store *s, const struct pnet_sample *p, const int64_t *row, char *record)
{
    for (int64_t i = 0; i < p->rows; i++) {
        s->hash = mix(s->hash, (uint64_t)row[i]);
        pack(s, p, i, record);
        for (size_t k = 0; k < s->bytes; k += sizeof(uint32_t)) {
            uint32_t word;
            memcpy(&word, record + k, sizeof word);
            s->hash = mix(s->hash, word);
        }
    }
}

enum pnet_status pnet_tile_store_put(struct pnet_tile_store *s, const struct pnet_sample *points,
    const int64_t *row, struct pnet_error *e)
{
    size_t n = (size_t)points->rows;
    struct pnet_placed_row *sorted = malloc(n * sizeof *sorted + 1);
    int64_t *rows = malloc(n * sizeof *rows + 1);
    char *records = malloc((n + 1) * s->bytes);
    enum pnet_status st = sorted && rows && records ? PNET_OK : pnet_error_memory(e);
    if (!st) hash_points(s, points, row, records);
    for (int64_t i = 0; i < points->rows && !st; i++) {
        int32_t place[3];
        pnet_tiling_place(&s->o.tiling, points->xyz + 3 * i, place);
        sorted[i] = (struct pnet_placed_row){find_tile(s, place), i};
        if (sorted[i].row < 0)
            st = pnet_error_set(e, PNET_FAILED, "the file has changed while it was read");
    }
    if (!st) qsort(sorted, n, sizeof *sorted, by_tile);
    for (int64_t i = 0, end; i < points->rows && !st; i = end) {
        for (end = i + 1; end < points->rows && sorted[end].row == sorted[i].row;) end++;
        st = put_tile(s, points, row, sorted + i, end - i, records, rows, e);
    }
    free(sorted);
    free(rows);
    free(records);
    return st;
}

enum pnet_status pnet_tile_store_begin(
    struct pnet_tile_store *s, uint64_t key, struct pnet_error *e)
{
    struct head is, wanted = {.key = mix(s->hash, key), .points = (uint64_t)s->points};
    memcpy(wanted.magic, magic, sizeof magic);
    for (int64_t t = 0; t < s->count; t++)
        if (s->tiles[t].filled != s->tiles[t].count)
            return pnet_error_set(e, PNET_FAILED, "the file has changed while it was read");
    bool same = pread(s->fd[DONE], &is, sizeof is, 0) == (ssize_t)sizeof is &&
                memcmp(&is, &wanted, sizeof is) == 0;
    if (!same && (ftruncate(s->fd[DONE], 0) || ftruncate(s->fd[VALUES], 0)))
        return pnet_store_failed(s, DONE, e);
    enum pnet_status st = same ? PNET_OK : pnet_store_write(s, DONE, &wanted, sizeof wanted, 0, e);
    for (int64_t t = 0; t < s->count && same; t++) {
        char byte = 0;
        if (pread(s->fd[DONE], &byte, 1, (off_t)sizeof is + (off_t)t) != 1) break;
        s->done[t] = byte == 1;
    }
    return st;
}

int64_t pnet_tile_store_tiles(const struct pnet_tile_store *s)
{
    return s->count;
}

int64_t pnet_tile_store_points(const struct pnet_tile_store *s)
{
    return s->points;
}

uint64_t pnet_tile_store_bytes(const struct pnet_tile_store *s)
{
    return (uint64_t)s->points * (s->bytes + sizeof(int64_t) + s->o.value_bytes);
}

int64_t pnet_tile_store_own(const struct pnet_tile_store *s, int64_t tile)
{
    return s->tiles[tile].count;
}

bool pnet_tile_store_has(const struct pnet_tile_store *s, int64_t tile)
{
    return s->done[tile];
}

bool pnet_tile_store_has_any(const struct pnet_tile_store *s)
{
    struct stat is;
    return fstat(s->fd[DONE], &is) == 0 && is.st_size > (off_t)sizeof(struct head);
}
