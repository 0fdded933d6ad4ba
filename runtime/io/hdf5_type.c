/* The type and the shape of a dataset of an HDF5 file. */
#include "runtime/io/format.h"
#include "runtime/io/hdf5.h"

#include <stdlib.h>
#include <string.h>

/* IEEE 754, in this order: bits of sign, exponent and mantissa, where they begin, and the bias of the exponent. */
static bool is_ieee(const struct pnet_hdf5_library *l, pnet_hid type, size_t size)
{
    static const size_t known[][6] = {
        {15, 10, 5, 0, 10, 15}, {31, 23, 8, 0, 23, 127}, {63, 52, 11, 0, 52, 1023}};
    size_t f[5];
    if (l->H5Tget_fields(type, &f[0], &f[1], &f[2], &f[3], &f[4]) < 0) return false;
    for (int i = 0; i < 3; i++)
        if (size == (size_t)2 << i && memcmp(f, known[i], sizeof f) == 0)
            return l->H5Tget_ebias(type) == known[i][5] &&
                   l->H5Tget_norm(type) == PNET_H5T_NORM_IMPLIED;
    return false;
}

/* Sets type, byte order and half of a column for a number that fills all of its bytes; of an enumeration, such as the booleans of
   h5py, that of its numbers. Returns false for anything else. */
static bool number_of(const struct pnet_hdf5_library *l, pnet_hid type, struct pnet_column *c)
{
    static const enum pnet_scalar integers[] = {PNET_I8, PNET_I16, PNET_I32, PNET_I64};
    int kind = l->H5Tget_class(type), order = l->H5Tget_order(type), bytes = 0;
    size_t size = l->H5Tget_size(type);
    if (kind == PNET_H5T_ENUM) {
        pnet_hid super = l->H5Tget_super(type);
        bool found =
            super >= 0 && l->H5Tget_class(super) == PNET_H5T_INTEGER && number_of(l, super, c);
        if (super >= 0) l->H5Tclose(super);
        return found;
    }
    if (kind != PNET_H5T_INTEGER && kind != PNET_H5T_FLOAT) return false;
    while (bytes < 3 && (size_t)1 << bytes < size) bytes++;
    if (size != (size_t)1 << bytes || l->H5Tget_precision(type) != 8 * size ||
        l->H5Tget_offset(type) != 0 ||
        (size > 1 && order != PNET_H5T_ORDER_LE && order != PNET_H5T_ORDER_BE))
        return false;
    c->swap = size > 1 && order == PNET_H5T_ORDER_BE;
    if (kind == PNET_H5T_FLOAT) {
        c->half = size == 2;
        c->type = size <= 4 ? PNET_F32 : PNET_F64;
        return is_ieee(l, type, size);
    }
    int sign = l->H5Tget_sign(type);
    c->half = false;
    c->type = (enum pnet_scalar)(integers[bytes] + (sign == PNET_H5T_SGN_NONE));
    return sign == PNET_H5T_SGN_NONE || sign == PNET_H5T_SGN_2;
}

/* Returns how many numbers a member of records has, and sets the type of a column; 0: it has no numbers. */
static int numbers_of(const struct pnet_hdf5_library *l, pnet_hid member, struct pnet_column *c)
{
    uint64_t shape[PNET_NPY_DIMS], numbers = 1;
    if (l->H5Tget_class(member) != PNET_H5T_ARRAY) return number_of(l, member, c);
    int dims = l->H5Tget_array_ndims(member);
    if (dims < 1 || dims > PNET_NPY_DIMS || l->H5Tget_array_dims2(member, shape) < 0) return 0;
    for (int i = 0; i < dims; i++)
        if (__builtin_mul_overflow(numbers, shape[i], &numbers) || numbers > PNET_COLUMNS_MOST)
            return 0;
    pnet_hid base = l->H5Tget_super(member);
    bool good = base >= 0 && number_of(l, base, c);
    if (base >= 0) l->H5Tclose(base);
    return good ? (int)numbers : 0;
}

/* Returns how many numbers member `i` of a type of records has, and where they begin in a record. 0 too if they would end beyond
   it. */
static int member_of(
    const struct pnet_hdf5_library *l, pnet_hid type, unsigned i, struct pnet_column *c, size_t *at)
{
    pnet_hid member = l->H5Tget_member_type(type, i);
    size_t item = l->H5Tget_size(type);
    int numbers = member >= 0 ? numbers_of(l, member, c) : 0;
    size_t bytes = (size_t)numbers * pnet_hdf5_number_size(c);
    if (member >= 0) l->H5Tclose(member);
    *at = l->H5Tget_member_offset(type, i);
    return *at <= item && bytes <= item - *at ? numbers : 0;
}

size_t pnet_hdf5_number_size(const struct pnet_column *c)
{
    return c->half ? 2 : pnet_scalar_size(c->type);
}

/* Makes room behind the name of the array for those of the members. `end` is where they go. */
static enum pnet_status make_room(const struct pnet_hdf5 *f, pnet_hid type, int members,
    struct pnet_named_array *m, char **end, struct pnet_error *e)
{
    size_t name = strlen(m->text) + 1, room = name;
    for (int i = 0; i < members; i++) {
        char *text = f->l->H5Tget_member_name(type, (unsigned)i);
        if (!text) return pnet_hdf5_array_fail(f, m, e);
        room += strlen(text) + 1;
        f->l->H5free_memory(text);
    }
    char *text = realloc(m->text, room);
    if (!text) return pnet_error_memory(e);
    m->text = text;
    m->name = pnet_span_of(text);
    *end = text + name;
    return PNET_OK;
}

/* Describes the members of records that are numbers; others are left out. */
static enum pnet_status describe_records(
    const struct pnet_hdf5 *f, pnet_hid type, struct pnet_named_array *m, struct pnet_error *e)
{
    const struct pnet_hdf5_library *l = f->l;
    int members = l->H5Tget_nmembers(type);
    char *end = m->text;
    enum pnet_status status = make_room(f, type, members, m, &end, e);
    m->h.structured = true;
    for (int i = 0; i < members && status == PNET_OK; i++) {
        char *text = l->H5Tget_member_name(type, (unsigned)i);
        if (!text) return pnet_hdf5_array_fail(f, m, e);
        size_t n = strlen(text), at;
        struct pnet_span name = {end, end + n};
        memcpy(end, text, n + 1);
        end += n + 1;
        l->H5free_memory(text);
        struct pnet_column found = {.type = PNET_U8};
        int numbers = member_of(l, type, (unsigned)i, &found, &at);
        for (int k = 0; k < numbers && status == PNET_OK; k++) {
            struct pnet_column *c;
            status = pnet_columns_add(&m->h.columns, name, found.type, &c, f->path, e);
            if (status != PNET_OK) break;
            c->swap = found.swap;
            c->half = found.half;
            c->number = numbers > 1 ? k : -1;
        }
    }
    if (!m->h.columns.count) m->unfit = "not numbers";
    return status;
}

void pnet_hdf5_place(const struct pnet_hdf5 *f, pnet_hid type, struct pnet_npy_header *h)
{
    int members = h->structured ? f->l->H5Tget_nmembers(type) : 1, column = 0;
    for (int i = 0; i < members; i++) {
        struct pnet_column found = h->columns.items[0];
        size_t at = 0;
        int numbers = h->structured ? member_of(f->l, type, (unsigned)i, &found, &at) : 1;
        for (int k = 0; k < numbers && column < h->columns.count; k++) {
            struct pnet_column *c = &h->columns.items[column++];
            c->data = h->data + at + (size_t)k * pnet_hdf5_number_size(c);
            c->stride = h->item;
        }
    }
}

static enum pnet_status describe_type(
    const struct pnet_hdf5 *f, pnet_hid type, struct pnet_named_array *m, struct pnet_error *e)
{
    struct pnet_column number = {.type = PNET_U8}, *c;
    m->h.item = f->l->H5Tget_size(type);
    if (f->l->H5Tget_class(type) == PNET_H5T_COMPOUND) return describe_records(f, type, m, e);
    if (!number_of(f->l, type, &number)) {
        m->unfit = "not numbers";
        return PNET_OK;
    }
    enum pnet_status status = pnet_columns_add(
        &m->h.columns, (struct pnet_span){NULL, NULL}, number.type, &c, f->path, e);
    if (status != PNET_OK) return status;
    c->swap = number.swap;
    c->half = number.half;
    return PNET_OK;
}

static enum pnet_status describe_shape(
    const struct pnet_hdf5 *f, pnet_hid space, struct pnet_named_array *m, struct pnet_error *e)
{
    const struct pnet_hdf5_library *l = f->l;
    uint64_t shape[PNET_NPY_DIMS];
    int dims = l->H5Sget_simple_extent_ndims(space);
    if (l->H5Sget_simple_extent_type(space) == PNET_H5S_NULL || dims > PNET_NPY_DIMS) {
        m->unfit = dims > PNET_NPY_DIMS ? "of more than 8 dimensions" : "empty";
        return PNET_OK;
    }
    if (dims < 0 || (dims && l->H5Sget_simple_extent_dims(space, shape, NULL) < 0))
        return pnet_hdf5_array_fail(f, m, e);
    m->h.dims = dims;
    m->h.count = 1;
    for (int i = 0; i < dims; i++) {
        m->h.shape[i] = (int64_t)shape[i];
        if (shape[i] > INT64_MAX || __builtin_mul_overflow(m->h.count, m->h.shape[i], &m->h.count))
            return pnet_hdf5_refuse(f, m, e, "the shape's product is beyond 64 bits");
    }
    return PNET_OK;
}

enum pnet_status pnet_hdf5_describe(
    const struct pnet_hdf5 *f, pnet_hid dataset, struct pnet_named_array *m, struct pnet_error *e)
{
    pnet_hid space = f->l->H5Dget_space(dataset), type = f->l->H5Dget_type(dataset);
    enum pnet_status status =
        space < 0 || type < 0 ? pnet_hdf5_array_fail(f, m, e) : describe_shape(f, space, m, e);
    if (status == PNET_OK && !m->unfit) status = describe_type(f, type, m, e);
    if (space >= 0) f->l->H5Sclose(space);
    if (type >= 0) f->l->H5Tclose(type);
    return status;
}
