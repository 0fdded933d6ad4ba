/* NPY files of version 1, C order, native byte order: all that the golden cases and the benchmark
 * rooms use. */
#ifndef PNET_TESTS_GEOMETRY_ARRAYS_H
#define PNET_TESTS_GEOMETRY_ARRAYS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct array {
    int64_t rows, columns; /* columns: 1 where there is one dimension */
    void *data;            /* NULL: no such file */
};

/* Reads DIR/NAME whose elements are `type` ("<f4", "<i8") of `size` bytes. Ends the program on a
   file that is something else, so that no test passes by reading nothing. */
static inline struct array array_read(
    const char *dir, const char *name, const char *type, size_t size)
{
    char path[8192], header[4096] = "";
    unsigned char magic[10];
    struct array a = {0, 0, NULL};
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "rb");
    if (!f) return a;
    size_t length = fread(magic, 1, 10, f) == 10 ? (size_t)magic[8] | (size_t)magic[9] << 8 : 0;
    const char *shape = NULL;
    if (length && length < sizeof header && fread(header, 1, length, f) == length)
        shape = strstr(header, "'shape': (");
    long long rows = 0, columns = 1;
    if (!shape || !strstr(header, type) || !strstr(header, "False") ||
        sscanf(shape, "'shape': (%lld, %lld", &rows, &columns) < 1) {
        fprintf(stderr, "%s: not an array of %s\n", path, type);
        exit(1);
    }
    size_t count = (size_t)(rows * columns);
    a = (struct array){rows, columns, malloc(count * size + 1)};
    if (!a.data || fread(a.data, size, count, f) != count) {
        fprintf(stderr, "%s: cut off\n", path);
        exit(1);
    }
    fclose(f);
    return a;
}

#endif
