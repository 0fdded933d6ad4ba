/* Clouds in NPY arrays, and in NPZ archives of them: a matrix [points, 3 or more], or a structured
   type with x, y and z. In an archive the other arrays with a row a point are fields. */
#include "runtime/io/column.h"
#include "runtime/io/format.h"
#include "runtime/io/npy_header.h"
#include "runtime/io/zip.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MEMBERS_MOST = 256 };

bool pnet_npy_probe(const struct pnet_bytes *b)
{
    return b->size >= 6 && memcmp(b->data, "\x93NUMPY", 6) == 0;
}

bool pnet_npz_probe(const struct pnet_bytes *b)
{
    return b->size >= 4 && (memcmp(b->data, "PK\3\4", 4) == 0 || memcmp(b->data, "PK\5\6", 4) == 0);
}

/* Adds the columns of a plain array of one or two dimensions; a matrix without a name has nameless
 * ones. */
static enum pnet_status add_matrix(struct pnet_columns *t, const struct pnet_npy_header *h,
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
        c->stride = h->fortran ? h->item : h->item * (size_t)width;
        c->data = h->data + (h->fortran && rows ? (size_t)(k * rows)
                                : rows          ? (size_t)k
                                                : 0) *
                                h->item;
    }
    return PNET_OK;
}

/* The columns of the array that holds the coordinates, and where those are. */
static enum pnet_status add_points(struct pnet_columns *t, const struct pnet_npy_header *h,
    int axis[3], const char *path, struct pnet_error *e)
{
    if (!h->structured) {
        for (int a = 0; a < 3; a++) axis[a] = a;
        return add_matrix(t, h, (struct pnet_span){NULL, NULL}, path, e);
    }
    for (int i = 0; i < h->columns.count; i++) {
        struct pnet_column *c, from = h->columns.items[i];
        enum pnet_status status = pnet_columns_add(t, from.name, from.type, &c, path, e);
        if (status != PNET_OK) return status;
        *c = from;
    }
    return pnet_columns_axes(t, axis, path, e);
}

static bool holds_points(const struct pnet_npy_header *h)
{
    int axis[3];
    if (h->structured)
        return h->dims == 1 && pnet_columns_axes(&h->columns, axis, "", NULL) == PNET_OK;
    return h->dims == 2 && h->shape[1] >= 3;
}

enum pnet_status pnet_npy_cloud_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e)
{
    struct pnet_npy_header h;
    struct pnet_columns t = {.count = 0};
    int axis[3];
    enum pnet_status status = pnet_npy_header_read(b, path, &h, e);
    if (status == PNET_OK && (h.structured ? h.dims != 1 : !holds_points(&h)))
        status = pnet_byte_error(path, 10, e,
            "expected a matrix [points, 3 or more], or a list of records with x, y and z");
    if (status == PNET_OK) status = add_points(&t, &h, axis, path, e);
    if (status == PNET_OK) status = pnet_columns_cloud(&t, axis, h.shape[0], c, e);
    pnet_columns_free(&t);
    pnet_columns_free(&h.columns);
    return status;
}

struct member {
    struct pnet_span name; /* without .npy */
    struct pnet_bytes bytes;
    struct pnet_npy_header h;
    bool numbers; /* the header could be read; arrays of strings, for example, are ignored */
};

struct archive {
    struct member members[MEMBERS_MOST];
    int count;
};

static enum pnet_status read_members(
    struct archive *a, const struct pnet_bytes *b, const char *path, struct pnet_error *e)
{
    struct pnet_zip z;
    bool found;
    uint64_t packed = 0;
    enum pnet_status status = pnet_zip_begin(&z, b, path, e);
    while (status == PNET_OK) {
        status = pnet_zip_next(&z, &found, e);
        if (status != PNET_OK || !found) break;
        if (a->count == MEMBERS_MOST)
            return pnet_byte_error(path, z.header, e, "more than %d arrays", MEMBERS_MOST);
        /* Members that share bytes would let a small file ask for any amount of memory. */
        if (__builtin_add_overflow(packed, z.packed, &packed) || packed > b->size)
            return pnet_byte_error(path, z.header, e, "the members of the archive overlap");
        struct member *m = &a->members[a->count];
        *m = (struct member){.name = z.name};
        size_t n = pnet_span_size(z.name);
        if (n >= 4 && memcmp(z.name.end - 4, ".npy", 4) == 0) m->name.end -= 4;
        status = pnet_zip_member(&z, &m->bytes, e);
        if (status != PNET_OK) break;
        a->count++;
        enum pnet_status header = pnet_npy_header_read(&m->bytes, path, &m->h, e);
        if (header == PNET_NO_MEMORY) return header;
        m->numbers = header == PNET_OK;
    }
    return status;
}

/* Finds the points by the usual names, else takes the first array that can hold points. */
static struct member *find_points(struct archive *a)
{
    static const char *const names[] = {
        "xyz", "points", "coords", "coord", "positions", "position", "pos", "vertices"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        for (int i = 0; i < a->count; i++) {
            struct member *m = &a->members[i];
            if (m->numbers && holds_points(&m->h) && pnet_span_is_nocase(m->name, names[k]))
                return m;
        }
    for (int i = 0; i < a->count; i++)
        if (a->members[i].numbers && holds_points(&a->members[i].h)) return &a->members[i];
    return NULL;
}

static enum pnet_status join(
    struct archive *a, const char *path, struct pnet_cloud *c, struct pnet_error *e)
{
    struct pnet_columns t = {.count = 0};
    int axis[3];
    const struct member *points = find_points(a);
    if (!points)
        return pnet_error_set(e, PNET_BAD_DATA,
            "%.500s: expected an array [points, 3 or more], or records with x, y and z", path);
    int64_t rows = points->h.shape[0];
    enum pnet_status status = add_points(&t, &points->h, axis, path, e);
    for (int i = 0; i < a->count && status == PNET_OK; i++) {
        const struct member *m = &a->members[i];
        bool aligned = m->numbers && !m->h.structured && (m->h.dims == 1 || m->h.dims == 2) &&
                       m->h.shape[0] == rows;
        if (m != points && aligned) status = add_matrix(&t, &m->h, m->name, path, e);
    }
    if (status == PNET_OK) status = pnet_columns_cloud(&t, axis, rows, c, e);
    pnet_columns_free(&t);
    return status;
}

enum pnet_status pnet_npz_cloud_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e)
{
    struct archive *a = calloc(1, sizeof *a);
    if (!a) return pnet_error_memory(e);
    enum pnet_status status = read_members(a, b, path, e);
    if (status == PNET_OK) status = join(a, path, c, e);
    for (int i = 0; i < a->count; i++) {
        pnet_columns_free(&a->members[i].h.columns);
        pnet_bytes_free(&a->members[i].bytes);
    }
    free(a);
    return status;
}
