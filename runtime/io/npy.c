#include "runtime/io/npy.h"
#include "kernels/halves.h"
#include "runtime/io/format.h"
#include "runtime/io/npy_header.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void swap_bytes(uint8_t *data, int64_t count, size_t size)
{
    for (int64_t i = 0; i < count; i++, data += size)
        for (size_t k = 0; k < size / 2; k++) {
            uint8_t other = data[size - 1 - k];
            data[size - 1 - k] = data[k];
            data[k] = other;
        }
}

/* Converts from first index fastest to last index fastest, in the order of the output. */
static void reorder(const struct pnet_npy_header *h, uint8_t *to)
{
    size_t size = h->item;
    int64_t step[PNET_NPY_DIMS], at[PNET_NPY_DIMS] = {0}, from = 0;
    for (int d = 0; d < h->dims; d++) step[d] = d ? step[d - 1] * h->shape[d - 1] : 1;
    for (int64_t i = 0; i < h->count; i++) {
        memcpy(to + (size_t)i * size, h->data + (size_t)from * size, size);
        for (int d = h->dims - 1; d >= 0; d--) {
            from += step[d];
            if (++at[d] < h->shape[d]) break;
            from -= step[d] * h->shape[d];
            at[d] = 0;
        }
    }
}

/* Turns float16 values into float32 in place: the last one first, because it moves the farthest. */
static void widen_halves(uint8_t *data, int64_t count)
{
    for (int64_t i = count - 1; i >= 0; i--) {
        uint16_t half;
        memcpy(&half, data + (size_t)i * sizeof half, sizeof half);
        float v = pnet_from_fp16(half);
        memcpy(data + (size_t)i * sizeof v, &v, sizeof v);
    }
}

enum pnet_status pnet_npy_convert(
    const struct pnet_npy_header *h, const char *path, struct pnet_npy *a, struct pnet_error *e)
{
    if (h->structured)
        return pnet_error_set(e, PNET_BAD_DATA,
            "%.500s: expected an array of plain numbers, found a structured type", path);
    const struct pnet_column *c = &h->columns.items[0];
    size_t size = pnet_scalar_size(c->type), bytes = h->count ? (size_t)h->count * size : 1;
    enum pnet_status status = pnet_bytes_fit(path, bytes, e);
    uint8_t *data = status == PNET_OK ? malloc(bytes) : NULL;
    if (!data) return status == PNET_OK ? pnet_error_memory(e) : status;
    if (h->fortran && h->dims > 1)
        reorder(h, data);
    else if (h->count)
        memcpy(data, h->data, (size_t)h->count * h->item);
    if (c->swap) swap_bytes(data, h->count, h->item);
    if (c->half) widen_halves(data, h->count);
    *a = (struct pnet_npy){.type = c->type, .dims = h->dims, .count = h->count, .data = data};
    memcpy(a->shape, h->shape, sizeof a->shape);
    return PNET_OK;
}

enum pnet_status pnet_npy_read_bytes(
    const struct pnet_bytes *b, const char *path, struct pnet_npy *a, struct pnet_error *e)
{
    struct pnet_npy_header h;
    enum pnet_status status = pnet_npy_header_read(b, path, &h, e);
    if (status == PNET_OK) status = pnet_npy_convert(&h, path, a, e);
    pnet_columns_free(&h.columns);
    return status;
}

enum pnet_status pnet_npy_read(const char *path, struct pnet_npy *a, struct pnet_error *e)
{
    *a = (struct pnet_npy){.count = 0};
    struct pnet_bytes b;
    enum pnet_status status = pnet_bytes_read(path, &b, e);
    if (status != PNET_OK) return status;
    status = pnet_npy_read_bytes(&b, strcmp(path, "-") == 0 ? "standard input" : path, a, e);
    pnet_bytes_free(&b);
    return status;
}

void pnet_npy_free(struct pnet_npy *a)
{
    free(a->data);
    *a = (struct pnet_npy){.count = 0};
}

enum pnet_status pnet_npy_begin(const char *path, enum pnet_scalar type, int dims,
    const int64_t *shape, struct pnet_npy_output *o, struct pnet_error *e)
{
    if (dims < 0 || dims > PNET_NPY_DIMS) {
        pnet_error_set(e, PNET_USAGE, "%.500s: an array of %d dimensions", path, dims);
        return PNET_USAGE;
    }
    o->item = pnet_scalar_size(type);
    o->left = 1;
    for (int i = 0; i < dims; i++) o->left *= shape[i];
    enum pnet_status status = pnet_output_open(path, &o->output, e);
    if (status != PNET_OK) return status;
    char code[8];
    snprintf(code, sizeof code, "'%s'", pnet_npy_code(type));
    pnet_npy_header_write(o->output.file, code, dims, shape);
    return PNET_OK;
}

enum pnet_status pnet_npy_put(
    struct pnet_npy_output *o, const void *data, int64_t count, struct pnet_error *e)
{
    if (count > o->left)
        return pnet_error_set(e, PNET_USAGE,
            "%.400s: %" PRId64 " values more than the array has room for", o->output.path,
            count - o->left);
    fwrite(data, o->item, (size_t)count, o->output.file);
    o->left -= count;
    return pnet_output_check(&o->output, e);
}

enum pnet_status pnet_npy_commit(struct pnet_npy_output *o, struct pnet_error *e)
{
    if (!o->left) return pnet_output_commit(&o->output, e);
    enum pnet_status status = pnet_error_set(
        e, PNET_USAGE, "%.400s: %" PRId64 " values are missing", o->output.path, o->left);
    pnet_npy_drop(o);
    return status;
}

void pnet_npy_drop(struct pnet_npy_output *o)
{
    pnet_output_drop(&o->output);
}

enum pnet_status pnet_npy_write(const char *path, enum pnet_scalar type, int dims,
    const int64_t *shape, const void *data, struct pnet_error *e)
{
    struct pnet_npy_output o;
    enum pnet_status status = pnet_npy_begin(path, type, dims, shape, &o, e);
    if (status != PNET_OK) return status;
    status = pnet_npy_put(&o, data, o.left, e);
    if (status == PNET_OK) return pnet_npy_commit(&o, e);
    pnet_npy_drop(&o);
    return status;
}
