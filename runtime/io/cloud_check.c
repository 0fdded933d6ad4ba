#include "runtime/io/cloud_check.h"
#include "runtime/io/las.h"
#include "runtime/io/writing.h"

#include <math.h>
#include <stdlib.h>

/* Sees the rows of the pieces, and lets the format choose by them, as the first pass over the rows of a file does. */
static enum pnet_status choose(const char *path, const struct pnet_cloud *like,
    const struct pnet_cloud *const *pieces, int count, int64_t first, struct pnet_error *e)
{
    struct pnet_writing w = {.kind = pnet_format_writing(path, e), .like = like, .path = path};
    if (!w.kind) return PNET_USAGE;
    if (!w.kind->seen) return PNET_OK; /* all else that formats refuse is found by their names */
    w.own = calloc(1, w.kind->size ? w.kind->size : 1);
    if (!w.own) return pnet_error_memory(e);
    enum pnet_status st = w.kind->begin ? w.kind->begin(&w, e) : PNET_OK;
    w.file_done = first;
    for (int i = 0; i < count && !st; i++) {
        w.rows += pieces[i]->rows;
        st = w.kind->see(&w, pieces[i], e);
    }
    w.file_done = like->las ? like->las->rows : first;
    if (!st) st = w.kind->seen(&w, e);
    if (w.kind->free) w.kind->free(&w);
    free(w.own);
    return st;
}

enum pnet_status pnet_cloud_check_like(
    const char *path, const struct pnet_cloud *like, struct pnet_error *e)
{
    return choose(path, like, NULL, 0, 0, e);
}

/* Checks the points, and the first row that was dropped as a row without coordinates. */
static enum pnet_status check_points(
    const char *path, const struct pnet_cloud *c, bool all, int64_t first, struct pnet_error *e)
{
    float none[3] = {NAN, NAN, NAN};
    int64_t row = 0;
    if (c->las) return PNET_OK; /* what was read goes back as it is */
    while (c->file_row && row < c->rows && c->file_row[row] == row) row++;
    struct pnet_cloud points = *c, dropped = *c;
    points.field_count = dropped.field_count = 0;
    dropped.rows = 1;
    dropped.xyz = none;
    dropped.exact = NULL;
    dropped.file_row = &row;
    const struct pnet_cloud *pieces[2] = {&dropped, &points};
    if (c->file_row) return choose(path, &points, pieces, 1, first, e);
    return all ? choose(path, &points, pieces + 1, 1, first, e) : PNET_OK;
}

enum pnet_status pnet_cloud_check_missing(
    const char *path, const struct pnet_cloud *c, int64_t first, struct pnet_error *e)
{
    return check_points(path, c, false, first, e);
}

enum pnet_status pnet_cloud_check_points(
    const char *path, const struct pnet_cloud *c, struct pnet_error *e)
{
    return check_points(path, c, true, 0, e);
}
