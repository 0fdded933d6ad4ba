#include "runtime/train/train_log.h"

#include "runtime/base/file.h"
#include "runtime/base/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Keeps the lines of `text` up to and including those of `step`, and evaluations up to `validated`; a line cut short by a kill
   ends them. PNET_NO_MEMORY: lines are missing. */
static enum pnet_status keep_lines(const char *text, size_t size, int64_t step, int64_t validated,
    double *seconds, FILE *out, struct pnet_error *e)
{
    const char *end = text + size;
    for (const char *line = text; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        if (!newline) break;
        json_t *root = NULL;
        int64_t at = 0;
        enum pnet_status st =
            pnet_json_parse("metrics.jsonl", line, (size_t)(newline - line), &root, e);
        if (st == PNET_NO_MEMORY) return st;
        bool keep = !st && pnet_json_get_int("", root, "step", &at, e) == PNET_OK &&
                    at <= (json_object_get(root, "val.loss") ? validated : step);
        json_t *time = json_object_get(root, "time_s");
        if (keep && json_is_number(time)) *seconds = json_number_value(time);
        json_decref(root);
        if (keep) fwrite(line, 1, (size_t)(newline + 1 - line), out);
        line = newline + 1;
    }
    return PNET_OK;
}

enum pnet_status pnet_train_log_open(struct pnet_train_log *l, const char *folder, int64_t step,
    int64_t validated, double *seconds, struct pnet_error *e)
{
    struct pnet_bytes old = {0};
    struct pnet_output out;
    struct stat there;
    *seconds = 0;
    snprintf(l->path, sizeof l->path, "%s/metrics.jsonl", folder);
    bool any = step > 0 && (lstat(l->path, &there) == 0 || errno != ENOENT);
    enum pnet_status st = any ? pnet_bytes_read_own(l->path, &old, e) : PNET_OK;
    if (st) return st;
    st = pnet_output_open(l->path, &out, e);
    if (!st) {
        if (any)
            st =
                keep_lines((const char *)old.data, old.size, step, validated, seconds, out.file, e);
        if (st)
            pnet_output_drop(&out);
        else
            st = pnet_output_commit(&out, e);
    }
    if (any) pnet_bytes_free(&old);
    if (st) return st;
    l->file = fopen(l->path, "a");
    return l->file ? PNET_OK : pnet_error_errno(e, PNET_FAILED, errno, "%s", l->path);
}

void pnet_train_log_close(struct pnet_train_log *l)
{
    if (l->file) fclose(l->file);
    l->file = NULL;
}

enum pnet_status pnet_step_log_init(
    struct pnet_step_log *s, const struct pnet_plan *p, struct pnet_error *e)
{
    size_t count = (size_t)p->objective_count + 1;
    *s = (struct pnet_step_log){
        .losses = calloc(count, sizeof *s->losses), .counted = calloc(count, sizeof *s->counted)};
    if (s->losses && s->counted) return PNET_OK;
    pnet_step_log_free(s);
    return pnet_error_memory(e);
}

void pnet_step_log_free(struct pnet_step_log *s)
{
    free(s->losses);
    free(s->counted);
    s->losses = NULL;
    s->counted = NULL;
}

static enum pnet_status put_line(
    struct pnet_train_log *l, struct pnet_json *j, struct pnet_error *e)
{
    enum pnet_status st = PNET_OK;
    pnet_json_end(j, '}');
    pnet_json_raw(j, "\n", 1);
    if (j->failed)
        st = pnet_error_memory(e);
    else if (fwrite(j->text, 1, j->size, l->file) != j->size || fflush(l->file))
        st = pnet_error_errno(e, PNET_FAILED, errno, "%s", l->path);
    pnet_json_free(j);
    return st;
}

enum pnet_status pnet_train_log_step(struct pnet_train_log *l, const struct pnet_plan *p,
    const struct pnet_step_log *s, struct pnet_error *e)
{
    struct pnet_json j = {0};
    char key[256];
    pnet_json_begin(&j, NULL, '{');
    pnet_json_int(&j, "epoch", s->epoch);
    pnet_json_int(&j, "step", s->step);
    pnet_json_double(&j, "lr", s->lr);
    pnet_json_double(&j, "loss", s->loss);
    for (int i = 0; i < p->objective_count; i++) {
        if (p->objectives[i].metric) continue;
        snprintf(key, sizeof key, "loss.%s", p->objectives[i].name);
        pnet_json_double(&j, key, s->losses[i]);
    }
    pnet_json_double(&j, "gradient_norm", s->gradient_norm);
    pnet_json_double(&j, "time_s", s->seconds);
    pnet_json_double(&j, "points_per_s", s->points_per_s);
    return put_line(l, &j, e);
}

enum pnet_status pnet_train_log_evaluation(struct pnet_train_log *l, int64_t step, int64_t epoch,
    const struct pnet_evaluation *v, struct pnet_error *e)
{
    struct pnet_json j = {0};
    char key[256];
    pnet_json_begin(&j, NULL, '{');
    pnet_json_int(&j, "epoch", epoch);
    pnet_json_int(&j, "step", step);
    pnet_json_double(&j, "val.loss", v->loss);
    for (int i = 0; i < v->count; i++) {
        snprintf(key, sizeof key, "val.%s", v->lines[i].name);
        pnet_json_double(&j, key, v->lines[i].value);
        if (!v->lines[i].per_class) continue;
        snprintf(key, sizeof key, "val.%s.per_class", v->lines[i].name);
        pnet_json_begin(&j, key, '[');
        for (int c = 0; c < v->lines[i].classes; c++)
            pnet_json_double(&j, NULL, v->lines[i].per_class[c]);
        pnet_json_end(&j, ']');
    }
    pnet_json_double(&j, "val.time_s", v->seconds);
    return put_line(l, &j, e);
}
