/* What must hold of a file of any bytes: in pieces it is the same as a whole, or has the same error; so is what is written. */
#ifndef PNET_TESTS_FUZZ_PIECES_H
#define PNET_TESTS_FUZZ_PIECES_H

#include "runtime/base/file.h"
#include "runtime/io/cloud_writer.h"
#include "tests/fuzz/cloud.h"
#include "tests/io/pieces.h"

#include <unistd.h>

static char fuzz_piece_path[1024];

static inline void fuzz_remove_piece(void)
{
    remove(fuzz_piece_path);
}

/* Writes all pieces to `path`. */
static inline enum pnet_status fuzz_write_pieces(
    const char *path, struct pnet_cloud_pieces *p, struct pnet_error *e)
{
    struct pnet_cloud_outline *o = pnet_cloud_pieces_outline(p);
    struct pnet_cloud_writer *w;
    enum pnet_status st = pnet_cloud_writer_open(path, &o->cloud, o->file_rows, &w, e);
    for (bool again = true; !st && again;) {
        pnet_cloud_pieces_rewind(p);
        for (bool more = true; !st && more;) {
            struct pnet_cloud c;
            if ((st = pnet_cloud_pieces_next(p, &c, NULL, e))) break;
            more = c.file_rows > 0;
            if (more) st = pnet_cloud_restore(&c, e);
            if (more && !st) st = pnet_cloud_writer_put(w, &c, e);
            pnet_cloud_free(&c);
        }
        if (!st) st = pnet_cloud_writer_pass(w, &again, e);
    }
    if (!st) return pnet_cloud_writer_close(w, e);
    pnet_cloud_writer_drop(w);
    return st;
}

/* The cloud of a file, written in pieces, has the bytes that it has when it is written as a whole, or the same error. */
static inline void fuzz_written(const char *path, const char *ending)
{
    struct pnet_cloud c;
    struct pnet_cloud_pieces *p;
    struct pnet_error e = {.message = ""}, f = {.message = ""};
    struct pnet_bytes a = {.size = 0}, b = {.size = 0};
    char out[1100];
    snprintf(out, sizeof out, "%s.out%s", path, ending);
    if (pnet_cloud_pieces_open(
            path, &(struct pnet_cloud_hints){.columns = NULL}, 5, &p, NULL, NULL))
        return;
    enum pnet_status whole = pnet_cloud_read(path, &c, NULL, &e);
    if (!whole) whole = pnet_cloud_restore(&c, &e);
    if (whole == PNET_NO_MEMORY) { /* pieces take less */
        pnet_cloud_pieces_close(p);
        pnet_cloud_free(&c);
        return;
    }
    if (whole) abort();
    whole = pnet_cloud_write(out, &c, &e);
    if (!whole && pnet_bytes_read(out, &a, NULL)) abort();
    enum pnet_status parts = fuzz_write_pieces(out, p, &f);
    if (!parts && pnet_bytes_read(out, &b, NULL)) abort();
    if (whole != parts || strcmp(e.message, f.message) != 0)
        fprintf(stderr, "whole: %s\npieces: %s\n", e.message, f.message);
    FUZZ_REQUIRE(whole == parts && strcmp(e.message, f.message) == 0, out);
    FUZZ_REQUIRE(a.size == b.size && (!a.size || memcmp(a.data, b.data, a.size) == 0), out);
    pnet_bytes_free(&a);
    pnet_bytes_free(&b);
    remove(out);
    pnet_cloud_pieces_close(p);
    pnet_cloud_free(&c);
}

/* Pieces come from files: this one is written anew for each input. `ending`: the same in all calls. */
static inline void fuzz_pieces(const char *ending, const uint8_t *data, size_t size)
{
    static const struct pnet_cloud_hints none = {.columns = NULL};
    static int made;
    bool whole;
    if (!made++) {
        const char *base = getenv("TMPDIR");
        snprintf(fuzz_piece_path, sizeof fuzz_piece_path, "%s/pnet-fuzz-XXXXXX%s",
            base ? base : "/tmp", ending);
        int fd = mkstemps(fuzz_piece_path, (int)strlen(ending));
        if (fd < 0 || close(fd) != 0 || atexit(fuzz_remove_piece) != 0) abort();
    }
    FILE *f = fopen(fuzz_piece_path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0) abort();
    const char *wrong = pieces_differ(fuzz_piece_path, &none, 5, &whole);
    fuzz_require(!wrong, wrong, fuzz_piece_path);
    static const char *const endings[] = {".ply", ".las", ".pcd", ".npy", ".csv"};
    size_t count = sizeof endings / sizeof *endings;
    if (size && !whole) fuzz_written(fuzz_piece_path, endings[data[size - 1] % count]);
}

#endif
