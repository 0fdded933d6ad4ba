#include "runtime/cloud.h"
#include "runtime/io/place.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

enum pnet_status pnet_cloud_place(
    struct pnet_cloud *c, int64_t n, const double *xyz, struct pnet_error *e)
{
    struct pnet_placer p;
    pnet_placer_begin(&p);
    pnet_placer_measure(&p, n, xyz);
    if (!pnet_placer_turn(&p)) return pnet_error_memory(e);
    pnet_placer_put(&p, n, xyz);
    pnet_placer_end(&p, c);
    return PNET_OK;
}
