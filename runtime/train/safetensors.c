#include "runtime/train/safetensors.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/name_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tensors are mapped as they lie in the file, little endian"
#endif

/* The limit of the format: 100 MB. */
#define HEADER_LIMIT 100000000u

static const struct {
    const char *name;
    size_t size;
} dtypes[PNET_TENSOR_TYPES] = {
    [PNET_TENSOR_F32] = {"F32", 4},
    [PNET_TENSOR_F16] = {"F16", 2},
    [PNET_TENSOR_BF16] = {"BF16", 2},
    [PNET_TENSOR_F64] = {"F64", 8},
    [PNET_TENSOR_I8] = {"I8", 1},
    [PNET_TENSOR_I16] = {"I16", 2},
    [PNET_TENSOR_I32] = {"I32", 4},
    [PNET_TENSOR_I64] = {"I64", 8},
    [PNET_TENSOR_U8] = {"U8", 1},
    [PNET_TENSOR_U16] = {"U16", 2},
    [PNET_TENSOR_U32] = {"U32", 4},
    [PNET_TENSOR_U64] = {"U64", 8},
    [PNET_TENSOR_BOOL] = {"BOOL", 1},
};

size_t pnet_tensor_type_size(enum pnet_tensor_type t)
{
    return dtypes[t].size;
}

const char *pnet_tensor_type_name(enum pnet_tensor_type t)
{
    return dtypes[t].name;
}

int64_t pnet_safetensor_count(const struct pnet_safetensor *t)
{
    int64_t count = 1;
    for (int i = 0; i < t->dims; i++)
        if (t->shape[i] == 0) return 0;
    for (int i = 0; i < t->dims; i++)
        if (__builtin_mul_overflow(count, t->shape[i], &count)) return -1;
    return count;
}

/* Returns the bytes of a tensor, or -1. */
static int64_t tensor_bytes(const struct pnet_safetensor *t)
{
    int64_t count = pnet_safetensor_count(t), bytes;
    if (count < 0 || __builtin_mul_overflow(count, (int64_t)dtypes[t->dtype].size, &bytes))
        return -1;
    return bytes;
}

/* ---- writing ---- */

struct writing {
    const char *path;
    struct pnet_safetensor *order; /* [count] wider types first */
    size_t count;
};

static int by_name(const void *a, const void *b)
{
    const struct pnet_safetensor *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static enum pnet_status check_names(struct writing *w, struct pnet_error *e)
{
    qsort(w->order, w->count, sizeof *w->order, by_name);
    for (size_t i = 0; i < w->count; i++) {
        const char *name = w->order[i].name;
        if (strcmp(name, "__metadata__") == 0 || (i && strcmp(name, w->order[i - 1].name) == 0))
            return pnet_error_set(
                e, PNET_FAILED, "%s: cannot write: the name \"%s\" is taken", w->path, name);
    }
    return PNET_OK;
}

static enum pnet_status sort_for_writing(
    struct writing *w, const struct pnet_safetensor *tensors, struct pnet_error *e)
{
    for (size_t i = 0; i < w->count; i++) {
        w->order[i] = tensors[i];
        if (tensor_bytes(&tensors[i]) < 0)
            return pnet_error_set(
                e, PNET_FAILED, "%s: cannot write: \"%s\" is too large", w->path, tensors[i].name);
    }
    enum pnet_status status = check_names(w, e);
    size_t next = 0;
    for (size_t size = 8; size; size /= 2)
        for (size_t i = 0; i < w->count; i++)
            if (dtypes[tensors[i].dtype].size == size) w->order[next++] = tensors[i];
    return status;
}

static void put_header(struct pnet_json *j, const struct writing *w,
    const struct pnet_metadata *metadata, size_t metadata_count)
{
    pnet_json_begin(j, NULL, '{');
    if (metadata_count) {
        pnet_json_begin(j, "__metadata__", '{');
        for (size_t i = 0; i < metadata_count; i++)
            pnet_json_string(j, metadata[i].key, metadata[i].value);
        pnet_json_end(j, '}');
    }
    int64_t offset = 0;
    for (size_t i = 0; i < w->count; i++) {
        const struct pnet_safetensor *t = &w->order[i];
        pnet_json_begin(j, t->name, '{');
        pnet_json_string(j, "dtype", dtypes[t->dtype].name);
        pnet_json_begin(j, "shape", '[');
        for (int d = 0; d < t->dims; d++) pnet_json_int(j, NULL, t->shape[d]);
        pnet_json_end(j, ']');
        pnet_json_begin(j, "data_offsets", '[');
        pnet_json_int(j, NULL, offset);
        offset += tensor_bytes(t);
        pnet_json_int(j, NULL, offset);
        pnet_json_end(j, ']');
        pnet_json_end(j, '}');
    }
    pnet_json_end(j, '}');
    while (j->size % 8 && !j->failed) pnet_json_raw(j, " ", 1);
}

/* Returns 0 or an errno, because the reason is lost when the stream is closed. */
static int put_bytes(const void *bytes, size_t size, FILE *file)
{
    errno = 0;
    if (!size || fwrite(bytes, size, 1, file) == 1) return 0;
    return errno ? errno : EIO;
}

static enum pnet_status put_file(
    const struct writing *w, const struct pnet_json *header, struct pnet_error *e)
{
    struct pnet_output o;
    enum pnet_status status = pnet_output_open(w->path, &o, e);
    if (status != PNET_OK) return status;
    uint64_t length = header->size;
    int code = put_bytes(&length, sizeof length, o.file);
    if (!code) code = put_bytes(header->text, header->size, o.file);
    for (size_t i = 0; i < w->count && !code; i++)
        code = put_bytes(w->order[i].data, (size_t)tensor_bytes(&w->order[i]), o.file);
    if (!code) return pnet_output_commit(&o, e);
    pnet_output_drop(&o);
    return pnet_error_errno(e, PNET_FAILED, code, "%s: cannot write", w->path);
}

enum pnet_status pnet_safetensors_write(const char *path, const struct pnet_safetensor *tensors,
    size_t count, const struct pnet_metadata *metadata, size_t metadata_count, struct pnet_error *e)
{
    struct writing w = {.path = path, .count = count};
    w.order = calloc(count + 1, sizeof *w.order);
    if (!w.order) return pnet_error_memory(e);
    struct pnet_json header = {.text = NULL};
    enum pnet_status status = sort_for_writing(&w, tensors, e);
    if (status != PNET_OK) goto out;
    put_header(&header, &w, metadata, metadata_count);
    if (header.failed)
        status = pnet_error_memory(e);
    else if (header.size > HEADER_LIMIT)
        status =
            pnet_error_set(e, PNET_FAILED, "%s: cannot write: names take more than 100 MB", path);
    else
        status = put_file(&w, &header, e);
out:
    pnet_json_free(&header);
    free(w.order);
    return status;
}

/* ---- reading ---- */

struct pnet_safetensors_memory {
    struct pnet_bytes bytes;
    json_t *header;              /* owns all names and values */
    struct pnet_name_table rows; /* by the names of tensors */
};

static enum pnet_status make_table(struct pnet_safetensors *f, struct pnet_error *e)
{
    for (size_t i = 0; i < f->count; i++) {
        const char *name = f->tensors[i].name;
        if (!pnet_name_table_at(&f->memory->rows, name, strlen(name), (int64_t)i))
            return pnet_error_memory(e);
    }
    return PNET_OK;
}

const struct pnet_safetensor *pnet_safetensors_find(
    const struct pnet_safetensors *f, const char *name)
{
    int64_t row = pnet_name_table_find(&f->memory->rows, name, strlen(name));
    return row >= 0 ? &f->tensors[row] : NULL;
}

const char *pnet_safetensors_metadata(const struct pnet_safetensors *f, const char *key)
{
    for (size_t i = 0; i < f->metadata_count; i++)
        if (strcmp(f->metadata[i].key, key) == 0) return f->metadata[i].value;
    return NULL;
}

static enum pnet_status bad_tensor(
    const char *file, const char *name, const char *expected, struct pnet_error *e)
{
    return pnet_error_set(
        e, PNET_BAD_DATA, "%s: tensor \"%.200s\": expected %s", file, name, expected);
}

static enum pnet_status read_shape(
    const char *file, json_t *entry, struct pnet_safetensor *t, struct pnet_error *e)
{
    json_t *shape = json_object_get(entry, "shape");
    if (!json_is_array(shape) || json_array_size(shape) > PNET_TENSOR_DIMS)
        return bad_tensor(file, t->name, "a shape of 8 dimensions at most", e);
    t->dims = (int)json_array_size(shape);
    for (int d = 0; d < t->dims; d++) {
        json_t *length = json_array_get(shape, (size_t)d);
        t->shape[d] = json_integer_value(length);
        if (!json_is_integer(length) || t->shape[d] < 0)
            return bad_tensor(file, t->name, "lengths from 0 on in its shape", e);
    }
    return PNET_OK;
}

/* Fills `t`; its data must lie within `data_size` bytes. */
static enum pnet_status read_tensor(const char *file, const char *name, json_t *entry,
    const uint8_t *data, int64_t data_size, struct pnet_safetensor *t, struct pnet_error *e)
{
    t->name = name;
    if (!json_is_object(entry) || json_object_size(entry) != 3)
        return bad_tensor(file, name, "dtype, shape and data_offsets", e);
    const char *type = json_string_value(json_object_get(entry, "dtype"));
    int dtype = 0;
    while (dtype < PNET_TENSOR_TYPES && !(type && strcmp(dtypes[dtype].name, type) == 0)) dtype++;
    if (dtype == PNET_TENSOR_TYPES)
        return bad_tensor(file, name, "a dtype such as F32, F16, BF16, I64 or U8", e);
    t->dtype = (enum pnet_tensor_type)dtype;

    enum pnet_status status = read_shape(file, entry, t, e);
    if (status != PNET_OK) return status;
    json_t *offsets = json_object_get(entry, "data_offsets");
    json_t *from = json_array_get(offsets, 0), *to = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(from) || !json_is_integer(to))
        return bad_tensor(file, name, "two integers as data_offsets", e);
    int64_t begin = json_integer_value(from), end = json_integer_value(to);
    if (begin < 0 || begin > end || end > data_size)
        return pnet_error_set(e, PNET_BAD_DATA,
            "%s: tensor \"%.200s\": expected data_offsets within the file's %" PRId64
            " bytes of data, found [%" PRId64 ", %" PRId64 "]",
            file, name, data_size, begin, end);
    int64_t bytes = tensor_bytes(t);
    if (bytes != end - begin)
        return pnet_error_set(e, PNET_BAD_DATA,
            "%s: tensor \"%.200s\": expected data_offsets that span %" PRId64
            " bytes, as its shape and type say, found [%" PRId64 ", %" PRId64 "]",
            file, name, bytes, begin, end);
    t->data = data + begin;
    return PNET_OK;
}

static enum pnet_status read_metadata(
    const char *file, json_t *object, struct pnet_safetensors *f, struct pnet_error *e)
{
    if (!json_is_object(object))
        return pnet_error_set(e, PNET_BAD_DATA, "%s: expected an object as __metadata__", file);
    f->metadata = calloc(json_object_size(object) + 1, sizeof *f->metadata);
    if (!f->metadata) return pnet_error_memory(e);
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        if (!json_is_string(value))
            return pnet_error_set(
                e, PNET_BAD_DATA, "%s: __metadata__ \"%.200s\": expected a string", file, key);
        f->metadata[f->metadata_count++] =
            (struct pnet_metadata){.key = key, .value = json_string_value(value)};
    }
    return PNET_OK;
}

static int by_data(const void *a, const void *b)
{
    const struct pnet_safetensor *x = a, *y = b;
    uintptr_t p = (uintptr_t)x->data, q = (uintptr_t)y->data;
    if (p != q) return p < q ? -1 : 1;
    int64_t n = tensor_bytes(x),
            m = tensor_bytes(
                y); /* tensors without data come before the one that begins at the same byte */
    if (n != m) return n < m ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Sorted by their data, every tensor begins at the end of the one before it. */
static enum pnet_status check_cover(const char *file, struct pnet_safetensors *f,
    const uint8_t *data, int64_t data_size, struct pnet_error *e)
{
    qsort(f->tensors, f->count, sizeof *f->tensors, by_data);
    int64_t end = 0;
    for (size_t i = 0; i < f->count; i++) {
        const struct pnet_safetensor *t = &f->tensors[i];
        int64_t begin = (const uint8_t *)t->data - data;
        if (begin != end)
            return pnet_error_set(e, PNET_BAD_DATA,
                "%s: tensor \"%.200s\": expected data from byte %" PRId64 " on, found %" PRId64
                " (%s)",
                file, t->name, end, begin, begin < end ? "tensors overlap" : "a gap");
        end += tensor_bytes(t);
    }
    if (end != data_size)
        return pnet_error_set(e, PNET_BAD_DATA,
            "%s: expected %" PRId64 " bytes of data, found %" PRId64, file, end, data_size);
    return PNET_OK;
}

static enum pnet_status read_header(const char *file, struct pnet_safetensors *f,
    const uint8_t *bytes, size_t size, struct pnet_error *e)
{
    uint64_t length = 0;
    if (size >= 8) memcpy(&length, bytes, 8);
    if (size < 8 || length > HEADER_LIMIT || length > size - 8 || length < 2 || bytes[8] != '{')
        return pnet_error_set(e, PNET_BAD_DATA,
            "%s: expected a safetensors file: 8 bytes with the length of a JSON header, then that",
            file);
    json_t **header = &f->memory->header;
    enum pnet_status status = pnet_json_parse(file, bytes + 8, (size_t)length, header, e);
    if (status != PNET_OK) return status;

    const uint8_t *data = bytes + 8 + length;
    int64_t data_size = (int64_t)(size - 8 - (size_t)length);
    f->tensors = calloc(json_object_size(*header) + 1, sizeof *f->tensors);
    if (!f->tensors) return pnet_error_memory(e);
    const char *name;
    json_t *entry;
    json_object_foreach(*header, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0)
            status = read_metadata(file, entry, f, e);
        else
            status = read_tensor(file, name, entry, data, data_size, &f->tensors[f->count++], e);
        if (status != PNET_OK) return status;
    }
    status = check_cover(file, f, data, data_size, e);
    return status == PNET_OK ? make_table(f, e) : status;
}

enum pnet_status pnet_safetensors_parse(const char *name, const void *bytes, size_t size,
    struct pnet_safetensors **f, struct pnet_error *e)
{
    *f = NULL;
    struct pnet_safetensors *new = calloc(1, sizeof *new);
    if (!new) return pnet_error_memory(e);
    new->memory = calloc(1, sizeof *new->memory);
    enum pnet_status status =
        new->memory ? read_header(name, new, bytes, size, e) : pnet_error_memory(e);
    if (status == PNET_OK)
        *f = new;
    else
        pnet_safetensors_free(new);
    return status;
}

enum pnet_status pnet_safetensors_read(
    const char *path, struct pnet_safetensors **f, struct pnet_error *e)
{
    *f = NULL;
    struct pnet_bytes bytes;
    enum pnet_status status = pnet_bytes_read(path, &bytes, e);
    if (status != PNET_OK) return status;
    status = pnet_safetensors_parse(path, bytes.data, bytes.size, f, e);
    if (*f)
        (*f)->memory->bytes = bytes;
    else
        pnet_bytes_free(&bytes);
    return status;
}

void pnet_safetensors_free(struct pnet_safetensors *f)
{
    if (!f) return;
    if (f->memory) {
        json_decref(f->memory->header);
        if (f->memory->bytes.data) pnet_bytes_free(&f->memory->bytes);
        pnet_name_table_free(&f->memory->rows);
    }
    free(f->memory);
    free(f->tensors);
    free(f->metadata);
    free(f);
}
