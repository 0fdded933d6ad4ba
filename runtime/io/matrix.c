#include "runtime/io/matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool pnet_matrix_begin(struct pnet_matrix *m, int width)
{
    *m = (struct pnet_matrix){.width = width};
    m->real = calloc((size_t)width, sizeof *m->real);
    return m->real != NULL;
}

void pnet_matrix_free(struct pnet_matrix *m)
{
    free(m->values);
    free(m->real);
    *m = (struct pnet_matrix){.width = 0};
}

double *pnet_matrix_row(struct pnet_matrix *m, uint64_t guess)
{
    size_t width = (size_t)m->width;
    if (m->rows == m->capacity) {
        /* At most half of the present rows are reserved ahead, so that one short line cannot ask for much memory. */
        uint64_t most = m->rows < 1024 ? 1024 : (uint64_t)m->rows * 2;
        uint64_t more = guess < most ? guess + 16 : most;
        uint64_t capacity = (uint64_t)m->rows + more;
        if (capacity > SIZE_MAX / (width * sizeof(double))) return NULL;
        double *values = realloc(m->values, capacity * width * sizeof *values);
        if (!values) return NULL;
        m->values = values;
        m->capacity = (int64_t)capacity;
    }
    return m->values + (size_t)m->rows++ * width;
}

bool pnet_matrix_set(struct pnet_matrix *m, double *row, int k, struct pnet_span word)
{
    if (word.at == word.end) {
        row[k] = NAN;
        m->real[k] = true;
        return true;
    }
    if (pnet_number_parse(word.at, word.end, &row[k]) != word.end) return false;
    if (m->real[k]) return true;
    const char *p = word.at + (*word.at == '-' || *word.at == '+');
    while (p < word.end && *p >= '0' && *p <= '9') p++;
    m->real[k] = p < word.end;
    return true;
}

static void find_range(const struct pnet_matrix *m, int k, double *low, double *high)
{
    *low = INFINITY;
    *high = -INFINITY;
    for (int64_t i = 0; i < m->rows; i++) {
        double v = m->values[i * m->width + k];
        *low = v < *low ? v : *low;
        *high = v > *high ? v : *high;
    }
}

static bool is_colour(const struct pnet_span *name)
{
    static const char *const colours[] = {"red", "green", "blue", "alpha"};
    for (int i = 0; i < 4; i++)
        if (pnet_span_is_nocase(*name, colours[i])) return true;
    return false;
}

/* Tells whether the colours are bytes; all columns decide, because a zero among reals does not show its scale. */
static bool has_byte_colours(const struct pnet_matrix *m, const struct pnet_span *names)
{
    double low, high;
    for (int k = 0; k < m->width; k++) {
        if (!names || !is_colour(&names[k])) continue;
        find_range(m, k, &low, &high);
        if (m->real[k] || low < 0 || high > 255) return false;
    }
    return true;
}

/* Returns the narrowest type for a column of integers. */
static enum pnet_scalar column_type(
    const struct pnet_matrix *m, int k, const struct pnet_span *names, bool byte_colours)
{
    double low, high;
    if (m->real[k] || !m->rows) return PNET_F64;
    if (names && is_colour(&names[k])) return byte_colours ? PNET_U8 : PNET_F64;
    find_range(m, k, &low, &high);
    if (low >= INT32_MIN && high <= INT32_MAX) return PNET_I32;
    return low >= -0x1p53 && high <= 0x1p53 ? PNET_I64 : PNET_F64;
}

/* Each value is replaced within its own eight bytes. */
static void narrow(struct pnet_matrix *m, int k)
{
    for (int64_t i = 0; i < m->rows; i++) {
        double *at = &m->values[i * m->width + k];
        int64_t v = (int64_t)*at;
        memcpy(at, &v, sizeof v); /* little endian: the low bytes are the narrow value */
    }
}

enum pnet_status pnet_matrix_cloud(struct pnet_matrix *m, const struct pnet_span *names,
    const int axis[3], const char *path, struct pnet_cloud *c, struct pnet_error *e)
{
    struct pnet_columns t = {.count = 0};
    enum pnet_status status = PNET_OK;
    bool byte_colours = has_byte_colours(m, names);
    for (int k = 0; k < m->width && status == PNET_OK; k++) {
        bool coordinate = k == axis[0] || k == axis[1] || k == axis[2];
        enum pnet_scalar type = coordinate ? PNET_F64 : column_type(m, k, names, byte_colours);
        if (type != PNET_F64) narrow(m, k);
        struct pnet_span name = names ? names[k] : (struct pnet_span){NULL, NULL};
        struct pnet_column *column;
        status = pnet_columns_add(&t, name, type, &column, path, e);
        if (status != PNET_OK) break;
        column->untyped = true;
        column->data = m->rows ? (const uint8_t *)(m->values + k) : NULL;
        column->stride = (size_t)m->width * sizeof *m->values;
    }
    if (status == PNET_OK) status = pnet_columns_cloud(&t, axis, m->rows, c, e);
    pnet_columns_free(&t);
    return status;
}
