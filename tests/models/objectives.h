/* Losses and metrics of a model on made-up pairs of clouds with three classes and three channels. */
#ifndef PNET_TESTS_MODELS_OBJECTIVES_H
#define PNET_TESTS_MODELS_OBJECTIVES_H

#include "runtime/train/evaluate.h"
#include "tests/models/batch.h"

/* x and u: three channels of the points of both clouds; t: of a cloud; M: matches. */
static const char objectives_model[] = "pnet 1\n"
                                       "input p { xyz : position  f : feature[3]  label : class[3] "
                                       "per point  tag : class[3] per cloud }\n"
                                       "input q { xyz : position  f : feature[3] }\n"
                                       "input T : pose\n"
                                       "net three(c: cloud) { return c.f -> linear(3) }\n"
                                       "x = three(p)\n"
                                       "u = three(q)\n"
                                       "t = x -> pool(mean, to=sample)\n"
                                       "M = matches(level(x), level(u), T, radius=30cm)\n";

/* Clouds by their numbers: `points` of p (as many of q), which share of them has labels, how far q is moved. */
struct objectives_cloud {
    int64_t points;
    float labelled, moved_m;
};

static inline float objectives_draw(int cloud, int what, int64_t i)
{
    return cloud_unit((uint64_t)(100 * cloud + what), (uint64_t)i);
}

/* The label of a point or, with what 8, of a cloud. */
static inline int32_t objectives_label(int cloud, int what, int64_t i, float labelled)
{
    return objectives_draw(cloud, what, i) < labelled
               ? (int32_t)(3 * objectives_draw(cloud, what + 1, i))
               : -1;
}

static inline void objectives_fill(struct pnet_batch *b, const struct pnet_plan *p, int cloud,
    int32_t sample, const struct objectives_cloud *c)
{
    for (int k = 0; k < 2; k++) {
        struct pnet_batch_input *in = &b->inputs[k];
        int64_t begin = in->row_splits[sample];
        for (int64_t i = 0; i < 3 * (in->row_splits[sample + 1] - begin); i++) {
            in->xyz[3 * begin + i] = objectives_draw(cloud, k, i) + (k ? c->moved_m : 0);
            if (in->fields[1])
                ((float *)in->fields[1])[3 * begin + i] = objectives_draw(cloud, 2 + k, i);
        }
        for (int f = 2; f < p->inputs[k].field_count; f++) {
            int32_t *label = in->fields[f];
            if (label && p->inputs[k].fields[f].per_cloud)
                label[sample] = objectives_label(cloud, 8, 0, c->labelled);
            for (int64_t i = 0; label && !p->inputs[k].fields[f].per_cloud && i < c->points; i++)
                label[begin + i] = objectives_label(cloud, 5, i, c->labelled);
        }
    }
}

/* Clouds first .. first + count - 1. */
static inline struct pnet_batch *objectives_batch(
    const struct pnet_plan *p, const struct objectives_cloud *clouds, int first, int32_t count)
{
    enum { MOST = 16 };
    int64_t splits[MOST + 1] = {0}, none[MOST + 1] = {0};
    const int64_t *all[3];
    struct pnet_batch *b;
    struct pnet_error e;
    for (int s = 0; s < count; s++) splits[s + 1] = splits[s] + clouds[first + s].points;
    for (int i = 0; i < 3; i++)
        all[i] = p->inputs[i].unused || pnet_input_is_pose(&p->inputs[i]) ? none : splits;
    need(pnet_batch_new(p->inputs, p->input_count, count, all, &b, &e), &e, "batch");
    for (int s = 0; s < count; s++) objectives_fill(b, p, first + s, s, &clouds[first + s]);
    return b;
}

/* The model with `lines`, and what evaluates it. */
struct objectives {
    struct pnet_compilation *compilation;
    const struct pnet_plan *plan;
    struct pnet_runner *runner;
};

static inline struct objectives objectives_open(
    const char *lines, enum pnet_purpose_kind purpose, struct pnet_device where)
{
    struct objectives o;
    char text[4096];
    struct pnet_compile_options options = {.purpose = purpose};
    struct pnet_runner_options of_runner = {.slots = 1, .seed = 3};
    struct pnet_error e;
    snprintf(text, sizeof text, "%s%s", objectives_model, lines);
    o.compilation = need_plan(pnet_compile_text("m.pnet", text, strlen(text), &options), lines);
    o.plan = pnet_compilation_plan(o.compilation);
    struct pnet_bound *bound = need_bound(o.plan, where, PNET_FP32);
    need(pnet_runner_new(bound, &of_runner, &o.runner, &e), &e, "runner");
    need(pnet_runner_init_params(o.runner, &e), &e, "weights");
    return o;
}

static inline void objectives_close(struct objectives *o)
{
    runner_end(o->runner);
    pnet_compilation_free(o->compilation);
}

/* Evaluates clouds in batches of `size`. The names of the lines are those of the plan. */
static inline struct pnet_evaluation objectives_evaluate(
    const struct objectives *o, const struct objectives_cloud *clouds, int count, int size)
{
    struct pnet_tally t;
    struct pnet_evaluation v;
    struct pnet_error e;
    need(pnet_tally_init(&t, o->plan, &e), &e, "tally");
    for (int first = 0; first < count; first += size) {
        int32_t n = first + size > count ? count - first : size;
        struct pnet_batch *b = objectives_batch(o->plan, clouds, first, n);
        need(pnet_runner_prepare(o->runner, 0, b, &e), &e, "geometry");
        pnet_batch_free(b);
        pnet_runner_poison(o->runner);
        need(pnet_runner_forward(o->runner, 0, false, 0, &e), &e, "forward");
        need(pnet_tally_add(&t, o->runner, 0, n, 1, &e), &e, "sums");
    }
    need(pnet_tally_finish(&t, &v, &e), &e, "results");
    pnet_tally_free(&t);
    return v;
}

#endif
