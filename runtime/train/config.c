#include "runtime/train/config.h"
#include "runtime/train/config_origin.h"
#include "kernels/conv_algo.h"
#include "kernels/geometry.h"
#include "runtime/device/device.h"
#include "runtime/base/glob.h"
#include "runtime/base/thread.h"
#include "runtime/base/yaml.h"

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

/* Makes a path relative to the folder of the config. */
static void read_path(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, const struct pnet_config *c, char **path)
{
    const char *text = pnet_yaml_string(y, n, NULL);
    if (!text) return;
    char *folder = pnet_path_folder(c->path);
    *path = folder ? pnet_path_join(folder, text) : NULL;
    free(folder);
    if (!*path) pnet_yaml_fail_memory(y);
}

static void read_data(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    read_path(y, n, c, &c->data);
}

static void read_weights(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    read_path(y, n, c, &c->weights);
}

static void read_weights_map(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    pnet_name_rules_map(y, n, &c->weights_map);
}

static void read_freeze(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    pnet_name_rules_list(y, n, &c->freeze);
}

static void read_rates(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    pnet_name_rules_rates(y, n, &c->rates);
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
    static const char *const sgd[] = {"name", "decay_all", "momentum", "nesterov"};
    static const char *const adam[] = {"name", "decay_all", "beta1", "beta2", "eps"};
    struct pnet_optim *o = &c->optimizer;
    const struct pnet_yaml_node *name = n->kind == PNET_YAML_MAP ? pnet_yaml_get(n, "name") : n;
    if (!name) {
        pnet_yaml_fail(y, n, "optimizer: needs a `name`");
        return;
    }
    int kind = pnet_yaml_choice(y, name, pnet_optim_names, PNET_OPTIMS, PNET_ADAMW);
    *o = pnet_optim_default((enum pnet_optim_kind)kind);
    if (n->kind != PNET_YAML_MAP) return;
    bool is_sgd = kind == PNET_SGD;
    if (!pnet_yaml_map(
            y, n, pnet_optim_names[kind], is_sgd ? sgd : adam, is_sgd ? COUNT(sgd) : COUNT(adam)))
        return;
    o->momentum = pnet_yaml_real(y, pnet_yaml_get(n, "momentum"), 0, 0.999999, o->momentum);
    o->nesterov = pnet_yaml_bool(y, pnet_yaml_get(n, "nesterov"), o->nesterov);
    o->beta1 = pnet_yaml_real(y, pnet_yaml_get(n, "beta1"), 0, 0.999999, o->beta1);
    o->beta2 = pnet_yaml_real(y, pnet_yaml_get(n, "beta2"), 0, 0.9999999, o->beta2);
    o->eps = pnet_yaml_real(y, pnet_yaml_get(n, "eps"), 1e-30, 1, o->eps);
    o->decay_all = pnet_yaml_bool(y, pnet_yaml_get(n, "decay_all"), o->decay_all);
}

static void read_weight_decay(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    c->optimizer.weight_decay = pnet_yaml_real(y, n, 0, 1e3, c->optimizer.weight_decay);
}

static void read_lr(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    double lr = pnet_yaml_real(y, n, 1e-12, 1e6, c->schedule.lr);
    c->schedule = pnet_schedule_default(PNET_SCHEDULE_CONSTANT, lr);
}

/* `10%` is a share of the steps, a plain integer a number of steps. One cycle has no warm-up besides its own rise. */
static void read_warmup(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    if (!n) return;
    const char *text = pnet_yaml_string(y, n, "");
    if (c->schedule.kind == PNET_SCHEDULE_ONE_CYCLE)
        c->schedule.warm_fraction = pnet_yaml_real(y, n, 0, 1, 0);
    else if (text[strcspn(text, "%./")])
        c->warmup_share = pnet_yaml_real(y, n, 0, 1, 0);
    else
        c->schedule.warmup_steps = pnet_yaml_int(y, n, 0, MOST, 0);
}

static void read_schedule(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    static const char *const names[PNET_SCHEDULES] = {
        "constant", "step", "cosine", "onecycle", "exponential"};
    static const char *const keys[PNET_SCHEDULES][4] = {{"name", "warmup"},
        {"name", "warmup", "every", "gamma"}, {"name", "warmup", "final"},
        {"name", "warmup", "div", "final_div"}, {"name", "warmup", "gamma"}};
    static const int counts[PNET_SCHEDULES] = {2, 4, 3, 4, 3};
    const struct pnet_yaml_node *name = n->kind == PNET_YAML_MAP ? pnet_yaml_get(n, "name") : n;
    if (!name) {
        pnet_yaml_fail(y, n, "schedule: needs a `name`");
        return;
    }
    int kind = pnet_yaml_choice(y, name, names, PNET_SCHEDULES, 0);
    struct pnet_schedule *s = &c->schedule;
    *s = pnet_schedule_default((enum pnet_schedule_kind)kind, s->lr);
    if (n->kind != PNET_YAML_MAP || !pnet_yaml_map(y, n, names[kind], keys[kind], counts[kind]))
        return;
    read_warmup(y, pnet_yaml_get(n, "warmup"), c);
    s->every = pnet_yaml_int(y, pnet_yaml_get(n, "every"), 1, UINT32_MAX, s->every);
    s->gamma = pnet_yaml_real(y, pnet_yaml_get(n, "gamma"), 1e-6, 1, s->gamma);
    s->final_lr = s->lr * pnet_yaml_real(y, pnet_yaml_get(n, "final"), 0, 1, 0);
    s->div_factor = pnet_yaml_real(y, pnet_yaml_get(n, "div"), 1, 1e12, s->div_factor);
    s->final_div_factor =
        pnet_yaml_real(y, pnet_yaml_get(n, "final_div"), 1, 1e12, s->final_div_factor);
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
    c->precision = (enum pnet_precision)pnet_yaml_choice(y, n, words, COUNT(words), PNET_FP32);
}

/* Reads a number of epochs, {steps: 100} or {epochs: 2}; 0: never. */
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
        if (strchr(p->key, '=')) pnet_yaml_fail(y, p, "set: `%.80s` is no name", p->key);
        if (asprintf(&c->sets[c->set_count], "%s=%s", p->key, value) < 0) {
            c->sets[c->set_count] = NULL;
            pnet_yaml_fail_memory(y);
            return;
        }
        c->set_count++;
    }
    if (!c->sets) pnet_yaml_fail_memory(y);
}

static void read_mode(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    static const char *const words[] = {"native", "voxel"};
    c->degrade = pnet_yaml_choice(y, n, words, COUNT(words), 0) ? PNET_VOXEL : 0;
}

static void read_degrade(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    static const char *const words[] = {"centre", "neighbour", "kernel"};
    if (!pnet_yaml_list(y, n, 0, COUNT(words))) return;
    for (const struct pnet_yaml_node *item = n->first; item; item = item->next)
        c->degrade |= 1u << pnet_yaml_choice(y, item, words, COUNT(words), 0);
}

static void keep_word(struct pnet_yaml *y, const struct pnet_yaml_node *n, char **word)
{
    const char *text = pnet_yaml_string(y, n, NULL);
    if (!text) return;
    *word = strdup(text);
    if (!*word) pnet_yaml_fail_memory(y);
}

static void read_device(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    struct pnet_device d;
    struct pnet_error e;
    keep_word(y, n, &c->device);
    if (c->device && pnet_device_parse(c->device, &d, &e))
        pnet_yaml_fail(y, n, "device: expected cpu, cuda or cuda:N, got `%.80s`", c->device);
}

static void read_algo(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    if (pnet_yaml_choice(y, n, pnet_conv_algo_names, PNET_ALGO_COUNT, -1) >= 0)
        keep_word(y, n, &c->algo);
}

static void read_autotune(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    if (n->kind == PNET_YAML_SCALAR && strcmp(n->text, "no") == 0) return;
    c->autotune = pnet_yaml_real(y, n, 1e-9, 1e6, 0);
}

static void read_autotune_all(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    c->autotune_all = pnet_yaml_bool(y, n, false);
}

static void read_without_optimizer(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    c->without_optimizer = pnet_yaml_bool(y, n, false);
}

static void read_memory(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    c->memory_bytes = pnet_yaml_bytes(y, n, 0);
}

static void read_threads(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    c->threads = (int)pnet_yaml_int(y, n, 1, PNET_THREADS_MOST, 0);
}

static void read_version(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_config *c)
{
    (void)c;
    pnet_yaml_string(y, n, "");
}

static const struct key keys[] = {
    {{"data", "", "the data set: a folder with dataset.yaml, or an index; relative to this file"},
        read_data},
    {{"inputs", "{}", "which fields of the clouds feed the model's inputs, with scale and shift"},
        read_inputs},
    {{"epochs", "1", "passes over the training clouds"}, read_epochs},
    {{"steps", "", "optimiser steps, instead of epochs"}, read_steps},
    {{"batch_size", "1", "clouds a batch"}, read_batch_size},
    {{"optimizer", "adamw",
         "sgd {momentum 0.9, nesterov no}, adam or adamw {beta1 0.9, beta2 0.999, eps 1e-8}; each "
         "with {decay_all no}"},
        read_optimizer},
    {{"weight_decay", "", "adamw: decoupled (0.01), else added to the gradient (0)"},
        read_weight_decay},
    {{"lr", "0.001", "learning rate, the peak of the schedule"}, read_lr},
    {{"schedule", "constant",
         "constant, step {every, gamma}, cosine {final}, onecycle {div, final_div}, exponential "
         "{gamma}; each with {warmup}"},
        read_schedule},
    {{"clip_grad", "0", "largest 2-norm of the gradient; 0: no limit"}, read_clip_grad},
    {{"accumulate", "1", "batches whose gradients make one step"}, read_accumulate},
    {{"class_weights", "no", "balanced (by 1 / sqrt(share)), or a list of numbers"},
        read_class_weights},
    {{"augment", "{}", "crop, drop_points, elastic, flip, rotate, scale, jitter, colour"},
        read_augment},
    {{"max_points", "", "most points of a training cloud; a larger cloud is thinned at random"},
        read_max_points},
    {{"workers", "1", "threads that load and augment; 0: the training thread does"}, read_workers},
    {{"cache", "2GiB", "memory for decoded clouds"}, read_cache},
    {{"drop_last", "no", "leave out the last batch of an epoch if it is not full"}, read_drop_last},
    {{"skip_empty", "no", "leave out clouds without points, which are otherwise an error"},
        read_skip_empty},
    {{"seed", "1", "seed of all random numbers"}, read_seed},
    {{"precision", "fp32", "fp32, tf32, bf16 or fp16"}, read_precision},
    {{"save_every", "1", "epochs between checkpoints, or {steps: N}; 0: only at the end"},
        read_save_every},
    {{"eval_every", "1", "epochs between evaluations, or {steps: N}; 0: never"}, read_eval_every},
    {{"set", "{}", "params of the model, as --set"}, read_set},
    {{"weights", "", "what the training starts from: checkpoint, run folder or safetensors file"},
        read_weights},
    {{"weights_map", "{}", "names in the weights: names in the model, as {backbone: net.a}"},
        read_weights_map},
    {{"freeze", "[]", "names of weights that are not trained, as [net.a, '*.bn']"}, read_freeze},
    {{"rates", "{}", "names of weights: factors of their learning rate, as {net.a: 0.1}"},
        read_rates},
    {{"mode", "native", "native or voxel, as --mode"}, read_mode},
    {{"degrade", "[]", "single degradations, as --degrade: [centre, neighbour, kernel]"},
        read_degrade},
    {{"device", "cpu", "cpu, cuda or cuda:N"}, read_device},
    {{"algo", "", "algorithm of convolutions, as --algo"}, read_algo},
    {{"autotune", "no", "seconds for measuring which algorithms are fastest"}, read_autotune},
    {{"autotune_all", "no", "measure also algorithms whose last bits vary from run to run"},
        read_autotune_all},
    {{"without_optimizer", "no", "a finished training leaves no state of the optimiser"},
        read_without_optimizer},
    {{"memory", "", "memory budget; default: the free memory of the device"}, read_memory},
    {{"threads", "", "threads; default: all cores"}, read_threads},
    {{"version", "", "version of pnet that wrote this config; it has no effect"}, read_version},
};

_Static_assert(COUNT(keys) == PNET_CONFIG_KEYS, "the number of keys");

enum pnet_on_resume pnet_config_on_resume(const char *key)
{
    static const char *const refused[] = {"inputs", "batch_size", "optimizer", "accumulate",
        "class_weights", "drop_last", "skip_empty"};
    static const char *const checked[] = {
        "seed", "set", "mode", "degrade", "algo", "autotune", "autotune_all"};
    for (int i = 0; i < COUNT(refused); i++)
        if (strcmp(key, refused[i]) == 0) return PNET_RESUME_REFUSED;
    for (int i = 0; i < COUNT(checked); i++)
        if (strcmp(key, checked[i]) == 0) return PNET_RESUME_CHECKED;
    return PNET_RESUME_TOLD;
}

const struct pnet_config_key *pnet_config_key(int i)
{
    return i >= 0 && i < COUNT(keys) ? &keys[i].doc : NULL;
}

static struct pnet_config *standard_config(const char *path)
{
    struct pnet_config *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    *c = (struct pnet_config){.batch_size = 1,
        .optimizer = pnet_optim_default(PNET_ADAMW),
        .schedule = pnet_schedule_default(PNET_SCHEDULE_CONSTANT, 1e-3),
        .accumulate = 1,
        .workers = 1,
        .cache_bytes = UINT64_C(2) << 30,
        .seed = 1,
        .save_every = {.epochs = 1},
        .eval_every = {.epochs = 1}};
    c->path = strdup(path);
    c->origin = calloc(1, sizeof *c->origin);
    if (c->path && c->origin) return c;
    free(c->path);
    free(c->origin);
    free(c);
    return NULL;
}

void pnet_config_free(struct pnet_config *c)
{
    if (!c) return;
    pnet_input_map_free(&c->inputs);
    for (int i = 0; i < c->set_count; i++) free(c->sets[i]);
    free(c->sets);
    for (int i = 0; i < COUNT(keys); i++) pnet_yaml_free(c->origin->overrides[i]);
    pnet_yaml_free(c->origin->file);
    free(c->origin);
    pnet_name_rules_free(&c->weights_map);
    pnet_name_rules_free(&c->freeze);
    pnet_name_rules_free(&c->rates);
    free(c->weights);
    free(c->device);
    free(c->algo);
    free(c->class_weights);
    free(c->data);
    free(c->path);
    free(c);
}

int pnet_config_find(const char *name)
{
    for (int i = 0; i < COUNT(keys); i++)
        if (strcmp(keys[i].doc.name, name) == 0) return i;
    return -1;
}

static void read_root(struct pnet_yaml *y, const struct pnet_yaml_node *root, struct pnet_config *c)
{
    const char *names[COUNT(keys)];
    struct pnet_config_origin *o = c->origin;
    for (int i = 0; i < COUNT(keys); i++) names[i] = keys[i].doc.name;
    if (!pnet_yaml_map(y, root, "run config", names, COUNT(names))) return;
    for (int i = 0; i < COUNT(keys); i++) {
        struct pnet_yaml *from = o->overrides[i];
        o->nodes[i] = pnet_yaml_get(from ? pnet_yaml_root(from) : root, names[i]);
    }
    /* `steps` and `epochs` replace each other, and the command line overrides the file */
    int steps = pnet_config_find("steps"), epochs = pnet_config_find("epochs");
    if (o->overrides[steps] && !o->overrides[epochs]) o->nodes[epochs] = NULL;
    if (o->overrides[epochs] && !o->overrides[steps]) o->nodes[steps] = NULL;
    /* Reads keys in the order of the table, because later keys depend on earlier ones. */
    for (int i = 0; i < COUNT(keys) && pnet_yaml_ok(y); i++) {
        struct pnet_yaml *from = o->overrides[i] ? o->overrides[i] : y;
        if (o->nodes[i]) keys[i].read(from, o->nodes[i], c);
        if (!pnet_yaml_ok(from)) return;
    }
}

static enum pnet_status parse_override(
    const struct pnet_config_override *o, struct pnet_config *c, struct pnet_error *e)
{
    const char *names[COUNT(keys)];
    for (int i = 0; i < COUNT(keys); i++) names[i] = keys[i].doc.name;
    int key = pnet_config_find(o->key);
    if (key < 0) {
        const char *near = pnet_nearest(o->key, names, COUNT(names));
        return pnet_error_set(e, PNET_USAGE, "%s: unknown key `%.80s`%s%s%s", o->from, o->key,
            near ? "; did you mean `" : "", near ? near : "", near ? "`?" : "");
    }
    char *text;
    int size = asprintf(&text, "%s: %s\n", o->key, o->value);
    if (size < 0) return pnet_error_memory(e);
    pnet_yaml_free(c->origin->overrides[key]);
    enum pnet_status status =
        pnet_yaml_parse(o->from, text, (size_t)size, PNET_USAGE, &c->origin->overrides[key], e);
    free(text);
    const struct pnet_yaml_node *root = status ? NULL : pnet_yaml_root(c->origin->overrides[key]);
    if (root && (root->kind != PNET_YAML_MAP || root->count != 1 || !pnet_yaml_get(root, o->key)))
        status = pnet_error_set(e, PNET_USAGE, "%s: expected one value for `%s`", o->from, o->key);
    return status;
}

/* Takes ownership of the document. */
static enum pnet_status finish(struct pnet_yaml *y, const char *path,
    const struct pnet_config_override *overrides, int count, struct pnet_config **c,
    struct pnet_error *e)
{
    struct pnet_config *config = standard_config(path);
    enum pnet_status status = config ? PNET_OK : pnet_error_memory(e);
    if (!config) pnet_yaml_free(y);
    if (config) config->origin->file = y;
    for (int i = 0; i < count && !status; i++) status = parse_override(&overrides[i], config, e);
    if (!status) {
        read_root(y, pnet_yaml_root(y), config);
        for (int i = 0; i < COUNT(keys) && !status; i++)
            if (config->origin->overrides[i])
                status = pnet_yaml_end(config->origin->overrides[i], e);
        if (!status && !config->data)
            pnet_yaml_fail(y, pnet_yaml_root(y), "run config: `data` is missing");
        if (!config->steps && !config->epochs) config->epochs = 1;
        if (!status) status = pnet_yaml_end(y, e);
    }
    if (status)
        pnet_config_free(config);
    else
        *c = config;
    return status;
}

enum pnet_status pnet_config_parse(
    const char *path, const void *text, size_t size, struct pnet_config **c, struct pnet_error *e)
{
    struct pnet_yaml *y;
    *c = NULL;
    enum pnet_status status = pnet_yaml_parse(path, text, size, PNET_USAGE, &y, e);
    return status ? status : finish(y, path, NULL, 0, c, e);
}

enum pnet_status pnet_config_read_with(const char *path,
    const struct pnet_config_override *overrides, int count, struct pnet_config **c,
    struct pnet_error *e)
{
    struct pnet_yaml *y;
    *c = NULL;
    enum pnet_status status = pnet_yaml_read(path, PNET_USAGE, &y, e);
    return status ? status : finish(y, path, overrides, count, c, e);
}

enum pnet_status pnet_config_read(const char *path, struct pnet_config **c, struct pnet_error *e)
{
    return pnet_config_read_with(path, NULL, 0, c, e);
}
