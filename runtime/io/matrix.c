#include "runtime/io/matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool pnet_matrix_begin(struct pnet_matrix *m, int width)
{
    *m = (struct pnet_matrix){.width = width};
    m->type = calloc((size_t)width, sizeof *m->type);
    for (int k = 0; m->type && k < width; k++) m->type[k] = PNET_I64;
    return m->type != NULL;
}

void pnet_matrix_free(struct pnet_matrix *m)
{
    free(m->values);
    free(m->type);
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

static double *cell(const struct pnet_matrix *m, int64_t row, int k)
{
    return m->values + row * m->width + k;
}

/* Returns the value of a cell of a column of integers as a double. */
static double integer_value(const struct pnet_matrix *m, int64_t row, int k)
{
    uint64_t bits;
    memcpy(&bits, cell(m, row, k), sizeof bits);
    return m->type[k] == PNET_U64 ? (double)bits : (double)(int64_t)bits;
}

static double value_of(const struct pnet_matrix *m, int64_t row, int k)
{
    return m->type[k] == PNET_F64 ? *cell(m, row, k) : integer_value(m, row, k);
}

/* Tells whether the double is the integer. */
static bool is_exact(double v, bool minus, uint64_t magnitude)
{
    double size = minus ? -v : v;
    return size < 0x1p64 && (uint64_t)size == magnitude;
}

/* Makes doubles of the first `rows` values of a column. */
static void make_real(struct pnet_matrix *m, int k, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++) {
        uint64_t bits;
        double v = integer_value(m, i, k);
        memcpy(&bits, cell(m, i, k), sizeof bits);
        bool minus = m->type[k] == PNET_I64 && (int64_t)bits < 0;
        m->rounded |= !is_exact(v, minus, minus ? 0 - bits : bits);
        *cell(m, i, k) = v;
    }
    m->type[k] = PNET_F64;
}

void pnet_matrix_make_real(struct pnet_matrix *m, int k)
{
    if (m->type[k] != PNET_F64) make_real(m, k, m->rows);
}

static bool has_negative(const struct pnet_matrix *m, int k, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++)
        if (integer_value(m, i, k) < 0) return true;
    return false;
}

/* Puts an integer into the last row of a column of integers. Returns false if the column cannot hold it. */
static bool set_integer(struct pnet_matrix *m, double *at, int k, bool minus, uint64_t magnitude)
{
    if (minus && (m->type[k] == PNET_U64 || magnitude > (uint64_t)INT64_MAX + 1)) return false;
    if (!minus && magnitude > INT64_MAX && m->type[k] == PNET_I64) {
        if (has_negative(m, k, m->rows - 1)) return false;
        m->type[k] = PNET_U64;
    }
    uint64_t bits = minus ? 0 - magnitude : magnitude;
    memcpy(at, &bits, sizeof bits);
    return true;
}

bool pnet_matrix_set(struct pnet_matrix *m, double *row, int k, struct pnet_span word)
{
    bool minus, whole = false;
    uint64_t magnitude;
    if (m->type[k] != PNET_F64) {
        whole = pnet_span_integer(word, &minus, &magnitude);
        if (whole && set_integer(m, &row[k], k, minus, magnitude)) return true;
        make_real(m, k, m->rows - 1);
    }
    if (word.at == word.end) {
        row[k] = NAN;
        return true;
    }
    if (pnet_number_parse(word.at, word.end, &row[k]) != word.end) return false;
    if (fabs(row[k]) >= 0x1p53 && pnet_span_integer(word, &minus, &magnitude))
        m->rounded |= !is_exact(row[k], minus, magnitude);
    return true;
}

static void find_range(const struct pnet_matrix *m, int k, double *low, double *high)
{
    *low = INFINITY;
    *high = -INFINITY;
    for (int64_t i = 0; i < m->rows; i++) {
        double v = value_of(m, i, k);
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
        if (m->type[k] == PNET_F64 || low < 0 || high > 255) return false;
    }
    return true;
}

/* Returns the narrowest type for a column of integers. The narrow value is in the low bytes, which come first. */
static enum pnet_scalar column_type(
    const struct pnet_matrix *m, int k, const struct pnet_span *names, bool byte_colours)
{
    double low, high;
    if (m->type[k] == PNET_F64 || !m->rows) return PNET_F64;
    if (names && is_colour(&names[k])) return byte_colours ? PNET_U8 : PNET_F64;
    find_range(m, k, &low, &high);
    return low >= INT32_MIN && high <= INT32_MAX ? PNET_I32 : m->type[k];
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
        if (type == PNET_F64) pnet_matrix_make_real(m, k);
        struct pnet_span name = names ? names[k] : (struct pnet_span){NULL, NULL};
        struct pnet_column *column;
        status = pnet_columns_add(&t, name, type, &column, path, e);
        if (status != PNET_OK) break;
        column->untyped = true;
        column->data = m->rows ? (const uint8_t *)(m->values + k) : NULL;
        column->stride = (size_t)m->width * sizeof *m->values;
    }
    if (status == PNET_OK) status = pnet_columns_cloud(&t, axis, m->rows, c, e);
    if (status == PNET_OK) c->rounded = m->rounded;
    pnet_columns_free(&t);
    return status;
}
