#include "runtime/run/session.h"

#include "kernels/philox.h"
#include "runtime/run/bind.h"
#include "runtime/base/clock.h"
#include "runtime/run/session_host.h"
#include "runtime/run/session_record.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a recorded schedule reads of its batch beside the counts: in device memory, written before each replay. */
struct live {
    float scale;   /* of the losses' gradients */
    uint32_t step; /* of dropout's draws */
};

/* Part of the schedule, recorded for one capacity class, one slot, and the addresses they had then. */
struct recording {
    uint64_t key; /* 0: free */
    void *record; /* NULL: ran once, not recorded yet */
    uint64_t used;
};

enum { RECORDINGS = 64 };

/* Who is notified of gradients that are ready. */
struct listener {
    pnet_gradients_ready *ready;
    void *context;
};

struct pnet_session {
    const struct pnet_plan *plan;
    struct pnet_session_options options;
    struct pnet_memory memory;
    struct pnet_buffer params, grads, extra, arena, live;
    struct recording recordings[RECORDINGS];
    uint64_t replays; /* clock of `used` */
    struct live host_live;
    struct pnet_geo_work *work; /* of the slots */
    struct pnet_slot *slots[2];
    struct pnet_layout layout;
    struct pnet_counts class_; /* capacities the layout was made for */
    bool bound;
    uint32_t step;
    double *times;
    struct listener listeners[PNET_LISTENERS]; /* in the order in which they are notified */
    int listener_count;
};

/* The device must be there, and every layer must have kernels for it. */
static enum pnet_status check_device(
    const struct pnet_plan *p, const struct pnet_session_options *o, struct pnet_error *e)
{
    enum pnet_status st = pnet_device_check(o->device, e);
    assert(p->device == o->device.kind);
    for (int i = 0; i < p->node_count && !st && o->device.kind != PNET_CPU; i++)
        if (!p->nodes[i].dead && (p->nodes[i].op->flags & PNET_CPU_ONLY))
            st =
                pnet_error_set(e, PNET_NO_DEVICE, "%s: %s() has no kernels for a GPU: --device cpu",
                    p->nodes[i].path, p->nodes[i].op->name);
    return st ? st : pnet_device_enter(o->device, e);
}

enum pnet_status pnet_session_new(const struct pnet_plan *p, const struct pnet_session_options *o,
    struct pnet_session **session, struct pnet_error *e)
{
    struct pnet_session *s = calloc(1, sizeof *s);
    enum pnet_status st = PNET_OK;
    if (!s) return pnet_error_memory(e);
    s->plan = p;
    s->options = *o;
    pnet_memory_init(&s->memory, o->device, o->memory_limit);
    s->times = calloc((size_t)p->step_count + 1, sizeof *s->times);
    st = pnet_counts_new(p, &s->class_, e);
    if (!st && !s->times) st = pnet_error_memory(e);
    if (!st) st = check_device(p, o, e);
    if (!st && o->device.kind != PNET_CPU)
        st = pnet_buffer_ensure(&s->memory, &s->live, PNET_LIVE_BYTES, "the session", e);
    size_t grads = p->training ? (size_t)p->trained_elements * sizeof(float) : 0;
    if (!st)
        st = pnet_buffer_ensure(
            &s->memory, &s->params, (size_t)p->param_elements * sizeof(float), "the parameters", e);
    if (!st && grads) st = pnet_buffer_ensure(&s->memory, &s->grads, grads, "the gradients", e);
    if (!st && o->extra_bytes > 0)
        st = pnet_buffer_ensure(
            &s->memory, &s->extra, (size_t)o->extra_bytes, "the optimiser's state", e);
    if (!st) st = pnet_geo_work_new(p, &s->memory, &s->work, e);
    for (int i = 0; i < o->slots && !st; i++) st = pnet_slot_new(p, s->work, &s->slots[i], e);
    if (st) {
        pnet_session_free(s);
        return st;
    }
    pnet_device_fill(o->device, s->params.data, 0, s->params.size);
    pnet_device_fill(o->device, s->grads.data, 0, s->grads.size);
    pnet_device_fill(o->device, s->extra.data, 0, s->extra.size);
    *session = s;
    return PNET_OK;
}

void pnet_session_free(struct pnet_session *s)
{
    if (!s) return;
    for (int i = 0; i < 2; i++) pnet_slot_free(s->slots[i]);
    pnet_geo_work_free(s->work);
    pnet_buffer_free(&s->memory, &s->params);
    pnet_buffer_free(&s->memory, &s->grads);
    pnet_buffer_free(&s->memory, &s->extra);
    pnet_buffer_free(&s->memory, &s->arena);
    pnet_buffer_free(&s->memory, &s->live);
    for (int i = 0; i < RECORDINGS; i++)
        if (s->recordings[i].record)
            pnet_device_record_free(s->options.device, s->recordings[i].record);
    pnet_layout_free(&s->layout);
    pnet_counts_free(&s->class_);
    free(s->times);
    pnet_memory_end(&s->memory);
    free(s);
}

const struct pnet_plan *pnet_session_plan(const struct pnet_session *s)
{
    return s->plan;
}
struct pnet_device pnet_session_device(const struct pnet_session *s)
{
    return s->options.device;
}
uint64_t pnet_session_seed(const struct pnet_session *s)
{
    return s->options.seed;
}
float *pnet_session_params(struct pnet_session *s)
{
    return s->params.data;
}
float *pnet_session_grads(struct pnet_session *s)
{
    return s->grads.data;
}
void *pnet_session_extra(struct pnet_session *s)
{
    return s->extra.data;
}

static float *block_of(const struct pnet_session *s, enum pnet_session_block block)
{
    const struct pnet_buffer *blocks[] = {&s->params, &s->grads, &s->extra};
    return blocks[block]->data;
}

enum pnet_status pnet_session_read(const struct pnet_session *s, enum pnet_session_block block,
    int64_t offset, int64_t count, float *to, struct pnet_error *e)
{
    enum pnet_status st = pnet_device_enter(s->options.device, e);
    if (st) return st;
    if (count)
        pnet_device_get(
            s->options.device, to, block_of(s, block) + offset, (size_t)count * sizeof *to);
    return pnet_device_wait(s->options.device, e);
}

enum pnet_status pnet_session_write(struct pnet_session *s, enum pnet_session_block block,
    int64_t offset, int64_t count, const float *from, struct pnet_error *e)
{
    enum pnet_status st = pnet_device_enter(s->options.device, e);
    if (st) return st;
    if (count)
        pnet_device_put(
            s->options.device, block_of(s, block) + offset, from, (size_t)count * sizeof *from);
    return pnet_device_wait(s->options.device, e);
}
const struct pnet_slot *pnet_session_slot(const struct pnet_session *s, int slot)
{
    return s->slots[slot];
}
const struct pnet_memory *pnet_session_memory(const struct pnet_session *s)
{
    return &s->memory;
}
const double *pnet_session_times(const struct pnet_session *s)
{
    return s->times;
}

enum pnet_status pnet_session_prepare(
    struct pnet_session *s, int slot, const struct pnet_batch *b, struct pnet_error *e)
{
    return pnet_slot_build(s->slots[slot], b, e);
}

/* How many numbers of an item the layout depends on. */
static int class_counts(const struct pnet_plan *p, int item)
{
    return pnet_geo_kind(p->geo[item].request.kind)->class_counts;
}

static bool same_class(const struct pnet_session *s, const struct pnet_counts *c)
{
    if (!s->bound || s->class_.samples != c->samples) return false;
    for (int l = 0; l < s->plan->level_count; l++)
        if (s->class_.rows[l] != pnet_capacity(c->rows[l])) return false;
    for (int i = 0; i < s->plan->geo_count; i++)
        for (int k = 0; k < class_counts(s->plan, i); k++)
            if (s->class_.of[i][k] != pnet_capacity(c->of[i][k])) return false;
    return true;
}

static enum pnet_status bind_counts(
    struct pnet_session *s, const struct pnet_counts *c, struct pnet_error *e)
{
    if (same_class(s, c)) return PNET_OK;
    s->bound = false;
    enum pnet_status st = PNET_OK;
    /* retry with steps in sequence if the layout for concurrent steps exceeds the budget */
    for (int beside = 1; beside >= 0; beside--) {
        pnet_layout_free(&s->layout);
        st = pnet_layout_make(s->plan, c, beside, &s->layout, e);
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
    s->bound = true;
    return PNET_OK;
}

/* In device memory; on the CPU a member of the session. */
static struct live *live_of(struct pnet_session *s)
{
    return s->live.data ? s->live.data : &s->host_live;
}

static void *data_of(const struct pnet_session *s, const struct pnet_slot *slot, int tensor)
{
    const struct pnet_plan_tensor *t = &s->plan->tensors[tensor];
    if (t->first < 0) return NULL;
    if (t->role == PNET_ROLE_INPUT) return slot->fields[tensor].data;
    return (char *)s->arena.data + s->layout.offset[tensor];
}

static void point(
    const struct pnet_session *s, const struct pnet_slot *slot, int tensor, struct pnet_tensor *t)
{
    t->data = data_of(s, slot, tensor);
    t->row_splits = pnet_slot_splits(slot, t->level);
    t->live = pnet_slot_live(slot, t->level);
}

void pnet_session_exec(
    const struct pnet_session *s, int slot_index, int step, bool training, struct pnet_exec *x)
{
    const struct pnet_plan *p = s->plan;
    const struct pnet_slot *slot = s->slots[slot_index];
    const struct pnet_step *st = &p->steps[step];
    const struct pnet_node *n = &p->nodes[st->node];
    bool gpu = s->options.device.kind != PNET_CPU;
    pnet_bind_shapes(p, &slot->counts, step, gpu, x, NULL);
    x->training = training;
    x->rand = (struct pnet_rand){
        .seed = s->options.seed, .purpose = PNET_DRAW_DROPOUT, .a = s->step, .b = n->draw};
    if (gpu) x->rand.live = &((const struct live *)s->live.data)->step;
    for (int i = 0; i < n->in_count; i++) {
        bool kept = n->op->keep & (1u << i);
        point(s, slot, n->in[i], &x->in[i]);
        x->gin[i].row_splits = x->in[i].row_splits;
        x->gin[i].live = x->in[i].live;
        if (st->backward && !kept) x->in[i].data = NULL;
        if (st->backward && st->gin[i] >= 0) {
            x->gin[i].data = data_of(s, slot, st->gin[i]);
            x->gin_add[i] = st->gin_add[i];
        }
    }
    point(s, slot, n->out, &x->out);
    if (st->backward) {
        if (!(n->op->keep & PNET_KEEP_OUT) && !n->act) x->out.data = NULL;
        x->gout.data = data_of(s, slot, st->gout);
    }
    x->gout.row_splits = x->out.row_splits;
    x->gout.live = x->out.live;
    for (int i = 0; i < n->saved_count; i++) point(s, slot, n->saved[i], &x->saved[i]);
    for (int i = 0; i < n->geo_count; i++) x->geo[i] = &slot->bound[n->geo[i]];
    for (int i = 0; i < n->param_count; i++) {
        const struct pnet_plan_param *q = &p->params[n->param[i]];
        x->param[i] = (float *)s->params.data + q->offset;
        if (st->backward && q->info.trained) {
            x->gparam[i] = (float *)s->grads.data + q->offset;
            x->gparam_add[i] = st->gparam_add[i];
        }
    }
    x->work_bytes = s->layout.work_bytes[step];
    x->work = x->work_bytes ? (char *)s->arena.data + s->layout.work[step] : NULL;
}

void pnet_session_poison(struct pnet_session *s)
{
    pnet_device_fill(s->options.device, s->arena.data, 0xff, s->arena.size);
}

static void seed_gradients(struct pnet_session *s, int slot)
{
    const struct pnet_plan *p = s->plan;
    for (int t = 0; t < p->tensor_count; t++) {
        const struct pnet_plan_tensor *g = &p->tensors[t];
        bool seed = g->role == PNET_ROLE_GRAD && g->first == p->forward_steps &&
                    p->tensors[g->of].type.level == p->scalar_level;
        for (int i = 0; i < p->objective_count && seed; i++)
            if (p->objectives[i].tensor == g->of && !p->objectives[i].metric)
                pnet_device_copy(s->options.device, data_of(s, s->slots[slot], t),
                    &live_of(s)->scale, sizeof(float));
    }
}

void pnet_session_run_step(
    const struct pnet_session *s, int slot, int step, bool training, bool accumulate)
{
    const struct pnet_node *node = &s->plan->nodes[s->plan->steps[step].node];
    const struct pnet_op *op = node->op;
    struct pnet_exec x;
    if (training && op->class_ == PNET_METRIC) return; /* evaluation is for them */
    pnet_session_exec(s, slot, step, training, &x);
    for (int k = 0; k < PNET_MAX_PARAMS; k++) x.gparam_add[k] |= accumulate;
    (s->plan->steps[step].backward ? op->backward : op->forward)(&x);
    pnet_device_note(s->options.device, node->path);
}

bool pnet_session_listen(struct pnet_session *s, pnet_gradients_ready *ready, void *context)
{
    pnet_session_unlisten(s, ready, context);
    if (s->listener_count == PNET_LISTENERS) return false;
    s->listeners[s->listener_count++] = (struct listener){ready, context};
    return true;
}

void pnet_session_unlisten(struct pnet_session *s, pnet_gradients_ready *ready, void *context)
{
    int kept = 0;
    for (int i = 0; i < s->listener_count; i++) {
        struct listener l = s->listeners[i];
        if (l.ready != ready || l.context != context) s->listeners[kept++] = l;
    }
    s->listener_count = kept;
}

/* Parameters lie in the order in which backward finishes their gradients. */
int64_t pnet_session_ready_end(const struct pnet_session *s, int step, int64_t notified)
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

void pnet_session_notify(const struct pnet_session *s, int64_t begin, int64_t end)
{
    for (int i = 0; i < s->listener_count && begin < end; i++)
        s->listeners[i].ready(s->listeners[i].context, begin, end);
}

static void run_steps(struct pnet_session *s, const struct pnet_session_pass *pass)
{
    int64_t notified = 0;
    if (pass->first == s->plan->forward_steps) seed_gradients(s, pass->slot);
    for (int i = pass->first; i < pass->last; i++) {
        double begin = pnet_seconds();
        pnet_session_run_step(s, pass->slot, i, pass->training, pass->accumulate);
        int64_t end = pass->notifies ? pnet_session_ready_end(s, i, notified) : notified;
        pnet_session_notify(s, notified, end);
        notified = end;
        s->times[i] += pnet_seconds() - begin;
    }
}

static struct pnet_stretch locate(void *session, enum pnet_object object, int index)
{
    const struct pnet_session *s = session;
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

void pnet_session_touches(
    const struct pnet_session *s, int step, struct pnet_touched parts[PNET_STEP_PARTS])
{
    for (int i = 0; i < PNET_STEP_PARTS; i++)
        pnet_step_touches(s->plan, step, i, locate, (void *)s, &parts[i]);
}

/* NULL: it could not be recorded. */
static void *record_pass(struct pnet_session *s, const struct pnet_session_pass *pass)
{
    struct pnet_device d = s->options.device;
    pnet_device_record_begin(d);
    if (pass->first == s->plan->forward_steps) seed_gradients(s, pass->slot);
    bool whole = pnet_session_record_pass(s, pass);
    void *record = pnet_device_record_end(d);
    if (whole || !record) return record;
    pnet_device_record_free(d, record);
    return NULL;
}

static uint64_t mix(uint64_t hash, uint64_t x)
{
    hash = (hash ^ x) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

/* Everything a recorded pass depends on: the class, the addresses, and which one it is. */
static uint64_t pass_key(const struct pnet_session *s, const struct pnet_session_pass *pass)
{
    uint64_t key = pnet_slot_addresses(s->slots[pass->slot]);
    key = mix(key, (uint64_t)(uintptr_t)s->arena.data);
    key = mix(key, (uint64_t)s->class_.samples);
    for (int l = 0; l < s->plan->level_count; l++) key = mix(key, (uint64_t)s->class_.rows[l]);
    for (int i = 0; i < s->plan->geo_count; i++)
        for (int k = 0; k < class_counts(s->plan, i); k++)
            key = mix(key, (uint64_t)s->class_.of[i][k]);
    key = mix(key, (uint64_t)s->layout.total); /* for a class it is one of two */
    key = mix(key, (uint64_t)pass->first << 3 | (uint64_t)pass->notifies << 2 |
                       (uint64_t)pass->training << 1 | (uint64_t)pass->accumulate);
    for (int i = 0; i < s->listener_count && pass->notifies; i++) {
        key = mix(key, (uint64_t)(uintptr_t)s->listeners[i].ready);
        key = mix(key, (uint64_t)(uintptr_t)s->listeners[i].context);
    }
    return key ? key : 1;
}

/* The recording of that key, or the place for it: the least recently used one. */
static struct recording *find_recording(struct pnet_session *s, uint64_t key)
{
    struct recording *oldest = &s->recordings[0];
    for (int i = 0; i < RECORDINGS; i++) {
        struct recording *r = &s->recordings[i];
        if (r->key == key) return r;
        if (r->used < oldest->used) oldest = r;
    }
    if (oldest->record) pnet_device_record_free(s->options.device, oldest->record);
    *oldest = (struct recording){.key = 0};
    return oldest;
}

/* On a GPU the first batch of a class runs step by step, the second one is recorded, the others replay it. */
static enum pnet_status run_pass(
    struct pnet_session *s, const struct pnet_session_pass *pass, struct pnet_error *e)
{
    if (s->options.device.kind == PNET_CPU || s->options.no_recording) {
        run_steps(s, pass);
        return PNET_OK;
    }
    uint64_t key = pass_key(s, pass);
    struct recording *r = find_recording(s, key);
    r->used = ++s->replays;
    if (r->key != key) {
        r->key = key;
        run_steps(s, pass);
        return PNET_OK;
    }
    if (!r->record) {
        r->record = record_pass(s, pass);
        if (!r->record) {
            r->key = 0;
            enum pnet_status st = pnet_device_wait(s->options.device, e);
            return st ? st
                      : pnet_error_set(e, PNET_NO_DEVICE, "the schedule could not be recorded");
        }
    }
    pnet_device_replay(s->options.device, r->record);
    return PNET_OK;
}

/* The first of the forward steps that a GPU leaves to the host: they stand at the end. */
static int host_steps(const struct pnet_session *s)
{
    const struct pnet_plan *p = s->plan;
    int first = p->forward_steps;
    while (s->options.device.kind != PNET_CPU && first > 0 &&
           (p->nodes[p->steps[first - 1].node].op->flags & PNET_ON_HOST))
        first--;
    return first;
}

enum pnet_status pnet_session_forward(
    struct pnet_session *s, int slot, bool training, uint32_t step, struct pnet_error *e)
{
    enum pnet_status st = pnet_device_enter(s->options.device, e);
    if (!st) st = bind_counts(s, &s->slots[slot]->counts, e);
    if (st) return st;
    s->step = step;
    if (s->live.data) pnet_device_put(s->options.device, &live_of(s)->step, &step, sizeof step);
    int last = host_steps(s);
    st = run_pass(s, &(struct pnet_session_pass){slot, 0, last, .training = training}, e);
    for (int i = last; i < s->plan->forward_steps && !training && !st; i++)
        st = pnet_session_run_on_host(s, slot, i, e);
    return st;
}

enum pnet_status pnet_session_backward(
    struct pnet_session *s, int slot, float scale, bool accumulate, struct pnet_error *e)
{
    pnet_device_put(s->options.device, &live_of(s)->scale, &scale, sizeof scale);
    struct pnet_session_pass pass = {.slot = slot,
        .first = s->plan->forward_steps,
        .last = s->plan->step_count,
        .training = true,
        .accumulate = accumulate,
        .notifies = s->listener_count > 0};
    return run_pass(s, &pass, e);
}

void *pnet_session_record(
    struct pnet_session *s, int slot, bool backward, pnet_session_wanted *wanted, void *context)
{
    int forward = s->plan->forward_steps;
    struct pnet_session_pass pass = {.slot = slot,
        .first = backward ? forward : 0,
        .last = backward ? s->plan->step_count : forward,
        .training = true,
        .notifies = backward && s->listener_count && !wanted,
        .wanted = wanted,
        .context = context};
    return record_pass(s, &pass);
}

enum pnet_status pnet_session_walk(struct pnet_session *s, int slot, pnet_session_visit *visit,
    void *context, struct pnet_error *e)
{
    static const struct live live = {.scale = 1};
    const struct pnet_plan *p = s->plan;
    enum pnet_status st = pnet_device_enter(s->options.device, e);
    if (!st) st = bind_counts(s, &s->slots[slot]->counts, e);
    if (st) return st;
    s->step = 0;
    pnet_device_put(s->options.device, live_of(s), &live, sizeof live);
    for (int i = 0; i < p->step_count && !st; i++) {
        struct pnet_exec x;
        if (p->nodes[p->steps[i].node].op->class_ == PNET_METRIC) continue;
        pnet_session_exec(s, slot, i, p->training, &x);
        st = visit(context, i, &x, e);
        if (!st) run_steps(s, &(struct pnet_session_pass){slot, i, i + 1, .training = p->training});
    }
    return st ? st : pnet_device_wait(s->options.device, e);
}

enum pnet_status pnet_session_wait(struct pnet_session *s, struct pnet_error *e)
{
    return pnet_device_wait(s->options.device, e);
}

const void *pnet_session_objective_data(const struct pnet_session *s, int objective)
{
    return data_of(s, s->slots[0], s->plan->objectives[objective].tensor);
}

double pnet_session_objective(const struct pnet_session *s, int objective, double *sum)
{
    const struct pnet_objective *o = &s->plan->objectives[objective];
    const struct pnet_type *t = &s->plan->tensors[o->tensor].type;
    const char *data = pnet_session_objective_data(s, objective);
    size_t size = t->type == PNET_F64 ? sizeof(double) : sizeof(float);
    double chunk[256], first = 0;
    int per = (int)(sizeof chunk / size), count = sum ? t->width : 1;
    for (int begin = 0; begin < count; begin += per) {
        int n = count - begin < per ? count - begin : per;
        pnet_device_get(s->options.device, chunk, data + (size_t)begin * size, (size_t)n * size);
        for (int i = 0; i < n; i++) {
            double v = t->type == PNET_F64 ? chunk[i] : (double)((const float *)chunk)[i];
            if (begin + i == 0) first = v;
            if (sum) sum[begin + i] += v;
        }
    }
    return first;
}

const void *pnet_session_tensor(const struct pnet_session *s, int slot, int tensor, int64_t *rows)
{
    const struct pnet_type *t = &s->plan->tensors[tensor].type;
    *rows = t->level == s->plan->scalar_level ? 1 : s->slots[slot]->counts.rows[t->level];
    return data_of(s, s->slots[slot], tensor);
}

/* parent[row of the input level] at the result's level; NULL where they are the same. */
static const int32_t *result_parent(
    const struct pnet_session *s, const struct pnet_slot *slot, int input, int level)
{
    int item = pnet_geo_find(
        s->plan, &(struct pnet_geo_request){.kind = PNET_GEO_PARENT, .a = input, .b = level});
    return item < 0 ? NULL : slot->views[item].parent;
}

/* 16-bit numbers as float32. */
static float from_bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return x;
}

static float from_fp16(uint16_t bits)
{
    int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    float x = exponent == 31 ? (mantissa ? NAN : INFINITY)
              : exponent     ? ldexpf((float)(mantissa + 1024), exponent - 25)
                             : ldexpf((float)mantissa, -24);
    return bits >> 15 ? -x : x;
}

enum pnet_status pnet_session_copy_tensor(const struct pnet_session *s, int slot, int tensor,
    void **data, int64_t *rows, struct pnet_error *e)
{
    const struct pnet_type *t = &s->plan->tensors[tensor].type;
    enum pnet_storage storage = pnet_plan_storage(s->plan, tensor);
    const void *from = pnet_session_tensor(s, slot, tensor, rows);
    size_t n = (size_t)*rows * (size_t)t->width;
    size_t bytes = n * (t->type == PNET_F64      ? 8
                           : t->type == PNET_F32 ? (size_t)pnet_storage_bytes(storage)
                                                 : 4);
    *data = malloc(n * 8 + 1);
    if (!*data) return pnet_error_memory(e);
    pnet_device_get(s->options.device, *data, from, bytes);
    float *wide = *data;
    const uint16_t *bits = *data; /* from the end: a float lies on numbers that have been read */
    for (size_t i = n; t->type == PNET_F32 && storage != PNET_STORE_F32 && i-- > 0;) {
        uint16_t b;
        memcpy(&b, &bits[i], sizeof b);
        wide[i] = storage == PNET_STORE_BF16 ? from_bf16(b) : from_fp16(b);
    }
    return pnet_device_wait(s->options.device, e);
}

static enum pnet_status copy_index(const struct pnet_session *s, const int32_t *from, int64_t rows,
    int32_t **to, struct pnet_error *e)
{
    *to = NULL;
    if (!from) return PNET_OK;
    *to = malloc((size_t)rows * sizeof **to + 1);
    if (!*to) return pnet_error_memory(e);
    pnet_device_get(s->options.device, *to, from, (size_t)rows * sizeof **to);
    return PNET_OK;
}

enum pnet_status pnet_session_result(
    const struct pnet_session *s, int slot_index, float **data, int64_t *rows, struct pnet_error *e)
{
    const struct pnet_plan *p = s->plan;
    const struct pnet_slot *slot = s->slots[slot_index];
    const struct pnet_type *t = &p->tensors[p->result].type;
    int level = t->level, input = level;
    while (p->levels[input].finer >= 0) input = p->levels[input].finer;
    size_t width = (size_t)t->width;
    int64_t from_rows;
    int32_t *parent = NULL, *order = NULL;
    void *from = NULL;
    *rows = level == p->scalar_level ? 1 : slot->counts.rows[input];
    *data = malloc((size_t)*rows * width * sizeof(float) + 1);
    enum pnet_status st = *data ? PNET_OK : pnet_error_memory(e);
    if (!st) st = pnet_session_copy_tensor(s, slot_index, p->result, &from, &from_rows, e);
    if (!st && input != level)
        st = copy_index(s, result_parent(s, slot, input, level), *rows, &parent, e);
    if (!st) st = copy_index(s, pnet_slot_order(slot, input), *rows, &order, e);
    if (!st) st = pnet_device_wait(s->options.device, e);
    const float *values = from;
#pragma omp parallel for schedule(static) if (!st)
    for (int64_t i = 0; i < (st ? 0 : *rows); i++)
        memcpy(*data + (size_t)(order ? order[i] : i) * width,
            values + (size_t)(parent ? parent[i] : i) * width, width * sizeof(float));
    free(parent);
    free(order);
    free(from);
    if (!st) return PNET_OK;
    free(*data);
    *data = NULL;
    return st;
}
