#include "runtime/train/weights.h"
#include "runtime/base/guard.h"
#include "runtime/train/run_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool has_file(const char *folder, const char *name)
{
    char path[4096];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return stat(path, &st) == 0;
}

/* A run folder stands for its best checkpoint, or its last one. */
static void checkpoint_folder(const char *path, char folder[4096])
{
    snprintf(folder, 4096, "%s", path);
    if (has_file(path, "state.json")) return;
    if (has_file(path, "best"))
        snprintf(folder, 4096, "%s/best", path);
    else if (has_file(path, "last"))
        snprintf(folder, 4096, "%s/last", path);
}

enum pnet_status pnet_weights_guard(const char *path, struct pnet_error *e)
{
    char folder[4096];
    if (!is_folder(path)) return pnet_guard_input(path, e);
    if (has_file(path, "state.json")) return pnet_guard_input_folder(path, e);
    enum pnet_status st = pnet_run_folder_guard(path, e);
    static const char *const checkpoints[] = {"best", "last"};
    for (int i = 0; i < 2 && !st; i++) {
        snprintf(folder, sizeof folder, "%s/%s", path, checkpoints[i]);
        st = pnet_guard_input_folder(folder, e);
    }
    return st;
}

enum pnet_status pnet_weights_open(const char *path, struct pnet_weights *w, struct pnet_error *e)
{
    char folder[4096];
    *w = (struct pnet_weights){.path = path};
    enum pnet_status st = pnet_weights_guard(path, e);
    if (st) return st;
    if (is_folder(path)) {
        checkpoint_folder(path, folder);
        if ((st = pnet_checkpoint_read(folder, &w->checkpoint, e))) return st;
        w->file = w->checkpoint->weights;
    } else if ((st = pnet_safetensors_read(path, &w->file, e))) {
        return st;
    }
    st = pnet_trained_read(w->file, path, &w->trained, e);
    /* checkpoints recorded them before weights files did */
    if (w->checkpoint && !w->trained.known) w->trained.params = w->checkpoint->state.params;
    if (st) pnet_weights_close(w);
    return st;
}

void pnet_weights_close(struct pnet_weights *w)
{
    if (w->checkpoint)
        pnet_checkpoint_free(w->checkpoint);
    else if (w->file)
        pnet_safetensors_free(w->file);
    *w = (struct pnet_weights){0};
}

struct source {
    const struct pnet_weights *weights;
    const struct pnet_plan *plan;
    float *buffer;
    int64_t size;
    struct pnet_error error;
};

/* Tensors are found by name, must have the parameter's shape, and hold finite numbers. */
static const float *fetch(void *context, const char *name, int64_t count)
{
    struct source *s = context;
    const struct pnet_param_info *info = &s->plan->params[pnet_plan_param_find(s->plan, name)].info;
    if (count > s->size) {
        float *bigger = realloc(s->buffer, (size_t)count * sizeof *bigger);
        if (!bigger) {
            pnet_error_memory(&s->error);
            return NULL;
        }
        s->buffer = bigger;
        s->size = count;
    }
    if (pnet_safetensors_load(s->weights->file, s->weights->path, name, info->dims, info->shape,
            s->buffer, &s->error) ||
        pnet_floats_check_finite(s->weights->path, name, s->buffer, count, &s->error))
        return NULL;
    return s->buffer;
}

enum pnet_status pnet_weights_load(
    const struct pnet_weights *w, struct pnet_runner *r, struct pnet_error *e)
{
    struct source s = {.weights = w, .plan = pnet_runner_plan(r)};
    enum pnet_status st = pnet_runner_load_params(r, fetch, &s, e);
    if (st && s.error.status) { /* its message says more than that loading failed */
        *e = s.error;
        st = e->status;
    }
    free(s.buffer);
    return st;
}
