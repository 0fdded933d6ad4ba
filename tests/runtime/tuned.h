/* A small network with layers that equal each other, and times that a test makes up. */
#ifndef PNET_TESTS_RUNTIME_TUNED_H
#define PNET_TESTS_RUNTIME_TUNED_H

#include "runtime/run/tune.h"
#include "tests/models/batch.h"

static const char tuned_model[] =
    "pnet 1\n"
    "input cloud {\n  xyz : position\n  rgb : feature[3]\n  label : class[12] per point\n}\n"
    "net n(p: cloud) {\n"
    "  g = grid(p, 20cm * [1, 2])\n"
    "  a = p.rgb -> pool(mean, to=g[0]) -> conv(8, kernel=3) -> relu\n"
    "  b = a -> conv(8, kernel=3) -> relu -> conv(8, kernel=3)\n"
    "  d = b -> conv(16, kernel=2, to=g[1]) -> conv(8, kernel=2, to=g[0])\n"
    "  return cat(d, a) -> linear(12)\n"
    "}\n"
    "y = n(cloud)\n"
    "loss ce = cross_entropy(y, cloud.label)\n";
/* The first layer has no dF, and the third one equals the second. */
enum { TUNED_LAYERS = 5, TUNED_SUMS = 14, TUNED_APART = 11, TUNED_CANDIDATES = 6 };

static inline struct pnet_compilation *tuned_compile(void)
{
    struct pnet_compile_options o = {.purpose = PNET_FOR_TRAINING};
    return need_plan(
        pnet_compile_text("tuned.pnet", tuned_model, sizeof tuned_model - 1, &o), "tuned.pnet");
}

/* A runner with the batch in its slot; runner_end frees it. */
static inline struct pnet_runner *tuned_open(
    const struct pnet_plan *p, const struct pnet_target *t, const struct cloud *c)
{
    struct pnet_runner_options o = {.slots = 1, .seed = 1};
    struct pnet_bound *bound;
    struct pnet_runner *s;
    struct pnet_error e;
    need(pnet_bound_new(p, t, &bound, &e), &e, "binding");
    struct pnet_batch *b = batch_of(p, c, 1);
    need(pnet_runner_new(bound, &o, &s, &e), &e, "runner");
    need(pnet_runner_init_params(s, &e), &e, "weights");
    need(pnet_runner_prepare(s, 0, b, &e), &e, "geometry");
    pnet_batch_free(b);
    return s;
}

/* Context of tuned_measure and tuned_now. */
struct tuned_clock {
    double seconds[PNET_DIRECTIONS][PNET_ALGO_COUNT];
    double now, each; /* what a measurement takes of the budget */
    int calls;
};

static inline struct tuned_clock tuned_even(void)
{
    struct tuned_clock k = {.each = 0};
    for (int d = 0; d < PNET_DIRECTIONS; d++)
        for (int a = 0; a < PNET_ALGO_COUNT; a++) k.seconds[d][a] = 1;
    return k;
}

static inline double tuned_measure(void *context, const struct pnet_exec *x,
    enum pnet_direction direction, enum pnet_conv_algo algo)
{
    struct tuned_clock *k = context;
    CHECK(x->algos.of[direction] == algo && x->work);
    k->calls++;
    k->now += k->each;
    return k->seconds[direction][algo];
}

static inline double tuned_now(void *context)
{
    return ((struct tuned_clock *)context)->now;
}

static inline struct pnet_tune_options tuned_options(struct tuned_clock *k)
{
    return (struct pnet_tune_options){
        .seconds = 1e6, .measure = tuned_measure, .now = tuned_now, .context = k};
}

#endif
