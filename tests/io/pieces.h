/* Compares the two ways in which a cloud is read: as a whole, and in pieces. For tests, and for the fuzzers. */
#ifndef PNET_TESTS_IO_PIECES_H
#define PNET_TESTS_IO_PIECES_H

#include "runtime/io/las.h"
#include "runtime/io/pieces.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define PIECES_SAME(cond)                                                                          \
    do {                                                                                           \
        if (!(cond)) return #cond;                                                                 \
    } while (0)

/* What has been read of the pieces until now. */
struct pieces_at {
    int64_t row, file_row;
};

static inline bool pieces_same_bytes(const void *a, const void *b, size_t size)
{
    return size == 0 || (a && b && memcmp(a, b, size) == 0);
}

/* Each returns NULL, or what is not so. */
static inline const char *pieces_differ_in_fields(
    const struct pnet_cloud *c, const struct pnet_cloud *all, const struct pieces_at *at)
{
    PIECES_SAME(c->field_count == all->field_count);
    for (int i = 0; i < c->field_count; i++) {
        const struct pnet_field *f = &c->fields[i], *g = &all->fields[i];
        size_t size = pnet_scalar_size(f->type), from = (size_t)at->row * size;
        size_t dropped = (size_t)(at->file_row - at->row) * size;
        PIECES_SAME(strcmp(f->name, g->name) == 0);
        PIECES_SAME(f->type == g->type && f->untyped == g->untyped && f->part == g->part);
        PIECES_SAME(pieces_same_bytes(f->data, (char *)g->data + from, (size_t)c->rows * size));
        PIECES_SAME((c->rows < c->file_rows) == (f->dropped != NULL));
        PIECES_SAME(!f->dropped || pieces_same_bytes(f->dropped, (char *)g->dropped + dropped,
                                       (size_t)(c->file_rows - c->rows) * size));
    }
    return NULL;
}

static inline const char *pieces_differ_in_head(
    const struct pnet_cloud *c, const struct pnet_cloud *all)
{
    PIECES_SAME(memcmp(c->offset, all->offset, sizeof c->offset) == 0);
    PIECES_SAME(c->xyz_type == all->xyz_type && c->faces == all->faces);
    PIECES_SAME(memcmp(c->metres, all->metres, sizeof c->metres) == 0);
    PIECES_SAME(c->unit_of_file == all->unit_of_file && c->rounded == all->rounded && !c->array);
    for (int i = 0; i < 2; i++) {
        PIECES_SAME(c->unit[i].kind == all->unit[i].kind && c->unit[i].size == all->unit[i].size);
        PIECES_SAME(strcmp(c->unit[i].name, all->unit[i].name) == 0);
    }
    PIECES_SAME((c->las != NULL) == (all->las != NULL));
    PIECES_SAME(!c->las || c->las->width == all->las->width);
    PIECES_SAME(!c->las || c->las->layout.count == all->las->layout.count);
    return NULL;
}

static inline const char *pieces_differ_in_outline(
    const struct pnet_cloud_outline *o, const struct pnet_cloud *all)
{
    const struct pieces_at begin = {0, 0};
    const struct pnet_las_kept *k = o->cloud.las, *l = all->las;
    PIECES_SAME(o->rows == all->rows && o->file_rows == all->file_rows);
    PIECES_SAME(o->exact == (all->exact != NULL));
    PIECES_SAME(!o->cloud.rows && !o->cloud.file_rows);
    PIECES_SAME(o->cloud.strays.count == all->strays.count);
    PIECES_SAME(o->cloud.strays.row == all->strays.row);
    PIECES_SAME(o->cloud.strays.distance == all->strays.distance);
    PIECES_SAME(!k || (k->rows == l->rows && k->head_size == l->head_size));
    PIECES_SAME(!k || pieces_same_bytes(k->head, l->head, l->head_size));
    PIECES_SAME(!k || (k->tail_size == l->tail_size));
    PIECES_SAME(!k || pieces_same_bytes(k->tail, l->tail, l->tail_size));
    PIECES_SAME(!k || memcmp(&k->summary, &l->summary, sizeof k->summary) == 0);
    const char *wrong = pieces_differ_in_fields(&o->cloud, all, &begin);
    return wrong ? wrong : pieces_differ_in_head(&o->cloud, all);
}

static inline const char *pieces_differ_in_piece(const struct pnet_cloud *c,
    const struct pnet_cloud *all, const struct pieces_at *at, int64_t first)
{
    size_t numbers = 3 * (size_t)c->rows, from = 3 * (size_t)at->row;
    PIECES_SAME(first == at->file_row && at->row + c->rows <= all->rows);
    PIECES_SAME(pieces_same_bytes(c->xyz, all->xyz + from, numbers * sizeof *c->xyz));
    PIECES_SAME((c->exact != NULL) == (all->exact != NULL));
    PIECES_SAME(
        !c->exact || pieces_same_bytes(c->exact, all->exact + from, numbers * sizeof *c->exact));
    PIECES_SAME((c->file_row != NULL) == (c->rows < c->file_rows));
    for (int64_t i = 0; i < c->rows; i++)
        PIECES_SAME(first + (c->file_row ? c->file_row[i] : i) ==
                    (all->file_row ? all->file_row[at->row + i] : at->row + i));
    PIECES_SAME(!c->strays.count);
    const char *wrong = pieces_differ_in_fields(c, all, at);
    if (!wrong) wrong = pieces_differ_in_head(c, all);
    if (wrong || !c->las) return wrong;
    PIECES_SAME(!c->las->head && !c->las->tail && c->las->rows == c->file_rows);
    PIECES_SAME(
        pieces_same_bytes(c->las->bytes, all->las->bytes + (size_t)at->file_row * c->las->width,
            (size_t)c->file_rows * c->las->width));
    return NULL;
}

/* Goes through the pieces, or through the first `few` of them. */
static inline const char *pieces_differ_in_pass(
    struct pnet_cloud_pieces *p, const struct pnet_cloud *all, int64_t most, int64_t few)
{
    struct pieces_at at = {0, 0};
    const char *wrong = NULL;
    while (!wrong && few--) {
        struct pnet_cloud c;
        int64_t first = -1, left = all->file_rows - at.file_row;
        PIECES_SAME(pnet_cloud_pieces_next(p, &c, &first, NULL) == PNET_OK);
        if (c.file_rows != (left < most ? left : most)) wrong = "the rows of a piece";
        if (!wrong && c.file_rows) wrong = pieces_differ_in_piece(&c, all, &at, first);
        at.row += c.rows;
        at.file_row += c.file_rows;
        bool end = !c.file_rows;
        pnet_cloud_free(&c);
        if (end && !wrong) PIECES_SAME(at.row == all->rows && at.file_row == all->file_rows);
        if (end) break;
    }
    return wrong;
}

/* Tells how the two ways differ, or returns NULL. *whole: the format is not read in pieces. */
static inline const char *pieces_differ(
    const char *path, const struct pnet_cloud_hints *hints, int64_t most, bool *whole)
{
    struct pnet_cloud all;
    struct pnet_cloud_pieces *p;
    struct pnet_error e = {.message = ""}, f = {.message = ""};
    char warning[256], told[256];
    enum pnet_status st = pnet_cloud_pieces_open(path, hints, most, &p, told, &f);
    *whole = st == PNET_USAGE && strstr(f.message, "read as a whole") != NULL;
    if (*whole) return NULL;
    enum pnet_status status = pnet_cloud_read_as(path, hints, &all, warning, &e);
    const char *wrong = NULL;
    if (status == PNET_NO_MEMORY) { /* some pieces of a cloud fit where all of it does not */
        pnet_cloud_pieces_close(p);
        return NULL;
    }
    if (st != status || strcmp(e.message, f.message) != 0) {
        fprintf(stderr, "whole: %s\npieces: %s\n", e.message, f.message);
        wrong = "the same status and message";
    }
    if (!wrong && !st && strcmp(warning, told) != 0) {
        fprintf(stderr, "whole: %s\npieces: %s\n", warning, told);
        wrong = "the same warning";
    }
    if (!wrong && !st) wrong = pieces_differ_in_outline(pnet_cloud_pieces_outline(p), &all);
    if (!wrong && !st) wrong = pieces_differ_in_pass(p, &all, most, 2);
    if (!wrong && !st) pnet_cloud_pieces_rewind(p);
    if (!wrong && !st) wrong = pieces_differ_in_pass(p, &all, most, INT64_MAX);
    pnet_cloud_pieces_close(p);
    pnet_cloud_free(&all);
    return wrong;
}

#endif
