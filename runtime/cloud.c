#include "runtime/cloud.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Coordinates beyond this count as infinite: differences of two must stay within float32. */
#define FARTHEST 1e37

size_t pnet_scalar_size(enum pnet_scalar s)
{
    static const uint8_t sizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8};
    return sizes[s];
}

void pnet_cloud_free(struct pnet_cloud *c)
{
    for (int i = 0; i < c->field_count; i++) {
        free(c->fields[i].name);
        free(c->fields[i].data);
    }
    free(c->fields);
    free(c->file_row);
    free(c->xyz);
    *c = (struct pnet_cloud){.rows = 0};
}

struct pnet_field *pnet_cloud_field(const struct pnet_cloud *c, const char *name)
{
    for (int i = 0; i < c->field_count; i++)
        if (strcmp(c->fields[i].name, name) == 0) return &c->fields[i];
    return NULL;
}

struct pnet_field *pnet_cloud_add(struct pnet_cloud *c, const char *name, enum pnet_scalar type)
{
    void *data = calloc(c->rows ? (size_t)c->rows : 1, pnet_scalar_size(type));
    if (!data) return NULL;
    struct pnet_field *f = pnet_cloud_field(c, name);
    if (f) {
        free(f->data);
        f->type = type;
        f->data = data;
        return f;
    }
    char *copy = strdup(name);
    struct pnet_field *fields = realloc(c->fields, ((size_t)c->field_count + 1) * sizeof *fields);
    if (fields) c->fields = fields;
    if (!copy || !fields) {
        free(copy);
        free(data);
        return NULL;
    }
    f = &c->fields[c->field_count++];
    *f = (struct pnet_field){.name = copy, .type = type, .data = data};
    return f;
}

double pnet_field_get(const struct pnet_field *f, int64_t row)
{
    switch (f->type) {
    case PNET_I8: return ((const int8_t *)f->data)[row];
    case PNET_U8: return ((const uint8_t *)f->data)[row];
    case PNET_I16: return ((const int16_t *)f->data)[row];
    case PNET_U16: return ((const uint16_t *)f->data)[row];
    case PNET_I32: return ((const int32_t *)f->data)[row];
    case PNET_U32: return ((const uint32_t *)f->data)[row];
    case PNET_I64: return (double)((const int64_t *)f->data)[row];
    case PNET_U64: return (double)((const uint64_t *)f->data)[row];
    case PNET_F32: return (double)((const float *)f->data)[row];
    case PNET_F64: return ((const double *)f->data)[row];
    }
    return NAN;
}

/* Written so that NaN fails it. */
static bool is_near(const double p[3])
{
    return fabs(p[0]) <= FARTHEST && fabs(p[1]) <= FARTHEST && fabs(p[2]) <= FARTHEST;
}

/* Counts the points that stay, and finds the offset from their box. */
static int64_t measure(int64_t n, const double *xyz, double offset[3])
{
    double low[3] = {INFINITY, INFINITY, INFINITY}, most = 0;
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
        const double *p = xyz + 3 * i;
        if (!is_near(p)) continue;
        kept++;
        for (int a = 0; a < 3; a++) {
            low[a] = p[a] < low[a] ? p[a] : low[a];
            most = fabs(p[a]) > most ? fabs(p[a]) : most;
        }
    }
    for (int a = 0; a < 3; a++) offset[a] = most < 1000 ? 0 : floor(low[a] / 100) * 100;
    return kept;
}

/* Moves the rows that stay to the front; `row` is ascending, so nothing is overwritten too early.
 */
static void thin(struct pnet_field *f, const int64_t *row, int64_t kept)
{
    size_t size = pnet_scalar_size(f->type);
    uint8_t *data = f->data;
    for (int64_t i = 0; i < kept; i++)
        memmove(data + (size_t)i * size, data + (size_t)row[i] * size, size);
}

enum pnet_status pnet_cloud_place(
    struct pnet_cloud *c, int64_t n, const double *xyz, struct pnet_error *e)
{
    double offset[3];
    int64_t kept = measure(n, xyz, offset);
    float *place = (uint64_t)kept <= SIZE_MAX / 12 ? malloc(kept ? (size_t)kept * 12 : 1) : NULL;
    int64_t *row = kept < n ? malloc(kept ? (size_t)kept * sizeof *row : 1) : NULL;
    if (!place || (kept < n && !row)) {
        free(place);
        free(row);
        return pnet_error_memory(e);
    }

    int64_t to = 0;
    for (int64_t i = 0; i < n; i++) {
        const double *p = xyz + 3 * i;
        if (row && !is_near(p)) continue;
        for (int a = 0; a < 3; a++) place[3 * to + a] = (float)(p[a] - offset[a]);
        if (row) row[to] = i;
        to++;
    }
    for (int i = 0; row && i < c->field_count; i++) thin(&c->fields[i], row, kept);

    free(c->xyz);
    free(c->file_row);
    c->xyz = place;
    c->file_row = row;
    c->rows = kept;
    c->file_rows = n;
    memcpy(c->offset, offset, sizeof offset);
    return PNET_OK;
}
