#include "runtime/run/runner_own.h"

#include "runtime/base/clock.h"
#include "runtime/run/peak.h"
#include "runtime/run/runner_host.h"

#include <stddef.h>
#include <stdlib.h>

/* Checks that the device is present, and that every layer has kernels for it. */
static enum pnet_status check_device(const struct pnet_bound *b, struct pnet_error *e)
{
    const struct pnet_plan *p = b->plan;
    enum pnet_status st = pnet_device_check(b->where, e);
    for (int i = 0; i < p->node_count && !st && b->device != PNET_CPU; i++)
        if (!p->nodes[i].dead && (p->nodes[i].op->flags & PNET_CPU_ONLY))
            st =
                pnet_error_set(e, PNET_NO_DEVICE, "%s: %s() has no kernels for a GPU: --device cpu",
                    p->nodes[i].path, p->nodes[i].op->name);
    return st ? st : pnet_device_enter(b->where, e);
}

/* Allocates the memory that does not depend on batches. */
static enum pnet_status make_memory(struct pnet_runner *s, int64_t extra, struct pnet_error *e)
{
    const struct pnet_plan *p = s->plan;
    size_t params = (size_t)p->param_elements * sizeof(float),
           grads = p->training ? (size_t)p->trained_elements * sizeof(float) : 0;
    enum pnet_status st = PNET_OK;
    if (s->device.kind != PNET_CPU)
        st = pnet_buffer_ensure(&s->memory, &s->live, PNET_LIVE_BYTES, "the session", e);
    if (!st) st = pnet_buffer_ensure(&s->memory, &s->params, params, "the parameters", e);
    if (!st && grads) st = pnet_buffer_ensure(&s->memory, &s->grads, grads, "the gradients", e);
    if (!st && extra > 0)
        st = pnet_buffer_ensure(&s->memory, &s->extra, (size_t)extra, "the optimiser's state", e);
    if (st) return st;
    pnet_device_fill(s->device, s->params.data, 0, s->params.size);
    pnet_device_fill(s->device, s->grads.data, 0, s->grads.size);
    pnet_device_fill(s->device, s->extra.data, 0, s->extra.size);
    return PNET_OK;
}

enum pnet_status pnet_runner_new(const struct pnet_bound *b, const struct pnet_runner_options *o,
    struct pnet_runner **runner, struct pnet_error *e)
{
    struct pnet_runner *s = calloc(1, sizeof *s);
    if (!s) return pnet_error_memory(e);
    s->bound = b;
    s->plan = b->plan;
    s->device = b->where;
    s->seed = o->seed;
    s->no_recording = o->no_recording;
    pnet_memory_init(&s->memory, s->device, o->memory_limit);
    if (o->supply) s->memory.supply = *o->supply;
    s->times = calloc((size_t)s->plan->step_count + 1, sizeof *s->times);
    s->seeded = calloc((size_t)s->plan->output_count + 1, sizeof *s->seeded);
    enum pnet_status st = pnet_counts_new(s->plan, &s->class_, e);
    if (!st && (!s->times || !s->seeded)) st = pnet_error_memory(e);
    if (!st) st = check_device(b, e);
    if (!st) st = make_memory(s, o->extra_bytes, e);
    if (!st) st = pnet_geo_work_new(b, &s->memory, &s->work, e);
    if (!st && o->slots == 1) s->work->idle = &s->arena; /* no batch runs while one is built */
    for (int i = 0; i < o->slots && !st; i++) st = pnet_slot_new(s->work, &s->slots[i], e);
    if (!st)
        *runner = s;
    else
        pnet_runner_free(s);
    return st;
}

void pnet_runner_free(struct pnet_runner *s)
{
    if (!s) return;
    for (int i = 0; i < 2; i++) pnet_slot_free(s->slots[i]);
    pnet_geo_work_free(s->work);
    pnet_buffer_free(&s->memory, &s->params);
    pnet_buffer_free(&s->memory, &s->grads);
    pnet_buffer_free(&s->memory, &s->extra);
    pnet_buffer_free(&s->memory, &s->arena);
    pnet_buffer_free(&s->memory, &s->live);
    pnet_runner_free_recordings(s);
    pnet_layout_free(&s->layout);
    pnet_counts_free(&s->class_);
    free(s->times);
    free(s->seeded);
    pnet_memory_end(&s->memory);
    free(s);
}

const struct pnet_bound *pnet_runner_bound(const struct pnet_runner *s)
{
    return s->bound;
}
const struct pnet_plan *pnet_runner_plan(const struct pnet_runner *s)
{
    return s->plan;
}
struct pnet_device pnet_runner_device(const struct pnet_runner *s)
{
    return s->device;
}
uint64_t pnet_runner_seed(const struct pnet_runner *s)
{
    return s->seed;
}
float *pnet_runner_params(struct pnet_runner *s)
{
    return s->params.data;
}
float *pnet_runner_grads(struct pnet_runner *s)
{
    return s->grads.data;
}
void *pnet_runner_extra(struct pnet_runner *s)
{
    return s->extra.data;
}

float *pnet_runner_block_data(const struct pnet_runner *s, enum pnet_runner_block block)
{
    const struct pnet_buffer *blocks[] = {&s->params, &s->grads, &s->extra};
    return blocks[block]->data;
}

enum pnet_status pnet_runner_read(const struct pnet_runner *s, enum pnet_runner_block block,
    int64_t offset, int64_t count, float *to, struct pnet_error *e)
{
    enum pnet_status st = pnet_device_enter(s->device, e);
    if (st) return st;
    if (count)
        pnet_device_get(
            s->device, to, pnet_runner_block_data(s, block) + offset, (size_t)count * sizeof *to);
    return pnet_device_wait(s->device, e);
}

enum pnet_status pnet_runner_write(struct pnet_runner *s, enum pnet_runner_block block,
    int64_t offset, int64_t count, const float *from, struct pnet_error *e)
{
    enum pnet_status st = pnet_device_enter(s->device, e);
    if (st) return st;
    if (count)
        pnet_device_put(s->device, pnet_runner_block_data(s, block) + offset, from,
            (size_t)count * sizeof *from);
    return pnet_device_wait(s->device, e);
}
const struct pnet_slot *pnet_runner_slot(const struct pnet_runner *s, int slot)
{
    return s->slots[slot];
}
const struct pnet_memory *pnet_runner_memory(const struct pnet_runner *s)
{
    return &s->memory;
}
size_t pnet_runner_planned(const struct pnet_runner *s)
{
    return s->planned;
}
const double *pnet_runner_times(const struct pnet_runner *s)
{
    return s->times;
}

enum pnet_status pnet_runner_prepare(
    struct pnet_runner *s, int slot, const struct pnet_batch *b, struct pnet_error *e)
{
    return pnet_slot_build(s->slots[slot], b, e);
}

static bool same_class(const struct pnet_runner *s, const struct pnet_counts *c)
{
    if (!s->laid_out || s->class_.samples != c->samples) return false;
    for (int l = 0; l < s->plan->level_count; l++)
        if (s->class_.rows[l] != pnet_capacity(c->rows[l])) return false;
    for (int i = 0; i < s->plan->geo_count; i++)
        for (int k = 0; k < pnet_geo_kind(s->plan->geo[i].request.kind)->class_counts; k++)
            if (s->class_.of[i][k] != pnet_capacity(c->of[i][k])) return false;
    return true;
}

static enum pnet_status lay_out(
    struct pnet_runner *s, const struct pnet_counts *c, struct pnet_error *e)
{
    if (same_class(s, c)) return PNET_OK;
    s->laid_out = false;
    enum pnet_status st = PNET_OK;
    /* retry with steps in sequence if the layout for concurrent steps exceeds the budget */
    for (int concurrent = 1; concurrent >= 0; concurrent--) {
        pnet_layout_free(&s->layout);
        st = pnet_layout_make(s->bound, c, concurrent, &s->layout, e);
        if (st) return st;
        st = pnet_buffer_ensure(&s->memory, &s->arena, s->layout.total, "the feature stage", e);
        if (st != PNET_NO_MEMORY) break;
    }
    if (st) {
        pnet_layout_name_peak(s->plan, &s->layout, e);
        return st;
    }
    s->class_.samples = c->samples;
    for (int l = 0; l < s->plan->level_count; l++) s->class_.rows[l] = pnet_capacity(c->rows[l]);
    for (int i = 0; i < s->plan->geo_count; i++)
        for (int k = 0; k < PNET_GEO_COUNTS; k++) s->class_.of[i][k] = pnet_capacity(c->of[i][k]);
    s->laid_out = true;
    return PNET_OK;
}

static void note_planned(struct pnet_runner *s, const struct pnet_counts *c)
{
    int slots = s->slots[1] ? 2 : 1;
    size_t planned = pnet_peak_of(s->bound, c, &s->layout, slots, s->extra.size).total;
    if (planned > s->planned) s->planned = planned;
}

/* Returns the address of a member of pnet_runner_live: in device memory, or on the CPU in the runner itself. */
static void *live_of(const struct pnet_runner *s, size_t member)
{
    char *live = s->live.data ? s->live.data : (char *)(uintptr_t)&s->host_live;
    return live + member;
}

void *pnet_runner_data(const struct pnet_runner *s, const struct pnet_slot *slot, int tensor)
{
    const struct pnet_plan_tensor *t = &s->plan->tensors[tensor];
    if (t->first < 0) return NULL;
    if (t->role == PNET_ROLE_INPUT) return slot->fields[tensor].data;
    return (char *)s->arena.data + s->layout.offset[tensor];
}

static void point(
    const struct pnet_runner *s, const struct pnet_slot *slot, int tensor, struct pnet_tensor *t)
{
    t->data = pnet_runner_data(s, slot, tensor);
    t->row_splits = pnet_slot_splits(slot, t->level);
    t->live = pnet_slot_live(slot, t->level);
}

/* Points a gradient at its memory; it has the rows of its tensor. -1: the gradient is not wanted. */
static void point_gradient(const struct pnet_runner *s, const struct pnet_slot *slot, int gradient,
    const struct pnet_tensor *of, struct pnet_tensor *t)
{
    t->data = gradient >= 0 ? pnet_runner_data(s, slot, gradient) : NULL;
    t->row_splits = of->row_splits;
    t->live = of->live;
}

static void point_params(const struct pnet_runner *s, int step, struct pnet_exec *x)
{
    const struct pnet_step *st = &s->plan->steps[step];
    const struct pnet_node *n = &s->plan->nodes[st->node];
    for (int i = 0; i < n->param_count; i++) {
        const struct pnet_plan_param *q = &s->plan->params[n->param[i]];
        x->param[i] = (float *)s->params.data + q->offset;
        if (st->backward && q->info.trained) x->gparam[i] = (float *)s->grads.data + q->offset;
    }
}

void pnet_runner_exec(
    const struct pnet_runner *s, int slot_index, int step, bool training, struct pnet_exec *x)
{
    const struct pnet_slot *slot = s->slots[slot_index];
    const struct pnet_step *st = &s->plan->steps[step];
    const struct pnet_node *n = &s->plan->nodes[st->node];
    bool gpu = s->device.kind != PNET_CPU;
    pnet_bound_exec(s->bound, step, &slot->counts, gpu, slot->step_views, x);
    x->training = training;
    x->rand.seed = s->seed;
    x->rand.a = s->step;
    if (gpu) x->rand.live = live_of(s, offsetof(struct pnet_runner_live, step));
    for (int i = 0; i < n->in_count; i++) {
        point(s, slot, n->in[i], &x->in[i]);
        point_gradient(s, slot, st->backward ? st->gin[i] : -1, &x->in[i], &x->gin[i]);
        if (st->backward && !(n->op->keep & (1u << i))) x->in[i].data = NULL;
    }
    point(s, slot, n->out, &x->out);
    point_gradient(s, slot, st->backward ? st->gout : -1, &x->out, &x->gout);
    if (st->backward && !(n->op->keep & PNET_KEEP_OUT) && !n->act) x->out.data = NULL;
    for (int i = 0; i < n->saved_count; i++) point(s, slot, n->saved[i], &x->saved[i]);
    point_params(s, step, x);
    x->work_bytes = s->layout.work_bytes[step];
    x->work = x->work_bytes ? (char *)s->arena.data + s->layout.work[step] : NULL;
}

void pnet_runner_poison(struct pnet_runner *s)
{
    pnet_device_fill(s->device, s->arena.data, 0xff, s->arena.size);
}

void pnet_runner_begin_backward(const struct pnet_runner *s, int slot)
{
    const void *scale = live_of(s, offsetof(struct pnet_runner_live, scale));
    for (int i = 0; i < s->bound->seed_count; i++)
        pnet_device_copy(s->device, pnet_runner_data(s, s->slots[slot], s->bound->seeds[i]), scale,
            sizeof(float));
}

void pnet_runner_run_step(
    const struct pnet_runner *s, int slot, int step, bool training, bool accumulate)
{
    const struct pnet_node *node = &s->plan->nodes[s->plan->steps[step].node];
    const struct pnet_op *op = node->op;
    struct pnet_exec x;
    if (training && op->class_ == PNET_METRIC) return; /* metrics run in evaluation */
    pnet_runner_exec(s, slot, step, training, &x);
    for (int k = 0; k < PNET_MAX_PARAMS; k++) x.gparam_add[k] |= accumulate;
    (s->plan->steps[step].backward ? op->backward : op->forward)(&x);
    pnet_device_note(s->device, node->path);
}

bool pnet_runner_listen(struct pnet_runner *s, pnet_gradients_ready *ready, void *context)
{
    pnet_runner_unlisten(s, ready, context);
    if (s->listener_count == PNET_LISTENERS) return false;
    s->listeners[s->listener_count++] = (struct pnet_runner_listener){ready, context};
    return true;
}

void pnet_runner_unlisten(struct pnet_runner *s, pnet_gradients_ready *ready, void *context)
{
    int kept = 0;
    for (int i = 0; i < s->listener_count; i++) {
        struct pnet_runner_listener l = s->listeners[i];
        if (l.ready != ready || l.context != context) s->listeners[kept++] = l;
    }
    s->listener_count = kept;
}

/* Parameters lie in the order in which backward finishes their gradients. */
int64_t pnet_runner_ready_end(const struct pnet_runner *s, int step, int64_t notified)
{
    enum { ENOUGH = 1 << 20 };
    const struct pnet_plan *p = s->plan;
    const struct pnet_node *n = &p->nodes[p->steps[step].node];
    int64_t end = notified;
    for (int i = 0; i < n->param_count; i++) {
        const struct pnet_plan_param *q = &p->params[n->param[i]];
        if (q->last_use == step && q->offset + q->count > end) end = q->offset + q->count;
    }
    return end - notified < ENOUGH ? notified : end;
}

void pnet_runner_notify(const struct pnet_runner *s, int64_t begin, int64_t end)
{
    for (int i = 0; i < s->listener_count && begin < end; i++)
        s->listeners[i].ready(s->listeners[i].context, begin, end);
}

void pnet_runner_run_pass(struct pnet_runner *s, const struct pnet_runner_pass *pass)
{
    int64_t notified = 0;
    if (pass->first == s->plan->forward_steps) pnet_runner_begin_backward(s, pass->slot);
    for (int i = pass->first; i < pass->last; i++) {
        double begin = pnet_seconds();
        pnet_runner_run_step(s, pass->slot, i, pass->training, pass->accumulate);
        int64_t end = pass->notifies ? pnet_runner_ready_end(s, i, notified) : notified;
        pnet_runner_notify(s, notified, end);
        notified = end;
        s->times[i] += pnet_seconds() - begin;
    }
}

static struct pnet_stretch locate(void *runner, enum pnet_object object, int index)
{
    const struct pnet_runner *s = runner;
    const struct pnet_plan_param *q = &s->plan->params[index]; /* if it is one */
    const char *at = NULL;
    size_t bytes = 0;
    switch (object) {
    case PNET_OBJECT_TENSOR:
        at = (const char *)s->arena.data + s->layout.offset[index];
        bytes = s->layout.bytes[index];
        break;
    case PNET_OBJECT_WORK:
        at = (const char *)s->arena.data + s->layout.work[index];
        bytes = s->layout.work_bytes[index];
        break;
    case PNET_OBJECT_PARAM:
        at = (const char *)((const float *)s->params.data + q->offset);
        bytes = (size_t)q->count * sizeof(float);
        break;
    case PNET_OBJECT_GRADIENT:
        at = (const char *)((const float *)s->grads.data + q->offset);
        bytes = (size_t)q->count * sizeof(float);
        break;
    }
    return (struct pnet_stretch){(uintptr_t)at, (uintptr_t)at + bytes, false};
}

void pnet_runner_touches(
    const struct pnet_runner *s, int step, struct pnet_touched parts[PNET_STEP_PARTS])
{
    for (int i = 0; i < PNET_STEP_PARTS; i++)
        pnet_step_touches(s->plan, step, i, locate, (void *)s, &parts[i]);
}

static enum pnet_status run_pass(
    struct pnet_runner *s, const struct pnet_runner_pass *pass, struct pnet_error *e)
{
    if (s->device.kind != PNET_CPU && !s->no_recording) return pnet_runner_replay_pass(s, pass, e);
    pnet_runner_run_pass(s, pass);
    return PNET_OK;
}

enum pnet_status pnet_runner_forward(
    struct pnet_runner *s, int slot, bool training, uint32_t step, struct pnet_error *e)
{
    enum pnet_status st = pnet_device_enter(s->device, e);
    if (!st) st = lay_out(s, &s->slots[slot]->counts, e);
    if (st) return st;
    note_planned(s, &s->slots[slot]->counts);
    s->step = step;
    for (int i = 0; i < s->plan->output_count; i++) s->seeded[i] = false;
    if (s->live.data)
        pnet_device_put(
            s->device, live_of(s, offsetof(struct pnet_runner_live, step)), &step, sizeof step);
    int last = s->bound->device_steps;
    st = run_pass(s, &(struct pnet_runner_pass){slot, 0, last, .training = training}, e);
    for (int i = last; i < s->plan->forward_steps && !training && !st; i++)
        st = pnet_runner_run_on_host(s, slot, i, e);
    return st;
}

enum pnet_status pnet_runner_backward(
    struct pnet_runner *s, int slot, float scale, bool accumulate, struct pnet_error *e)
{
    pnet_device_put(
        s->device, live_of(s, offsetof(struct pnet_runner_live, scale)), &scale, sizeof scale);
    struct pnet_runner_pass pass = {.slot = slot,
        .first = s->plan->forward_steps,
        .last = s->plan->step_count,
        .training = true,
        .accumulate = accumulate,
        .notifies = s->listener_count > 0};
    pnet_runner_seed_rest(s, slot);
    return run_pass(s, &pass, e);
}

enum pnet_status pnet_runner_walk(
    struct pnet_runner *s, int slot, pnet_runner_visit *visit, void *context, struct pnet_error *e)
{
    const struct pnet_runner_live live = {.step = s->step, .scale = 1};
    const struct pnet_plan *p = s->plan;
    enum pnet_status st = pnet_device_enter(s->device, e);
    if (!st) st = lay_out(s, &s->slots[slot]->counts, e);
    if (st) return st;
    pnet_device_put(s->device, live_of(s, 0), &live, sizeof live);
    for (int i = 0; i < p->step_count && !st; i++) {
        struct pnet_exec x;
        if (p->nodes[p->steps[i].node].op->class_ == PNET_METRIC) continue;
        if (i == p->forward_steps) pnet_runner_seed_rest(s, slot);
        pnet_runner_exec(s, slot, i, p->training, &x);
        st = visit(context, i, &x, e);
        if (!st)
            pnet_runner_run_pass(
                s, &(struct pnet_runner_pass){slot, i, i + 1, .training = p->training});
    }
    return st ? st : pnet_device_wait(s->device, e);
}

enum pnet_status pnet_runner_wait(struct pnet_runner *s, struct pnet_error *e)
{
    return pnet_device_wait(s->device, e);
}
