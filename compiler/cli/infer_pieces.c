#include "compiler/cli/infer_pieces.h"
#include "compiler/cli/progress.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/printable.h"
#include "runtime/data/lowest.h"
#include "runtime/data/tile_store.h"
#include "runtime/io/cloud_check.h"
#include "runtime/io/cloud_writer.h"
#include "runtime/io/npy.h"
#include "runtime/io/pieces.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE_ROWS = 1 << 19 };

/* The work on one file. */
struct work {
    struct inference *f;
    const char *path, *output;
    const struct pnet_input *input;
    struct pnet_cloud_pieces *pieces;
    struct pnet_cloud_outline *outline;
    struct pnet_tile_store *store;
    size_t width;
    struct pnet_frame frame;
    struct pnet_range *ranges; /* [channels] of all fields, in order */
    int channels;
    int64_t bad;                        /* numbers of results that are not finite */
    struct pnet_tiled_work work;        /* of this run */
    double network_s;                   /* geometry and layers */
    int64_t done, points, begun_points; /* that have results; at the begin */
    struct pnet_cloud_writer *cloud;    /* of the output; NULL: */
    struct pnet_npy_output npy;         /* of the plain matrix */
};

/* Calls `visit` for each piece of the file, from the first row on. It may change the piece. */
typedef enum pnet_status visitor(
    struct work *w, struct pnet_cloud *c, int64_t first, struct pnet_error *e);
static enum pnet_status each_piece(struct work *w, visitor *visit, struct pnet_error *e)
{
    enum pnet_status st = PNET_OK;
    pnet_cloud_pieces_rewind(w->pieces);
    for (bool more = true; more && !st;) {
        struct pnet_cloud c;
        int64_t first;
        if ((st = pnet_cloud_pieces_next(w->pieces, &c, &first, e))) return st;
        more = c.file_rows > 0;
        if (more) st = visit(w, &c, first, e);
        pnet_cloud_free(&c);
        if (!st && pnet_cli_interrupted()) st = pnet_error_set(e, PNET_INTERRUPTED, "interrupted");
    }
    return st;
}

static bool is_matrix(const char *path)
{
    size_t n = strlen(path);
    return n > 4 && strcmp(path + n - 4, ".npy") == 0;
}

/* ---- what is decided by all points ---- */

static enum pnet_status count_piece(
    struct work *w, struct pnet_cloud *c, int64_t first, struct pnet_error *e)
{
    const struct pnet_input_map *map = &w->f->weights.map;
    int n = 0;
    enum pnet_status st = PNET_OK;
    if (!is_matrix(w->output)) st = pnet_cloud_check_missing(w->output, c, first, e);
    if (!st) st = pnet_tile_store_count(w->store, c->rows, c->xyz, e);
    pnet_frame_add(&w->frame, c->xyz, c->rows, c->offset);
    for (int i = 0; i < w->input->field_count; i++)
        for (int k = 0; k < w->input->fields[i].width && !st; k++)
            st = pnet_input_map_channel_range(
                map, w->input, &w->input->fields[i], k, c, first, w->path, &w->ranges[n++], e);
    return st;
}

/* Pieces are one cloud. */
static void join_frame(struct pnet_frame *f)
{
    f->clouds = f->clouds > 0;
    f->most = 0;
    for (int a = 0; a < 3; a++) f->most = fmax(f->most, f->high[a] - f->low[a]);
    f->least = f->most;
}

/* Decides what colours are divided by, and says what is unusual, as for a cloud in memory. */
static enum pnet_status decide(struct work *w, struct pnet_error *e)
{
    struct inference *f = w->f;
    struct pnet_ranges all = {.count = 0}, source = {.count = 0};
    enum pnet_status st = PNET_OK;
    join_frame(&w->frame);
    pnet_cli_doubt_frame(f, 0, &w->frame, w->path);
    for (int i = 0; i < w->channels && !st; i++) {
        if (!(w->ranges[i].least <= w->ranges[i].most)) continue;
        st = pnet_ranges_add(&all, &w->ranges[i], e);
        if (!st && w->ranges[i].kind != PNET_RANGE_FED)
            st = pnet_ranges_add(&source, &w->ranges[i], e);
    }
    if (!st && !f->settled) st = pnet_cli_settle_ranges(&f->weights, &source, e);
    if (!st) pnet_cli_warn_unusual(&f->weights.map, &all, w->path, &f->outside);
    f->settled = true;
    pnet_ranges_free(&all);
    pnet_ranges_free(&source);
    return st;
}

static enum pnet_status look(struct work *w, struct pnet_error *e)
{
    int n = 0;
    for (int i = 0; i < w->input->field_count; i++) w->channels += w->input->fields[i].width;
    w->ranges = malloc((size_t)w->channels * sizeof *w->ranges + 1);
    if (!w->ranges) return pnet_error_memory(e);
    for (int i = 0; i < w->input->field_count; i++)
        for (int k = 0; k < w->input->fields[i].width; k++)
            w->ranges[n++] = pnet_range_begin(w->input->fields[i].name);
    enum pnet_status st = each_piece(w, count_piece, e);
    if (!st) st = decide(w, e);
    return st ? st : pnet_tile_store_turn(w->store, e);
}

/* ---- points ---- */

static enum pnet_status put_piece(
    struct work *w, struct pnet_cloud *c, int64_t first, struct pnet_error *e)
{
    struct pnet_sample *s = NULL;
    int64_t *rows = malloc((size_t)c->rows * sizeof *rows + 1);
    if (!rows) return pnet_error_memory(e);
    for (int64_t i = 0; i < c->rows; i++) rows[i] = first + (c->file_row ? c->file_row[i] : i);
    free(c->file_row); /* messages name rows of the file */
    c->file_row = rows;
    enum pnet_status st =
        pnet_sample_make(w->input, &w->f->weights.map, c, NULL, 0, w->path, &s, e);
    if (!st) st = pnet_tile_store_put(w->store, s, rows, e);
    pnet_sample_free(s);
    return st;
}

static uint64_t hash(uint64_t h, const void *data, size_t size)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < size; i++) h = (h ^ p[i]) * UINT64_C(0x100000001B3);
    return h;
}

/* Sets a number of all that decides results besides the points. */
static enum pnet_status key_of(const struct work *w, uint64_t *key, struct pnet_error *e)
{
    struct inference *f = w->f;
    const struct pnet_tiling *t = &f->computing.tiles.tiling;
    int64_t count = f->plan->param_elements;
    int how[] = {(int)f->bound->device, (int)f->bound->precision, f->bound->architecture};
    float *weights = malloc((size_t)count * sizeof *weights + 1);
    if (!weights) return pnet_error_memory(e);
    enum pnet_status st = pnet_runner_read(f->runner, PNET_BLOCK_PARAMS, 0, count, weights, e);
    uint64_t h = hash(UINT64_C(0xCBF29CE484222325), PNET_VERSION, sizeof PNET_VERSION);
    if (!st) h = hash(h, weights, (size_t)count * sizeof *weights);
    h = hash(h, &f->plan->hash, sizeof f->plan->hash);
    h = hash(h, &t->grid, sizeof t->grid);
    h = hash(h, &t->margin, sizeof t->margin);
    h = hash(h, how, sizeof how);
    for (int n = 0; n < f->plan->node_count; n++)
        if (pnet_plan_convolves(f->plan, n))
            h = hash(h, &f->bound->algos[n], sizeof *f->bound->algos);
    free(weights);
    *key = h;
    return st;
}

/* ---- tiles ---- */

static enum pnet_status run_tile(struct work *w, int64_t tile, struct pnet_error *e)
{
    struct pnet_runner *s = w->f->runner;
    struct pnet_batch *b;
    bool *is_own;
    float *result = NULL;
    int64_t rows = 0, own = 0;
    enum pnet_status st = pnet_tile_store_take(w->store, tile, &b, &is_own, e);
    if (st) return st;
    double begun = pnet_seconds();
    st = pnet_runner_prepare(s, 0, b, e);
    pnet_batch_free(b);
    if (!st) st = pnet_runner_forward(s, 0, false, 0, e);
    if (!st) st = pnet_runner_result(s, 0, &result, &rows, e);
    w->network_s += pnet_seconds() - begun;
    if (st == PNET_NO_MEMORY) {
        struct pnet_error why = *e;
        pnet_error_set(e, st, "smaller tiles take less memory (--tile): ");
        pnet_error_append(e, why.message);
    }
    for (int64_t i = 0; i < rows && !st; i++) {
        if (!is_own[i]) continue;
        memmove(result + (size_t)own++ * w->width, result + (size_t)i * w->width,
            w->width * sizeof *result);
    }
    if (!st) st = pnet_tile_store_give(w->store, tile, result, e);
    w->work.tiles++;
    w->work.points += own;
    w->work.computed += rows;
    if (rows > w->work.largest) w->work.largest = rows;
    free(result);
    free(is_own);
    return st;
}

static void show(const struct work *w, struct pnet_progress *shown, double begun)
{
    double seconds = pnet_seconds() - begun;
    char text[64];
    snprintf(text, sizeof text, "%.3gk points/s",
        seconds > 0 ? (double)(w->done - w->begun_points) / seconds / 1000 : 0);
    pnet_progress_show(shown, w->done, w->points, text);
}

/* Says where the files lie, how large they are, and what is done already. */
static void say_begin(const struct work *w, int64_t has)
{
    char bytes[32], shown[PNET_PATH_MOST];
    fprintf(stderr, "%s.tiles: %s of points and results in %lld tiles",
        pnet_printable(w->output, shown, sizeof shown),
        pnet_bytes_text(pnet_tile_store_bytes(w->store), bytes),
        (long long)pnet_tile_store_tiles(w->store));
    if (has)
        fprintf(stderr, ", of which %lld were done before\n", (long long)has);
    else
        fputc('\n', stderr);
}

static enum pnet_status run_tiles(struct work *w, struct pnet_error *e)
{
    int64_t tiles = pnet_tile_store_tiles(w->store), has = 0;
    double begun = pnet_seconds();
    enum pnet_status st = PNET_OK;
    w->points = pnet_tile_store_points(w->store);
    for (int64_t t = 0; t < tiles; t++) {
        if (!pnet_tile_store_has(w->store, t)) continue;
        has++;
        w->begun_points += pnet_tile_store_own(w->store, t);
    }
    w->done = w->begun_points;
    if (!w->f->quiet) say_begin(w, has);
    struct pnet_progress *shown = w->f->quiet ? NULL : pnet_progress_new(stderr);
    for (int64_t t = 0; t < tiles && !st; t++) {
        if (pnet_tile_store_has(w->store, t)) continue;
        st = run_tile(w, t, e);
        w->done += pnet_tile_store_own(w->store, t);
        if (!st) show(w, shown, begun);
        if (!st && pnet_cli_interrupted()) st = pnet_error_set(e, PNET_INTERRUPTED, "interrupted");
    }
    pnet_progress_free(shown);
    if (!st && !w->f->quiet) pnet_cli_say_tiled(w->path, &w->work, &w->f->computing.tiles.tiling);
    return st;
}

/* ---- the output ---- */

/* Reads the results of the rows of a piece: result[file_rows, width], with NaN where there is no point. Their rows: row_of. */
static enum pnet_status results_of(struct work *w, const struct pnet_cloud *c, int64_t first,
    float **result, int64_t **row_of, struct pnet_error *e)
{
    size_t rows = (size_t)c->file_rows;
    bool *there = malloc(rows + 1);
    *result = malloc(rows * w->width * sizeof **result + 1);
    *row_of = malloc(rows * sizeof **row_of + 1);
    enum pnet_status st = there && *result && *row_of ? pnet_tile_store_values(w->store, first,
                                                            c->file_rows, *result, there, e)
                                                      : pnet_error_memory(e);
    for (size_t i = 0; i < rows && !st; i++) {
        (*row_of)[i] = there[i] ? (int64_t)i : -1;
        if (there[i]) continue;
        for (size_t k = 0; k < w->width; k++) (*result)[i * w->width + k] = NAN;
    }
    free(there);
    return st;
}

static enum pnet_status write_piece(
    struct work *w, struct pnet_cloud *c, int64_t first, struct pnet_error *e)
{
    float *result = NULL;
    int64_t *row_of = NULL, rows = c->file_rows;
    enum pnet_status st = results_of(w, c, first, &result, &row_of, e);
    if (!st && !w->cloud) st = pnet_npy_put(&w->npy, result, rows * (int64_t)w->width, e);
    if (!st && w->cloud)
        st = pnet_cli_add_result(w->f, w->path, c, result, row_of, (int)w->width, e);
    if (!st && w->cloud) st = pnet_cloud_writer_put(w->cloud, c, e);
    for (int64_t i = 0; i < rows && !st; i++)
        if (row_of[i] >= 0)
            w->bad += pnet_cli_not_finite(result + i * (int64_t)w->width, (int64_t)w->width);
    free(result);
    free(row_of);
    return st;
}

static enum pnet_status write_matrix(struct work *w, struct pnet_error *e)
{
    const int64_t shape[2] = {w->outline->file_rows, (int64_t)w->width};
    enum pnet_status st = pnet_npy_begin(w->output, PNET_F32, 2, shape, &w->npy, e);
    if (st) return st;
    st = each_piece(w, write_piece, e);
    if (!st) return pnet_npy_commit(&w->npy, e);
    pnet_npy_drop(&w->npy);
    return st;
}

static enum pnet_status write_cloud(struct work *w, struct pnet_error *e)
{
    struct pnet_cloud like;
    enum pnet_status st =
        pnet_cli_make_like(w->f, w->path, &w->outline->cloud, (int)w->width, &like, e);
    if (!st) st = pnet_cloud_writer_open(w->output, &like, w->outline->file_rows, &w->cloud, e);
    for (bool again = true; again && !st;) {
        w->bad = 0;
        st = each_piece(w, write_piece, e);
        if (!st) st = pnet_cloud_writer_pass(w->cloud, &again, e);
    }
    if (!st)
        st = pnet_cloud_writer_close(w->cloud, e);
    else
        pnet_cloud_writer_drop(w->cloud);
    pnet_cli_free_like(&like);
    return st;
}

/* ---- all of it ---- */

/* Does a field of the model need all points of a cloud for each of them? */
static bool needs_all(const struct inference *f, const struct pnet_input *in)
{
    const struct pnet_input_map *m = &f->weights.map;
    for (int i = 0; i < in->field_count; i++) {
        const struct pnet_input_field *field = &in->fields[i];
        if (field->unused) continue;
        if (field->per_cloud || strcmp(field->name, PNET_ABOVE_LOWEST) == 0) return true;
    }
    for (int i = 0; i < m->count; i++)
        for (int k = 0; k < m->sources[i].count; k++)
            if (strcmp(m->sources[i].names[k], PNET_ABOVE_LOWEST) == 0) return true;
    return false;
}

/* Opens the file; *whole says that it must be read as a whole. */
static enum pnet_status open_file(struct work *w, bool *whole, struct pnet_error *e)
{
    struct inference *f = w->f;
    char warning[256];
    struct pnet_cloud_hints hints = pnet_cli_hints(&f->hints, &f->weights.map);
    hints.origin = pnet_origin_hint(&f->origin);
    enum pnet_status st =
        pnet_cloud_pieces_open(w->path, &hints, PIECE_ROWS, &w->pieces, warning, e);
    *whole = st == PNET_USAGE;
    if (*whole && !f->quiet) pnet_cli_notice("%s", e->message);
    if (st) return *whole ? PNET_OK : st;
    w->outline = pnet_cloud_pieces_outline(w->pieces);
    if (*warning) pnet_cli_notice("%s", warning);
    st = pnet_cloud_name_columns(hints.columns, hints.column_count, &w->outline->cloud, w->path, e);
    if (st) return st;
    st = pnet_cli_check_codes(&f->codes, f->weights.map.classes, f->weights.map.class_count,
        &w->outline->cloud, w->path, w->output, e);
    if (st || is_matrix(w->output)) return st;
    return pnet_cli_check_like(w->f, w->path, &w->outline->cloud, (int)w->width, w->output, e);
}

static enum pnet_status compute_and_write(struct work *w, struct pnet_error *e)
{
    uint64_t key;
    double begun = pnet_seconds();
    enum pnet_status st = look(w, e);
    if (!st) st = each_piece(w, put_piece, e);
    if (!st) st = key_of(w, &key, e);
    if (!st) st = pnet_tile_store_begin(w->store, key, e);
    double sorted = pnet_seconds();
    if (!st) st = run_tiles(w, e);
    double computed = pnet_seconds();
    if (!st) st = is_matrix(w->output) ? write_matrix(w, e) : write_cloud(w, e);
    if (st) return st;
    pnet_cli_warn_not_finite(w->path, w->bad, w->points * (int64_t)w->width);
    if (w->f->verbose) {
        char shown[PNET_PATH_MOST];
        fprintf(stderr,
            "%s: %lld points, sort %.1f s, tiles %.1f s, of it network %.1f s, write %.1f s\n",
            pnet_printable(w->path, shown, sizeof shown), (long long)w->points, sorted - begun,
            computed - sorted, w->network_s, pnet_seconds() - computed);
    }
    return PNET_OK;
}

enum pnet_status pnet_cli_infer_pieces(
    struct inference *f, const char *input, const char *output, bool *done, struct pnet_error *e)
{
    char folder[PNET_PATH_MOST];
    struct work w = {.f = f,
        .path = input,
        .output = output,
        .input = &f->plan->inputs[f->feed.input[0]],
        .width = (size_t)f->plan->tensors[f->plan->result].type.width};
    bool whole;
    *done = false;
    if (f->computing.voting.copies || f->computing.tiles.blend || f->labels ||
        strcmp(output, "-") == 0 || needs_all(f, w.input))
        return PNET_OK;
    enum pnet_status st = open_file(&w, &whole, e);
    if (!st && !whole) {
        struct pnet_tile_store_options o = {.folder = folder,
            .tiling = f->computing.tiles.tiling,
            .inputs = f->plan->inputs,
            .input_count = f->plan->input_count,
            .input = f->feed.input[0],
            .value_bytes = w.width * sizeof(float)};
        snprintf(folder, sizeof folder, "%s.tiles", output);
        pnet_cli_catch_interrupts();
        st = pnet_tile_store_open(&o, &w.store, e);
        if (!st) st = compute_and_write(&w, e);
        bool keep = st && w.store && pnet_tile_store_has_any(w.store);
        if (keep)
            pnet_cli_notice(
                "tiles that are done stay in %s: the same command goes on from there", folder);
        pnet_tile_store_close(w.store, keep);
        *done = true;
    }
    pnet_cloud_pieces_close(w.pieces);
    free(w.ranges);
    return st;
}
