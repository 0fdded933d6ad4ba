/* Clouds in NPY arrays: a matrix [points, 3 or more], or records with x, y and z or with one field of three values. */
#include "runtime/io/npy_cloud.h"
#include "runtime/io/format.h"
#include "runtime/io/rows.h"

#include <stdlib.h>
#include <string.h>

bool pnet_npy_probe(const struct pnet_bytes *b)
{
    return b->size >= 6 && memcmp(b->data, "\x93NUMPY", 6) == 0;
}

bool pnet_names_coordinates(struct pnet_span name)
{
    static const char *const names[] = {"xyz", "points", "point", "pts", "coords", "coord",
        "coordinates", "coordinate", "positions", "position", "pos", "pc", "pcd", "cloud",
        "point_cloud", "pointcloud", "vertices", "verts"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (pnet_span_is_nocase(name, names[i])) return true;
    return false;
}

struct pnet_npy_header pnet_npy_without_lead(const struct pnet_npy_header *h)
{
    struct pnet_npy_header rest = *h;
    if (h->dims < 2 || h->shape[0] != 1) return rest;
    rest.dims--;
    memmove(rest.shape, rest.shape + 1, (size_t)rest.dims * sizeof *rest.shape);
    return rest;
}

enum pnet_status pnet_npy_add_matrix(struct pnet_columns *t, const struct pnet_npy_header *h,
    struct pnet_span name, const char *path, struct pnet_error *e)
{
    const struct pnet_column *plain = &h->columns.items[0];
    int64_t rows = h->shape[0], width = h->dims == 2 ? h->shape[1] : 1;
    for (int64_t k = 0; k < width; k++) {
        struct pnet_column *c;
        enum pnet_status status = pnet_columns_add(t, name, plain->type, &c, path, e);
        if (status != PNET_OK) return status;
        c->number = width > 1 || !name.at ? (int)k : -1;
        c->swap = plain->swap;
        c->half = plain->half;
        c->stride = h->fortran ? h->item : h->item * (size_t)width;
        c->data = h->data + (h->fortran && rows ? (size_t)(k * rows)
                                : rows          ? (size_t)k
                                                : 0) *
                                h->item;
    }
    return PNET_OK;
}

/* Returns the first of three columns that are all values of one field: of the field `name`, or, with NULL, of the only one that
   is named as coordinates are. -1: there is none; -2: there are several. */
static int find_triple(const struct pnet_columns *t, const char *name)
{
    int found = -1;
    for (int i = 0; i + 3 <= t->count; i++) {
        const struct pnet_column *c = &t->items[i];
        bool more = i + 3 < t->count && c[3].number == 3;
        if (c[0].skip || c[0].number != 0 || c[1].number != 1 || c[2].number != 2 || more) continue;
        if (name ? !pnet_span_is(c->name, name) : !pnet_names_coordinates(c->name)) continue;
        found = found == -1 ? i : -2;
    }
    return found;
}

bool pnet_npy_has_field(const struct pnet_npy_header *h, const char *name)
{
    return h->structured && h->dims == 1 && find_triple(&h->columns, name) >= 0;
}

bool pnet_npy_holds_points(const struct pnet_npy_header *h)
{
    int axis[3];
    if (!h->structured) return h->dims == 2 && h->shape[1] >= 3;
    return h->dims == 1 && (find_triple(&h->columns, NULL) != -1 ||
                               pnet_columns_axes(&h->columns, axis, "", NULL) == PNET_OK);
}

/* The coordinates of records are the fields x, y and z, or one field of three values. */
static enum pnet_status find_record_axes(const struct pnet_columns *t, const char *choice,
    int axis[3], const char *path, struct pnet_error *e)
{
    int triple = choice ? find_triple(t, choice) : -1;
    bool chosen = triple >= 0, apart = pnet_columns_axes(t, axis, path, NULL) == PNET_OK;
    if (!chosen) triple = find_triple(t, NULL);
    if (triple == -2 || (triple >= 0 && apart && !chosen))
        return pnet_error_set(e, PNET_BAD_DATA,
            "%.500s: several fields of the records may hold the coordinates; --coordinates NAME "
            "chooses one of three values, in a data set `coordinates: NAME`",
            path);
    if (triple < 0) return pnet_columns_axes(t, axis, path, e);
    for (int a = 0; a < 3; a++) axis[a] = triple + a;
    return PNET_OK;
}

enum pnet_status pnet_npy_add_points(struct pnet_columns *t, const struct pnet_npy_header *h,
    const char *choice, int axis[3], const char *path, struct pnet_error *e)
{
    if (!h->structured) {
        int64_t rows = h->shape[0], width = h->shape[1];
        if ((rows == 3 || rows == 4) && width > PNET_COLUMNS_LIKELY)
            return pnet_error_set(e, PNET_BAD_DATA,
                "%.500s: found an array [%lld, %lld], expected a row for each point: transpose it",
                path, (long long)rows, (long long)width);
        for (int a = 0; a < 3; a++) axis[a] = a;
        return pnet_npy_add_matrix(t, h, (struct pnet_span){NULL, NULL}, path, e);
    }
    for (int i = 0; i < h->columns.count; i++) {
        struct pnet_column *c, from = h->columns.items[i];
        enum pnet_status status = pnet_columns_add(t, from.name, from.type, &c, path, e);
        if (status != PNET_OK) return status;
        *c = from;
    }
    return find_record_axes(t, choice, axis, path, e);
}

/* Loads the header of the file, as far as it says how long it is. */
static enum pnet_status load_header(struct pnet_file_parts *f, struct pnet_error *e)
{
    enum { LENGTH = 8, HEAD = 12 };
    uint32_t length = 0;
    if (f->bytes.size < HEAD) return PNET_OK;
    memcpy(&length, f->bytes.data + LENGTH, f->bytes.data[6] == 1 ? 2 : 4);
    return pnet_file_parts_load_head(f, HEAD + (uint64_t)length, e);
}

static enum pnet_status find_rows(struct pnet_file_parts *f, const struct pnet_npy_header *h,
    const struct pnet_cloud_hints *hints, struct pnet_rows *r, struct pnet_error *e)
{
    struct pnet_npy_header points = h->dims == 2 + !h->structured ? pnet_npy_without_lead(h) : *h;
    if (points.structured ? points.dims != 1 : !pnet_npy_holds_points(&points))
        return pnet_byte_error(f->path, 10, e,
            "expected a matrix [points, 3 or more], or a list of records with x, y and z");
    enum pnet_status status =
        pnet_npy_add_points(&r->columns, &points, hints->coordinates, r->axis, f->path, e);
    r->count = points.shape[0];
    r->apart = points.fortran && !points.structured;
    r->records = h->data;
    r->record = h->item * (points.structured ? 1 : (size_t)points.shape[1]);
    return status;
}

enum pnet_status pnet_npy_open(struct pnet_file_parts *f, const struct pnet_cloud_hints *hints,
    struct pnet_rows *r, struct pnet_cloud *c, struct pnet_error *e)
{
    struct pnet_npy_header h;
    (void)c;
    enum pnet_status status = load_header(f, e);
    if (status != PNET_OK) return status;
    status = pnet_npy_header_read(&f->bytes, f->path, &h, e);
    if (status == PNET_OK) status = find_rows(f, &h, hints, r, e);
    pnet_columns_free(&h.columns);
    return status;
}

enum pnet_status pnet_npy_cloud_read_as(const struct pnet_bytes *b, const char *path,
    const struct pnet_cloud_hints *hints, struct pnet_cloud *c, struct pnet_error *e)
{
    return pnet_rows_read(pnet_npy_open, b, path, hints, c, e);
}

enum pnet_status pnet_npy_cloud_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e)
{
    return pnet_npy_cloud_read_as(b, path, &(struct pnet_cloud_hints){.columns = NULL}, c, e);
}
