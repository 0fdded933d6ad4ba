#include "bench/net_steps.h"

#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#ifdef PNET_CUDA_BUILT
#include "kernels/cuda/conv/conv_clock.h"
#endif

/* A step of the schedule, bound to its memory. */
struct bound_step {
    struct pnet_exec exec;
    pnet_kernel *kernel; /* NULL: a training leaves the step out */
    bool seed;           /* backward: the step begins with the gradient of a loss, which is 1 */
    void *begin, *end;   /* GPU: its marks; `begin` is the `end` of the step before */
    double seconds[NET_REPEAT_MAX];
};

static bool seeded(const struct pnet_plan *p, const struct pnet_step *s)
{
    const struct pnet_plan_tensor *g = s->backward ? &p->tensors[s->gout] : NULL;
    return g && g->role == PNET_ROLE_GRAD && g->first == p->forward_steps &&
           p->tensors[g->of].type.level == p->scalar_level;
}

static struct bound_step *bind_steps(const struct pnet_runner *s, const struct pnet_plan *p)
{
    struct bound_step *bound = bench_alloc((size_t)p->step_count * sizeof *bound);
    memset(bound, 0, (size_t)p->step_count * sizeof *bound);
    for (int i = 0; i < p->step_count; i++) {
        const struct pnet_op *op = p->nodes[p->steps[i].node].op;
        if (op->class_ == PNET_METRIC) continue;
        pnet_runner_exec(s, 0, i, true, &bound[i].exec);
        bound[i].kernel = p->steps[i].backward ? op->backward : op->forward;
        bound[i].seed = seeded(p, &p->steps[i]);
    }
    return bound;
}

static void time_on_cpu(
    const struct pnet_plan *p, struct bound_step *bound, int repeat, struct net_result *r)
{
    static const float one = 1;
    for (int run = -1; run < repeat; run++) {
        for (int i = 0; i < p->step_count; i++) {
            struct bound_step *b = &bound[i];
            if (!b->kernel) continue;
            if (b->seed) memcpy(b->exec.gout.data, &one, sizeof one);
            double begin = bench_now();
            b->kernel(&b->exec);
            if (run >= 0) b->seconds[run] = bench_now() - begin;
        }
    }
    r->optimizer = r->training.optimizer;
}

#ifdef PNET_CUDA_BUILT
/* Steps in sequence, without marks and with them; and as a runner records them: all, convolutions, convolutions and linear
   layers. */
enum { PLAIN, MARKED, CONCURRENT, CONVOLUTIONS, PRODUCTS, KINDS };

/* Forward or backward. */
struct pass {
    int first, last; /* steps first .. last - 1 */
    int marks;
    void *begin; /* the mark before the first step */
    void *record[KINDS];
    double seconds[KINDS][NET_REPEAT_MAX];
};

static bool make_marks(struct pass *pass, struct bound_step *bound)
{
    void *last = pass->begin = pnet_cuda_mark_new();
    pass->marks = 1;
    for (int i = pass->first; i < pass->last && last; i++) {
        if (!bound[i].kernel) continue;
        bound[i].begin = last;
        last = bound[i].end = pnet_cuda_mark_new();
        pass->marks++;
    }
    return last != NULL;
}

/* `one`: 1 as float32, on the device. */
static void *record_pass(struct pnet_device d, const struct pass *pass,
    const struct bound_step *bound, const void *one, bool marked)
{
    pnet_device_record_begin(d);
    for (int i = pass->first; i < pass->last; i++)
        if (bound[i].seed) pnet_device_copy(d, bound[i].exec.gout.data, one, sizeof(float));
    if (marked) pnet_cuda_mark_set(pass->begin);
    for (int i = pass->first; i < pass->last; i++) {
        if (!bound[i].kernel) continue;
        bound[i].kernel(&bound[i].exec);
        if (marked) pnet_cuda_mark_set(bound[i].end);
    }
    return pnet_device_record_end(d);
}

static bool convolves(void *plan, int step)
{
    const struct pnet_plan *p = plan;
    return strcmp(p->nodes[p->steps[step].node].op->name, "conv") == 0;
}

static bool multiplies(void *plan, int step)
{
    const struct pnet_plan *p = plan;
    return convolves(plan, step) || strcmp(p->nodes[p->steps[step].node].op->name, "linear") == 0;
}

static void *record_kind(struct pnet_runner *s, const struct pass *pass,
    const struct bound_step *bound, const void *one, int kind)
{
    pnet_runner_wanted *wanted[KINDS] = {[CONVOLUTIONS] = convolves, [PRODUCTS] = multiplies};
    if (kind < CONCURRENT)
        return record_pass(pnet_runner_device(s), pass, bound, one, kind == MARKED);
    return pnet_runner_record(s, 0, pass->first > 0, wanted[kind], (void *)pnet_runner_plan(s));
}

static enum pnet_status prepare_pass(struct pnet_runner *s, struct pass *pass,
    struct bound_step *bound, const void *one, struct pnet_error *e)
{
    struct pnet_device d = pnet_runner_device(s);
    if (!make_marks(pass, bound))
        return pnet_error_set(e, PNET_NO_DEVICE, "the device has no marks left");
    for (int kind = 0; kind < KINDS; kind++) {
        pass->record[kind] = record_kind(s, pass, bound, one, kind);
        if (pass->record[kind]) continue;
        enum pnet_status st = pnet_device_wait(d, e);
        return st ? st : pnet_error_set(e, PNET_NO_DEVICE, "the steps could not be recorded");
    }
    return PNET_OK;
}

/* Launches a step of training. The optimiser reuses the record of its last step, so no number comes from the host. */
static void ask_step(struct pnet_device d, const struct pass pass[2], int kind,
    struct pnet_updater *u, void *const at[4])
{
    pnet_cuda_mark_set(at[0]);
    for (int i = 0; i < 2; i++) {
        pnet_device_replay(d, pass[i].record[kind]);
        pnet_cuda_mark_set(at[i + 1]);
    }
    pnet_updater_note_losses(u, 1, false);
    pnet_updater_apply(u, kind == CONCURRENT);
    pnet_cuda_mark_set(at[3]);
}

static enum pnet_status between(void *first, void *second, double *seconds, struct pnet_error *e)
{
    *seconds = 1e-3 * pnet_cuda_mark_ms(first, second);
    return isnan(*seconds) ? pnet_error_set(e, PNET_NO_DEVICE, "a mark tells no time") : PNET_OK;
}

/* The first of two steps keeps the device busy while the host launches the second, and leaves the caches as a step does. */
static enum pnet_status time_runs(struct pnet_runner *s, struct pass pass[2],
    struct bound_step *bound, struct pnet_updater *u, int repeat, void *const at[4],
    struct net_result *r, struct pnet_error *e)
{
    struct pnet_device d = pnet_runner_device(s);
    double optimizer[NET_REPEAT_MAX];
    enum pnet_status st = PNET_OK;
    for (int run = -1; run < repeat && !st; run++) {
        int to = run < 0 ? 0 : run;
        for (int kind = 0; kind < KINDS && !st; kind++) {
            ask_step(d, pass, PLAIN, u, at);
            ask_step(d, pass, kind, u, at);
            st = pnet_runner_wait(s, e);
            for (int i = 0; i < 2 && !st; i++)
                st = between(at[i], at[i + 1], &pass[i].seconds[kind][to], e);
            if (!st && kind == CONCURRENT) st = between(at[2], at[3], &optimizer[to], e);
        }
        for (int i = 0; i < pass[1].last && !st; i++)
            if (bound[i].kernel)
                st = between(bound[i].begin, bound[i].end, &bound[i].seconds[to], e);
    }
    if (!st) r->optimizer = bench_median(optimizer, repeat);
    return st;
}

/* Sets the medians of a pass, and takes the time of its marks off its steps. */
static void tell_pass(
    struct pass *pass, struct bound_step *bound, int repeat, int to, struct net_result *r)
{
    double median[KINDS];
    for (int kind = 0; kind < KINDS; kind++)
        median[kind] = bench_median(pass->seconds[kind], repeat);
    r->recorded[to] = median[PLAIN];
    r->mark[to] = (median[MARKED] - median[PLAIN]) / pass->marks;
    r->concurrent[to] = median[CONCURRENT];
    r->conv[to] = median[CONVOLUTIONS];
    r->product[to] = median[PRODUCTS];
    for (int i = pass->first; i < pass->last; i++)
        for (int run = 0; run < repeat; run++)
            bound[i].seconds[run] = fmax(bound[i].seconds[run] - r->mark[to], 0);
}

static void free_pass(struct pnet_device d, struct pass *pass, struct bound_step *bound)
{
    for (int kind = 0; kind < KINDS; kind++)
        if (pass->record[kind]) pnet_device_record_free(d, pass->record[kind]);
    pnet_cuda_mark_free(pass->begin);
    for (int i = pass->first; i < pass->last; i++) pnet_cuda_mark_free(bound[i].end);
}

static enum pnet_status time_on_gpu(struct pnet_runner *s, const struct pnet_plan *p,
    struct bound_step *bound, struct pnet_updater *u, int repeat, struct net_result *r,
    struct pnet_error *e)
{
    static const float one = 1;
    struct pnet_device d = pnet_runner_device(s);
    struct pass pass[2] = {
        {.first = 0, .last = p->forward_steps}, {.first = p->forward_steps, .last = p->step_count}};
    void *at[4], *seed = pnet_device_alloc(d, sizeof one);
    bool marks = true;
    for (int i = 0; i < 4; i++) marks &= (at[i] = pnet_cuda_mark_new()) != NULL;
    enum pnet_status st = seed ? PNET_OK : pnet_error_memory(e);
    if (!st && !marks) st = pnet_error_set(e, PNET_NO_DEVICE, "the device has no marks left");
    if (!st) {
        pnet_device_put(d, seed, &one, sizeof one);
        st = pnet_device_wait(d, e);
    }
    for (int i = 0; i < 2 && !st; i++) st = prepare_pass(s, &pass[i], bound, seed, e);
    if (!st) st = time_runs(s, pass, bound, u, repeat, at, r, e);
    for (int i = 0; i < 2 && !st; i++) tell_pass(&pass[i], bound, repeat, i, r);
    for (int i = 0; i < 2; i++) free_pass(d, &pass[i], bound);
    for (int i = 0; i < 4; i++) pnet_cuda_mark_free(at[i]);
    pnet_device_free(d, seed);
    return st;
}
#endif

/* Writes a row with forward and backward for each node that has a forward step. */
static void collect_steps(
    const struct pnet_plan *p, struct bound_step *bound, int repeat, struct net_result *r)
{
    int *row_of = bench_alloc((size_t)p->node_count * sizeof *row_of);
    for (int i = 0; i < p->step_count; i++) {
        const struct pnet_node *node = &p->nodes[p->steps[i].node];
        if (!bound[i].kernel) continue;
        double seconds = bench_median(bound[i].seconds, repeat);
        if (p->steps[i].backward) {
            r->steps[row_of[p->steps[i].node]].backward += seconds;
            continue;
        }
        row_of[p->steps[i].node] = r->step_count;
        struct net_step *s = &r->steps[r->step_count++];
        *s = (struct net_step){.op = node->op->name,
            .rows = bound[i].exec.out.rows,
            .width = bound[i].exec.out.width,
            .forward = seconds};
        snprintf(s->path, sizeof s->path, "%s", node->path);
    }
    free(row_of);
}

enum pnet_status pnet_bench_net_time_steps(struct pnet_runner *s, struct pnet_updater *u,
    int repeat, struct net_result *r, struct pnet_error *e)
{
    const struct pnet_plan *p = pnet_runner_plan(s);
    enum pnet_status st = pnet_runner_forward(s, 0, true, 0, e);
    if (!st) st = pnet_runner_wait(s, e);
    if (st) return st;
    struct bound_step *bound = bind_steps(s, p);
#ifdef PNET_CUDA_BUILT
    if (pnet_runner_bound(s)->device == PNET_CUDA)
        st = time_on_gpu(s, p, bound, u, repeat, r, e);
    else
#endif
        time_on_cpu(p, bound, repeat, r);
    (void)u;
    if (!st) collect_steps(p, bound, repeat, r);
    free(bound);
    return st;
}
