/* Clouds as NPY: a matrix in the narrowest real type that holds every value of the fields, and the coordinates within
   PNET_SINGLE_LOSS_M; or records if none does, as of integers beyond 2^53. */
#include "runtime/io/column.h"
#include "runtime/io/npy_header.h"
#include "runtime/io/writing.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Returns whether float32 (`single`) or float64 holds the value of a row. */
static bool holds(const struct pnet_field *f, int64_t row, bool single)
{
    double v = pnet_field_get(f, row);
    double kept = single ? (double)(float)v : v;
    if (f->type == PNET_I64)
        return kept < 0x1p63 && (int64_t)kept == ((const int64_t *)f->data)[row];
    if (f->type == PNET_U64)
        return kept < 0x1p64 && (uint64_t)kept == ((const uint64_t *)f->data)[row];
    return kept == v || v != v;
}

struct writing {
    struct pnet_xyz_seen seen;
    bool beyond_single, beyond_double; /* not every value of a field is one */
    enum pnet_scalar xyz;
    enum pnet_scalar *types; /* [fields] */
};

static enum pnet_status begin_writing(struct pnet_writing *w, struct pnet_error *e)
{
    struct writing *own = w->own;
    own->types = calloc((size_t)w->like->field_count + 1, sizeof *own->types);
    w->measures = 1;
    return own->types ? PNET_OK : pnet_error_memory(e);
}

static bool all_held(const struct pnet_cloud *c, bool single)
{
    for (int k = 0; k < c->field_count; k++) {
        if (c->fields[k].type == PNET_F32) continue;
        for (int64_t i = 0; i < c->rows; i++)
            if (!holds(&c->fields[k], i, single)) return false;
    }
    return true;
}

static enum pnet_status see_rows(
    struct pnet_writing *w, const struct pnet_cloud *piece, struct pnet_error *e)
{
    struct writing *own = w->own;
    (void)e;
    pnet_xyz_see(&own->seen, piece);
    if (!own->beyond_single) own->beyond_single = !all_held(piece, true);
    if (own->beyond_single && !own->beyond_double) own->beyond_double = !all_held(piece, false);
    return PNET_OK;
}

static void write_matrix_head(struct pnet_writing *w, enum pnet_scalar type)
{
    struct writing *own = w->own;
    const int64_t shape[2] = {w->rows, 3 + (int64_t)w->like->field_count};
    char code[8];
    own->xyz = type;
    for (int i = 0; i < w->like->field_count; i++) own->types[i] = type;
    snprintf(code, sizeof code, "'%s'", pnet_npy_code(type));
    pnet_npy_header_write(w->f, code, 2, shape);
}

/* Appends "('name', '<f4'), " to a list that has room for it. */
static char *append_field(char *to, const char *name, enum pnet_scalar type)
{
    char word[256];
    pnet_name_word(name, word, sizeof word);
    for (char *c = word; *c; c++)
        if (*c == '\'' || *c == '\\') *c = '_';
    return to + sprintf(to, "('%s', '%s'), ", word, pnet_npy_code(type));
}

static enum pnet_status write_records_head(struct pnet_writing *w, struct pnet_error *e)
{
    static const char *const axes[] = {"x", "y", "z"};
    struct writing *own = w->own;
    const struct pnet_cloud *c = w->like;
    own->xyz = pnet_xyz_type(c, &own->seen);
    char *list = malloc(((size_t)c->field_count + 3) * 280 + 4), *at = list;
    if (!list) return pnet_error_memory(e);
    *at++ = '[';
    for (int a = 0; a < 3; a++) at = append_field(at, axes[a], own->xyz);
    for (int i = 0; i < c->field_count; i++) {
        own->types[i] = c->fields[i].type;
        at = append_field(at, c->fields[i].name, own->types[i]);
    }
    strcpy(at - 2, "]");
    pnet_npy_header_write(w->f, list, 1, &w->rows);
    free(list);
    return PNET_OK;
}

static enum pnet_status write_head(struct pnet_writing *w, struct pnet_error *e)
{
    const struct writing *own = w->own;
    bool single = own->seen.single_loss <= PNET_SINGLE_LOSS_M && !own->beyond_single;
    if (!single && own->beyond_double) return write_records_head(w, e);
    write_matrix_head(w, single ? PNET_F32 : PNET_F64);
    return PNET_OK;
}

static enum pnet_status put_rows(
    struct pnet_writing *w, const struct pnet_cloud *piece, struct pnet_error *e)
{
    const struct writing *own = w->own;
    return pnet_cloud_records(piece, own->xyz, own->types, w->f, e);
}

static void free_writing(struct pnet_writing *w)
{
    struct writing *own = w->own;
    free(own->types);
}

const struct pnet_writing_kind pnet_npy_writing = {.size = sizeof(struct writing),
    .begin = begin_writing,
    .see = see_rows,
    .head = write_head,
    .put = put_rows,
    .free = free_writing};
