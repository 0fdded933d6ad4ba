#include "runtime/io/column.h"
#include "kernels/halves.h"
#include "runtime/base/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows done together: their records stay in the first cache levels while every column reads them. */
enum { BLOCK = PNET_COLUMNS_BLOCK };

enum pnet_status pnet_columns_add(struct pnet_columns *t, struct pnet_span name,
    enum pnet_scalar type, struct pnet_column **added, const char *place, struct pnet_error *e)
{
    if (t->count == PNET_COLUMNS_MOST)
        return pnet_error_set(
            e, PNET_BAD_DATA, "%.500s: more than %d columns", place, PNET_COLUMNS_MOST);
    if ((t->count & (t->count - 1)) == 0) {
        size_t capacity = t->count ? 2 * (size_t)t->count : 1;
        struct pnet_column *items = realloc(t->items, capacity * sizeof *items);
        if (!items) return pnet_error_memory(e);
        t->items = items;
    }
    struct pnet_column *c = &t->items[t->count++];
    *c = (struct pnet_column){.name = name, .number = -1, .type = type};
    if (added) *added = c;
    return PNET_OK;
}

void pnet_columns_free(struct pnet_columns *t)
{
    free(t->items);
    free(t->buffer);
    *t = (struct pnet_columns){.items = NULL};
}

static size_t packed_size(const struct pnet_column *c)
{
    return c->list ? 0 : c->half ? sizeof(uint16_t) : pnet_scalar_size(c->type);
}

size_t pnet_columns_stride(const struct pnet_columns *t)
{
    size_t stride = 0;
    for (int i = 0; i < t->count; i++) stride += packed_size(&t->items[i]);
    return stride;
}

size_t pnet_columns_pack(struct pnet_columns *t, const uint8_t *data)
{
    size_t stride = pnet_columns_stride(t);
    for (int i = 0; i < t->count; i++) {
        t->items[i].data = data;
        t->items[i].stride = stride;
        data += packed_size(&t->items[i]);
    }
    return stride;
}

static bool separates(char c)
{
    return c == ' ' || c == '\t' || c == ',';
}

static bool next_word(struct pnet_span *line, struct pnet_span *word)
{
    const char *p = line->at;
    while (p < line->end && separates(*p)) p++;
    word->at = p;
    while (p < line->end && !separates(*p)) p++;
    word->end = line->at = p;
    return word->at < word->end;
}

static const char *scalar_name(enum pnet_scalar s)
{
    static const char *const names[] = {"int8", "uint8", "int16", "uint16", "int32", "uint32",
        "int64", "uint64", "float32", "float64"};
    return names[s];
}

/* Skips a list, whose length is `word`. Returns false if the line ends before it. */
static bool pass_list(struct pnet_span *line, struct pnet_span word)
{
    uint64_t length;
    if (!pnet_span_count(word, UINT64_MAX, &length)) return false;
    while (length--)
        if (!next_word(line, &word)) return false;
    return true;
}

static enum pnet_status parse_values(struct pnet_columns *t, int64_t row,
    const struct pnet_text *text, struct pnet_span line, struct pnet_error *e)
{
    struct pnet_span word;
    for (int i = 0; i < t->count; i++) {
        const struct pnet_column *c = &t->items[i];
        if (!next_word(&line, &word))
            return pnet_text_error(text, e, "expected %d values, found %d", t->count, i);
        if (c->list) {
            if (pass_list(&line, word)) continue;
            return pnet_text_error(text, e, "column %d: expected a list of \"%s\" values", i + 1,
                pnet_span_quote(word).text);
        }
        uint8_t *to = t->buffer + (c->data - t->buffer) + (size_t)row * c->stride;
        if (!pnet_value_parse(word, c->type, to))
            return pnet_text_error(text, e, "column %d: expected a value of type %s, found \"%s\"",
                i + 1, scalar_name(c->type), pnet_span_quote(word).text);
    }
    if (next_word(&line, &word))
        return pnet_text_error(text, e, "expected %d values and no more, found \"%s\" behind them",
            t->count, pnet_span_quote(word).text);
    return PNET_OK;
}

enum pnet_status pnet_columns_parse(struct pnet_columns *t, int64_t row,
    const struct pnet_text *text, struct pnet_span line, struct pnet_error *e)
{
    enum pnet_status status = parse_values(t, row, text, line, e);
    if (status == PNET_BAD_DATA && pnet_span_decimal_commas(line, false))
        return pnet_text_error_commas(text, line, e);
    return status;
}

enum pnet_status pnet_columns_axes(
    const struct pnet_columns *t, int axis[3], const char *place, struct pnet_error *e)
{
    static const char *const names[] = {"x", "y", "z"};
    for (int a = 0; a < 3; a++) {
        axis[a] = -1;
        for (int i = 0; i < t->count; i++) {
            const struct pnet_column *c = &t->items[i];
            if (c->skip || c->number >= 0 || !pnet_span_is_nocase(c->name, names[a])) continue;
            if (axis[a] >= 0)
                return pnet_error_set(e, PNET_BAD_DATA,
                    "%.500s: %s is there twice, expected x, y and z once", place, names[a]);
            axis[a] = i;
        }
        if (axis[a] < 0)
            return pnet_error_set(
                e, PNET_BAD_DATA, "%.500s: expected x, y and z, found no %s", place, names[a]);
    }
    return PNET_OK;
}

#define COPY(bits, turn)                                                                           \
    for (int64_t i = 0; i < rows; i++, from += stride) {                                           \
        uint##bits##_t v;                                                                          \
        memcpy(&v, from, sizeof v);                                                                \
        v = turn(v);                                                                               \
        memcpy(to + (size_t)i * sizeof v, &v, sizeof v);                                           \
    }
#define AS_IS(v) (v)

static void gather_halves(const struct pnet_column *c, int64_t first, int64_t rows, uint8_t *to)
{
    const uint8_t *from = c->data + (size_t)first * c->stride;
    for (int64_t i = 0; i < rows; i++, from += c->stride) {
        uint16_t half;
        memcpy(&half, from, sizeof half);
        float v = pnet_from_fp16(c->swap ? __builtin_bswap16(half) : half);
        memcpy(to + (size_t)i * sizeof v, &v, sizeof v);
    }
}

/* Gathers the values of rows into native order, without gaps. */
static void gather(const struct pnet_column *c, int64_t first, int64_t rows, uint8_t *to)
{
    const uint8_t *from = c->data + (size_t)first * c->stride;
    size_t stride = c->stride, size = pnet_scalar_size(c->type);
    if (c->half) {
        gather_halves(c, first, rows, to);
    } else if (size == 1 && c->bits) {
        uint8_t mask = (uint8_t)((1 << c->bits) - 1);
        for (int64_t i = 0; i < rows; i++, from += stride)
            to[i] = (uint8_t)(*from >> c->low) & mask;
    } else if (size == 1) {
        COPY(8, AS_IS)
    } else if (stride == size && !c->swap) {
        memcpy(to, from, (size_t)rows * size);
    } else if (size == 2) {
        if (c->swap)
            COPY(16, __builtin_bswap16)
        else
            COPY(16, AS_IS)
    } else if (size == 4) {
        if (c->swap)
            COPY(32, __builtin_bswap32)
        else
            COPY(32, AS_IS)
    } else {
        if (c->swap)
            COPY(64, __builtin_bswap64)
        else
            COPY(64, AS_IS)
    }
}

#define CONVERT(type)                                                                              \
    do {                                                                                           \
        const type *v = from;                                                                      \
        for (int64_t i = 0; i < rows; i++) to[i * step] = (double)v[i];                            \
    } while (0)

static void to_doubles(enum pnet_scalar type, const void *from, int64_t rows, double *to, int step)
{
    switch (type) {
    case PNET_I8: CONVERT(int8_t); break;
    case PNET_U8: CONVERT(uint8_t); break;
    case PNET_I16: CONVERT(int16_t); break;
    case PNET_U16: CONVERT(uint16_t); break;
    case PNET_I32: CONVERT(int32_t); break;
    case PNET_U32: CONVERT(uint32_t); break;
    case PNET_I64: CONVERT(int64_t); break;
    case PNET_U64: CONVERT(uint64_t); break;
    case PNET_F32: CONVERT(float); break;
    case PNET_F64: CONVERT(double); break;
    }
}

/* Gathers the values as doubles, `step` apart, scaled if the column is. */
static void gather_doubles(
    const struct pnet_column *c, int64_t first, int64_t rows, double *to, int step)
{
    uint64_t block[BLOCK];
    gather(c, first, rows, (uint8_t *)block);
    to_doubles(c->type, block, rows, to, step);
    if (!c->scaled) return;
    for (int64_t i = 0; i < rows; i++) to[i * step] = pnet_scaled(to[i * step], c->scale, c->shift);
}

/* Sets the name of column i, different from those of the present fields. Returns false if memory is out. */
static bool add_field(const struct pnet_column *c, int i, struct pnet_cloud *cloud)
{
    size_t length = strnlen(c->name.at ? c->name.at : "", c->name.at ? pnet_span_size(c->name) : 0);
    char *name = malloc(length + 64);
    if (!name) return false;
    memcpy(name, length ? c->name.at : "", length);
    name[length] = '\0';
    if (!length)
        length = (size_t)sprintf(name, "c%d", c->number >= 0 ? c->number : i);
    else if (c->number >= 0)
        length += (size_t)sprintf(name + length, "_%d", c->number);
    /* Thousands of columns may share a name, so after a few tries the number of the column is used, which is new. */
    for (int again = 2; pnet_cloud_field(cloud, name); again = again == 9 && i > 9 ? i : again + 1)
        sprintf(name + length, "_%d", again);
    struct pnet_field *f = pnet_cloud_add(cloud, name, c->scaled ? PNET_F64 : c->type);
    if (f) f->untyped = c->untyped;
    free(name);
    return f != NULL;
}

static enum pnet_scalar axes_type(const struct pnet_columns *t, const int axis[3])
{
    const struct pnet_column *x = &t->items[axis[0]];
    for (int a = 0; a < 3; a++) {
        const struct pnet_column *c = &t->items[axis[a]];
        if (c->scaled || c->type != x->type) return PNET_F64;
    }
    return x->type;
}

static bool is_field(const struct pnet_columns *t, const int axis[3], int i)
{
    return !t->items[i].skip && i != axis[0] && i != axis[1] && i != axis[2];
}

void pnet_columns_points(
    const struct pnet_columns *t, const int axis[3], int64_t first, int64_t rows, double *xyz)
{
    for (int a = 0; a < 3; a++) gather_doubles(&t->items[axis[a]], first, rows, xyz + a, 3);
}

/* Fills the fields of the rows of a block, from row `to` of the cloud on, which has the fields in the order of their columns. */
static void gather_fields(const struct pnet_columns *t, const int axis[3], int64_t first,
    int64_t rows, int64_t to, struct pnet_cloud *c)
{
    struct pnet_field *f = c->fields;
    for (int i = 0; i < t->count; i++) {
        if (!is_field(t, axis, i)) continue;
        if (t->items[i].scaled)
            gather_doubles(&t->items[i], first, rows, (double *)f->data + to, 1);
        else
            gather(&t->items[i], first, rows,
                (uint8_t *)f->data + (size_t)to * pnet_scalar_size(f->type));
        f++;
    }
}

enum pnet_status pnet_columns_cloud(const struct pnet_columns *t, const int axis[3], int64_t rows,
    struct pnet_cloud *c, struct pnet_error *e)
{
    return pnet_columns_piece(t, axis, 0, rows, NULL, c, e);
}

enum pnet_status pnet_columns_piece(const struct pnet_columns *t, const int axis[3], int64_t first,
    int64_t rows, const struct pnet_placing *placing, struct pnet_cloud *c, struct pnet_error *e)
{
    struct pnet_placer p;
    uint64_t row_bytes = 3 * sizeof(float);
    if (axes_type(t, axis) == PNET_F64) row_bytes += 3 * sizeof(double);
    for (int i = 0; i < t->count; i++)
        if (is_field(t, axis, i))
            row_bytes += pnet_scalar_size(t->items[i].scaled ? PNET_F64 : t->items[i].type);
    char what[64];
    snprintf(what, sizeof what, "a cloud of %lld points", (long long)rows);
    enum pnet_status status = pnet_bytes_fit(what, (uint64_t)rows * row_bytes, e);
    if (status != PNET_OK) return status;
    double *xyz = malloc(BLOCK * 3 * sizeof *xyz);
    if (!xyz) goto no_memory;
    c->rows = rows;
    for (int i = 0; i < t->count; i++)
        if (is_field(t, axis, i) && !add_field(&t->items[i], i, c)) goto no_memory;

    pnet_placer_begin(&p, c->metres);
    for (int64_t at = 0; at < rows; at += BLOCK) {
        int64_t some = rows - at < BLOCK ? rows - at : BLOCK;
        pnet_columns_points(t, axis, first + at, some, xyz);
        pnet_placer_measure(&p, some, xyz);
    }
    if (!pnet_placer_turn(&p, placing)) goto no_memory;
    for (int64_t at = 0; at < rows; at += BLOCK) {
        int64_t some = rows - at < BLOCK ? rows - at : BLOCK;
        pnet_columns_points(t, axis, first + at, some, xyz);
        pnet_placer_put(&p, some, xyz);
        gather_fields(t, axis, first + at, some, at, c);
    }
    c->xyz_type = axes_type(t, axis);
    status = pnet_placer_end(&p, c, e);
    free(xyz);
    if (status != PNET_OK) pnet_cloud_free(c);
    return status;
no_memory:
    free(xyz);
    pnet_cloud_free(c);
    return pnet_error_memory(e);
}

static double single_loss(const struct pnet_cloud *c)
{
    double most = 0;
    for (int64_t i = 0; i < c->rows * 3; i++) {
        int axis = (int)(i % 3);
        double v = pnet_cloud_coordinate(c, i / 3, axis), lost = fabs(v - (double)(float)v);
        if (c->metres[axis == 2] > 0) lost *= c->metres[axis == 2];
        most = lost > most ? lost : most; /* NaN is not */
    }
    return most;
}

static bool fits_integers(const struct pnet_cloud *c)
{
    static const double low[] = {-0x1p7, 0, -0x1p15, 0, -0x1p31, 0};
    static const double high[] = {0x1p7, 0x1p8, 0x1p15, 0x1p16, 0x1p31, 0x1p32};
    for (int64_t i = 0; i < c->rows * 3; i++) {
        double v = pnet_cloud_coordinate(c, i / 3, (int)(i % 3));
        if (v != floor(v) || v < low[c->xyz_type] || v >= high[c->xyz_type]) return false;
    }
    return true;
}

bool pnet_xyz_depends(const struct pnet_cloud *c)
{
    return c->xyz_type != PNET_F64 && c->xyz_type != PNET_I64 && c->xyz_type != PNET_U64;
}

void pnet_xyz_see(struct pnet_xyz_seen *s, const struct pnet_cloud *c)
{
    s->single_loss = fmax(s->single_loss, single_loss(c));
    if (pnet_xyz_depends(c) && c->xyz_type != PNET_F32 && !s->unfit) s->unfit = !fits_integers(c);
}

enum pnet_scalar pnet_xyz_type(const struct pnet_cloud *c, const struct pnet_xyz_seen *s)
{
    if (!pnet_xyz_depends(c)) return PNET_F64;
    bool fits = c->xyz_type == PNET_F32 ? s->single_loss <= PNET_SINGLE_LOSS_M : !s->unfit;
    return fits ? c->xyz_type : PNET_F64;
}

/* Writes one field of the rows of a block to its place in the records. */
static void scatter(const struct pnet_field *f, enum pnet_scalar type, int64_t first, int64_t rows,
    uint8_t *to, size_t stride)
{
    size_t size = pnet_scalar_size(f->type);
    const uint8_t *from = (const uint8_t *)f->data + (size_t)first * size;
    for (int64_t i = 0; i < rows; i++, to += stride) {
        if (type != f->type) {
            pnet_scalar_store(pnet_field_get(f, first + i), type, to);
            continue;
        }
        switch (size) {
        case 1: *to = from[i]; break;
        case 2: memcpy(to, from + 2 * i, 2); break;
        case 4: memcpy(to, from + 4 * i, 4); break;
        default: memcpy(to, from + 8 * i, 8); break;
        }
    }
}

enum pnet_status pnet_cloud_records(const struct pnet_cloud *c, enum pnet_scalar xyz,
    const enum pnet_scalar *types, FILE *f, struct pnet_error *e)
{
    size_t size = pnet_scalar_size(xyz), stride = 3 * size;
    for (int i = 0; i < c->field_count; i++)
        stride += pnet_scalar_size(types ? types[i] : c->fields[i].type);
    uint8_t *block = calloc(BLOCK, stride);
    if (!block) return pnet_error_memory(e);
    for (int64_t first = 0; first < c->rows; first += BLOCK) {
        int64_t some = c->rows - first < BLOCK ? c->rows - first : BLOCK;
        for (int64_t i = 0; i < some; i++)
            for (int a = 0; a < 3; a++)
                pnet_scalar_store(pnet_cloud_coordinate(c, first + i, a), xyz,
                    block + (size_t)i * stride + (size_t)a * size);
        uint8_t *to = block + 3 * size;
        for (int k = 0; k < c->field_count; k++) {
            enum pnet_scalar type = types ? types[k] : c->fields[k].type;
            scatter(&c->fields[k], type, first, some, to, stride);
            to += pnet_scalar_size(type);
        }
        fwrite(block, stride, (size_t)some, f);
    }
    free(block);
    return PNET_OK;
}

void pnet_name_word(const char *name, char *word, size_t size)
{
    size_t n = 0;
    for (; name[n] && n + 1 < size; n++) {
        unsigned char c = (unsigned char)name[n];
        word[n] = c <= ' ' || c == 127 ? '_' : (char)c;
    }
    word[n] = '\0';
    if (!n || strcmp(word, "_") == 0) snprintf(word, size, "unnamed");
}
