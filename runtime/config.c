#include "runtime/config.h"
#include "runtime/glob.h"
#include "runtime/yaml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))
#define MOST (INT64_C(1) << 40)

/* A key with the function that reads it. */
struct key {
    struct pnet_config_key doc;
    void (*read)(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c);
};

static void read_data(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    const char *text = pnet_yaml_string(y, n, NULL);
    if (!text) return;
    char *folder = pnet_path_folder(c->path);
    c->data = folder ? pnet_path_join(folder, text) : NULL;
    free(folder);
    if (!c->data) pnet_yaml_fail_memory(y);
}

static void read_inputs(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    pnet_input_map_parse(y, n, &c->inputs);
}

static void read_epochs(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    if (c->steps) pnet_yaml_fail(y, n, "epochs and steps exclude each other");
    c->epochs = pnet_yaml_int(y, n, 1, UINT32_MAX, 1);
}

static void read_steps(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    if (c->epochs) pnet_yaml_fail(y, n, "epochs and steps exclude each other");
    c->steps = pnet_yaml_int(y, n, 1, MOST, 1);
}

static void read_batch_size(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    c->batch_size = (int32_t)pnet_yaml_int(y, n, 1, 65536, 1);
}

static void read_optimizer(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    static const char *const names[] = {"sgd", "adam", "adamw"};
    static const char *const sgd[] = {"name", "momentum", "nesterov"};
    static const char *const adam[] = {"name", "beta1", "beta2", "eps"};
    struct pnet_optimizer_config *o = &c->optimizer;
    const struct pnet_yaml_node *name = n->kind == PNET_YAML_MAP ? pnet_yaml_get(n, "name") : n;
    if (!name) {
        pnet_yaml_fail(y, n, "optimizer: needs a `name`");
        return;
    }
    o->kind = (enum pnet_optim_kind)pnet_yaml_choice(y, name, names, COUNT(names), PNET_ADAMW);
    if (n->kind != PNET_YAML_MAP) return;
    bool is_sgd = o->kind == PNET_SGD;
    if (!pnet_yaml_map(
            y, n, names[o->kind], is_sgd ? sgd : adam, is_sgd ? COUNT(sgd) : COUNT(adam)))
        return;
    o->momentum = pnet_yaml_real(y, pnet_yaml_get(n, "momentum"), 0, 0.999999, o->momentum);
    o->nesterov = pnet_yaml_bool(y, pnet_yaml_get(n, "nesterov"), o->nesterov);
    o->beta1 = pnet_yaml_real(y, pnet_yaml_get(n, "beta1"), 0, 0.999999, o->beta1);
    o->beta2 = pnet_yaml_real(y, pnet_yaml_get(n, "beta2"), 0, 0.9999999, o->beta2);
    o->eps = pnet_yaml_real(y, pnet_yaml_get(n, "eps"), 1e-30, 1, o->eps);
}

static void read_lr(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    c->lr = pnet_yaml_real(y, n, 0, 1e6, c->lr);
}

static void read_milestones(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_schedule_config *s)
{
    if (!pnet_yaml_list(y, n, 1, PNET_MAX_MILESTONES)) return;
    s->every = 0;
    for (const struct pnet_yaml_node *item = n->first; item; item = item->next) {
        int64_t last = s->milestone_count ? s->milestones[s->milestone_count - 1] : 0;
        int64_t epoch = pnet_yaml_int(y, item, 1, UINT32_MAX, 1);
        if (epoch <= last) pnet_yaml_fail(y, item, "milestones: epochs must rise");
        s->milestones[s->milestone_count++] = epoch;
    }
}

/* `10%` is a share of the run, a plain integer is steps. */
static void read_warmup(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_schedule_config *s)
{
    if (!n) return;
    const char *text = pnet_yaml_string(y, n, "");
    s->warmup = 0;
    if (text[strcspn(text, "%./")])
        s->warmup = pnet_yaml_real(y, n, 0, 1, 0);
    else
        s->warmup_steps = pnet_yaml_int(y, n, 0, MOST, 0);
}

static void read_schedule(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    static const char *const names[] = {"constant", "step", "cosine", "onecycle", "exponential"};
    static const char *const keys[][6] = {{"name", "warmup"},
        {"name", "warmup", "every", "gamma", "milestones"}, {"name", "warmup", "final"},
        {"name", "warmup", "final", "div"}, {"name", "warmup", "gamma"}};
    static const int counts[] = {2, 5, 3, 4, 3};
    struct pnet_schedule_config *s = &c->schedule;
    const struct pnet_yaml_node *name = n->kind == PNET_YAML_MAP ? pnet_yaml_get(n, "name") : n;
    if (!name) {
        pnet_yaml_fail(y, n, "schedule: needs a `name`");
        return;
    }
    int kind = pnet_yaml_choice(y, name, names, COUNT(names), 0);
    *s = (struct pnet_schedule_config){.kind = (enum pnet_schedule_kind)kind, .div = 25};
    s->warmup = kind == PNET_SCHEDULE_ONECYCLE ? 0.3 : 0;
    s->final = kind == PNET_SCHEDULE_ONECYCLE ? 4e-6 : 0;
    s->gamma = kind == PNET_SCHEDULE_STEP ? 0.1 : 0.95;
    const struct pnet_yaml_node *every = NULL, *milestones = NULL;
    if (n->kind == PNET_YAML_MAP) {
        if (!pnet_yaml_map(y, n, names[kind], keys[kind], counts[kind])) return;
        read_warmup(y, pnet_yaml_get(n, "warmup"), s);
        s->final = pnet_yaml_real(y, pnet_yaml_get(n, "final"), 0, 1, s->final);
        s->div = pnet_yaml_real(y, pnet_yaml_get(n, "div"), 1, 1e12, s->div);
        s->gamma = pnet_yaml_real(y, pnet_yaml_get(n, "gamma"), 0, 1, s->gamma);
        every = pnet_yaml_get(n, "every");
        milestones = pnet_yaml_get(n, "milestones");
    }
    if (kind != PNET_SCHEDULE_STEP) return;
    if (!every == !milestones)
        pnet_yaml_fail(y, n, "step: needs one of `every` and `milestones`, in epochs");
    s->every = pnet_yaml_int(y, every, 1, UINT32_MAX, 0);
    if (milestones) read_milestones(y, milestones, s);
}

static void read_weight_decay(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    c->weight_decay = pnet_yaml_real(y, n, 0, 1e3, 0);
}

static void read_clip_grad(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    c->clip_grad = pnet_yaml_real(y, n, 0, 1e30, 0);
}

static void read_accumulate(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    c->accumulate = (int32_t)pnet_yaml_int(y, n, 1, 1 << 20, 1);
}

static void read_class_weights(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    static const char *const words[] = {"no", "balanced"};
    if (n->kind == PNET_YAML_SCALAR) {
        c->weighting = (enum pnet_weighting)pnet_yaml_choice(y, n, words, COUNT(words), 0);
        return;
    }
    if (!pnet_yaml_list(y, n, 1, 65536)) return;
    c->weighting = PNET_WEIGHTS_LIST;
    c->class_weights = calloc((size_t)n->count, sizeof *c->class_weights);
    if (!c->class_weights) {
        pnet_yaml_fail_memory(y);
        return;
    }
    for (const struct pnet_yaml_node *item = n->first; item; item = item->next)
        c->class_weights[c->class_weight_count++] = pnet_yaml_real(y, item, 0, 1e6, 1);
}

static void read_augment(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    pnet_augment_parse(y, n, &c->augment);
}

static void read_max_points(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    c->max_points = pnet_yaml_int(y, n, 1, MOST, 0);
}

static void read_workers(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    c->workers = (int)pnet_yaml_int(y, n, 0, 256, 1);
}

static void read_cache(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    c->cache_bytes = pnet_yaml_bytes(y, n, c->cache_bytes);
}

static void read_drop_last(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    c->drop_last = pnet_yaml_bool(y, n, false);
}

static void read_skip_empty(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    c->skip_empty = pnet_yaml_bool(y, n, false);
}

static void read_seed(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    c->seed = pnet_yaml_seed(y, n, c->seed);
}

static void read_precision(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    static const char *const words[] = {"fp32", "tf32", "bf16", "fp16"};
    c->precision =
        (enum pnet_precision)pnet_yaml_choice(y, n, words, COUNT(words), PNET_PRECISION_FP32);
}

/* A number of epochs, {steps: 100} or {epochs: 2}; 0: never. */
static struct pnet_interval read_interval(struct pnet_yaml *y, const struct pnet_yaml_node *n)
{
    static const char *const keys[] = {"epochs", "steps"};
    struct pnet_interval every = {.epochs = 0};
    if (n->kind != PNET_YAML_MAP) {
        every.epochs = pnet_yaml_int(y, n, 0, UINT32_MAX, 1);
    } else if (pnet_yaml_map(y, n, n->key, keys, COUNT(keys))) {
        if (n->count != 1) pnet_yaml_fail(y, n, "%s: needs one of `epochs` and `steps`", n->key);
        every.epochs = pnet_yaml_int(y, pnet_yaml_get(n, "epochs"), 0, UINT32_MAX, 0);
        every.steps = pnet_yaml_int(y, pnet_yaml_get(n, "steps"), 0, MOST, 0);
    }
    return every;
}

static void read_save_every(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    c->save_every = read_interval(y, n);
}

static void read_eval_every(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    c->eval_every = read_interval(y, n);
}

static void read_set(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    if (n->kind != PNET_YAML_MAP) {
        pnet_yaml_fail(y, n, "set: expected `param: value` pairs");
        return;
    }
    c->sets = calloc((size_t)n->count + 1, sizeof *c->sets);
    for (const struct pnet_yaml_node *p = n->first; p && c->sets && pnet_yaml_ok(y); p = p->next) {
        const char *value = pnet_yaml_string(y, p, "");
        if (asprintf(&c->sets[c->set_count], "%s=%s", p->key, value) < 0) {
            c->sets[c->set_count] = NULL;
            pnet_yaml_fail_memory(y);
            return;
        }
        c->set_count++;
    }
    if (!c->sets) pnet_yaml_fail_memory(y);
}

static const struct key keys[] = {
    {{"data", "", "the data set: a folder with dataset.yaml, or an index; relative to this file"},
        read_data},
    {{"inputs", "{}", "which fields of the clouds feed the model's inputs, with scale and shift"},
        read_inputs},
    {{"epochs", "1", "passes over the training clouds"}, read_epochs},
    {{"steps", "", "optimiser steps, instead of epochs"}, read_steps},
    {{"batch_size", "1", "clouds a batch"}, read_batch_size},
    {{"optimizer", "adamw", "sgd {momentum, nesterov}, adam or adamw {beta1, beta2, eps}"},
        read_optimizer},
    {{"lr", "0.001", "learning rate, the peak of the schedule"}, read_lr},
    {{"schedule", "constant", "constant, step, cosine, onecycle, exponential, each with {warmup}"},
        read_schedule},
    {{"weight_decay", "0", "of the weights: decoupled for adamw, else added to the gradient"},
        read_weight_decay},
    {{"clip_grad", "0", "largest 2-norm of the gradient; 0: no limit"}, read_clip_grad},
    {{"accumulate", "1", "batches whose gradients make one step"}, read_accumulate},
    {{"class_weights", "no", "balanced (by 1 / sqrt(share)), or a list of numbers"},
        read_class_weights},
    {{"augment", "{}", "crop, drop_points, elastic, flip, rotate, scale, jitter, colour"},
        read_augment},
    {{"max_points", "", "of a training cloud; a random subset beyond"}, read_max_points},
    {{"workers", "1", "threads that load and augment; 0: the training thread does"}, read_workers},
    {{"cache", "2GiB", "memory for decoded clouds"}, read_cache},
    {{"drop_last", "no", "leave out the last batch of an epoch where it is not full"},
        read_drop_last},
    {{"skip_empty", "no", "leave out clouds without points, which are an error else"},
        read_skip_empty},
    {{"seed", "1", "of everything random"}, read_seed},
    {{"precision", "fp32", "fp32, tf32, bf16 or fp16"}, read_precision},
    {{"save_every", "1", "epochs between checkpoints, or {steps: N}; 0: at the end alone"},
        read_save_every},
    {{"eval_every", "1", "epochs between evaluations, or {steps: N}; 0: never"}, read_eval_every},
    {{"set", "{}", "params of the model, as --set"}, read_set},
};

const struct pnet_config_key *pnet_config_key(int i)
{
    return i >= 0 && i < COUNT(keys) ? &keys[i].doc : NULL;
}

static struct pnet_config *standard_config(const char *path)
{
    struct pnet_config *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    *c = (struct pnet_config){.batch_size = 1,
        .optimizer =
            {.kind = PNET_ADAMW, .momentum = 0.9, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
        .lr = 1e-3,
        .schedule = {.kind = PNET_SCHEDULE_CONSTANT},
        .accumulate = 1,
        .workers = 1,
        .cache_bytes = UINT64_C(2) << 30,
        .seed = 1,
        .save_every = {.epochs = 1},
        .eval_every = {.epochs = 1}};
    c->path = strdup(path);
    if (c->path) return c;
    free(c);
    return NULL;
}

void pnet_config_free(struct pnet_config *c)
{
    if (!c) return;
    pnet_input_map_free(&c->inputs);
    for (int i = 0; i < c->set_count; i++) free(c->sets[i]);
    free(c->sets);
    free(c->class_weights);
    free(c->data);
    free(c->path);
    free(c);
}

static void read_root(struct pnet_yaml *y, const struct pnet_yaml_node *root, struct pnet_config *c)
{
    const char *names[COUNT(keys)];
    for (int i = 0; i < COUNT(keys); i++) names[i] = keys[i].doc.name;
    if (!pnet_yaml_map(y, root, "run config", names, COUNT(names))) return;
    for (const struct pnet_yaml_node *n = root->first; n && pnet_yaml_ok(y); n = n->next)
        for (int i = 0; i < COUNT(keys); i++)
            if (strcmp(n->key, names[i]) == 0) keys[i].read(y, n, c);
}

static enum pnet_status finish(
    struct pnet_yaml *y, const char *path, struct pnet_config **c, struct pnet_error *e)
{
    struct pnet_config *config = standard_config(path);
    enum pnet_status status = config ? PNET_OK : pnet_error_memory(e);
    if (config) {
        read_root(y, pnet_yaml_root(y), config);
        if (!config->data) pnet_yaml_fail(y, pnet_yaml_root(y), "run config: `data` is missing");
        if (!config->steps && !config->epochs) config->epochs = 1;
        status = pnet_yaml_end(y, e);
    }
    if (status)
        pnet_config_free(config);
    else
        *c = config;
    pnet_yaml_free(y);
    return status;
}

enum pnet_status pnet_config_parse(
    const char *path, const void *text, size_t size, struct pnet_config **c, struct pnet_error *e)
{
    struct pnet_yaml *y;
    *c = NULL;
    enum pnet_status status = pnet_yaml_parse(path, text, size, PNET_USAGE, &y, e);
    return status ? status : finish(y, path, c, e);
}

enum pnet_status pnet_config_read(const char *path, struct pnet_config **c, struct pnet_error *e)
{
    struct pnet_yaml *y;
    *c = NULL;
    enum pnet_status status = pnet_yaml_read(path, PNET_USAGE, &y, e);
    return status ? status : finish(y, path, c, e);
}
