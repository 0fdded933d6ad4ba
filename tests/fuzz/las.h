/* What must hold after writing a LAS or LAZ file of any bytes that could be read. */
#ifndef PNET_TESTS_FUZZ_LAS_H
#define PNET_TESTS_FUZZ_LAS_H

#include "runtime/io/las.h"
#include "runtime/io/writing.h"
#include "tests/fuzz/cloud.h"

/* Writes the cloud to memory, which the caller frees. */
static inline enum pnet_status fuzz_write_las(const struct pnet_cloud *c, char **data, size_t *size)
{
    struct pnet_error e = {.message = ""};
    *data = NULL;
    FILE *f = open_memstream(data, size);
    if (!f) abort();
    enum pnet_status status = pnet_writing_all(&pnet_las_writing, c, "f.las", f, &e);
    if (fclose(f) != 0) abort();
    return status;
}

/* Reads what was written: a cloud of as many rows and fields. */
static inline void fuzz_read_las(const char *data, size_t size, const struct pnet_cloud *want)
{
    struct pnet_bytes b = {.data = (const uint8_t *)data, .size = size, .borrowed = true};
    struct pnet_cloud c = {.rows = 0};
    struct pnet_error e = {.message = ""};
    enum pnet_status status = pnet_las_read(&b, "f.las", &c, &e);
    if (status != PNET_OK) fprintf(stderr, "%s\n", e.message);
    FUZZ_REQUIRE(status == PNET_OK, "written");
    FUZZ_REQUIRE(c.file_rows == want->rows && c.field_count == want->field_count, "written");
    pnet_cloud_free(&c);
}

/* Returns whether the bytes were a cloud. Then they come back, those of LAZ uncompressed; and so does a cloud with one more
   field, unless there is no place for it. */
static inline int fuzz_las(const char *path, const uint8_t *data, size_t size)
{
    const struct fuzz_reader reader = {path, pnet_las_read};
    if (!fuzz_read(reader, data, size)) return 0;
    struct pnet_bytes b = {.data = data, .size = size, .borrowed = true};
    struct pnet_cloud c = {.rows = 0};
    char *out;
    size_t out_size = 0;
    if (pnet_las_read(&b, path, &c, NULL) || pnet_cloud_restore(&c, NULL)) abort();
    FUZZ_REQUIRE(fuzz_write_las(&c, &out, &out_size) == PNET_OK, path);
    if (data[LAS_POINT_FORMAT] >> 6)
        fuzz_read_las(out, out_size, &c);
    else
        FUZZ_REQUIRE(out_size == size && memcmp(out, data, size) == 0, path);
    free(out);
    if (!pnet_cloud_add(&c, "one more field", PNET_F32)) abort();
    enum pnet_status status = fuzz_write_las(&c, &out, &out_size);
    FUZZ_REQUIRE(status == PNET_OK || status == PNET_USAGE, path);
    if (status == PNET_OK) fuzz_read_las(out, out_size, &c);
    free(out);
    pnet_cloud_free(&c);
    return 1;
}

#endif
