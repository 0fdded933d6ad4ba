#include "runtime/io/cloud.h"
#include "runtime/io/las.h"
#include "runtime/io/place.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t pnet_scalar_size(enum pnet_scalar s)
{
    static const uint8_t sizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8};
    return sizes[s];
}

#define STORE(type)                                                                                \
    do {                                                                                           \
        type x = (type)v;                                                                          \
        memcpy(to, &x, sizeof x);                                                                  \
    } while (0)

void pnet_scalar_store(double v, enum pnet_scalar type, uint8_t *to)
{
    switch (type) {
    case PNET_I8: STORE(int8_t); break;
    case PNET_U8: STORE(uint8_t); break;
    case PNET_I16: STORE(int16_t); break;
    case PNET_U16: STORE(uint16_t); break;
    case PNET_I32: STORE(int32_t); break;
    case PNET_U32: STORE(uint32_t); break;
    case PNET_I64: STORE(int64_t); break;
    case PNET_U64: STORE(uint64_t); break;
    case PNET_F32: STORE(float); break;
    case PNET_F64: STORE(double); break;
    }
}

void pnet_cloud_free(struct pnet_cloud *c)
{
    for (int i = 0; i < c->field_count; i++) {
        free(c->fields[i].name);
        free(c->fields[i].data);
        free(c->fields[i].dropped);
    }
    free(c->fields);
    free(c->file_row);
    free(c->xyz);
    free(c->exact);
    free(c->array);
    pnet_las_kept_free(c->las);
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
        free(f->dropped);
        f->type = type;
        f->data = data;
        f->dropped = NULL;
        f->untyped = false;
        f->part = 0;
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

double pnet_cloud_coordinate(const struct pnet_cloud *c, int64_t row, int axis)
{
    double v = pnet_cloud_at(c, row, axis), metres = c->metres[axis == 2];
    return metres > 0 ? v / metres : v;
}

enum pnet_status pnet_cloud_place(
    struct pnet_cloud *c, int64_t n, const double *xyz, struct pnet_error *e)
{
    struct pnet_placer p;
    pnet_placer_begin(&p, c->metres);
    pnet_placer_measure(&p, n, xyz);
    if (!pnet_placer_turn(&p, NULL)) return pnet_error_memory(e);
    pnet_placer_put(&p, n, xyz);
    return pnet_placer_end(&p, c, e);
}

/* Returns the values of all rows of the file: those of the rows kept and of the rows dropped (0 if these are not known). */
static void *restore_field(const struct pnet_cloud *c, const struct pnet_field *f)
{
    size_t size = pnet_scalar_size(f->type);
    uint8_t *data = calloc((size_t)c->file_rows + 1, size);
    const uint8_t *kept = f->data, *dropped = f->dropped;
    int64_t row = 0;
    for (int64_t i = 0; data && i < c->file_rows; i++) {
        bool stayed = row < c->rows && c->file_row[row] == i;
        if (stayed)
            memcpy(data + (size_t)i * size, kept + (size_t)row * size, size);
        else if (dropped)
            memcpy(data + (size_t)i * size, dropped + (size_t)(i - row) * size, size);
        row += stayed;
    }
    return data;
}

enum pnet_status pnet_cloud_restore(struct pnet_cloud *c, struct pnet_error *e)
{
    if (!c->file_row) return PNET_OK;
    size_t numbers = (size_t)c->file_rows * 3;
    float *xyz = malloc(numbers * sizeof *xyz);
    double *exact = c->exact ? malloc(numbers * sizeof *exact) : NULL;
    void **data = calloc((size_t)c->field_count + 1, sizeof *data);
    bool ok = xyz && data && (exact || !c->exact);
    for (int f = 0; f < c->field_count && ok; f++)
        ok = (data[f] = restore_field(c, &c->fields[f])) != NULL;
    if (!ok) {
        for (int f = 0; data && f < c->field_count; f++) free(data[f]);
        free(data);
        free(exact);
        free(xyz);
        return pnet_error_memory(e);
    }
    for (size_t i = 0; i < numbers; i++) xyz[i] = NAN;
    for (size_t i = 0; i < numbers && exact; i++) exact[i] = (double)NAN;
    for (int64_t i = 0; i < c->rows; i++) {
        memcpy(&xyz[3 * c->file_row[i]], &c->xyz[3 * i], 3 * sizeof *xyz);
        if (exact) memcpy(&exact[3 * c->file_row[i]], &c->exact[3 * i], 3 * sizeof *exact);
    }
    for (int f = 0; f < c->field_count; f++) {
        free(c->fields[f].data);
        free(c->fields[f].dropped);
        c->fields[f].data = data[f];
        c->fields[f].dropped = NULL;
    }
    free(data);
    free(c->xyz);
    free(c->exact);
    free(c->file_row);
    c->xyz = xyz;
    c->exact = exact;
    c->file_row = NULL;
    c->rows = c->file_rows;
    return PNET_OK;
}

void pnet_cloud_free_columns(char **columns, int column_count)
{
    for (int i = 0; i < column_count; i++) free(columns[i]);
    free(columns);
}

enum pnet_status pnet_cloud_parse_columns(
    const char *text, char ***columns, int *column_count, struct pnet_error *e)
{
    static const char *const axes[] = {"x", "y", "z"};
    int most = 1, count = 0;
    for (const char *c = text; *c; c++) most += *c == ',';
    char **names = calloc((size_t)most, sizeof *names);
    if (!names) return pnet_error_memory(e);
    bool good = most >= 3;
    for (const char *at = text; good && count < most; count++) {
        at += strspn(at, " ");
        size_t length = strcspn(at, ",");
        const char *next = at + length + (at[length] == ',');
        while (length && at[length - 1] == ' ') length--;
        names[count] = strndup(at, length);
        if (!names[count]) {
            pnet_cloud_free_columns(names, count);
            return pnet_error_memory(e);
        }
        good = length && (count >= 3 || strcmp(names[count], axes[count]) == 0);
        at = next;
    }
    if (!good) {
        pnet_cloud_free_columns(names, count);
        return pnet_error_set(e, PNET_USAGE,
            "columns are names with commas between them, the first three x,y,z, not '%.200s'",
            text);
    }
    *columns = names;
    *column_count = count;
    return PNET_OK;
}
