/* Clouds as NPY: a matrix in the narrowest real type that holds every value of the fields, and the coordinates within
   PNET_SINGLE_LOSS_M; or records if none does, as of integers beyond 2^53. */
#include "runtime/io/column.h"
#include "runtime/io/format.h"
#include "runtime/io/npy_header.h"

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

static bool all_held(const struct pnet_cloud *c, bool single)
{
    for (int k = 0; k < c->field_count; k++) {
        if (c->fields[k].type == PNET_F32) continue;
        for (int64_t i = 0; i < c->rows; i++)
            if (!holds(&c->fields[k], i, single)) return false;
    }
    return true;
}

static enum pnet_status write_matrix(
    const struct pnet_cloud *c, enum pnet_scalar type, FILE *f, struct pnet_error *e)
{
    const int64_t shape[2] = {c->rows, 3 + (int64_t)c->field_count};
    char code[8];
    enum pnet_scalar *types = malloc((size_t)c->field_count * sizeof *types + 1);
    if (!types) return pnet_error_memory(e);
    for (int i = 0; i < c->field_count; i++) types[i] = type;
    snprintf(code, sizeof code, "'%s'", pnet_npy_code(type));
    pnet_npy_header_write(f, code, 2, shape);
    enum pnet_status status = pnet_cloud_records(c, type, types, f, e);
    free(types);
    return status;
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

static enum pnet_status write_records(const struct pnet_cloud *c, FILE *f, struct pnet_error *e)
{
    static const char *const axes[] = {"x", "y", "z"};
    enum pnet_scalar xyz = pnet_cloud_xyz_type(c);
    char *list = malloc(((size_t)c->field_count + 3) * 280 + 4), *at = list;
    if (!list) return pnet_error_memory(e);
    *at++ = '[';
    for (int a = 0; a < 3; a++) at = append_field(at, axes[a], xyz);
    for (int i = 0; i < c->field_count; i++)
        at = append_field(at, c->fields[i].name, c->fields[i].type);
    strcpy(at - 2, "]");
    pnet_npy_header_write(f, list, 1, &c->rows);
    free(list);
    return pnet_cloud_records(c, xyz, NULL, f, e);
}

enum pnet_status pnet_npy_cloud_write(
    const struct pnet_cloud *c, const char *path, FILE *f, struct pnet_error *e)
{
    (void)path;
    bool single = pnet_cloud_single_loss(c) <= PNET_SINGLE_LOSS_M;
    if (single && all_held(c, true)) return write_matrix(c, PNET_F32, f, e);
    return all_held(c, false) ? write_matrix(c, PNET_F64, f, e) : write_records(c, f, e);
}
