#include "bench/net.h"

#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/measure.h"
#include "bench/net_open.h"
#include "bench/net_steps.h"
#include "runtime/run/layout.h"

/* By enum pnet_precision. Where a feature changes its sign under a rectifier the gradient jumps, and in 16 bits a few in a
   thousand do (docs/performance.md): for 16 bits the difference of gradients is printed, but decides nothing. */
static const double loss_tolerance[] = {1e-4, 1e-2, 5e-2, 2e-2};
static const double gradient_tolerance[] = {1e-2, 0.5, INFINITY, INFINITY};

bool pnet_bench_net_near(enum pnet_precision precision, double loss_error, double gradient_error)
{
    if (loss_error <= loss_tolerance[precision] && gradient_error <= gradient_tolerance[precision])
        return true;
    fprintf(stderr, "pnet-bench net: in %s the loss is off by %g, gradients by %g: wrong\n",
        pnet_bench_precision_names[precision], loss_error, gradient_error);
    return false;
}

static enum pnet_status fail(const struct pnet_error *e)
{
    fprintf(stderr, "pnet-bench net: %s\n", e->message);
    return e->status;
}

static double gradient_error(const float *x, const float *want, int64_t count)
{
    struct bench_error error = {0, 0};
    for (int64_t i = 0; i < count; i++) bench_error_add(&error, (double)x[i], (double)want[i]);
    return bench_error_value(&error);
}

/* Compares the network in one precision with the results of the plain network. */
static enum pnet_status check_precision(const struct net_options *o, enum pnet_precision precision,
    const struct scene *piece, struct net_weights *w, const float *want, struct net_result *r)
{
    struct net_options as = *o;
    struct network n;
    struct pnet_error e = {0};
    float *x = NULL;
    double loss = 0;
    as.precision = precision;
    enum pnet_status st = pnet_bench_net_open(&as, piece, true, w, &n, &e);
    if (!st) st = pnet_bench_net_gradients_of(&n, w->plan, &loss, &x, &e);
    if (st) {
        fail(&e);
    } else {
        r->loss_error[precision] = bench_off(loss, r->loss);
        r->gradient_error[precision] = gradient_error(x, want, w->plan->trained_elements);
        if (!pnet_bench_net_near(precision, r->loss_error[precision], r->gradient_error[precision]))
            st = PNET_FAILED;
    }
    free(x);
    pnet_bench_net_close(&n);
    return st;
}

/* Returns the median wall time of `run`, including the device's work, over the repeats. Runs before them are not counted: in
   these a GPU's schedule is recorded. */
static enum pnet_status time_of(struct network *n, int repeat,
    enum pnet_status (*run)(struct network *n, struct pnet_error *e), double *median,
    struct pnet_error *e)
{
    double seconds[NET_REPEAT_MAX];
    enum pnet_status st = pnet_runner_wait(n->runner, e);
    int before = pnet_runner_device(n->runner).kind == PNET_CPU ? 1 : 3;
    for (int i = -before; i < repeat && !st; i++) {
        double begin = bench_now();
        st = run(n, e);
        if (!st) st = pnet_runner_wait(n->runner, e);
        if (i >= 0) seconds[i] = bench_now() - begin;
    }
    if (!st) *median = bench_median(seconds, repeat);
    return st;
}

static enum pnet_status geometry(struct network *n, struct pnet_error *e)
{
    return pnet_runner_prepare(n->runner, 0, n->batch, e);
}

static enum pnet_status forward(struct network *n, struct pnet_error *e)
{
    return pnet_runner_forward(n->runner, 0, n->training, 0, e);
}

static enum pnet_status backward(struct network *n, struct pnet_error *e)
{
    return pnet_runner_backward(n->runner, 0, 1, false, e);
}

static enum pnet_status optimize(struct network *n, struct pnet_error *e)
{
    double losses[64];
    struct pnet_optim_record record;
    if (n->plan->objective_count > 64)
        return pnet_error_set(e, PNET_BAD_MODEL, "more than 64 objectives");
    pnet_updater_note_losses(&n->updater, 1, false);
    return pnet_updater_step(&n->updater, 1e-6, 0, 1, &record, losses, e);
}

static enum pnet_status whole_step(struct network *n, struct pnet_error *e)
{
    enum pnet_status st = geometry(n, e);
    if (!st) st = forward(n, e);
    if (!st) st = backward(n, e);
    return st ? st : optimize(n, e);
}

/* Does the runner's work before the first step of a batch whose capacity class differs from that of the batch before. */
static enum pnet_status lay_out(struct network *n, struct pnet_error *e)
{
    struct pnet_layout l;
    const struct pnet_counts *c = &pnet_runner_slot(n->runner, 0)->counts;
    enum pnet_status st = pnet_layout_make(n->bound, c, true, &l, e);
    if (!st) pnet_layout_free(&l);
    return st;
}

/* Runs forward and backward: a backward needs its forward, whose time is subtracted. */
static enum pnet_status both_ways(struct network *n, struct pnet_error *e)
{
    enum pnet_status st = forward(n, e);
    return st ? st : backward(n, e);
}

/* Times only the copy of the batch's arrays to a GPU's memory. */
static enum pnet_status time_upload(
    const struct network *n, int repeat, double *median, struct pnet_error *e)
{
    struct pnet_device d = pnet_runner_device(n->runner);
    double seconds[NET_REPEAT_MAX];
    void *stage = NULL;
    *median = 0;
    if (d.kind == PNET_CPU) return PNET_OK;
    int64_t most = 0;
    for (int i = 0; i < n->batch->input_count; i++)
        if (n->batch->inputs[i].rows > most) most = n->batch->inputs[i].rows;
    enum pnet_status st = pnet_device_stage_new(d, &stage, e);
    if (st) return st;
    int32_t widest = 3;
    for (int i = 0; i < n->plan->input_count; i++)
        for (int f = 0; f < n->plan->inputs[i].field_count; f++)
            if (n->plan->inputs[i].fields[f].width > widest)
                widest = n->plan->inputs[i].fields[f].width;
    void *to = pnet_device_alloc(d, (size_t)most * (size_t)widest * 4 + 1);
    if (!to) st = pnet_error_memory(e);
    for (int r = 0; r < repeat && !st; r++) {
        double begin = bench_now();
        for (int i = 0; i < n->plan->input_count; i++) {
            const struct pnet_batch_input *in = &n->batch->inputs[i];
            if (in->rows)
                pnet_device_stage_in(d, stage, to, in->xyz, (size_t)in->rows * 3 * sizeof(float));
            for (int f = 0; f < n->plan->inputs[i].field_count; f++) {
                const struct pnet_input_field *field = &n->plan->inputs[i].fields[f];
                int64_t rows = field->per_cloud ? n->batch->samples : in->rows;
                if (in->rows && in->fields[f])
                    pnet_device_stage_in(
                        d, stage, to, in->fields[f], (size_t)rows * (size_t)field->width * 4);
            }
        }
        st = pnet_device_wait(d, e);
        seconds[r] = bench_now() - begin;
    }
    if (!st) *median = bench_median(seconds, repeat);
    pnet_device_free(d, to);
    pnet_device_stage_free(d, stage);
    return st;
}

/* The orders of all levels, of a batch that a slot of its own builds. */
static enum pnet_status time_orders(
    const struct network *n, int repeat, double *median, struct pnet_error *e)
{
    struct pnet_device d = pnet_runner_device(n->runner);
    struct pnet_slot_clock clock = {.kind = PNET_GEO_ORDER, .times = d.kind == PNET_CPU ? 1 : 10};
    struct pnet_memory memory;
    struct pnet_geo_work *work = NULL;
    struct pnet_slot *slot = NULL;
    double seconds[NET_REPEAT_MAX];
    pnet_memory_init(&memory, d, 0);
    enum pnet_status st = pnet_geo_work_new(n->bound, &memory, &work, e);
    if (!st) st = pnet_slot_new(work, &slot, e);
    if (!st) slot->clock = &clock;
    for (int i = -1; i < repeat && !st; i++) {
        st = pnet_slot_build(slot, n->batch, e);
        if (i >= 0) seconds[i] = clock.seconds;
    }
    if (!st) *median = bench_median(seconds, repeat);
    pnet_slot_free(slot);
    if (work) pnet_geo_work_free(work);
    pnet_memory_end(&memory);
    return st;
}

static enum pnet_status measure_training(
    struct network *n, int repeat, struct net_result *r, struct pnet_error *e)
{
    struct net_parts *t = &r->training;
    double both = 0;
    enum pnet_status st = time_of(n, repeat, geometry, &t->geometry, e);
    if (!st) st = time_upload(n, repeat, &t->upload, e);
    if (!st) st = time_of(n, repeat, lay_out, &t->layout, e);
    if (!st) st = time_of(n, repeat, forward, &t->forward, e);
    if (!st) st = time_of(n, repeat, both_ways, &both, e);
    t->backward = both - t->forward;
    if (!st) st = time_of(n, repeat, optimize, &t->optimizer, e);
    if (!st) st = time_of(n, repeat, whole_step, &t->step, e);
    if (!st) st = pnet_bench_net_time_steps(n->runner, &n->updater, repeat, r, e);
    r->training_peak = pnet_runner_memory(n->runner)->peak;
    r->geometry_bytes = pnet_slot_bytes(pnet_runner_slot(n->runner, 0));
    if (!st)
        st = time_orders(n, repeat, &t->orders, e); /* after the peak: it takes memory of its own */
    r->parameters = n->plan->parameter_count;
    return st;
}

static enum pnet_status measure(
    const struct net_options *o, const struct scene *s, struct net_weights *w, struct net_result *r)
{
    struct network n;
    struct pnet_error e = {0};
    r->points = s->level.rows;
    r->samples = s->level.samples;
    enum pnet_status st = pnet_bench_net_open(o, s, true, w, &n, &e);
    if (!st) r->steps = bench_alloc((size_t)n.plan->step_count * sizeof *r->steps);
    if (!st) st = measure_training(&n, o->repeat, r, &e);
    pnet_bench_net_close(&n);
    if (st) return fail(&e);
    st = pnet_bench_net_open(o, s, false, w, &n, &e);
    if (!st) st = time_of(&n, o->repeat, forward, &r->inference, &e);
    if (!st) r->inference_peak = pnet_runner_memory(n.runner)->peak;
    pnet_bench_net_close(&n);
    return st ? fail(&e) : PNET_OK;
}

int pnet_bench_net_run(const struct net_options *o, const struct scene *piece,
    const struct scene *s, struct net_result *r)
{
    struct network plain;
    struct net_weights w = {NULL, NULL};
    struct pnet_error e = {0};
    float *want = NULL;
    enum pnet_status st = pnet_bench_net_open(o, piece, true, NULL, &plain, &e);
    if (!st) st = pnet_bench_net_weights_take(&plain, &w, &e);
    if (!st) st = pnet_bench_net_gradients_of(&plain, plain.plan, &r->loss, &want, &e);
    if (st) fail(&e);
    if (!st) st = check_precision(o, PNET_FP32, piece, &w, want, r);
    if (!st && o->precision != PNET_FP32) st = check_precision(o, o->precision, piece, &w, want, r);
    if (!st) st = measure(o, s, &w, r);
    free(want);
    free(w.data);
    pnet_bench_net_close(&plain);
    return (int)st;
}
