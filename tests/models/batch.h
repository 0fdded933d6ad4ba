/* Clouds made up in memory, and batches of them for any model. */
#ifndef PNET_TESTS_MODELS_BATCH_H
#define PNET_TESTS_MODELS_BATCH_H

#include "compiler/compile.h"
#include "kernels/philox.h"
#include "runtime/run/runner.h"
#include "tests/check.h"

enum { CLOUD_FEATURES = 4, CLOUD_CLASSES = 12 };

/* Owns its arrays. */
struct cloud {
    int64_t n;
    float *xyz;      /* [n][3] metres */
    float *features; /* [n][CLOUD_FEATURES], the first channels are what a model reads */
    int32_t *labels; /* [n], -1 to CLOUD_CLASSES - 1 */
};

static inline void *must(void *p)
{
    if (p) return p;
    fprintf(stderr, "out of memory\n");
    exit(1);
}

static inline struct cloud cloud_new(int64_t n)
{
    size_t rows = (size_t)n + 1;
    return (struct cloud){n, must(calloc(rows, 3 * sizeof(float))),
        must(calloc(rows, CLOUD_FEATURES * sizeof(float))), must(calloc(rows, sizeof(int32_t)))};
}

static inline void cloud_free(struct cloud *c)
{
    free(c->xyz);
    free(c->features);
    free(c->labels);
    *c = (struct cloud){0};
}

static inline float cloud_unit(uint64_t seed, uint64_t i)
{
    return pnet_rand_unit(&(struct pnet_rand){.seed = seed}, i);
}

/* Features in [0, 1) and labels that depend on the seed and the point's number. */
static inline void cloud_paint(struct cloud *c, uint64_t seed)
{
    for (int64_t i = 0; i < CLOUD_FEATURES * c->n; i++)
        c->features[i] = cloud_unit(seed ^ 0x5eed, (uint64_t)i);
    for (int64_t i = 0; i < c->n; i++)
        c->labels[i] = (int32_t)(cloud_unit(seed ^ 0x1abe1, (uint64_t)i) * (CLOUD_CLASSES + 1)) - 1;
}

/* Points on three walls of a room of `edge` metres, like a scan of a corner. */
static inline struct cloud cloud_corner(int64_t n, float edge, uint64_t seed)
{
    struct cloud c = cloud_new(n);
    for (int64_t i = 0; i < n; i++) {
        int flat = (int)(i % 3);
        for (int k = 0; k < 3; k++)
            c.xyz[3 * i + k] =
                edge * (k == flat ? 0.01f : 1) * cloud_unit(seed, (uint64_t)(3 * i + k));
    }
    cloud_paint(&c, seed);
    return c;
}

/* The rows order[0..n) of a cloud. */
static inline struct cloud cloud_pick(const struct cloud *c, const int64_t *order, int64_t n)
{
    struct cloud d = cloud_new(n);
    for (int64_t i = 0; i < n; i++) {
        memcpy(d.xyz + 3 * i, c->xyz + 3 * order[i], 3 * sizeof(float));
        memcpy(d.features + CLOUD_FEATURES * i, c->features + CLOUD_FEATURES * order[i],
            CLOUD_FEATURES * sizeof(float));
        d.labels[i] = c->labels[order[i]];
    }
    return d;
}

/* Rows `begin` on of an input get what a cloud has. */
static inline void batch_place(struct pnet_batch_input *to, const struct pnet_input *input,
    const struct cloud *c, int32_t sample, int64_t begin)
{
    memcpy(to->xyz + 3 * begin, c->xyz, (size_t)c->n * 3 * sizeof(float));
    for (int f = 0; f < input->field_count; f++) {
        const struct pnet_input_field *field = &input->fields[f];
        float *reals = to->fields[f];
        int32_t *classes = to->fields[f];
        if (!reals) continue;
        for (int64_t i = 0; i < c->n; i++) {
            if (field->kind == PNET_INPUT_FEATURE)
                memcpy(reals + (begin + i) * field->width, c->features + CLOUD_FEATURES * i,
                    (size_t)field->width * sizeof(float));
            else if (field->kind == PNET_INPUT_CLASS && !field->per_cloud)
                classes[begin + i] = c->labels[i];
        }
        if (field->kind == PNET_INPUT_CLASS && field->per_cloud)
            classes[sample] = sample % field->classes;
    }
}

/* All clouds behind each other as every input of the model that the plan reads; poses leave points
   where they are. */
static inline struct pnet_batch *batch_of(
    const struct pnet_plan *p, const struct cloud *clouds, int32_t count)
{
    enum { MOST = 3 };
    int64_t *splits = must(calloc((size_t)count + 1, sizeof *splits));
    int64_t *none = must(calloc((size_t)count + 1, sizeof *none));
    const int64_t *all[MOST];
    struct pnet_batch *b;
    struct pnet_error e;
    for (int32_t s = 0; s < count; s++) splits[s + 1] = splits[s] + clouds[s].n;
    for (int i = 0; i < p->input_count && i < MOST; i++)
        all[i] = p->inputs[i].unused || pnet_input_is_pose(&p->inputs[i]) ? none : splits;
    if (p->input_count > MOST || pnet_batch_new(p->inputs, p->input_count, count, all, &b, &e)) {
        fprintf(stderr, "no batch\n");
        exit(1);
    }
    for (int i = 0; i < p->input_count; i++)
        for (int32_t s = 0; s < count && all[i] == splits; s++)
            batch_place(&b->inputs[i], &p->inputs[i], &clouds[s], s, splits[s]);
    free(splits);
    free(none);
    return b;
}

/* Ends the program where a call failed: `what` says which. */
static inline void need(enum pnet_status status, const struct pnet_error *e, const char *what)
{
    if (!status) return;
    fprintf(stderr, "%s: %s\n", what, e->message);
    exit(1);
}

static inline struct pnet_compilation *need_plan(struct pnet_compilation *c, const char *what)
{
    if (c && pnet_compilation_plan(c)) return c;
    if (c) pnet_compilation_report(c, stderr, false, false);
    fprintf(stderr, "%s does not compile\n", what);
    exit(1);
}

/* To be freed with pnet_bound_free. */
static inline struct pnet_bound *need_bound(
    const struct pnet_plan *p, struct pnet_device where, enum pnet_precision precision)
{
    struct pnet_target t = {.where = where, .precision = precision};
    struct pnet_bound *b;
    struct pnet_error e;
    need(pnet_bound_new(p, &t, &b, &e), &e, "binding");
    return b;
}

/* Frees a runner and its bound plan. */
static inline void runner_end(struct pnet_runner *s)
{
    struct pnet_bound *b = (struct pnet_bound *)(uintptr_t)pnet_runner_bound(s);
    pnet_runner_free(s);
    pnet_bound_free(b);
}

/* The geometry of a batch as the host makes it, for any device: what stands in `slot->counts`. */
struct host_slot {
    struct pnet_batch *batch;
    struct pnet_memory memory; /* the slot leads to it: not to be copied */
    struct pnet_geo_work *work;
    struct pnet_slot *slot;
};

static inline void host_slot_open(
    struct host_slot *h, const struct pnet_bound *b, const struct cloud *clouds, int32_t count)
{
    struct pnet_error e;
    h->batch = batch_of(b->plan, clouds, count);
    pnet_memory_init(&h->memory, (struct pnet_device){0}, 0);
    need(pnet_geo_work_new(b, &h->memory, &h->work, &e), &e, "work");
    need(pnet_slot_new(h->work, &h->slot, &e), &e, "slot");
    need(pnet_slot_build(h->slot, h->batch, &e), &e, "geometry on the host");
}

static inline void host_slot_close(struct host_slot *h)
{
    pnet_slot_free(h->slot);
    pnet_geo_work_free(h->work);
    pnet_memory_end(&h->memory);
    pnet_batch_free(h->batch);
}

#endif
