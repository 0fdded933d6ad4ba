/* Clouds as LAS files. One that was read from LAS or LAZ is written as its file was, but for what changed; others are LAS 1.4. */
#include "runtime/io/las_write.h"
#include "runtime/io/column.h"
#include "runtime/io/format.h"
#include "runtime/io/laszip_library.h"
#include "runtime/io/laz_pack.h"
#include "runtime/io/writing.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { BLOCK_BYTES = 1 << 18 };

static const double int32_most = INT32_MAX;

/* The scales of clouds that were not read from LAS, in the unit of the coordinates. */
static const double scales[] = {1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10};

/* Looks at the coordinates of a piece on an axis. */
static void see_axis(struct pnet_las_reach *r, const struct pnet_las_piece *piece, int axis)
{
    for (int64_t row = 0; row < piece->c->rows && r->without < 0; row++) {
        double v = pnet_cloud_coordinate(piece->c, row, axis);
        if (!isfinite(v)) r->without = piece->first + pnet_las_row(piece, row);
        r->low = fmin(r->low, v);
        r->high = fmax(r->high, v);
    }
}

/* Chooses scale and offset of an axis: the finest scale with which the box fits around a whole number in its middle. */
static enum pnet_status choose_scale(
    const struct pnet_las_writer *w, int64_t rows, struct pnet_las_part *p, struct pnet_error *e)
{
    const struct pnet_las_reach *r = &w->reach[p->axis];
    double low = r->low, high = r->high, metres = w->like->metres[p->axis == 2];
    size_t s = 0;
    if (r->without >= 0)
        return pnet_error_set(e, PNET_USAGE,
            "%.400s: row %" PRId64 " has no %c, and LAS no way to say so: write another format",
            w->path, r->without, 'x' + p->axis);
    p->shift = rows ? rint(low + (high - low) / 2) : 0;
    double reach = rows ? fmax(high - p->shift, p->shift - low) : 0;
    while (s + 1 < sizeof scales / sizeof *scales && reach / scales[s] >= int32_most) s++;
    p->scale = scales[s];
    double off = p->scale / 2 * (metres > 0 ? metres : 1);
    if (off <= PNET_SINGLE_LOSS_M) return PNET_OK;
    return pnet_error_set(e, PNET_USAGE,
        "%.400s: %c goes from %.10g to %.10g: LAS would be off by up to %g m: write another format",
        w->path, 'x' + p->axis, low, high, off);
}

/* Reads a number of a record as a double. */
static double load_number(const uint8_t *from, enum pnet_scalar type)
{
    uint64_t number = 0;
    memcpy(&number, from, pnet_scalar_size(type));
    return pnet_field_get(&(struct pnet_field){.type = type, .data = &number}, 0);
}

/* Returns the kept bytes of a part, in the row of the file. */
static const uint8_t *kept_bytes(
    const struct pnet_las_piece *piece, const struct pnet_las_part *p, int64_t row)
{
    const struct pnet_las_kept *k = piece->c->las;
    return k->bytes + (size_t)pnet_las_row(piece, row) * k->width + p->kept;
}

/* Returns the kept bytes if they are where the value comes from, or NULL. `unit`: what the scaled number was multiplied with.
   Of a coordinate NaN stands for whatever was dropped. */
static const uint8_t *unchanged(const struct pnet_las_piece *piece, const struct pnet_las_part *p,
    int64_t row, double value, double unit)
{
    if (p->kept == PNET_LAS_NOT_KEPT) return NULL;
    const uint8_t *bytes = kept_bytes(piece, p, row);
    double was = pnet_scaled(load_number(bytes, p->type), p->scale, p->shift) * unit;
    bool same = was == value || (isnan(value) && (isnan(was) || p->axis >= 0));
    return same ? bytes : NULL;
}

/* Writes a number to a part that has a scale. */
static enum pnet_status put_number(const struct pnet_las_writer *w,
    const struct pnet_las_piece *piece, const struct pnet_las_part *p, int64_t row, double value,
    uint8_t *to, struct pnet_error *e)
{
    double low, high, number = (value - p->shift) / p->scale;
    bool real = p->type == PNET_F32 || p->type == PNET_F64;
    const char axis[2] = {(char)('x' + p->axis), '\0'};
    pnet_las_limits(p, &low, &high);
    if (!real) number = rint(number);
    if (!real && !(number >= low && number <= high))
        return pnet_error_set(e, PNET_USAGE,
            "%.400s: row %" PRId64
            ": %s is %.10g, but with scale %g and offset %.10g the file holds "
            "numbers from %.10g to %.10g",
            w->path, piece->first + pnet_las_row(piece, row), p->axis >= 0 ? axis : p->name, value,
            p->scale, p->shift, low * p->scale + p->shift, high * p->scale + p->shift);
    pnet_scalar_store(number, p->type, to);
    return PNET_OK;
}

static enum pnet_status put_axis(const struct pnet_las_writer *w,
    const struct pnet_las_piece *piece, const struct pnet_las_part *p, int64_t first, int64_t rows,
    uint8_t *to, struct pnet_error *e)
{
    const struct pnet_cloud *c = piece->c;
    double metres = c->metres[p->axis == 2];
    enum pnet_status st = PNET_OK;
    for (int64_t row = first; row < first + rows && !st; row++, to += w->layout.record) {
        const uint8_t *bytes =
            unchanged(piece, p, row, pnet_cloud_at(c, row, p->axis), metres > 0 ? metres : 1);
        if (bytes)
            memcpy(to, bytes, p->size);
        else
            st = put_number(w, piece, p, row, pnet_cloud_coordinate(c, row, p->axis), to, e);
    }
    return st;
}

static enum pnet_status put_field(const struct pnet_las_writer *w,
    const struct pnet_las_piece *piece, const struct pnet_las_part *p,
    const struct pnet_las_source *s, int64_t first, int64_t rows, uint8_t *to, struct pnet_error *e)
{
    const struct pnet_field *f = &piece->c->fields[s->field - w->like->fields];
    const uint8_t *from = (const uint8_t *)f->data + (size_t)first * pnet_scalar_size(f->type);
    bool as_is = !p->scaled && !p->bits && f->type == p->type;
    enum pnet_status st = PNET_OK;
    for (int64_t row = first; row < first + rows && !st; row++, to += w->layout.record) {
        if (as_is) {
            memcpy(to, from, p->size);
            from += p->size;
            continue;
        }
        double value = pnet_field_get(f, row) * s->factor;
        const uint8_t *bytes = p->scaled ? unchanged(piece, p, row, value, 1) : NULL;
        if (bytes)
            memcpy(to, bytes, p->size);
        else if (p->scaled)
            st = put_number(w, piece, p, row, value, to, e);
        else if (p->bits)
            *to |= (uint8_t)((unsigned)value << p->low);
        else
            pnet_scalar_store(value, p->type, to);
    }
    return st;
}

/* Makes the records of some rows of a piece. */
static enum pnet_status put_block(const struct pnet_las_writer *w,
    const struct pnet_las_piece *piece, int64_t first, int64_t rows, uint8_t *block,
    struct pnet_error *e)
{
    enum pnet_status st = PNET_OK;
    memset(block, 0, (size_t)rows * w->layout.record);
    for (int i = 0; i < w->layout.count && !st; i++) {
        const struct pnet_las_part *p = &w->layout.parts[i];
        if (p->axis >= 0)
            st = put_axis(w, piece, p, first, rows, block + p->at, e);
        else if (w->sources[i].field)
            st = put_field(w, piece, p, &w->sources[i], first, rows, block + p->at, e);
        else if (p->kept != PNET_LAS_NOT_KEPT)
            for (int64_t row = 0; row < rows; row++)
                memcpy(block + (size_t)row * w->layout.record + p->at,
                    kept_bytes(piece, p, first + row), p->size);
    }
    return st;
}

/* Uses some records: sums them up, writes them, or compresses them. */
typedef enum pnet_status use_rows(struct pnet_las_writer *w, void *to, const uint8_t *records,
    int64_t rows, struct pnet_error *e);

static enum pnet_status sum_rows(
    struct pnet_las_writer *w, void *to, const uint8_t *records, int64_t rows, struct pnet_error *e)
{
    (void)to, (void)e;
    pnet_las_summary_add(&w->summary, &w->layout, records, rows);
    return PNET_OK;
}

static enum pnet_status write_rows(
    struct pnet_las_writer *w, void *to, const uint8_t *records, int64_t rows, struct pnet_error *e)
{
    (void)e; /* the owner of the stream handles its errors */
    fwrite(records, w->layout.record, (size_t)rows, to);
    return PNET_OK;
}

static enum pnet_status pack_rows(
    struct pnet_las_writer *w, void *to, const uint8_t *records, int64_t rows, struct pnet_error *e)
{
    (void)w;
    return pnet_laz_pack(to, records, rows, e);
}

/* Makes all records of a piece, block after block. */
static enum pnet_status put_records(struct pnet_las_writer *w, const struct pnet_las_piece *piece,
    use_rows *use, void *to, struct pnet_error *e)
{
    const struct pnet_cloud *c = piece->c;
    enum pnet_status st = PNET_OK;
    int64_t most = 1 + BLOCK_BYTES / (int64_t)w->layout.record;
    uint8_t *block = malloc((size_t)most * w->layout.record);
    if (!block) return pnet_error_memory(e);
    for (int64_t first = 0; first < c->rows && !st; first += most) {
        int64_t some = c->rows - first < most ? c->rows - first : most;
        st = put_block(w, piece, first, some, block, e);
        if (!st) st = use(w, to, block, some, e);
    }
    free(block);
    return st;
}

/* Checks that a piece has the raw bytes of its rows, where the file's are kept. */
static enum pnet_status check_kept(
    const struct pnet_las_writer *w, const struct pnet_cloud *c, struct pnet_error *e)
{
    const struct pnet_las_kept *k = c->las;
    if (!w->k || (k && k->width == w->k->width && k->rows == c->file_rows)) return PNET_OK;
    if (c == w->like)
        return pnet_error_set(e, PNET_USAGE,
            "%.400s: the cloud has %" PRId64 " rows, the LAS file that it was read from %" PRId64,
            w->path, c->file_rows, w->k->rows);
    return pnet_error_set(e, PNET_USAGE,
        "%.400s: rows without the bytes of the records that they were read from", w->path);
}

/* Passes over the rows: where fields go and how coordinates are scaled depends on their values, and the header on the records. */
enum { CHOOSE, SUM_UP, MEASURES };

static enum pnet_status begin_writing(struct pnet_writing *writing, struct pnet_error *e)
{
    struct pnet_las_writer *w = writing->own;
    const struct pnet_las_kept *k = writing->like->las;
    bool whole = k && k->head; /* and not some points of a file */
    *w = (struct pnet_las_writer){
        .like = writing->like, .k = whole ? k : NULL, .path = writing->path};
    for (int a = 0; a < 3; a++)
        w->reach[a] = (struct pnet_las_reach){.low = INFINITY, .high = -INFINITY, .without = -1};
    pnet_las_summary_begin(&w->summary);
    writing->measures = MEASURES;
    return pnet_las_fit_begin(w, e);
}

static enum pnet_status see_rows(
    struct pnet_writing *writing, const struct pnet_cloud *c, struct pnet_error *e)
{
    struct pnet_las_writer *w = writing->own;
    const struct pnet_las_piece piece = {.c = c, .first = writing->file_done};
    enum pnet_status st = check_kept(w, c, e);
    if (st) return st;
    if (writing->pass == SUM_UP) /* what does not fit is found before anything is written */
        return put_records(w, &piece, sum_rows, NULL, e);
    pnet_las_fit_add(w, &piece);
    for (int a = 0; a < 3 && !w->k; a++) see_axis(&w->reach[a], &piece, a);
    return PNET_OK;
}

static enum pnet_status place(struct pnet_writing *writing, struct pnet_error *e)
{
    struct pnet_las_writer *w = writing->own;
    if (writing->pass != CHOOSE) return PNET_OK;
    if (w->k && w->k->rows != writing->file_done)
        return pnet_error_set(e, PNET_USAGE,
            "%.400s: %" PRId64
            " rows of the file, the LAS file that they were read from has %" PRId64,
            w->path, writing->file_done, w->k->rows);
    enum pnet_status st = pnet_las_place(w, e);
    for (int a = 0; a < 3 && !st && !w->k; a++)
        st = choose_scale(w, writing->rows, &w->layout.parts[a], e);
    return st;
}

/* Makes the head of the LAS file. The caller frees it. */
static enum pnet_status make_head(
    const struct pnet_las_writer *w, uint8_t **head, size_t *size, struct pnet_error *e)
{
    const struct pnet_las_frame frame = {
        .layout = &w->layout, .summary = &w->summary, .extras = w->extras, .relaid = w->relaid};
    return w->k ? pnet_las_make_head(w->k, &frame, head, size, e)
                : pnet_las_new_head(&frame, head, size, e);
}

static enum pnet_status write_head(struct pnet_writing *writing, struct pnet_error *e)
{
    uint8_t *head = NULL;
    size_t size = 0;
    enum pnet_status st = make_head(writing->own, &head, &size, e);
    if (!st) fwrite(head, 1, size, writing->f);
    free(head);
    return st;
}

static enum pnet_status put_rows(
    struct pnet_writing *writing, const struct pnet_cloud *c, struct pnet_error *e)
{
    const struct pnet_las_piece piece = {.c = c, .first = writing->file_done};
    enum pnet_status st = check_kept(writing->own, c, e);
    return st ? st : put_records(writing->own, &piece, write_rows, writing->f, e);
}

static enum pnet_status write_tail(struct pnet_writing *writing, struct pnet_error *e)
{
    const struct pnet_las_writer *w = writing->own;
    (void)e;
    if (w->k) fwrite(w->k->tail, 1, w->k->tail_size, writing->f);
    return PNET_OK;
}

static void free_writing(struct pnet_writing *writing)
{
    struct pnet_las_writer *w = writing->own;
    pnet_las_layout_free(&w->layout);
    pnet_laz_pack_free(w->packer);
    free(w->head);
    free(w->fits);
    free(w->sources);
    free(w->extras);
    free(w->placed);
}

const struct pnet_writing_kind pnet_las_writing = {.size = sizeof(struct pnet_las_writer),
    .begin = begin_writing,
    .see = see_rows,
    .seen = place,
    .head = write_head,
    .put = put_rows,
    .tail = write_tail,
    .free = free_writing};

/* ---- LAZ: the head says where the compressed points end, so it is written behind them ---- */

/* A missing library is told before anything is read or computed. */
static enum pnet_status begin_laz(struct pnet_writing *writing, struct pnet_error *e)
{
    enum pnet_status st = pnet_laz_check_output(writing->path, e);
    return st ? st : begin_writing(writing, e);
}

/* The point format, which new fields may raise, is known as soon as the fields have their places. */
static enum pnet_status place_laz(struct pnet_writing *writing, struct pnet_error *e)
{
    const struct pnet_las_writer *w = writing->own;
    enum pnet_status st = place(writing, e);
    return st ? st : pnet_laz_check_format(w->path, w->layout.format, e);
}

static enum pnet_status begin_packing(struct pnet_writing *writing, struct pnet_error *e)
{
    struct pnet_las_writer *w = writing->own;
    enum pnet_status st = make_head(w, &w->head, &w->head_size, e);
    return st ? st : pnet_laz_pack_new(w->path, w->layout.format, w->layout.record, &w->packer, e);
}

static enum pnet_status pack_piece(
    struct pnet_writing *writing, const struct pnet_cloud *c, struct pnet_error *e)
{
    struct pnet_las_writer *w = writing->own;
    const struct pnet_las_piece piece = {.c = c, .first = writing->file_done};
    enum pnet_status st = check_kept(w, c, e);
    return st ? st : put_records(w, &piece, pack_rows, w->packer, e);
}

/* Writes the compressed points behind the head of LAZ that belongs to that of LAS. */
static enum pnet_status write_packed(struct pnet_writing *writing, struct pnet_error *e)
{
    struct pnet_las_writer *w = writing->own;
    const struct pnet_las_frame frame = {
        .layout = &w->layout, .summary = &w->summary, .extras = w->extras, .relaid = w->relaid};
    struct pnet_laz_packed packed = {.vlr = NULL};
    uint8_t *laz_head = NULL, table[8];
    enum pnet_status st = pnet_laz_pack_end(w->packer, &packed, e);
    if (!st)
        st = pnet_las_pack_head(w->head, w->head_size, packed.points_size, &frame, packed.vlr,
            packed.vlr_size, &laz_head, e);
    if (!st) {
        uint64_t points_at = w->head_size + packed.vlr_size;
        pnet_las_store(
            table, 0, points_at + pnet_las_load(packed.points, 0, sizeof table), sizeof table);
        fwrite(laz_head, 1, points_at, writing->f);
        fwrite(table, 1, sizeof table, writing->f);
        fwrite(packed.points + sizeof table, 1, packed.points_size - sizeof table, writing->f);
        st = write_tail(writing, e);
    }
    free(laz_head);
    return st;
}

const struct pnet_writing_kind pnet_laz_writing = {.size = sizeof(struct pnet_las_writer),
    .begin = begin_laz,
    .see = see_rows,
    .seen = place_laz,
    .head = begin_packing,
    .put = pack_piece,
    .tail = write_packed,
    .free = free_writing};

enum pnet_status pnet_laz_check_output(const char *path, struct pnet_error *e)
{
    const struct pnet_laszip_library *l;
    return pnet_laszip_open(path, &l, e);
}
