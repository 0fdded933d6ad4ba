#include "bench/net.h"

#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/net_steps.h"
#include "runtime/run/session.h"
#include "runtime/run/updater.h"

/* Rounding grows through a network, and where a feature changes its sign under a rectifier the gradient jumps: in 16 bits
   little of it need be left behind norms over few rows, so there the difference is told and not judged. */
const double net_loss_tolerance[] = {1e-4, 1e-2, 5e-2, 2e-2};
const double net_gradient_tolerance[] = {1e-2, 0.5, INFINITY, INFINITY};

/* All parameters of a plan, on the host: drawing them takes longer than copying them to the other sessions. */
struct weights {
    const struct pnet_plan *plan;
    float *data; /* [plan->param_elements] */
};

/* A network with its batch in a session, ready to run. */
struct network {
    struct pnet_compilation *compilation;
    const struct pnet_plan *plan;
    struct pnet_batch *batch;
    struct pnet_session *session;
    struct pnet_updater updater;
    bool training;
};

static enum pnet_status fail(const struct pnet_error *e)
{
    fprintf(stderr, "pnet-bench net: %s\n", e->message);
    return e->status;
}

static void fill_field(
    const struct pnet_input_field *f, int64_t rows, int32_t samples, uint32_t seed, void *data)
{
    int64_t count = f->per_cloud ? samples : rows;
    if (!data || f->kind == PNET_INPUT_POSITION || f->kind == PNET_INPUT_POSE) return;
    float *random = bench_floats((size_t)count * (size_t)f->width, seed);
    int32_t *label = data;
    if (f->kind == PNET_INPUT_FEATURE)
        memcpy(data, random, (size_t)count * (size_t)f->width * sizeof *random);
    for (int64_t i = 0; f->kind == PNET_INPUT_CLASS && i < count; i++)
        label[i] = (int32_t)((random[i] + 1) / 2 * (float)f->classes);
    free(random);
}

/* The scene with random features and labels; where the model reads two clouds, it is both. */
static enum pnet_status make_batch(const struct pnet_plan *p, const struct scene *s,
    struct pnet_batch **batch, struct pnet_error *e)
{
    static const int64_t none[SCENES_MAX + 1];
    const int64_t **splits = bench_alloc(((size_t)p->input_count + 1) * sizeof *splits);
    for (int i = 0; i < p->input_count; i++)
        splits[i] =
            p->inputs[i].unused || pnet_input_is_pose(&p->inputs[i]) ? none : s->level.row_splits;
    enum pnet_status st =
        pnet_batch_new(p->inputs, p->input_count, s->level.samples, splits, batch, e);
    for (int i = 0; i < p->input_count && !st; i++) {
        struct pnet_batch_input *in = &(*batch)->inputs[i];
        if (splits[i] == none) continue;
        memcpy(in->xyz, s->level.xyz, (size_t)s->level.rows * 3 * sizeof *in->xyz);
        for (int f = 0; f < p->inputs[i].field_count; f++)
            fill_field(&p->inputs[i].fields[f], s->level.rows, s->level.samples, 11u + (uint32_t)f,
                in->fields[f]);
    }
    free(splits);
    return st;
}

static void close_network(struct network *n)
{
    pnet_updater_close(&n->updater);
    pnet_session_free(n->session);
    pnet_batch_free(n->batch);
    pnet_compilation_free(n->compilation);
}

static const float *weights_find(void *context, const char *name, int64_t count)
{
    const struct weights *w = context;
    int i = pnet_plan_param_find(w->plan, name);
    return i >= 0 && w->plan->params[i].count == count ? w->data + w->plan->params[i].offset : NULL;
}

static enum pnet_status weights_take(
    const struct network *n, struct weights *w, struct pnet_error *e)
{
    *w = (struct weights){n->plan, bench_alloc((size_t)n->plan->param_elements * sizeof *w->data)};
    return pnet_session_read(n->session, PNET_BLOCK_PARAMS, 0, n->plan->param_elements, w->data, e);
}

/* Without weights it gets fresh ones, and is the plain network: on the CPU, every node apart, convolutions by a listing of
   their own. */
static enum pnet_status open_network(const struct net_options *o, const struct scene *s,
    bool training, struct weights *w, struct network *n, struct pnet_error *e)
{
    bool plainly = !w;
    struct pnet_device where = plainly ? (struct pnet_device){PNET_CPU, 0} : o->where;
    struct pnet_compile_options c = {.purpose = training ? PNET_FOR_TRAINING : PNET_FOR_INFERENCE,
        .device = where.kind,
        .precision = plainly ? PNET_FP32 : o->precision,
        .algo = plainly ? PNET_ALGO_MVMR_I : PNET_ALGO_DEFAULT,
        .degrade = o->degrade,
        .sets = o->set,
        .set_count = o->sets,
        .no_fusion = plainly};
    *n = (struct network){.compilation = pnet_compile_file(o->model, &c), .training = training};
    if (!n->compilation) return pnet_error_memory(e);
    n->plan = pnet_compilation_plan(n->compilation);
    if (!n->plan) {
        pnet_compilation_report(n->compilation, stderr, false, false);
        return pnet_error_set(e, PNET_BAD_MODEL, "%s does not compile", o->model);
    }
    struct pnet_optim optim = pnet_optim_default(o->optimizer);
    struct pnet_session_options so = {.slots = 1,
        .seed = 1,
        .device = where,
        .extra_bytes = training ? (int64_t)pnet_updater_bytes(n->plan, &optim) : 0};
    enum pnet_status st = make_batch(n->plan, s, &n->batch, e);
    if (!st) st = pnet_session_new(n->plan, &so, &n->session, e);
    if (!st)
        st = w ? pnet_session_load_params(n->session, weights_find, w, e)
               : pnet_session_init_params(n->session, e);
    if (!st && training) st = pnet_updater_open(&n->updater, n->session, &optim, 0, e);
    if (!st && training) pnet_updater_watch(&n->updater, true);
    if (!st) st = pnet_session_prepare(n->session, 0, n->batch, e);
    return st;
}

/* One forward and backward; the sum of the losses and all gradients, on the host. */
static enum pnet_status run_once(
    struct network *n, double *loss, float **gradients, struct pnet_error *e)
{
    const struct pnet_plan *p = n->plan;
    enum pnet_status st = pnet_session_forward(n->session, 0, true, 0, e);
    if (!st) st = pnet_session_wait(n->session, e);
    *loss = 0;
    for (int i = 0; i < p->objective_count && !st; i++)
        if (!p->objectives[i].metric) *loss += pnet_session_objective(n->session, i, NULL);
    if (!st) st = pnet_session_backward(n->session, 0, 1, false, e);
    if (!st) st = pnet_session_wait(n->session, e);
    *gradients = bench_alloc((size_t)p->trained_elements * sizeof **gradients);
    if (!st)
        st = pnet_session_read(n->session, PNET_BLOCK_GRADS, 0, p->trained_elements, *gradients, e);
    return st;
}

/* Both plans have the same parameters, in orders of their own. */
static double gradient_error(
    const struct pnet_plan *p, const float *x, const struct pnet_plan *q, const float *want)
{
    struct bench_error error = {0, 0};
    for (int i = 0; i < q->param_count; i++) {
        const struct pnet_plan_param *a = &q->params[i];
        int n = pnet_plan_param_find(p, a->name);
        if (!a->info.trained) continue;
        if (n < 0) return INFINITY;
        for (int64_t k = 0; k < a->count; k++)
            bench_error_add(
                &error, (double)x[p->params[n].offset + k], (double)want[a->offset + k]);
    }
    return bench_error_value(&error);
}

/* The network in one precision against the plain one's results. */
static enum pnet_status check_precision(const struct net_options *o, enum pnet_precision precision,
    const struct scene *piece, struct weights *w, const float *want, struct net_result *r)
{
    struct net_options as = *o;
    struct network n;
    struct pnet_error e = {0};
    float *x = NULL;
    double loss = 0;
    as.precision = precision;
    enum pnet_status st = open_network(&as, piece, true, w, &n, &e);
    if (!st) st = run_once(&n, &loss, &x, &e);
    if (st) {
        fail(&e);
    } else {
        r->loss_error[precision] = fabs(loss - r->loss) / fabs(r->loss);
        r->gradient_error[precision] = gradient_error(n.plan, x, w->plan, want);
        if (!(r->loss_error[precision] <= net_loss_tolerance[precision]) ||
            !(r->gradient_error[precision] <= net_gradient_tolerance[precision])) {
            fprintf(stderr,
                "pnet-bench net: a loss of %g instead of %g, gradients off by %g: wrong\n", loss,
                r->loss, r->gradient_error[precision]);
            st = PNET_FAILED;
        }
    }
    free(x);
    close_network(&n);
    return st;
}

/* Wall time of what `run` asks for, when the device has done it: the median of the repeats behind runs that are not
   counted, in which a GPU's schedule is recorded. */
static enum pnet_status time_of(struct network *n, int repeat,
    enum pnet_status (*run)(struct network *n, struct pnet_error *e), double *median,
    struct pnet_error *e)
{
    double seconds[NET_REPEAT_MAX];
    enum pnet_status st = pnet_session_wait(n->session, e);
    int before = pnet_session_device(n->session).kind == PNET_CPU ? 1 : 3;
    for (int i = -before; i < repeat && !st; i++) {
        double begin = bench_now();
        st = run(n, e);
        if (!st) st = pnet_session_wait(n->session, e);
        if (i >= 0) seconds[i] = bench_now() - begin;
    }
    if (!st) *median = bench_median(seconds, repeat);
    return st;
}

static enum pnet_status geometry(struct network *n, struct pnet_error *e)
{
    return pnet_session_prepare(n->session, 0, n->batch, e);
}

static enum pnet_status forward(struct network *n, struct pnet_error *e)
{
    return pnet_session_forward(n->session, 0, n->training, 0, e);
}

static enum pnet_status backward(struct network *n, struct pnet_error *e)
{
    return pnet_session_backward(n->session, 0, 1, false, e);
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

/* A backward needs its forward, which is taken off again. */
static enum pnet_status both_ways(struct network *n, struct pnet_error *e)
{
    enum pnet_status st = forward(n, e);
    return st ? st : backward(n, e);
}

/* What the batch's arrays take on their way to a GPU's memory, by themselves. */
static enum pnet_status time_upload(
    const struct network *n, int repeat, double *median, struct pnet_error *e)
{
    struct pnet_device d = pnet_session_device(n->session);
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

static enum pnet_status measure_training(
    struct network *n, int repeat, struct net_result *r, struct pnet_error *e)
{
    struct net_parts *t = &r->training;
    double both = 0;
    enum pnet_status st = time_of(n, repeat, geometry, &t->geometry, e);
    if (!st) st = time_upload(n, repeat, &t->upload, e);
    if (!st) st = time_of(n, repeat, forward, &t->forward, e);
    if (!st) st = time_of(n, repeat, both_ways, &both, e);
    t->backward = both - t->forward;
    if (!st) st = time_of(n, repeat, optimize, &t->optimizer, e);
    if (!st) st = time_of(n, repeat, whole_step, &t->step, e);
    if (!st) st = net_time_steps(n->session, &n->updater, repeat, r, e);
    r->training_peak = pnet_session_memory(n->session)->peak;
    r->geometry_bytes = pnet_slot_bytes(pnet_session_slot(n->session, 0));
    r->parameters = n->plan->parameter_count;
    return st;
}

static enum pnet_status measure(
    const struct net_options *o, const struct scene *s, struct weights *w, struct net_result *r)
{
    struct network n;
    struct pnet_error e = {0};
    r->points = s->level.rows;
    r->samples = s->level.samples;
    enum pnet_status st = open_network(o, s, true, w, &n, &e);
    if (!st) r->steps = bench_alloc((size_t)n.plan->step_count * sizeof *r->steps);
    if (!st) st = measure_training(&n, o->repeat, r, &e);
    close_network(&n);
    if (st) return fail(&e);
    st = open_network(o, s, false, w, &n, &e);
    if (!st) st = time_of(&n, o->repeat, forward, &r->inference, &e);
    if (!st) r->inference_peak = pnet_session_memory(n.session)->peak;
    close_network(&n);
    return st ? fail(&e) : PNET_OK;
}

int net_run(const struct net_options *o, const struct scene *piece, const struct scene *s,
    struct net_result *r)
{
    struct network plain;
    struct weights w = {NULL, NULL};
    struct pnet_error e = {0};
    float *want = NULL;
    enum pnet_status st = open_network(o, piece, true, NULL, &plain, &e);
    if (!st) st = weights_take(&plain, &w, &e);
    if (!st) st = run_once(&plain, &r->loss, &want, &e);
    if (st) fail(&e);
    if (!st) st = check_precision(o, PNET_FP32, piece, &w, want, r);
    if (!st && o->precision != PNET_FP32) st = check_precision(o, o->precision, piece, &w, want, r);
    if (!st) st = measure(o, s, &w, r);
    free(want);
    free(w.data);
    close_network(&plain);
    return (int)st;
}
