#include "library/array.h"

#include <stdlib.h>

void *pnet_library_room(int64_t count, size_t each, struct pnet_error *e)
{
    void *room = malloc((size_t)(count > 0 ? count : 1) * each);
    if (!room) pnet_error_memory(e);
    return room;
}

void *pnet_library_workspace(void *given, size_t given_bytes, size_t bytes, const char *says,
    void **own, struct pnet_error *e)
{
    *own = NULL;
    if (!given) {
        *own = pnet_library_room((int64_t)bytes, 1, e);
        return *own;
    }
    if (given_bytes >= bytes) return given;
    pnet_error_set(
        e, PNET_USAGE, "workspace_bytes: %zu, expected %zu: %s says so", given_bytes, bytes, says);
    return NULL;
}

static const char *name_of(enum pnet_dtype dtype)
{
    static const char *const names[] = {
        "PNET_DTYPE_F32", "PNET_DTYPE_I32", "PNET_DTYPE_I64", "PNET_DTYPE_BF16", "PNET_DTYPE_F16"};
    return names[dtype];
}

enum pnet_status pnet_library_check_matrix(const char *name, const struct pnet_array *a,
    enum pnet_dtype dtype, int64_t rows, int64_t width, struct pnet_error *e)
{
    if (a->dtype != dtype)
        return pnet_error_set(e, PNET_USAGE, "%s: dtype %d: only %s is there so far", name,
            (int)a->dtype, name_of(dtype));
    if (a->rows != rows || a->width != width)
        return pnet_error_set(e, PNET_USAGE, "%s: [%lld, %lld], expected [%lld, %lld]", name,
            (long long)a->rows, (long long)a->width, (long long)rows, (long long)width);
    if (a->stride && a->stride != a->width)
        return pnet_error_set(e, PNET_USAGE,
            "%s: the stride %lld is not the width %lld: only contiguous rows are there so far",
            name, (long long)a->stride, (long long)a->width);
    if (!a->data && a->rows) return pnet_error_set(e, PNET_USAGE, "%s: `data` is NULL", name);
    return PNET_OK;
}

enum pnet_status pnet_library_check_filled(const char *name, const struct pnet_array_out *a,
    enum pnet_dtype dtype, int64_t rows, int64_t width, struct pnet_error *e)
{
    struct pnet_array same = {a->data, a->dtype, a->rows, a->width, a->stride};
    return pnet_library_check_matrix(name, &same, dtype, rows, width, e);
}

enum pnet_status pnet_library_check_rows(
    const char *name, const struct pnet_array *a, const char *what, struct pnet_error *e)
{
    if (a->rows < 0 || a->rows > INT32_MAX)
        return pnet_error_set(
            e, PNET_USAGE, "%s: %lld rows: %s at most 2147483647", name, (long long)a->rows, what);
    if (a->stride && a->stride < a->width)
        return pnet_error_set(e, PNET_USAGE, "%s: the stride %lld is below the width %lld", name,
            (long long)a->stride, (long long)a->width);
    if (!a->data && a->rows) return pnet_error_set(e, PNET_USAGE, "%s: `data` is NULL", name);
    return PNET_OK;
}

bool pnet_library_is_integer(const struct pnet_array *a)
{
    return a->dtype == PNET_DTYPE_I32 || a->dtype == PNET_DTYPE_I64;
}

int64_t pnet_library_integer(const struct pnet_array *a, int64_t row)
{
    int64_t at = row * pnet_library_stride(a);
    return a->dtype == PNET_DTYPE_I64 ? ((const int64_t *)a->data)[at]
                                      : ((const int32_t *)a->data)[at];
}

enum pnet_status pnet_library_check_splits(const char *name, const struct pnet_array *a,
    int64_t rows, const char *of, struct pnet_error *e)
{
    if (!pnet_library_is_integer(a))
        return pnet_error_set(e, PNET_USAGE,
            "%s: dtype %d, expected PNET_DTYPE_I64 or PNET_DTYPE_I32", name, (int)a->dtype);
    if (a->width != 1)
        return pnet_error_set(e, PNET_USAGE,
            "%s: [%lld, %lld], expected [%lld, 1]: samples + 1 rows", name, (long long)a->rows,
            (long long)a->width, (long long)a->rows);
    enum pnet_status st = pnet_library_check_rows(name, a, "a batch has", e);
    if (st) return st;
    if (a->rows < 2)
        return pnet_error_set(e, PNET_USAGE,
            "%s: the row splits of one sample have two rows, not %lld", name, (long long)a->rows);
    for (int64_t i = 0; i < a->rows; i++) {
        int64_t before = i ? pnet_library_integer(a, i - 1) : 0, split = pnet_library_integer(a, i);
        if (split < before || (i == 0 && split != 0))
            return pnet_error_set(e, PNET_BAD_DATA,
                "%s: row %lld: row splits begin with 0 and do not descend", name, (long long)i);
    }
    int64_t last = pnet_library_integer(a, a->rows - 1);
    if (last == rows) return PNET_OK;
    return pnet_error_set(e, PNET_BAD_DATA,
        "%s: the last of the row splits is %lld, expected %lld, the rows of %s", name,
        (long long)last, (long long)rows, of);
}
