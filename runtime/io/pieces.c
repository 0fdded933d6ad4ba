#include "runtime/io/pieces.h"
#include "runtime/io/cloud_doubts.h"
#include "runtime/io/format.h"
#include "runtime/io/place.h"
#include "runtime/io/rows.h"
#include "runtime/io/stray.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What formats are recognised by, and what is loaded for their doubts: first bytes, and last ones. */
enum { HEAD = 1 << 12, DOUBT_HEAD = 1 << 18, TAIL = 64 };

struct pnet_cloud_pieces {
    struct pnet_file_parts file;
    struct pnet_rows rows;
    struct pnet_cloud_outline outline;
    struct pnet_placer placer; /* with the box of all points */
    struct pnet_placing placing;
    int64_t most, room; /* rows of a piece; rows taken at a time */
    int64_t next;       /* row of the file */
    int64_t at;         /* where the rows taken begin, counted in rows of the columns */
    int64_t
        held; /* decoded rows that are in memory from row 0 of the file on, and are not decoded again if they are all */
    double *xyz; /* [PNET_COLUMNS_BLOCK, 3] */
};

static const uint8_t *records_at(const struct pnet_cloud_pieces *p, int64_t row)
{
    return p->rows.records + (size_t)row * p->rows.record;
}

static bool is_decoded(const struct pnet_cloud_pieces *p)
{
    return p->rows.kind && p->rows.kind->decode;
}

typedef enum pnet_status part_function(
    struct pnet_file_parts *f, uint64_t at, uint64_t size, struct pnet_error *e);

static enum pnet_status drop(
    struct pnet_file_parts *f, uint64_t at, uint64_t size, struct pnet_error *e)
{
    (void)e;
    pnet_file_parts_drop(f, at, size);
    return PNET_OK;
}

/* Loads or drops the bytes of rows. */
static enum pnet_status with_rows(
    struct pnet_cloud_pieces *p, int64_t rows, part_function *part, struct pnet_error *e)
{
    const struct pnet_rows *r = &p->rows;
    const uint8_t *file = p->file.bytes.data;
    enum pnet_status status = PNET_OK;
    if (!r->apart)
        return part(
            &p->file, (uint64_t)(records_at(p, p->next) - file), (uint64_t)rows * r->record, e);
    for (int i = 0; i < r->columns.count && !status; i++) {
        const struct pnet_column *c = &r->columns.items[i];
        status = part(&p->file, (uint64_t)(c->data - file) + (uint64_t)p->next * c->stride,
            (uint64_t)rows * c->stride, e);
    }
    return status;
}

/* Takes the next rows: the columns have them from row p->at on. */
static enum pnet_status take(struct pnet_cloud_pieces *p, int64_t rows, struct pnet_error *e)
{
    bool all = is_decoded(p) && p->held == p->rows.count;
    p->at = all || !is_decoded(p) ? p->next : 0;
    if (all) return PNET_OK;
    if (!is_decoded(p)) return with_rows(p, rows, pnet_file_parts_load, e);
    enum pnet_status status = p->rows.kind->decode(&p->rows, rows, e);
    p->held = status || p->next ? 0 : rows;
    return status;
}

static void leave(struct pnet_cloud_pieces *p, int64_t rows)
{
    if (!is_decoded(p)) with_rows(p, rows, drop, NULL);
    p->next += rows;
}

void pnet_cloud_pieces_rewind(struct pnet_cloud_pieces *p)
{
    if (is_decoded(p)) p->rows.kind->rewind(&p->rows);
    p->next = 0;
}

/* Sees rows from row `file_row` of the file on, which the columns have from row `at` on, and the coordinates of all of them.
   Returns false if it needs no more. */
typedef bool see_block(struct pnet_cloud_pieces *p, void *to, int64_t file_row, int64_t at,
    int64_t rows, const double *xyz);

static enum pnet_status each_block(
    struct pnet_cloud_pieces *p, see_block *see, void *to, struct pnet_error *e)
{
    const struct pnet_rows *r = &p->rows;
    enum pnet_status status = PNET_OK;
    bool more = true;
    pnet_cloud_pieces_rewind(p);
    while (p->next < r->count && more && !status) {
        int64_t rows = r->count - p->next < p->room ? r->count - p->next : p->room;
        status = take(p, rows, e);
        for (int64_t k = 0; k < rows && more && !status; k += PNET_COLUMNS_BLOCK) {
            int64_t some = rows - k < PNET_COLUMNS_BLOCK ? rows - k : PNET_COLUMNS_BLOCK;
            pnet_columns_points(&r->columns, r->axis, p->at + k, some, p->xyz);
            more = see(p, to, p->next + k, p->at + k, some, p->xyz);
        }
        leave(p, rows);
    }
    return status;
}

static bool measure(struct pnet_cloud_pieces *p, void *to, int64_t file_row, int64_t at,
    int64_t rows, const double *xyz)
{
    (void)to, (void)file_row;
    pnet_placer_measure(&p->placer, rows, xyz);
    if (p->rows.kind && p->rows.kind->see) p->rows.kind->see(&p->rows, records_at(p, at), rows);
    return true;
}

/* A walk of points for pnet_strays_find. */
struct walking {
    pnet_see_point *see;
    void *to;
};

static bool walk_block(struct pnet_cloud_pieces *p, void *to, int64_t file_row, int64_t at,
    int64_t rows, const double *xyz)
{
    const struct walking *w = to;
    double v[3];
    (void)at;
    for (int64_t i = 0; i < rows; i++)
        if (pnet_placer_convert(&p->placer, xyz + 3 * i, v) && !w->see(w->to, file_row + i, v))
            return false;
    return true;
}

static enum pnet_status walk(void *points, pnet_see_point *see, void *to, struct pnet_error *e)
{
    struct walking w = {see, to};
    return each_block(points, walk_block, &w, e);
}

/* What float32 takes from coordinates less the offset. */
struct losing {
    bool all;    /* the largest loss is asked for, not only whether there is one */
    double lost; /* metres, at most */
};

static bool see_loss(struct pnet_cloud_pieces *p, void *to, int64_t file_row, int64_t at,
    int64_t rows, const double *xyz)
{
    struct losing *l = to;
    const double *offset = p->placing.offset;
    double v[3];
    (void)file_row, (void)at;
    for (int64_t i = 0; i < rows && (l->all || !p->placing.exact); i++) {
        if (!pnet_placer_convert(&p->placer, xyz + 3 * i, v)) continue;
        for (int a = 0; a < 3; a++) {
            double near = offset[a] + (double)(float)(v[a] - offset[a]);
            p->placing.exact |= near != v[a];
            l->lost = fmax(l->lost, fabs(near - v[a]));
        }
    }
    return l->all || !p->placing.exact;
}

/* Tells whether a warning may name the loss: float32 keeps numbers below 2^15 within 2^-10, doubles those below 2^30 within
   2^-24, which together are less than the loss that is told. */
static bool may_tell_loss(const struct pnet_cloud_pieces *p)
{
    bool told = false;
    for (int a = 0; a < 3; a++) {
        double low = p->placer.low[a], high = p->placer.high[a], offset = p->placing.offset[a];
        told |= fmax(fabs(low - offset), fabs(high - offset)) >= 0x1p15;
        told |= fmax(fabs(low), fabs(high)) >= 0x1p30;
    }
    return told;
}

/* Tells whether the coordinates are float32, or fit into it, as they are. */
static bool is_single(const struct pnet_cloud_pieces *p)
{
    bool single = true;
    for (int a = 0; a < 3; a++) {
        const struct pnet_column *c = &p->rows.columns.items[p->rows.axis[a]];
        size_t size = pnet_scalar_size(c->type);
        single &= !c->scaled && (c->type == PNET_F32 || size < 4);
        single &= p->placing.offset[a] == 0 && p->placer.metres[a] == 1;
    }
    return single;
}

/* Places the points as pnet_columns_cloud would place all of them, with the offset `origin` if it is not NULL. */
static enum pnet_status place(
    struct pnet_cloud_pieces *p, const double *origin, struct losing *l, struct pnet_error *e)
{
    struct pnet_cloud *c = &p->outline.cloud;
    struct pnet_strays strays = {.count = 0};
    struct pnet_box core;
    pnet_placer_begin(&p->placer, c->metres);
    enum pnet_status status = each_block(p, measure, NULL, e);
    if (!status && p->placer.kept)
        pnet_offset_of_box(p->placer.low, p->placer.high, p->placing.offset);
    if (!status && pnet_placer_is_wide(&p->placer)) {
        status = pnet_strays_find(walk, p, &core, &strays, e);
        if (!status && strays.count) pnet_offset_of_box(core.low, core.high, p->placing.offset);
    }
    if (origin) memcpy(p->placing.offset, origin, sizeof p->placing.offset);
    l->all &= p->placer.kept && may_tell_loss(p);
    if (!status && !is_single(p)) status = each_block(p, see_loss, l, e);
    if (!status)
        status = pnet_columns_piece(&p->rows.columns, p->rows.axis, 0, 0, &p->placing, c, e);
    if (status) return status;
    c->strays = strays;
    p->outline.rows = p->placer.kept;
    p->outline.file_rows = p->placer.rows;
    p->outline.exact = p->placing.exact;
    bool dropped = p->placer.kept < p->placer.rows;
    return p->rows.kind && p->rows.kind->keep_file
               ? p->rows.kind->keep_file(&p->rows, dropped, c, e)
               : PNET_OK;
}

/* Doubts the first column, which may number the samples of a batch. */
static enum pnet_status doubt_batch(
    struct pnet_cloud_pieces *p, int names, char text[PNET_DOUBT], struct pnet_error *e)
{
    struct pnet_batch_doubt d;
    enum pnet_status status = PNET_OK;
    pnet_batch_doubt_begin(&d, &p->outline.cloud, names);
    pnet_cloud_pieces_rewind(p);
    while (d.likely && !status) {
        struct pnet_cloud c;
        status = pnet_cloud_pieces_next(p, &c, NULL, e);
        if (status || !c.file_rows) break;
        pnet_batch_doubt_add(&d, &c);
        pnet_cloud_free(&c);
    }
    if (!status) pnet_batch_doubt_end(&d, p->outline.rows, text);
    return status;
}

static enum pnet_status warn(struct pnet_cloud_pieces *p, const struct pnet_cloud_hints *hints,
    pnet_doubt_file *doubt_file, double lost, char warning[256], struct pnet_error *e)
{
    char doubt[PNET_DOUBT] = "";
    enum pnet_status status = PNET_OK;
    if (doubt_file) status = pnet_file_parts_load_head(&p->file, DOUBT_HEAD, e);
    if (doubt_file && !status) status = doubt_file(&p->file, hints->column_count, doubt, e);
    if (!*doubt && !status) pnet_doubt_width(&p->outline.cloud, hints->column_count, doubt);
    if (!*doubt && !status) status = doubt_batch(p, hints->column_count, doubt, e);
    if (status) return status;
    struct pnet_cloud all = p->outline.cloud;
    all.rows = p->outline.rows;
    all.file_rows = p->outline.file_rows;
    pnet_cloud_doubts_of(&all, lost, hints, p->file.path, doubt, warning);
    return PNET_OK;
}

static enum pnet_status open_file(struct pnet_cloud_pieces *p, const char *path,
    const struct pnet_cloud_hints *hints, pnet_doubt_file **doubt, struct pnet_error *e)
{
    enum pnet_status status = pnet_file_parts_open(path, &p->file, e);
    if (status) return status;
    uint64_t size = p->file.bytes.size, tail = size < TAIL ? size : TAIL;
    status = pnet_file_parts_load_head(&p->file, HEAD, e);
    if (!status) status = pnet_file_parts_load(&p->file, size - tail, tail, e);
    if (!status) status = pnet_format_open(&p->file, hints, &p->rows, &p->outline.cloud, doubt, e);
    if (status) return status;
    p->room = p->most < PNET_COLUMNS_BLOCK ? PNET_COLUMNS_BLOCK : p->most;
    if (p->room > p->rows.count) p->room = p->rows.count;
    p->xyz = malloc(PNET_COLUMNS_BLOCK * 3 * sizeof *p->xyz);
    if (!p->xyz) return pnet_error_memory(e);
    return is_decoded(p) ? p->rows.kind->reserve(&p->rows, p->room, e) : PNET_OK;
}

enum pnet_status pnet_cloud_pieces_open(const char *path, const struct pnet_cloud_hints *hints,
    int64_t most, struct pnet_cloud_pieces **to, char warning[256], struct pnet_error *e)
{
    pnet_doubt_file *doubt = NULL;
    struct losing l = {.all = warning};
    *to = NULL;
    if (warning) warning[0] = '\0';
    struct pnet_cloud_pieces *p = calloc(1, sizeof *p);
    if (!p) return pnet_error_memory(e);
    p->file.fd = -1;
    p->most = most;
    pnet_cloud_begin(&p->outline.cloud, hints);
    enum pnet_status status = open_file(p, path, hints, &doubt, e);
    if (!status) status = place(p, hints->origin, &l, e);
    if (!status) status = pnet_cloud_check_unit(&p->outline.cloud, hints, p->file.path, e);
    if (!status && warning) status = warn(p, hints, doubt, l.lost, warning, e);
    if (status) {
        pnet_cloud_pieces_close(p);
        return status;
    }
    pnet_cloud_pieces_rewind(p);
    *to = p;
    return PNET_OK;
}

void pnet_cloud_pieces_close(struct pnet_cloud_pieces *p)
{
    if (!p) return;
    pnet_cloud_free(&p->outline.cloud);
    pnet_rows_close(&p->rows);
    pnet_file_parts_close(&p->file);
    free(p->xyz);
    free(p);
}

struct pnet_cloud_outline *pnet_cloud_pieces_outline(struct pnet_cloud_pieces *p)
{
    return &p->outline;
}

enum pnet_status pnet_cloud_pieces_next(
    struct pnet_cloud_pieces *p, struct pnet_cloud *c, int64_t *first, struct pnet_error *e)
{
    const struct pnet_cloud *all = &p->outline.cloud;
    const struct pnet_rows *r = &p->rows;
    int64_t rows = r->count - p->next < p->most ? r->count - p->next : p->most;
    if (first) *first = p->next;
    *c = (struct pnet_cloud){.rows = 0};
    if (!rows) return PNET_OK;
    memcpy(c->unit, all->unit, sizeof c->unit);
    memcpy(c->metres, all->metres, sizeof c->metres);
    c->unit_of_file = all->unit_of_file;
    c->faces = all->faces;
    enum pnet_status status = take(p, rows, e);
    if (!status) status = pnet_columns_piece(&r->columns, r->axis, p->at, rows, &p->placing, c, e);
    if (!status && r->kind && r->kind->keep_rows)
        status = r->kind->keep_rows(r, records_at(p, p->at), c, e);
    if (status) pnet_cloud_free(c);
    leave(p, rows);
    return status;
}
