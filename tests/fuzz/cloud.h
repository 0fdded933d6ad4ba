/* What must hold after reading any bytes at all: for the fuzzers, and the tests that damage files.
 */
#ifndef PNET_TESTS_FUZZ_CLOUD_H
#define PNET_TESTS_FUZZ_CLOUD_H

#include "runtime/io/format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fuzz_reader {
    const char *path; /* a name with the ending the reader may look at */
    enum pnet_status (*read)(
        const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e);
};

static inline void fuzz_require(int holds, const char *what, const char *path)
{
    if (holds) return;
    fprintf(stderr, "%s: not so: %s\n", path, what);
    abort();
}
#define FUZZ_REQUIRE(cond, path) fuzz_require((cond) != 0, #cond, path)

/* Every value of every field is there to be read. */
static inline void fuzz_touch(const struct pnet_cloud *c)
{
    double sum = 0;
    for (int k = 0; k < c->field_count; k++)
        for (int64_t i = 0; i < c->rows; i++) sum += pnet_field_get(&c->fields[k], i);
    volatile double kept = sum;
    (void)kept;
}

/* Returns whether the bytes were a cloud. */
static inline int fuzz_read(struct fuzz_reader r, const uint8_t *data, size_t size)
{
    /* A copy of its own, so that a sanitizer sees one byte too far. */
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) abort();
    if (size) memcpy(copy, data, size);
    struct pnet_bytes b = {.data = copy, .size = size, .borrowed = true};
    struct pnet_cloud c = {.rows = 0};
    struct pnet_error e = {.message = ""};
    enum pnet_status status = r.read(&b, r.path, &c, &e);
    if (status == PNET_OK) {
        FUZZ_REQUIRE(c.rows >= 0 && c.rows <= c.file_rows, r.path);
        FUZZ_REQUIRE((c.file_row != NULL) == (c.rows < c.file_rows), r.path);
        for (int64_t i = 0; i < 3 * c.rows; i++) FUZZ_REQUIRE(isfinite(c.xyz[i]), r.path);
        for (int64_t i = 0; c.file_row && i < c.rows; i++)
            FUZZ_REQUIRE(c.file_row[i] < c.file_rows && c.file_row[i] >= i, r.path);
        fuzz_touch(&c);
    } else {
        FUZZ_REQUIRE(status == PNET_BAD_DATA && e.status == status, r.path);
        FUZZ_REQUIRE(strncmp(e.message, r.path, strlen(r.path)) == 0, r.path);
        FUZZ_REQUIRE(!c.rows && !c.xyz && !c.fields && !c.file_row, r.path);
    }
    pnet_cloud_free(&c);
    free(copy);
    return status == PNET_OK;
}

#endif
