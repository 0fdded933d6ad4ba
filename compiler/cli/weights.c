#include "compiler/cli/weights.h"

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

/* A run folder stands for one of its checkpoints. */
static void checkpoint_folder(const char *path, char folder[4096])
{
    snprintf(folder, 4096, "%s", path);
    if (has_file(path, "state.json")) return;
    if (has_file(path, "best"))
        snprintf(folder, 4096, "%s/best", path);
    else if (has_file(path, "last"))
        snprintf(folder, 4096, "%s/last", path);
}

enum pnet_status weights_open(const char *path, struct weights *w, struct pnet_error *e)
{
    char folder[4096];
    *w = (struct weights){.path = path};
    if (!is_folder(path)) return pnet_safetensors_read(path, &w->file, e);
    checkpoint_folder(path, folder);
    enum pnet_status st = pnet_checkpoint_read(folder, &w->checkpoint, e);
    if (st) return st;
    w->file = w->checkpoint->weights;
    const char *map = w->checkpoint->state.input_map;
    if (*map)
        st = pnet_input_map_read("the input map of the checkpoint", map, strlen(map), &w->map, e);
    if (st) weights_close(w);
    return st;
}

void weights_close(struct weights *w)
{
    if (w->checkpoint)
        pnet_checkpoint_free(w->checkpoint);
    else if (w->file)
        pnet_safetensors_free(w->file);
    pnet_input_map_free(&w->map);
    pnet_chosen_free(&w->chosen);
    free(w->params);
    *w = (struct weights){0};
}

enum pnet_status weights_sets(
    struct weights *w, const struct text_list *user, struct text_list *sets, struct pnet_error *e)
{
    *sets = (struct text_list){0};
    if (w->checkpoint && *w->checkpoint->state.params) {
        char *rest;
        w->params = strdup(w->checkpoint->state.params);
        if (!w->params) return pnet_error_memory(e);
        for (char *line = strtok_r(w->params, "\n", &rest); line && sets->count < 256;
             line = strtok_r(NULL, "\n", &rest))
            sets->items[sets->count++] = line;
    }
    for (int i = 0; i < user->count && sets->count < 256; i++)
        sets->items[sets->count++] = user->items[i];
    return PNET_OK;
}

enum pnet_status weights_plan(struct weights *w, const struct model_options *m,
    const struct pnet_plan **plan, struct pnet_error *e)
{
    struct pnet_choices c;
    bool fit = false;
    if (!w->checkpoint || m->algo) return PNET_OK;
    const char *text = w->checkpoint->state.kernels;
    enum pnet_status st =
        pnet_choices_parse("the kernels of the checkpoint", text, strlen(text), &c, e);
    if (st == PNET_BAD_DATA) {
        fprintf(stderr, "pnetc: %s: ignored\n", e->message);
        return PNET_OK;
    }
    if (!st && c.count) st = pnet_choices_apply(&c, *plan, &w->chosen, &fit, e);
    if (!st && fit) *plan = &w->chosen.plan;
    if (!st) pnet_choices_free(&c);
    return st;
}

struct source {
    const struct weights *weights;
    const struct pnet_plan *plan;
    float *buffer;
    int64_t size;
    struct pnet_error error;
};

/* Tensors are found by name and must have the parameter's shape. */
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
            s->buffer, &s->error))
        return NULL;
    return s->buffer;
}

enum pnet_status weights_load(
    const struct weights *w, struct pnet_session *session, struct pnet_error *e)
{
    struct source s = {.weights = w, .plan = pnet_session_plan(session)};
    enum pnet_status st = pnet_session_load_params(session, fetch, &s, e);
    if (st && s.error.status) { /* says more than that it failed */
        *e = s.error;
        st = e->status;
    }
    free(s.buffer);
    return st;
}
