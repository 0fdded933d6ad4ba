#include "runtime/train/train_weights.h"
#include "runtime/base/memory_stream.h"
#include "runtime/base/printable.h"
#include "runtime/train/renamed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- loading ---- */

static bool same_shape(const struct pnet_safetensor *t, const struct pnet_param_info *info)
{
    return t->dims == info->dims &&
           memcmp(t->shape, info->shape, (size_t)t->dims * sizeof *t->shape) == 0;
}

struct loading {
    struct pnet_renamed tensors;
    bool *used; /* [tensors.file->count] */
    float *params;
    int wanted, loaded;
    FILE *misses; /* lines about tensors that do not fit */
};

/* Loads the weights of a layer if they exist in its shape. */
static enum pnet_status load_one(
    struct loading *l, const char *file, const struct pnet_plan_param *q, struct pnet_error *e)
{
    int64_t i = pnet_renamed_find(&l->tensors, q->name);
    l->wanted++;
    if (i < 0) {
        fprintf(l->misses, "  %s: missing\n", q->name);
        return PNET_OK;
    }
    const struct pnet_safetensors *f = l->tensors.file;
    const struct pnet_safetensor *t = &f->tensors[i];
    l->used[i] = true;
    if (!same_shape(t, &q->info)) {
        char there[PNET_SHAPE_TEXT], here[PNET_SHAPE_TEXT];
        fprintf(l->misses, "  %s: %s there, %s in the model\n", q->name,
            pnet_shape_text(t->dims, t->shape, there),
            pnet_shape_text(q->info.dims, q->info.shape, here));
        return PNET_OK;
    }
    l->loaded++;
    float *x = l->params + q->offset;
    enum pnet_status st =
        pnet_safetensors_load(f, file, t->name, q->info.dims, q->info.shape, x, e);
    return st ? st : pnet_floats_check_finite(file, t->name, x, pnet_safetensor_count(t), e);
}

static enum pnet_status load_all(struct loading *l, const struct pnet_train_options *o,
    struct pnet_runner *s, struct pnet_error *e)
{
    const struct pnet_plan *p = pnet_runner_plan(s);
    const char *file = o->config->weights;
    enum pnet_status st =
        pnet_runner_read(s, PNET_BLOCK_PARAMS, 0, p->param_elements, l->params, e);
    for (int i = 0; i < p->param_count && !st; i++)
        if (p->params[i].offset >= 0) st = load_one(l, file, &p->params[i], e);
    char text[512];
    for (size_t i = 0; i < l->tensors.file->count; i++)
        if (!l->used[i])
            fprintf(l->misses, "  %s: %s\n", pnet_printable(l->tensors.names[i], text, sizeof text),
                pnet_plan_param_find(p, l->tensors.names[i]) < 0
                    ? "not in the model"
                    : "no loss or metric of the model depends on it");
    if (!st && !l->loaded)
        st = pnet_error_set(e, PNET_BAD_MODEL,
            "%s: none of its %zu tensors has the name and shape of a weight of the model; "
            "weights_map may help",
            file, l->tensors.file->count);
    return st ? st : pnet_runner_write(s, PNET_BLOCK_PARAMS, 0, p->param_elements, l->params, e);
}

static enum pnet_status note_loaded(const struct pnet_train_options *o, const struct loading *l,
    const char *misses, struct pnet_error *e)
{
    char *text;
    if (!o->note) return PNET_OK;
    if (asprintf(&text, "%s: loaded %d of the model's %d tensors%s%s", o->config->weights,
            l->loaded, l->wanted, *misses ? "; not:\n" : "", misses) < 0)
        return pnet_error_memory(e);
    size_t n = strlen(text);
    if (text[n - 1] == '\n') text[n - 1] = '\0';
    o->note(o->context, text);
    free(text);
    return PNET_OK;
}

enum pnet_status pnet_train_load(
    const struct pnet_train_options *o, struct pnet_runner *s, struct pnet_error *e)
{
    struct loading l = {.wanted = 0};
    struct pnet_memory_stream said;
    const struct pnet_safetensors *file;
    char *misses = NULL;
    enum pnet_status st = o->open_weights(o->context, &file, e);
    if (!st) st = pnet_renamed_new(file, &o->config->weights_map, &l.tensors, e);
    if (st) return st;
    l.used = calloc(file->count + 1, sizeof *l.used);
    l.params = malloc((size_t)pnet_runner_plan(s)->param_elements * sizeof(float) + 1);
    l.misses = pnet_memory_stream_open(&said) ? said.file : NULL;
    st = l.used && l.params && l.misses ? pnet_renamed_index(&l.tensors, "weights_map", e)
                                        : pnet_error_memory(e);
    if (!st) st = load_all(&l, o, s, e);
    if (l.misses) misses = pnet_memory_stream_close(&said, NULL);
    if (!st && !misses) st = pnet_error_memory(e);
    if (!st) st = note_loaded(o, &l, misses, e);
    pnet_renamed_free(&l.tensors);
    free(l.used);
    free(l.params);
    free(misses);
    return st;
}

/* ---- how fast ---- */

/* Returns the first rule that matches the name; -1: none. */
static int find_rule(const struct pnet_name_rules *r, const char *name)
{
    for (int i = 0; i < r->count; i++)
        if (pnet_name_matches(r->items[i].pattern, name)) return i;
    return -1;
}

static enum pnet_status check_rules(const char *key, const struct pnet_name_rules *r,
    const struct pnet_plan *p, struct pnet_error *e)
{
    for (int i = 0; i < r->count; i++) {
        int n = 0;
        while (n < p->param_count && !pnet_name_matches(r->items[i].pattern, p->params[n].name))
            n++;
        if (n == p->param_count)
            return pnet_error_set(e, PNET_USAGE,
                "%s: the model has no weight named '%.200s'; its first weight is %s", key,
                r->items[i].pattern, p->param_count ? p->params[0].name : "none");
    }
    return PNET_OK;
}

enum pnet_status pnet_train_rates(
    const struct pnet_config *c, const struct pnet_plan *p, float **rates, struct pnet_error *e)
{
    *rates = NULL;
    if (!c->freeze.count && !c->rates.count) return PNET_OK;
    enum pnet_status st = check_rules("freeze", &c->freeze, p, e);
    if (!st) st = check_rules("rates", &c->rates, p, e);
    if (st) return st;
    float *factor = calloc((size_t)p->param_count + 1, sizeof *factor);
    if (!factor) return pnet_error_memory(e);
    for (int i = 0; i < p->param_count; i++) {
        int rule = find_rule(&c->rates, p->params[i].name);
        factor[i] = rule < 0 ? 1 : (float)c->rates.items[rule].rate;
        if (find_rule(&c->freeze, p->params[i].name) >= 0) factor[i] = 0;
    }
    *rates = factor;
    return PNET_OK;
}

/* ---- frozen statistics ---- */

static bool is_held(const struct pnet_plan *p, const float *rates, int i)
{
    return p->params[i].offset >= 0 && !p->params[i].info.trained && rates[i] == 0;
}

enum pnet_status pnet_held_take(
    struct pnet_held *h, struct pnet_runner *s, const float *rates, struct pnet_error *e)
{
    const struct pnet_plan *p = pnet_runner_plan(s);
    bool any = false;
    *h = (struct pnet_held){.rates = rates};
    for (int i = 0; rates && i < p->param_count; i++) any |= is_held(p, rates, i);
    if (!any) return PNET_OK;
    h->params = malloc((size_t)p->param_elements * sizeof *h->params + 1);
    if (!h->params) return pnet_error_memory(e);
    return pnet_runner_read(s, PNET_BLOCK_PARAMS, 0, p->param_elements, h->params, e);
}

enum pnet_status pnet_held_put(
    const struct pnet_held *h, struct pnet_runner *s, struct pnet_error *e)
{
    const struct pnet_plan *p = pnet_runner_plan(s);
    enum pnet_status st = PNET_OK;
    for (int i = 0; h->params && i < p->param_count && !st; i++)
        if (is_held(p, h->rates, i))
            st = pnet_runner_write(s, PNET_BLOCK_PARAMS, p->params[i].offset, p->params[i].count,
                h->params + p->params[i].offset, e);
    return st;
}

void pnet_held_free(struct pnet_held *h)
{
    free(h->params);
    h->params = NULL;
}
