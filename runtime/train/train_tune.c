#include "runtime/train/train_tune.h"

#include "runtime/base/cache.h"
#include "runtime/base/file.h"
#include "runtime/run/peak.h"
#include "runtime/run/tune.h"
#include "runtime/run/updater.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char FILE_NAME[] = "kernels.yaml";

enum { PLENTY = 1 << 30 }; /* free bytes that suffice for any larger batch */

static void warn(const struct pnet_train_options *o, const char *text)
{
    if (o->warn) o->warn(o->context, text);
}

static enum pnet_status keep_text(const struct pnet_bound *b, char **text, struct pnet_error *e)
{
    struct pnet_device_info info;
    struct pnet_choices c;
    enum pnet_status st = pnet_device_describe(b->where, &info, e);
    if (!st) st = pnet_choices_of(b, &info, &c, e);
    if (st) return st;
    *text = pnet_choices_print(&c);
    pnet_choices_free(&c);
    return *text ? PNET_OK : pnet_error_memory(e);
}

/* ---- a run that resumes ---- */

/* Choices that cannot be used cause a notice, and the fixed table is used. */
static enum pnet_status take_saved(const struct pnet_train_options *o, const char *name,
    const char *text, size_t size, struct pnet_train_kernels *k, struct pnet_error *e)
{
    struct pnet_choices c;
    char line[1200];
    enum pnet_status st = pnet_choices_parse(name, text, size, &c, e);
    if (!st && c.count) st = pnet_choices_bind(&c, o->plan, &o->target, &k->bound, e);
    if (st == PNET_NO_MEMORY) return st;
    if (st || (c.count && !k->bound)) {
        snprintf(line, sizeof line, "%s: ignored", st ? e->message : name);
        if (!st) strcat(line, ": the algorithms are for another device or precision");
        warn(o, line);
    } else if (c.count) {
        k->text = strndup(text, size);
        if (!k->text) st = pnet_error_memory(e);
    }
    if (!st) pnet_choices_free(&c);
    return st == PNET_NO_MEMORY ? st : PNET_OK;
}

/* Reads kernels.yaml, for a run that ended before its first checkpoint. */
static enum pnet_status take_file(
    const struct pnet_train_options *o, struct pnet_train_kernels *k, struct pnet_error *e)
{
    char path[4096];
    struct pnet_bytes b;
    snprintf(path, sizeof path, "%s/%s", o->folder, FILE_NAME);
    if (access(path, F_OK) != 0) return PNET_OK;
    enum pnet_status st = pnet_bytes_read_own(path, &b, e);
    if (st) return st;
    st = take_saved(o, path, (const char *)b.data, b.size, k, e);
    pnet_bytes_free(&b);
    return st;
}

/* ---- --autotune ---- */

/* Plans the memory of a training with the choices, for a batch with these counts. */
static enum pnet_status peak_of(const struct pnet_train_options *o, const struct pnet_tuning *t,
    const struct pnet_counts *c, size_t *bytes, struct pnet_error *e)
{
    struct pnet_bound *chosen;
    struct pnet_layout layout;
    struct pnet_peak peak;
    enum pnet_status st = pnet_tuning_bind(t, o->plan, &o->target, &chosen, e);
    if (st) return st;
    size_t state = pnet_updater_bytes(chosen, &o->config->optimizer);
    st = pnet_peak_plan(chosen, c, 2, state, o->memory_limit, &layout, &peak, e);
    if (!st) {
        *bytes = peak.total;
        pnet_layout_free(&layout);
    }
    pnet_bound_free(chosen);
    return st;
}

/* The choices must not exceed the budget to save time, neither with this batch nor with larger ones: the training must leave as
   many bytes free as it takes, or PLENTY. */
static enum pnet_status keep_budget(const struct pnet_train_options *o, struct pnet_tuning *t,
    const struct pnet_runner *s, struct pnet_error *e)
{
    const struct pnet_counts *c = &pnet_runner_slot(s, 0)->counts;
    size_t bytes = 0;
    int changed = 0;
    if (!o->memory_limit) return PNET_OK;
    enum pnet_status st = peak_of(o, t, c, &bytes, e);
    if (st) return st;
    size_t room = bytes < PLENTY ? bytes : PLENTY;
    if (bytes <= o->memory_limit && o->memory_limit - bytes >= room) return PNET_OK;
    st = pnet_tuning_save_memory(t, pnet_runner_bound(s), c, &changed, e);
    if (!st && changed)
        warn(o, "autotune: algorithms with a larger workspace than the fixed table's are left out: "
                "a larger batch might have no memory for them");
    return st;
}

/* Measures on the first batch in a runner without optimiser, so that the runner of the training begins unchanged. */
static enum pnet_status measure(const struct pnet_train_options *o, struct pnet_loader *l,
    struct pnet_tune_cache *cache, struct pnet_tuning *t, struct pnet_error *e)
{
    struct pnet_runner_options so = {
        .memory_limit = o->memory_limit, .slots = 1, .seed = o->config->seed};
    struct pnet_tune_options to = {.seconds = o->autotune_seconds, .all = o->autotune_all};
    struct pnet_runner *s = NULL;
    struct pnet_batch *b = NULL;
    struct pnet_bound *trial = NULL;
    struct pnet_target target = o->target;
    target.choosing = true;
    pnet_loader_start(l, 0, 0);
    enum pnet_status st = pnet_loader_next(l, &b, e);
    if (!st && !b)
        st = pnet_error_set(e, PNET_BAD_DATA, "an epoch holds no batch: all clouds are empty");
    if (!st) st = pnet_bound_new(o->plan, &target, &trial, e);
    if (!st) st = pnet_runner_new(trial, &so, &s, e);
    if (!st) st = pnet_runner_init_params(s, e);
    if (!st) st = pnet_runner_prepare(s, 0, b, e);
    pnet_batch_free(b);
    if (!st) st = pnet_tune(s, 0, &to, cache, t, e);
    if (!st) st = keep_budget(o, t, s, e);
    pnet_runner_free(s);
    pnet_bound_free(trial);
    return st;
}

static enum pnet_status tell(
    const struct pnet_train_options *o, const struct pnet_tuning *t, struct pnet_error *e)
{
    char *table = pnet_tuning_print(t);
    if (!table) return pnet_error_memory(e);
    if (o->note) o->note(o->context, table);
    free(table);
    return PNET_OK;
}

static enum pnet_status autotune(const struct pnet_train_options *o, struct pnet_loader *l,
    struct pnet_train_kernels *k, struct pnet_error *e)
{
    struct pnet_device_info info;
    struct pnet_tune_cache cache;
    struct pnet_tuning t = {0};
    struct pnet_error unsaved;
    char folder[4096], text[1024];
    enum pnet_status st = pnet_device_enter(o->target.where, e);
    if (!st) st = pnet_device_describe(o->target.where, &info, e);
    if (st) return st;
    pnet_tune_cache_open(
        &cache, pnet_cache_folder(folder) ? folder : NULL, o->target.where.kind, &info, text);
    if (*text) warn(o, text);
    st = measure(o, l, &cache, &t, e);
    if (!st) st = tell(o, &t, e);
    if (!st) st = pnet_tuning_bind(&t, o->plan, &o->target, &k->bound, e);
    if (!st && pnet_tune_cache_save(&cache, &unsaved)) {
        snprintf(text, sizeof text, "autotune: not kept for other runs: %.900s", unsaved.message);
        warn(o, text);
    }
    pnet_tuning_free(&t);
    pnet_tune_cache_free(&cache);
    return st ? st : keep_text(k->bound, &k->text, e);
}

/* ---- both ---- */

static enum pnet_status choose(const struct pnet_train_options *o, const char *saved,
    struct pnet_loader *l, struct pnet_train_kernels *k, struct pnet_error *e)
{
    if (o->algo_given) {
        enum pnet_status st = pnet_bound_new(o->plan, &o->target, &k->bound, e);
        return st || o->target.algo == PNET_ALGO_DEFAULT ? st : keep_text(k->bound, &k->text, e);
    }
    if (saved) {
        if (o->autotune) warn(o, "--autotune: a resumed run keeps its algorithms");
        return take_saved(o, "the kernels of the checkpoint", saved, strlen(saved), k, e);
    }
    if (o->resume) {
        enum pnet_status st = take_file(o, k, e);
        if (st || k->text) return st;
    }
    return o->autotune ? autotune(o, l, k, e) : PNET_OK;
}

enum pnet_status pnet_train_kernels_choose(const struct pnet_train_options *o, const char *saved,
    struct pnet_loader *l, struct pnet_train_kernels *k, struct pnet_error *e)
{
    *k = (struct pnet_train_kernels){0};
    enum pnet_status st = choose(o, saved, l, k, e);
    if (!st && !k->bound) st = pnet_bound_new(o->plan, &o->target, &k->bound, e);
    if (!st && !k->text) {
        k->text = strdup("");
        if (!k->text) st = pnet_error_memory(e);
    }
    if (st) pnet_train_kernels_free(k);
    return st;
}

enum pnet_status pnet_train_kernels_write(
    const struct pnet_train_kernels *k, const char *folder, struct pnet_error *e)
{
    char path[4096];
    struct pnet_output out;
    snprintf(path, sizeof path, "%s/%s", folder, FILE_NAME);
    if (!*k->text) { /* a file of an earlier run would be taken for that of this run */
        unlink(path);
        return PNET_OK;
    }
    enum pnet_status st = pnet_output_open(path, &out, e);
    if (st) return st;
    fputs(k->text, out.file);
    return pnet_output_commit(&out, e);
}

void pnet_train_kernels_free(struct pnet_train_kernels *k)
{
    pnet_bound_free(k->bound);
    free(k->text);
    *k = (struct pnet_train_kernels){0};
}
