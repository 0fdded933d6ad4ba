#include "runtime/io/cloud_writer.h"
#include "runtime/base/file.h"
#include "runtime/io/writing.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct pnet_cloud_writer {
    struct pnet_writing writing;
    struct pnet_output output; /* stays where it is: its stream refers to it */
};

static enum pnet_status begin(struct pnet_writing *w, struct pnet_error *e)
{
    enum pnet_status status = PNET_OK;
    w->own = calloc(1, w->kind->size ? w->kind->size : 1);
    if (!w->own) return pnet_error_memory(e);
    if (w->kind->begin) status = w->kind->begin(w, e);
    if (!status && !w->measures) status = w->kind->head(w, e);
    return status;
}

static void end(struct pnet_writing *w)
{
    if (w->own && w->kind->free) w->kind->free(w);
    free(w->own);
    w->own = NULL;
}

/* Writers reach the fields of a piece by their numbers, and have chosen how to write each by its name and type. */
static bool has_fields(const struct pnet_cloud *piece, const struct pnet_cloud *like)
{
    bool same = piece->field_count == like->field_count;
    for (int i = 0; i < like->field_count && same; i++)
        same = piece->fields[i].type == like->fields[i].type &&
               strcmp(piece->fields[i].name, like->fields[i].name) == 0;
    return same;
}

static enum pnet_status put(
    struct pnet_writing *w, const struct pnet_cloud *piece, struct pnet_error *e)
{
    if (!has_fields(piece, w->like))
        return pnet_error_set(
            e, PNET_USAGE, "%.400s: the rows have other columns than were announced", w->path);
    if (w->pass > w->measures || piece->rows > w->rows - w->done)
        return pnet_error_set(e, PNET_USAGE,
            "%.400s: more rows than the %" PRId64 " that were announced", w->path, w->rows);
    enum pnet_status status =
        w->pass < w->measures ? w->kind->see(w, piece, e) : w->kind->put(w, piece, e);
    w->done += piece->rows;
    w->file_done += piece->file_rows;
    return status;
}

static enum pnet_status end_pass(struct pnet_writing *w, struct pnet_error *e)
{
    enum pnet_status status = PNET_OK;
    if (w->done != w->rows)
        return pnet_error_set(e, PNET_USAGE,
            "%.400s: %" PRId64 " rows instead of the %" PRId64 " that were announced", w->path,
            w->done, w->rows);
    if (w->pass < w->measures && w->kind->seen) status = w->kind->seen(w, e);
    if (!status && w->pass + 1 == w->measures) status = w->kind->head(w, e);
    if (!status && w->pass == w->measures && w->kind->tail) status = w->kind->tail(w, e);
    w->pass++;
    w->done = w->file_done = 0;
    return status;
}

enum pnet_status pnet_writing_all(const struct pnet_writing_kind *kind, const struct pnet_cloud *c,
    const char *path, FILE *f, struct pnet_error *e)
{
    struct pnet_writing w = {.kind = kind, .like = c, .path = path, .f = f, .rows = c->rows};
    enum pnet_status status = begin(&w, e);
    while (!status && w.pass <= w.measures) {
        status = put(&w, c, e);
        if (!status) status = end_pass(&w, e);
    }
    end(&w);
    return status;
}

enum pnet_status pnet_cloud_write(
    const char *path, const struct pnet_cloud *c, struct pnet_error *e)
{
    struct pnet_output o;
    const struct pnet_writing_kind *kind = pnet_format_writing(path, e);
    if (!kind) return PNET_USAGE;
    enum pnet_status status = pnet_output_open(path, &o, e);
    if (status != PNET_OK) return status;
    status = pnet_writing_all(kind, c, path, o.file, e);
    if (status == PNET_OK) return pnet_output_commit(&o, e);
    pnet_output_drop(&o);
    return status;
}

enum pnet_status pnet_cloud_writer_open(const char *path, const struct pnet_cloud *like,
    int64_t rows, struct pnet_cloud_writer **to, struct pnet_error *e)
{
    const struct pnet_writing_kind *kind = pnet_format_writing(path, e);
    *to = NULL;
    if (!kind) return PNET_USAGE;
    struct pnet_cloud_writer *w = calloc(1, sizeof *w);
    if (!w) return pnet_error_memory(e);
    enum pnet_status status = pnet_output_open(path, &w->output, e);
    if (status != PNET_OK) {
        free(w);
        return status;
    }
    w->writing = (struct pnet_writing){
        .kind = kind, .like = like, .path = w->output.path, .f = w->output.file, .rows = rows};
    status = begin(&w->writing, e);
    if (status == PNET_OK)
        *to = w;
    else
        pnet_cloud_writer_drop(w);
    return status;
}

enum pnet_status pnet_cloud_writer_put(
    struct pnet_cloud_writer *w, const struct pnet_cloud *piece, struct pnet_error *e)
{
    enum pnet_status status = put(&w->writing, piece, e);
    return status == PNET_OK ? pnet_output_check(&w->output, e) : status;
}

enum pnet_status pnet_cloud_writer_pass(
    struct pnet_cloud_writer *w, bool *again, struct pnet_error *e)
{
    enum pnet_status status = end_pass(&w->writing, e);
    *again = status == PNET_OK && w->writing.pass <= w->writing.measures;
    return status;
}

enum pnet_status pnet_cloud_writer_close(struct pnet_cloud_writer *w, struct pnet_error *e)
{
    enum pnet_status status = PNET_OK;
    if (w->writing.pass <= w->writing.measures)
        status = pnet_error_set(
            e, PNET_USAGE, "%.400s: the rows have not been written yet", w->writing.path);
    if (status == PNET_OK) {
        status = pnet_output_commit(&w->output, e);
        end(&w->writing);
        free(w);
        return status;
    }
    pnet_cloud_writer_drop(w);
    return status;
}

void pnet_cloud_writer_drop(struct pnet_cloud_writer *w)
{
    if (!w) return;
    pnet_output_drop(&w->output);
    end(&w->writing);
    free(w);
}
