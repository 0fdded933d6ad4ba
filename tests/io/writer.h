/* Compares the two ways in which a cloud is written: as a whole, and in the pieces in which its file is read. */
#ifndef PNET_TESTS_IO_WRITER_H
#define PNET_TESTS_IO_WRITER_H

#include "runtime/io/cloud_writer.h"
#include "runtime/io/pieces.h"
#include "tests/io/files.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* What is done to a cloud before it is written. */
enum writer_change {
    WRITER_AS_READ,
    WRITER_RESULTS,  /* class and score are added, NaN and -1 in some rows */
    WRITER_CLASSES,  /* classification is replaced by classes from 0 to 31 */
    WRITER_BEYOND,   /* by classes from 0 to 31, and 200 in one row */
    WRITER_RENAMED,  /* the first field is input_NAME, and a new one has its name */
    WRITER_COLOURS,  /* red, green and blue are added in bytes, or replaced */
    WRITER_INTEGERS, /* 64-bit integers are added: small ones, and one that no double holds */
    WRITER_MOVED,    /* one point is moved far */
    WRITER_CHANGES
};

static inline void *writer_field(struct pnet_cloud *c, const char *name, enum pnet_scalar type)
{
    struct pnet_field *f = pnet_cloud_add(c, name, type);
    if (!f) abort();
    return f->data;
}

/* The row whose value decides, near the end of `rows` rows. */
static inline bool writer_decides(int64_t row, int64_t rows)
{
    return row == rows - rows / 5 - 1;
}

static inline void writer_add_results(struct pnet_cloud *c, int64_t first)
{
    int32_t *class_ = writer_field(c, "class", PNET_I32);
    float *score = writer_field(c, "score", PNET_F32);
    for (int64_t i = 0; i < c->rows; i++) {
        class_[i] = (first + i) % 9 == 4 ? -1 : (int32_t)((first + i) % 13);
        score[i] = (first + i) % 9 == 4 ? NAN : 1 / (float)(first + i + 1);
    }
}

static inline void writer_add_classes(struct pnet_cloud *c, int64_t first, int64_t rows, int beyond)
{
    uint8_t *v = writer_field(c, "classification", PNET_U8);
    for (int64_t i = 0; i < c->rows; i++)
        v[i] = (uint8_t)(beyond && writer_decides(first + i, rows) ? beyond : (first + i) % 32);
}

static inline void writer_rename(struct pnet_cloud *c, int64_t first)
{
    char name[300];
    if (!c->field_count) return;
    char *old = c->fields[0].name;
    snprintf(name, sizeof name, "input_%s", old);
    c->fields[0].name = strdup(name);
    float *v = writer_field(c, old, PNET_F32);
    for (int64_t i = 0; i < c->rows; i++) v[i] = (float)((first + i) % 100) / 8;
    free(old);
}

static inline void writer_add_colours(struct pnet_cloud *c, int64_t first)
{
    static const char *const names[] = {"red", "green", "blue"};
    for (int k = 0; k < 3; k++) {
        uint8_t *v = writer_field(c, names[k], PNET_U8);
        for (int64_t i = 0; i < c->rows; i++) v[i] = (uint8_t)((first + i) * (k + 3));
    }
}

static inline void writer_add_integers(struct pnet_cloud *c, int64_t first, int64_t rows)
{
    int64_t *small = writer_field(c, "small", PNET_I64),
            *great = writer_field(c, "great", PNET_I64);
    for (int64_t i = 0; i < c->rows; i++) {
        small[i] = (first + i) % 3 - 1;
        great[i] = writer_decides(first + i, rows) ? (INT64_C(1) << 53) + 1 : first + i;
    }
}

static inline void writer_move(struct pnet_cloud *c, int64_t first, int64_t rows)
{
    pnet_cloud_forget_exact(c);
    for (int64_t i = 0; i < c->rows; i++)
        if (writer_decides(first + i, rows)) c->xyz[3 * i] += 123.25f;
}

/* Changes a piece that begins at row `first` of `rows` rows. */
static inline void writer_apply(
    enum writer_change change, struct pnet_cloud *c, int64_t first, int64_t rows)
{
    if (change == WRITER_RESULTS) writer_add_results(c, first);
    if (change == WRITER_CLASSES) writer_add_classes(c, first, rows, 0);
    if (change == WRITER_BEYOND) writer_add_classes(c, first, rows, 200);
    if (change == WRITER_RENAMED) writer_rename(c, first);
    if (change == WRITER_COLOURS) writer_add_colours(c, first);
    if (change == WRITER_INTEGERS) writer_add_integers(c, first, rows);
    if (change == WRITER_MOVED) writer_move(c, first, rows);
}

/* Puts all pieces of a file once. */
static inline enum pnet_status writer_put_all(struct pnet_cloud_pieces *p, int64_t rows,
    enum writer_change change, struct pnet_cloud_writer *w, struct pnet_error *e)
{
    bool more = true;
    enum pnet_status st = PNET_OK;
    pnet_cloud_pieces_rewind(p);
    while (more && !st) {
        struct pnet_cloud c;
        int64_t first;
        st = pnet_cloud_pieces_next(p, &c, &first, e);
        if (!st) st = pnet_cloud_restore(&c, e);
        more = c.rows > 0;
        if (!st && more) {
            writer_apply(change, &c, first, rows);
            st = pnet_cloud_writer_put(w, &c, e);
        }
        pnet_cloud_free(&c);
    }
    return st;
}

static inline enum pnet_status writer_write(
    struct pnet_cloud_pieces *p, enum writer_change change, const char *path, struct pnet_error *e)
{
    struct pnet_cloud_outline *o = pnet_cloud_pieces_outline(p);
    struct pnet_cloud_writer *w;
    bool again = true;
    enum pnet_status st = pnet_cloud_writer_open(path, &o->cloud, o->file_rows, &w, e);
    while (again && !st) {
        st = writer_put_all(p, o->file_rows, change, w, e);
        if (!st) st = pnet_cloud_writer_pass(w, &again, e);
    }
    if (!st) return pnet_cloud_writer_close(w, e);
    pnet_cloud_writer_drop(w);
    return st;
}

static inline enum pnet_status writer_in_pieces(const char *from,
    const struct pnet_cloud_hints *hints, int64_t most, enum writer_change change, const char *path,
    struct pnet_error *e)
{
    struct pnet_cloud_pieces *p;
    enum pnet_status st = pnet_cloud_pieces_open(from, hints, most, &p, NULL, e);
    if (st) return st;
    struct pnet_cloud_outline *o = pnet_cloud_pieces_outline(p);
    writer_apply(change, &o->cloud, 0, o->file_rows);
    st = writer_write(p, change, path, e);
    pnet_cloud_pieces_close(p);
    return st;
}

/* Reads a cloud as a whole and writes it, if it can be read: *read. */
static inline enum pnet_status writer_whole(const char *from, const struct pnet_cloud_hints *hints,
    enum writer_change change, const char *path, bool *read, struct pnet_error *e)
{
    struct pnet_cloud c;
    *read = pnet_cloud_read_as(from, hints, &c, NULL, e) == PNET_OK;
    if (!*read) return PNET_OK;
    enum pnet_status st = pnet_cloud_restore(&c, e);
    writer_apply(change, &c, 0, c.rows);
    if (!st) st = pnet_cloud_write(path, &c, e);
    pnet_cloud_free(&c);
    return st;
}

/* Writes `from`, which is read in pieces of `most` rows, to `path` in both ways. Returns NULL, or how they differ. *written: the
   format can hold the cloud. No file is left. */
static inline const char *writer_differs(const char *from, const struct pnet_cloud_hints *hints,
    int64_t most, enum writer_change change, const char *path, bool *written)
{
    struct pnet_error e = {.message = ""}, f = {.message = ""};
    struct pnet_bytes a = {.data = NULL}, b = {.data = NULL};
    bool read, same = true;
    enum pnet_status st = writer_whole(from, hints, change, path, &read, &e);
    *written = read && st == PNET_OK;
    if (!read) return NULL;
    if (!st) same = pnet_bytes_read(path, &a, NULL) == PNET_OK && remove(path) == 0;
    enum pnet_status status = writer_in_pieces(from, hints, most, change, path, &f);
    if (status != st || strcmp(e.message, f.message) != 0)
        fprintf(stderr, "whole: %s\npieces: %s\n", e.message, f.message);
    if (!status) same &= pnet_bytes_read(path, &b, NULL) == PNET_OK && remove(path) == 0;
    same &= a.size == b.size && (!a.size || memcmp(a.data, b.data, a.size) == 0);
    pnet_bytes_free(&a);
    pnet_bytes_free(&b);
    if (status != st || strcmp(e.message, f.message) != 0) return "the same status and message";
    if (access(path, F_OK) == 0) return "no file after a failure";
    return same ? NULL : "the same bytes";
}

#endif
