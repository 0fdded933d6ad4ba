#include "runtime/io/npy.h"
#include "kernels/halves.h"
#include "runtime/io/format.h"
#include "runtime/io/npy_header.h"
#include "runtime/io/zip.h"

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

static enum pnet_status read_array(
    const struct pnet_bytes *b, const char *path, struct pnet_npy *a, struct pnet_error *e)
{
    struct pnet_npy_header h;
    enum pnet_status status = pnet_npy_header_read(b, path, &h, e);
    if (status != PNET_OK) goto out;
    if (h.structured) {
        status = pnet_byte_error(
            path, 10, e, "expected an array of plain numbers, found a structured type");
        goto out;
    }
    const struct pnet_column *c = &h.columns.items[0];
    uint8_t *data = malloc(h.count ? (size_t)h.count * pnet_scalar_size(c->type) : 1);
    if (!data) {
        status = pnet_error_memory(e);
        goto out;
    }
    if (h.fortran && h.dims > 1)
        reorder(&h, data);
    else if (h.count)
        memcpy(data, h.data, (size_t)h.count * h.item);
    if (c->swap) swap_bytes(data, h.count, h.item);
    if (c->half) widen_halves(data, h.count);
    *a = (struct pnet_npy){.type = c->type, .dims = h.dims, .count = h.count, .data = data};
    memcpy(a->shape, h.shape, sizeof a->shape);
out:
    pnet_columns_free(&h.columns);
    return status;
}

enum pnet_status pnet_npy_read(const char *path, struct pnet_npy *a, struct pnet_error *e)
{
    *a = (struct pnet_npy){.count = 0};
    struct pnet_bytes b;
    enum pnet_status status = pnet_bytes_read(path, &b, e);
    if (status != PNET_OK) return status;
    status = read_array(&b, strcmp(path, "-") == 0 ? "standard input" : path, a, e);
    pnet_bytes_free(&b);
    return status;
}

/* Moves the walk to the member `name` or `name`.npy. */
static enum pnet_status find_member(struct pnet_zip *z, const char *name, struct pnet_error *e)
{
    bool found;
    for (;;) {
        enum pnet_status status = pnet_zip_next(z, &found, e);
        if (status != PNET_OK) return status;
        if (!found) break;
        if (!name || pnet_span_is(z->name, name)) return PNET_OK;
        size_t n = strlen(name), m = pnet_span_size(z->name);
        if (m == n + 4 && memcmp(z->name.at, name, n) == 0 &&
            memcmp(z->name.end - 4, ".npy", 4) == 0)
            return PNET_OK;
    }
    return pnet_error_set(e, PNET_BAD_DATA, "%.400s: expected a member \"%.100s\" in the archive",
        z->path, name ? name : "*.npy");
}

enum pnet_status pnet_npz_read(
    const char *path, const char *member, struct pnet_npy *a, struct pnet_error *e)
{
    *a = (struct pnet_npy){.count = 0};
    struct pnet_bytes b, m;
    struct pnet_zip z;
    enum pnet_status status = pnet_bytes_read(path, &b, e);
    if (status != PNET_OK) return status;
    status = pnet_zip_begin(&z, &b, path, e);
    if (status == PNET_OK) status = find_member(&z, member, e);
    if (status == PNET_OK) status = pnet_zip_member(&z, &m, e);
    if (status == PNET_OK) {
        char place[1024];
        snprintf(place, sizeof place, "%.700s: %s", path, pnet_span_quote(z.name).text);
        status = read_array(&m, place, a, e);
        pnet_bytes_free(&m);
    }
    pnet_bytes_free(&b);
    return status;
}

void pnet_npy_free(struct pnet_npy *a)
{
    free(a->data);
    *a = (struct pnet_npy){.count = 0};
}

/* The header is padded to a multiple of 64 bytes, so that mapped data is aligned. */
static void write_header(FILE *f, enum pnet_scalar type, int dims, const int64_t *shape)
{
    static const char *const codes[] = {
        "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8"};
    char text[512];
    int n = snprintf(
        text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (", codes[type]);
    for (int i = 0; i < dims; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%" PRId64, i ? ", " : "", shape[i]);
    n += snprintf(text + n, sizeof text - (size_t)n, dims == 1 ? ",), }" : "), }");
    while ((10 + n + 1) % 64) text[n++] = ' ';
    text[n++] = '\n';
    const uint8_t head[10] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)(n & 255), (uint8_t)(n >> 8)};
    fwrite(head, 1, sizeof head, f);
    fwrite(text, 1, (size_t)n, f);
}

enum pnet_status pnet_npy_write(const char *path, enum pnet_scalar type, int dims,
    const int64_t *shape, const void *data, struct pnet_error *e)
{
    struct pnet_output o;
    size_t count = 1;
    if (dims < 0 || dims > PNET_NPY_DIMS)
        return pnet_error_set(e, PNET_USAGE, "%.500s: an array of %d dimensions", path, dims);
    for (int i = 0; i < dims; i++) count *= (size_t)shape[i];
    enum pnet_status status = pnet_output_open(path, &o, e);
    if (status != PNET_OK) return status;
    write_header(o.file, type, dims, shape);
    fwrite(data, pnet_scalar_size(type), count, o.file);
    return pnet_output_commit(&o, e);
}

enum pnet_status pnet_npy_cloud_write(
    const struct pnet_cloud *c, const char *path, FILE *f, struct pnet_error *e)
{
    (void)path;
    const int64_t shape[2] = {c->rows, 3 + (int64_t)c->field_count};
    enum pnet_scalar *types = malloc((size_t)c->field_count * sizeof *types + 1);
    if (!types) return pnet_error_memory(e);
    bool single = pnet_cloud_single_loss(c) <= PNET_SINGLE_LOSS_M;
    enum pnet_scalar type = single ? PNET_F32 : PNET_F64; /* of the whole matrix */
    for (int i = 0; i < c->field_count; i++) types[i] = type;
    write_header(f, type, 2, shape);
    enum pnet_status status = pnet_cloud_records(c, type, types, f, e);
    free(types);
    return status;
}
