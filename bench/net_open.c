#include "bench/net_open.h"

#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

/* The scale of the loss with which a training in fp16 begins. It is a power of two, so it rounds nothing. */
static const float FIRST_SCALE = 65536;

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

/* Makes a batch of the scene with random features and labels; if the model reads two clouds, both are the scene. */
static enum pnet_status make_batch(const struct pnet_plan *p, const struct scene *s, uint64_t seed,
    struct pnet_batch **batch, struct pnet_error *e)
{
    const uint32_t first = 11 + 1000 * (uint32_t)(seed - 1);
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
            fill_field(&p->inputs[i].fields[f], s->level.rows, s->level.samples,
                first + (uint32_t)f, in->fields[f]);
    }
    free(splits);
    return st;
}

void pnet_bench_net_close(struct network *n)
{
    pnet_updater_close(&n->updater);
    pnet_runner_free(n->runner);
    pnet_bound_free(n->bound);
    pnet_batch_free(n->batch);
    pnet_compilation_free(n->compilation);
}

static const float *weights_find(void *context, const char *name, int64_t count)
{
    const struct net_weights *w = context;
    int i = pnet_plan_param_find(w->plan, name);
    const struct pnet_plan_param *q = i >= 0 ? &w->plan->params[i] : NULL;
    return q && q->offset >= 0 && q->count == count ? w->data + q->offset : NULL;
}

enum pnet_status pnet_bench_net_weights_take(
    const struct network *n, struct net_weights *w, struct pnet_error *e)
{
    *w = (struct net_weights){
        n->plan, bench_alloc((size_t)n->plan->param_elements * sizeof *w->data)};
    return pnet_runner_read(n->runner, PNET_BLOCK_PARAMS, 0, n->plan->param_elements, w->data, e);
}

enum pnet_status pnet_bench_net_open(const struct net_options *o, const struct scene *s,
    bool training, struct net_weights *w, struct network *n, struct pnet_error *e)
{
    bool plainly = !w;
    struct pnet_compile_options c = {.purpose = training ? PNET_FOR_TRAINING : PNET_FOR_INFERENCE,
        .degrade = o->degrade,
        .sets = o->set,
        .set_count = o->sets,
        .no_fusion = plainly};
    *n = (struct network){.training = training,
        .compilation = o->text ? pnet_compile_text(o->model, o->text, strlen(o->text), &c)
                               : pnet_compile_file(o->model, &c)};
    if (!n->compilation) return pnet_error_memory(e);
    n->plan = pnet_compilation_plan(n->compilation);
    if (!n->plan) {
        pnet_compilation_report(n->compilation, stderr, false, false);
        return pnet_error_set(e, PNET_BAD_MODEL, "%s does not compile", o->model);
    }
    enum pnet_status st = pnet_compilation_guard(n->compilation, e);
    if (st) return st;
    struct pnet_target target = {.where = plainly ? (struct pnet_device){PNET_CPU, 0} : o->where,
        .precision = plainly ? PNET_FP32 : o->precision,
        .algo = plainly ? PNET_ALGO_MVMR_I : PNET_ALGO_DEFAULT};
    st = pnet_bound_new(n->plan, &target, &n->bound, e);
    if (st) return st;
    struct pnet_optim optim = pnet_optim_default(o->optimizer);
    struct pnet_runner_options so = {.slots = 1,
        .seed = o->seed,
        .extra_bytes = training ? (int64_t)pnet_updater_bytes(n->bound, &optim) : 0};
    st = make_batch(n->plan, s, o->seed, &n->batch, e);
    if (!st) st = pnet_runner_new(n->bound, &so, &n->runner, e);
    if (!st)
        st = w ? pnet_runner_load_params(n->runner, weights_find, w, e)
               : pnet_runner_init_params(n->runner, e);
    if (!st && training) st = pnet_updater_open(&n->updater, n->runner, &optim, 0, e);
    if (!st && training) pnet_updater_watch(&n->updater, true);
    if (!st) st = pnet_runner_prepare(n->runner, 0, n->batch, e);
    return st;
}

static enum pnet_status run_once(
    struct network *n, float scale, double *loss, float *gradients, struct pnet_error *e)
{
    const struct pnet_plan *p = n->plan;
    enum pnet_status st = pnet_runner_forward(n->runner, 0, true, 0, e);
    if (!st) st = pnet_runner_wait(n->runner, e);
    *loss = 0;
    for (int i = 0; i < p->objective_count && !st; i++)
        if (!p->objectives[i].metric) *loss += pnet_runner_objective(n->runner, i, NULL);
    if (!st) st = pnet_runner_backward(n->runner, 0, scale, false, e);
    if (!st) st = pnet_runner_wait(n->runner, e);
    if (!st)
        st = pnet_runner_read(n->runner, PNET_BLOCK_GRADS, 0, p->trained_elements, gradients, e);
    return st;
}

static bool all_finite(const float *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

/* Both plans have the same parameters, in different orders. */
static void reorder(const struct pnet_plan *p, const float *from, float scale,
    const struct pnet_plan *as, float *to)
{
    memset(to, 0, (size_t)as->trained_elements * sizeof *to);
    for (int i = 0; i < as->param_count; i++) {
        const struct pnet_plan_param *a = &as->params[i];
        int n = pnet_plan_param_find(p, a->name);
        bool used = a->offset >= 0; /* by a loss */
        for (int64_t k = 0; used && a->info.trained && k < a->count; k++)
            to[a->offset + k] = n < 0 ? NAN : from[p->params[n].offset + k] / scale;
    }
}

enum pnet_status pnet_bench_net_gradients_of(struct network *n, const struct pnet_plan *as,
    double *loss, float **gradients, struct pnet_error *e)
{
    const struct pnet_plan *p = n->plan;
    float scale = n->bound->precision == PNET_FP16 ? FIRST_SCALE : 1;
    float *own = bench_alloc((size_t)p->trained_elements * sizeof *own);
    enum pnet_status st = run_once(n, scale, loss, own, e);
    while (!st && scale > 1 && !all_finite(own, p->trained_elements)) {
        scale /= 2;
        st = run_once(n, scale, loss, own, e);
    }
    *gradients = bench_alloc((size_t)as->trained_elements * sizeof **gradients);
    if (!st) reorder(p, own, scale, as, *gradients);
    free(own);
    return st;
}
