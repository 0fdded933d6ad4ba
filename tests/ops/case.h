/* A case of a row as a user would write it: the model around the expression, its batch, a runner, what comes out. */
#ifndef PNET_TESTS_OPS_CASE_H
#define PNET_TESTS_OPS_CASE_H

#include "compiler/compile.h"
#include "kernels/philox.h"
#include "runtime/run/runner.h"
#include "tests/check.h"

static const char harness[] = "pnet 1\n"
                              "input cloud { xyz : position  f : feature[6]  e : feature[6]  h : "
                              "feature[4]  label : class[5] per point  tag : class[5] per cloud }\n"
                              "input other { xyz : position  f : feature[6] }\n"
                              "input T : pose\n"
                              "net test(p: cloud, q: cloud) {\n"
                              "    g = grid(p, 10cm * [1, 2, 4])\n"
                              "    x = p.f -> pool(mean, to=g[0])\n"
                              "    y = p.e -> pool(mean, to=g[0])\n"
                              "    z = p.h -> pool(mean, to=g[1])\n"
                              "    t = p.f -> pool(mean, to=sample)\n"
                              "    u = q.f -> pool(mean, to=grid(q, 10cm))\n"
                              "    M = matches(level(x), level(u), T, radius=15cm)\n"
                              "    N = matches(level(p), level(q), T, radius=20cm)\n"
                              "    return %s\n"
                              "}\n"
                              "r = test(cloud, other)\n"
                              "%s\n";

enum { SAMPLES = 4 };

enum { CLOUD, OTHER, POSE, INPUTS };

/* Turned about the vertical axis, and moved. */
static inline void make_pose(float t[16], float angle)
{
    const float rows[16] = {cosf(angle), -sinf(angle), 0, 0.05f, sinf(angle), cosf(angle), 0, -0.1f,
        0, 0, 1, 0.02f, 0, 0, 0, 1};
    memcpy(t, rows, sizeof rows);
}

/* Features and weights that 16 bits hold, so that stored ones differ by what is rounded on the way: features are multiples
   of 60/64 at most 4 of them large, whose means over up to 6 points are such numbers too. */
static bool exact;

static inline float draw_feature(const struct pnet_rand *r, uint64_t draw)
{
    if (exact) return 60.0f / 64 * (float)((int32_t)(pnet_rand_bits(r, draw) % 9) - 4);
    return 2 * pnet_rand_unit(r, draw) - 1;
}

static inline float draw_weight(const struct pnet_rand *r, uint64_t draw, float old, bool variance)
{
    float w = old + (variance ? 0.2f : 0.4f) * (pnet_rand_unit(r, draw) - (variance ? 0 : 0.5f));
    uint32_t bits;
    memcpy(&bits, &w, sizeof bits);
    bits &= exact ? 0xffff0000 : ~0u;
    memcpy(&w, &bits, sizeof w);
    return w;
}

static inline void draw_field(
    struct pnet_rand *r, uint64_t *draw, const struct pnet_input_field *d, int64_t n, void *field)
{
    for (int64_t i = 0; i < n && d->kind == PNET_INPUT_POSE && field; i++)
        make_pose((float *)field + 16 * i, (float)i);
    for (int64_t i = 0; i < n * d->width && d->kind != PNET_INPUT_POSE && field; i++)
        if (d->kind == PNET_INPUT_CLASS)
            ((int32_t *)field)[i] = (int32_t)(pnet_rand_bits(r, (*draw)++) % 6) - 1;
        else
            ((float *)field)[i] = draw_feature(r, (*draw)++);
}

/* The other cloud has fewer points in the same box, moved by the pose; some samples have points in
   one of the two alone. */
static inline struct pnet_batch *make_batch(
    const struct pnet_plan *p, const int64_t sizes[SAMPLES], uint32_t seed)
{
    int64_t splits[INPUTS][SAMPLES + 1] = {{0}};
    const int64_t *all[INPUTS] = {splits[CLOUD], splits[OTHER], splits[POSE]};
    struct pnet_error e;
    struct pnet_batch *b = NULL;
    for (int i = 0; i < SAMPLES; i++) {
        int64_t fewer = i == 1 && sizes[0] > 1 ? 5 : sizes[i] * 3 / 4;
        splits[CLOUD][i + 1] = splits[CLOUD][i] + sizes[i];
        splits[OTHER][i + 1] = splits[OTHER][i] + fewer;
    }
    if (pnet_batch_new(p->inputs, p->input_count, SAMPLES, all, &b, &e)) {
        fprintf(stderr, "%s\n", e.message);
        exit(1);
    }
    struct pnet_rand r = {.seed = seed, .purpose = PNET_DRAW_TEST};
    uint64_t draw = 0;
    for (int k = 0; k < INPUTS; k++) {
        int64_t n = splits[k][SAMPLES];
        for (int64_t i = 0; i < 3 * n; i++)
            b->inputs[k].xyz[i] = 0.7f * pnet_rand_unit(&r, draw++) - 0.3f;
        for (int f = 0; f < p->inputs[k].field_count; f++) {
            const struct pnet_input_field *d = &p->inputs[k].fields[f];
            draw_field(&r, &draw, d, d->per_cloud ? SAMPLES : n, b->inputs[k].fields[f]);
        }
    }
    for (int s = 0; s < SAMPLES; s++) {
        float t[16];
        make_pose(t, (float)s);
        for (int64_t i = splits[OTHER][s]; i < splits[OTHER][s + 1]; i++) {
            float *x = b->inputs[OTHER].xyz + 3 * i, at[3] = {x[0], x[1], x[2]};
            for (int a = 0; a < 3; a++)
                x[a] =
                    t[4 * a] * at[0] + t[4 * a + 1] * at[1] + t[4 * a + 2] * at[2] + t[4 * a + 3];
        }
    }
    return b;
}

static inline void must(enum pnet_status st, const struct pnet_error *e)
{
    if (st) {
        fprintf(stderr, "%s\n", e->message);
        exit(1);
    }
}

static inline struct pnet_compilation *compile(
    const char *expression, const char *tail, struct pnet_compile_options o)
{
    char text[4096];
    snprintf(text, sizeof text, harness, expression, tail);
    struct pnet_compilation *c = pnet_compile_text("case.pnet", text, strlen(text), &o);
    if (!pnet_compilation_plan(c)) pnet_compilation_report(c, stderr, false, false);
    return c;
}

/* To be freed with close_runner. */
static inline struct pnet_runner *open_runner(
    const struct pnet_plan *p, const struct pnet_target *t, const struct pnet_batch *b)
{
    struct pnet_bound *bound = NULL;
    struct pnet_runner *s = NULL;
    struct pnet_error e;
    struct pnet_runner_options o = {.slots = 1, .seed = 7};
    must(pnet_bound_new(p, t, &bound, &e), &e);
    must(pnet_runner_new(bound, &o, &s, &e), &e);
    must(pnet_runner_prepare(s, 0, b, &e), &e);
    must(pnet_runner_init_params(s, &e), &e);
    /* norms start at one and zero: move everything off its symmetric start */
    struct pnet_rand r = {.seed = 11, .purpose = PNET_DRAW_TEST};
    float *block = malloc((size_t)p->param_elements * sizeof *block + 1);
    must(pnet_runner_read(s, PNET_BLOCK_PARAMS, 0, p->param_elements, block, &e), &e);
    for (int i = 0; i < p->param_count; i++) {
        float *w = block + p->params[i].offset;
        bool variance = strcmp(p->params[i].info.suffix, "running_var") == 0;
        for (int64_t k = 0; p->params[i].offset >= 0 && k < p->params[i].count; k++)
            w[k] = draw_weight(&r, (uint64_t)(1000 * i + k), w[k], variance);
    }
    must(pnet_runner_write(s, PNET_BLOCK_PARAMS, 0, p->param_elements, block, &e), &e);
    free(block);
    return s;
}

static inline void close_runner(struct pnet_runner *s)
{
    struct pnet_bound *b = (struct pnet_bound *)(uintptr_t)pnet_runner_bound(s);
    pnet_runner_free(s);
    pnet_bound_free(b);
}

/* A copy of a tensor, to be freed. */
static inline void *fetch(struct pnet_runner *s, int tensor)
{
    struct pnet_error e;
    int64_t rows;
    void *to;
    must(pnet_runner_copy_tensor(s, 0, tensor, &to, &rows, &e), &e);
    return to;
}

static inline float *fetch_grads(struct pnet_runner *s)
{
    int64_t n = pnet_runner_plan(s)->trained_elements;
    float *g = malloc((size_t)n * sizeof(float) + 1);
    struct pnet_error e;
    must(pnet_runner_read(s, PNET_BLOCK_GRADS, 0, n, g, &e), &e);
    return g;
}

/* What makes the case's result a loss; empty where it has no gradient. Not a square alone: its gradient is a linear function
   of the result, of which norms leave nothing. False: it does not compile. */
static inline bool make_tail(const struct pnet_op *op, const char *expression, char tail[256])
{
    struct pnet_compile_options o = {.purpose = PNET_FOR_INFERENCE, .no_fusion = true};
    struct pnet_compilation *probe = compile(expression, "", o);
    const struct pnet_plan *plan = pnet_compilation_plan(probe);
    CHECKF(plan != NULL, "%s does not compile", expression);
    bool labels = plan && plan->tensors[plan->result].type.type == PNET_I32;
    pnet_compilation_free(probe);
    *tail = '\0';
    if (op->class_ == PNET_METRIC)
        snprintf(tail, 256, "metric m = r\nloss l = mse(cloud.f, cloud.e)");
    else if (op->class_ == PNET_LOSS)
        snprintf(tail, 256, "loss l = r");
    else if (!labels)
        snprintf(tail, 256, "loss l = mse(r -> gelu, ones(level(r), width(r)) * 0.3)");
    return plan != NULL;
}

/* PNET_SHORT: one batch a case and nothing twice, for tools under which every launch takes long. */
static bool brief;

static inline void run(struct pnet_runner *s, float scale)
{
    struct pnet_error e;
    must(pnet_runner_forward(s, 0, true, 5, &e), &e);
    if (!brief) {
        pnet_runner_poison(s);
        must(pnet_runner_forward(s, 0, true, 5, &e), &e);
    }
    must(pnet_runner_backward(s, 0, scale, false, &e), &e);
    must(pnet_runner_wait(s, &e), &e);
}

#endif
