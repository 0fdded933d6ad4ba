#include "runtime/run/runner_host.h"

#include <stdlib.h>

/* Copies that are freed together; `failed` sticks. */
struct copies {
    struct pnet_device device;
    void *items[128]; /* more than any step can need */
    int count;
    bool failed;
};

static void *room(struct copies *c, size_t bytes)
{
    void *p = c->failed ? NULL : aligned_alloc(64, (bytes + 64) / 64 * 64);
    c->failed = !p;
    if (p) c->items[c->count++] = p;
    return p;
}

/* Copies device memory to the host; returns NULL for NULL. */
static void *bring(struct copies *c, const void *from, int64_t number, size_t size)
{
    size_t bytes = (size_t)number * size;
    void *to = from ? room(c, bytes) : NULL;
    if (to && bytes) pnet_device_get(c->device, to, from, bytes);
    return to;
}

/* Places of a view on the host: copies of the buffers that the view needs. */
struct host {
    struct copies *copies;
    const struct pnet_slot *slot;
};

static const void *data_at(void *context, int item, int which)
{
    const struct host *h = context;
    const struct pnet_buffer *own = &h->slot->buffers[item][which];
    size_t bytes = h->slot->used[item][which];
    /* the buffer may have been used in full while only a part of it is kept */
    return bring(h->copies, own->data, (int64_t)(bytes < own->size ? bytes : own->size), 1);
}

static const int64_t *splits_at(void *context, int level)
{
    const struct host *h = context;
    const struct pnet_slot *s = h->slot;
    return bring(h->copies, pnet_slot_splits(s, level), s->counts.samples + 1, sizeof(int64_t));
}

static const int64_t *live_at(void *context, int level)
{
    (void)context, (void)level;
    return NULL; /* the counts on the host are the true ones */
}

static struct pnet_grid grid_at(void *context, int level)
{
    return ((const struct host *)context)->slot->grids[level];
}

static size_t element_bytes(const struct pnet_tensor *t)
{
    return t->type == PNET_F64 ? 8 : 4;
}

/* Copies inputs to the host in the form that the CPU takes: features in float32, whatever their storage. */
static enum pnet_status bring_inputs(struct copies *c, const struct pnet_runner *s, int slot_index,
    const struct pnet_node *n, struct pnet_exec *x, struct pnet_error *e)
{
    const struct pnet_slot *slot = pnet_runner_slot(s, slot_index);
    for (int i = 0; i < n->in_count; i++) {
        struct pnet_tensor *t = &x->in[i];
        enum pnet_status st =
            pnet_runner_copy_tensor(s, slot_index, n->in[i], &t->data, &t->rows, e);
        if (st) return st;
        c->items[c->count++] = t->data;
        t->storage = PNET_STORE_F32;
        t->row_splits = bring(c, pnet_slot_splits(slot, t->level), t->samples + 1, sizeof(int64_t));
    }
    return PNET_OK;
}

enum pnet_status pnet_runner_run_on_host(
    const struct pnet_runner *s, int slot_index, int step, struct pnet_error *e)
{
    const struct pnet_plan *p = pnet_runner_plan(s);
    const struct pnet_slot *slot = pnet_runner_slot(s, slot_index);
    const struct pnet_node *n = &p->nodes[p->steps[step].node];
    struct copies c = {.device = pnet_runner_device(s)};
    struct pnet_exec there, x;
    struct pnet_geo_view views[PNET_MAX_GEO];
    pnet_runner_exec(s, slot_index, step, false, &there);
    pnet_bound_exec(pnet_runner_bound(s), step, &slot->counts, false, slot->views, &x);
    x.device = PNET_CPU;
    x.rand = there.rand;
    x.rand.live = NULL;
    struct host host = {&c, slot};
    const struct pnet_geo_places places = {data_at, splits_at, live_at, grid_at, &host};
    for (int i = 0; i < n->geo_count; i++) {
        views[i] = pnet_slot_view(slot, n->geo[i], &places);
        x.geo[i] = &views[i];
    }
    size_t bytes = (size_t)(x.out.rows * x.out.width) * element_bytes(&x.out);
    x.out.data = room(&c, bytes);
    x.work = room(&c, n->op->work(&x, false));
    enum pnet_status st = bring_inputs(&c, s, slot_index, n, &x, e);
    if (!st) st = c.failed ? pnet_error_memory(e) : pnet_device_wait(c.device, e);
    if (!st) {
        n->op->forward(&x);
        pnet_device_put(c.device, there.out.data, x.out.data, bytes);
        st = pnet_device_wait(c.device, e);
    }
    for (int i = 0; i < c.count; i++) free(c.items[i]);
    return st;
}

/* The step that makes a tensor forward. */
static int step_of(const struct pnet_plan *p, int tensor)
{
    int step = 0;
    while (p->steps[step].node != p->tensors[tensor].node) step++;
    return step;
}

/* Gives the record of a loss copies of what its row counts, and NULL for other data. */
static enum pnet_status bring_counted(struct copies *c, const struct pnet_runner *s, int slot_index,
    const struct pnet_node *n, struct pnet_exec *x, struct pnet_error *e)
{
    const struct pnet_plan *p = pnet_runner_plan(s);
    const struct pnet_slot *slot = pnet_runner_slot(s, slot_index);
    for (int i = 0; i < n->in_count; i++) {
        struct pnet_tensor *t = &x->in[i];
        t->row_splits = bring(c, pnet_slot_splits(slot, t->level), t->samples + 1, sizeof(int64_t));
        t->data = NULL;
        if (!pnet_plan_is_label(p, n->in[i])) continue;
        enum pnet_status st =
            pnet_runner_copy_tensor(s, slot_index, n->in[i], &t->data, &t->rows, e);
        if (st) return st;
        c->items[c->count++] = t->data;
    }
    for (int i = 0; i < n->saved_count; i++) {
        const struct pnet_plan_tensor *t = &p->tensors[n->saved[i]];
        bool there = t->type.level == p->scalar_level && !t->training_only;
        int64_t rows;
        const void *from = there ? pnet_runner_tensor(s, slot_index, n->saved[i], &rows) : NULL;
        x->saved[i].data = bring(c, from, t->type.width, element_bytes(&x->saved[i]));
    }
    return c->failed ? pnet_error_memory(e) : pnet_device_wait(c->device, e);
}

enum pnet_status pnet_runner_mean(const struct pnet_runner *s, int slot_index, int tensor,
    struct pnet_mean *m, struct pnet_error *e)
{
    const struct pnet_plan *p = pnet_runner_plan(s);
    const struct pnet_slot *slot = pnet_runner_slot(s, slot_index);
    const struct pnet_node *n = &p->nodes[p->tensors[tensor].node];
    struct copies c = {.device = pnet_runner_device(s)};
    struct pnet_exec x;
    float value;
    int64_t rows;
    pnet_device_get(
        c.device, &value, pnet_runner_tensor(s, slot_index, tensor, &rows), sizeof value);
    enum pnet_status st = pnet_device_wait(c.device, e);
    *m = (struct pnet_mean){(double)value * slot->counts.samples, slot->counts.samples};
    if (st || n->op->class_ != PNET_LOSS || !n->op->mean) return st;
    pnet_bound_exec(
        pnet_runner_bound(s), step_of(p, tensor), &slot->counts, false, slot->views, &x);
    st = bring_counted(&c, s, slot_index, n, &x, e);
    if (!st) *m = n->op->mean(&x, (double)value);
    for (int i = 0; i < c.count; i++) free(c.items[i]);
    return st;
}
