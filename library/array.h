/* The caller's arrays: checks, and how they are read. */
#ifndef PNET_LIBRARY_ARRAY_H
#define PNET_LIBRARY_ARRAY_H

#include "library/library.h"

/* Memory for `count` elements, at least one; NULL with an error. */
void *pnet_library_room(int64_t count, size_t each, struct pnet_error *e);

/* The caller's workspace, if it has the bytes, or memory that *own gets, to be freed. NULL with an error. `says`: the function
   that tells how many bytes. */
void *pnet_library_workspace(void *given, size_t given_bytes, size_t bytes, const char *says,
    void **own, struct pnet_error *e);

/* PNET_USAGE unless `a` is a contiguous matrix [rows, width] of this type. */
enum pnet_status pnet_library_check_matrix(const char *name, const struct pnet_array *a,
    enum pnet_dtype dtype, int64_t rows, int64_t width, struct pnet_error *e);
enum pnet_status pnet_library_check_filled(const char *name, const struct pnet_array_out *a,
    enum pnet_dtype dtype, int64_t rows, int64_t width, struct pnet_error *e);

/* PNET_USAGE unless `a` can be read: its rows, 0 to 2147483647, do not overlap. `what`: what has that many. */
enum pnet_status pnet_library_check_rows(
    const char *name, const struct pnet_array *a, const char *what, struct pnet_error *e);
/* The distance of rows, in elements. */
static inline int64_t pnet_library_stride(const struct pnet_array *a)
{
    return a->stride ? a->stride : a->width;
}

/* Is it an array of int32 or int64? Then its first element of a row: */
bool pnet_library_is_integer(const struct pnet_array *a);
int64_t pnet_library_integer(const struct pnet_array *a, int64_t row);

/* Checks the row splits of so many rows: int32 or int64 [samples + 1, 1], from 0 to `rows`. `of`: what has the rows. */
enum pnet_status pnet_library_check_splits(const char *name, const struct pnet_array *a,
    int64_t rows, const char *of, struct pnet_error *e);

#endif
