#include "runtime/session_host.h"

#include "runtime/bind.h"

#include <stdlib.h>

/* Copies that are freed together; `failed` sticks. */
struct copies {
    struct pnet_device device;
    void *items[128]; /* more than a row can ask for */
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

/* Memory of the device where the host can read it; NULL for what is not there. */
static void *bring(struct copies *c, const void *from, int64_t number, size_t size)
{
    size_t bytes = (size_t)number * size;
    void *to = from ? room(c, bytes) : NULL;
    if (to && bytes) pnet_device_get(c->device, to, from, bytes);
    return to;
}

static void bring_level(struct copies *c, struct pnet_level *l)
{
    l->row_splits = bring(c, l->row_splits, l->samples + 1, sizeof(int64_t));
    l->xyz = bring(c, l->xyz, 3 * l->rows, sizeof(float));
    l->key = bring(c, l->key, l->rows, sizeof(uint64_t));
}

static void bring_set(struct copies *c, struct pnet_triplets *t)
{
    t->start = bring(c, t->start, t->rows + 1, sizeof(int64_t));
    t->other = bring(c, t->other, t->count, sizeof(int32_t));
    t->cell = bring(c, t->cell, t->count, sizeof(uint16_t));
    t->tiles = (struct pnet_tiles){0}; /* the CPU has no use for them */
}

static void bring_view(struct copies *c, struct pnet_geo_view *v)
{
    bring_level(c, &v->level);
    bring_set(c, &v->forward);
    bring_set(c, &v->transposed);
    v->parent = bring(c, v->parent, v->fine_rows, sizeof(int32_t));
    v->child_start = bring(c, v->child_start, v->coarse_rows + 1, sizeof(int64_t));
    v->child = bring(c, v->child, v->fine_rows, sizeof(int32_t));
    v->nearest = bring(c, v->nearest, v->fine_rows * v->k, sizeof(int32_t));
    v->distance2 = bring(c, v->distance2, v->fine_rows * v->k, sizeof(float));
}

static size_t element_bytes(const struct pnet_tensor *t)
{
    return t->type == PNET_F64 ? 8 : 4;
}

/* Inputs as the CPU has them: features in float32, however they are stored. */
static enum pnet_status bring_inputs(struct copies *c, const struct pnet_session *s, int slot_index,
    const struct pnet_node *n, struct pnet_exec *x, struct pnet_error *e)
{
    const struct pnet_slot *slot = pnet_session_slot(s, slot_index);
    for (int i = 0; i < n->in_count; i++) {
        struct pnet_tensor *t = &x->in[i];
        enum pnet_status st =
            pnet_session_copy_tensor(s, slot_index, n->in[i], &t->data, &t->rows, e);
        if (st) return st;
        c->items[c->count++] = t->data;
        t->storage = PNET_STORE_F32;
        t->row_splits = bring(c, pnet_slot_splits(slot, t->level), t->samples + 1, sizeof(int64_t));
    }
    return PNET_OK;
}

enum pnet_status pnet_session_run_on_host(
    const struct pnet_session *s, int slot_index, int step, struct pnet_error *e)
{
    const struct pnet_plan *p = pnet_session_plan(s);
    const struct pnet_slot *slot = pnet_session_slot(s, slot_index);
    const struct pnet_node *n = &p->nodes[p->steps[step].node];
    struct copies c = {.device = pnet_session_device(s)};
    struct pnet_exec there = {0}, x = {0};
    struct pnet_geo_view views[PNET_MAX_GEO];
    pnet_session_exec(s, slot_index, step, false, &there);
    pnet_bind_shapes(p, &slot->counts, step, false, &x, views);
    x.device = PNET_CPU;
    x.rand = there.rand;
    x.rand.live = NULL;
    for (int i = 0; i < n->geo_count; i++) {
        views[i] = slot->views[n->geo[i]];
        bring_view(&c, &views[i]);
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
