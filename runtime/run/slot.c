#include "runtime/run/slot_build.h"

#include "kernels/rows.h"
#include "runtime/base/clock.h"
#include "runtime/geo/levels.h"
#ifdef PNET_CUDA_BUILT
#endif

#include <stdlib.h>
#include <string.h>

enum pnet_status pnet_counts_new(
    const struct pnet_plan *p, struct pnet_counts *c, struct pnet_error *e)
{
    size_t items = (size_t)p->geo_count + 1;
    *c = (struct pnet_counts){.rows = calloc((size_t)p->level_count + 1, sizeof *c->rows),
        .of = calloc(items, sizeof *c->of),
        .marks = calloc(items, sizeof *c->marks)};
    if (c->rows && c->of && c->marks) return PNET_OK;
    pnet_counts_free(c);
    return pnet_error_memory(e);
}

void pnet_counts_free(struct pnet_counts *c)
{
    free(c->rows);
    free(c->of);
    free(c->marks);
    *c = (struct pnet_counts){0};
}

enum pnet_status pnet_geo_work_new(const struct pnet_bound *b, struct pnet_memory *m,
    struct pnet_geo_work **work, struct pnet_error *e)
{
    struct pnet_geo_work *w = calloc(1, sizeof *w);
    if (!w) return pnet_error_memory(e);
    w->buffers = calloc((size_t)b->plan->geo_count + 1, sizeof *w->buffers);
    if (!w->buffers) {
        free(w);
        return pnet_error_memory(e);
    }
    w->bound = b;
    w->memory = m;
    pthread_mutex_init(&w->turn, NULL);
    *work = w;
    return PNET_OK;
}

void pnet_geo_work_free(struct pnet_geo_work *w)
{
    if (!w) return;
    for (int k = 0; k < PNET_GEO_BUFFERS; k++) {
        for (int i = 0; i < w->bound->plan->geo_count; i++)
            pnet_buffer_free(w->memory, &w->buffers[i][k]);
        pnet_buffer_free(w->memory, &w->set[k]);
    }
    pnet_buffer_free(w->memory, &w->scratch);
    pthread_mutex_destroy(&w->turn);
    free(w->buffers);
    free(w);
}

enum pnet_status pnet_slot_new(
    struct pnet_geo_work *work, struct pnet_slot **slot, struct pnet_error *e)
{
    const struct pnet_plan *p = work->bound->plan;
    struct pnet_slot *s = calloc(1, sizeof *s);
    if (!s) return pnet_error_memory(e);
    s->bound = work->bound;
    s->plan = p;
    s->work = work;
    s->memory = work->memory;
    s->device = work->memory->device.kind;
    work->slots++;
    s->views = calloc((size_t)p->geo_count + 1, sizeof *s->views);
    s->step_views = calloc((size_t)p->geo_count + 1, sizeof *s->step_views);
    s->buffers = calloc((size_t)p->geo_count + 1, sizeof *s->buffers);
    s->fields = calloc((size_t)p->tensor_count + 1, sizeof *s->fields);
    s->grids = calloc((size_t)p->level_count + 1, sizeof *s->grids);
    s->used = calloc((size_t)p->geo_count + 1, sizeof *s->used);
    enum pnet_status st = pnet_counts_new(p, &s->counts, e);
    if (!st && (!s->views || !s->step_views || !s->buffers || !s->fields || !s->grids || !s->used))
        st = pnet_error_memory(e);
    if (!st) st = pnet_device_stage_new(s->memory->device, &s->stage, e);
    if (st) {
        pnet_slot_free(s);
        return st;
    }
    *slot = s;
    return PNET_OK;
}

void pnet_slot_free(struct pnet_slot *s)
{
    if (!s) return;
    for (int i = 0; s->buffers && i < s->plan->geo_count; i++)
        for (int k = 0; k < PNET_GEO_BUFFERS; k++) pnet_buffer_free(s->memory, &s->buffers[i][k]);
    for (int t = 0; s->fields && t < s->plan->tensor_count; t++)
        pnet_buffer_free(s->memory, &s->fields[t]);
    pnet_buffer_free(s->memory, &s->splits);
    pnet_device_stage_free(s->memory->device, s->stage);
    s->work->slots--;
    pnet_counts_free(&s->counts);
    free(s->views);
    free(s->step_views);
    free(s->buffers);
    free(s->fields);
    free(s->grids);
    free(s->used);
    free(s);
}

struct pnet_buffer *pnet_slot_place(const struct pnet_slot *s, int item, int which)
{
    switch (s->bound->owner[item][which]) {
    case PNET_OWNER_SHARED: return &s->work->buffers[item][which];
    case PNET_OWNER_PASSING: return &s->work->set[which];
    case PNET_OWNER_SLOT: break;
    }
    return &s->buffers[item][which];
}

static int64_t *splits_of(const struct pnet_slot *s, int level)
{
    return (int64_t *)s->splits.data + (int64_t)level * (s->counts.samples + 1);
}

const int64_t *pnet_slot_splits(const struct pnet_slot *s, int level)
{
    return s->plan->levels[level].kind == PNET_GEO_SCALAR ? NULL : splits_of(s, level);
}

const int32_t *pnet_slot_order(const struct pnet_slot *s, int level)
{
    int item = s->bound->level_item[level];
    return item >= 0 && s->plan->levels[level].kind == PNET_GEO_INPUT
               ? pnet_slot_place(s, item, LEVEL_ORDER)->data
               : NULL;
}

const int64_t *pnet_slot_live(const struct pnet_slot *s, int level)
{
    const int64_t *splits = s->device == PNET_CPU ? NULL : pnet_slot_splits(s, level);
    return splits ? splits + s->counts.samples : NULL;
}

/* Functions that give the places of a view. */

static const int64_t *splits_at(void *slot, int level)
{
    return pnet_slot_splits(slot, level);
}

static const int64_t *live_at(void *slot, int level)
{
    return pnet_slot_live(slot, level);
}

static struct pnet_grid grid_at(void *slot, int level)
{
    return ((const struct pnet_slot *)slot)->grids[level];
}

/* Places while a batch is built. */
static const void *place_at(void *slot, int item, int which)
{
    return pnet_slot_place(slot, item, which)->data;
}

/* Places once the batch is built: pointers must not lead to memory that the fields, or the next slot, write to. */
static const void *own_at(void *slot, int item, int which)
{
    const struct pnet_slot *s = slot;
    bool shared = s->bound->owner[item][which] == PNET_OWNER_SHARED;
    if (!shared) return s->buffers[item][which].data;
    bool points = s->bound->level_item[s->plan->geo[item].request.a] == item && which == LEVEL_XYZ;
    return points || s->work->slots > 1 ? NULL : s->work->buffers[item][which].data;
}

static struct pnet_geo_view view_of(
    const struct pnet_slot *s, int item, bool capacity, const struct pnet_geo_places *places)
{
    struct pnet_geo_look look = pnet_bound_look(s->bound, item, &s->counts, capacity);
    look.device = s->device;
    look.places = places;
    return pnet_geo_view_of(&look);
}

struct pnet_geo_view pnet_slot_view(
    const struct pnet_slot *s, int item, const struct pnet_geo_places *places)
{
    return view_of(s, item, false, places);
}

static enum pnet_status walk_item(
    struct pnet_slot *s, int i, const struct pnet_batch *b, struct pnet_error *e)
{
    struct pnet_geo_walk w = {.plan = s->plan,
        .q = &s->plan->geo[i].request,
        .item = i,
        .forms = s->bound->forms[i],
        .owner = s->bound->owner[i],
        .device = s->device,
        .counts = &s->counts,
        .batch = b,
        .slot = s,
        .error = e};
    pnet_geo_kind(w.q->kind)->walk(&w);
    return w.status;
}

static enum pnet_status time_item(
    struct pnet_slot *s, int i, const struct pnet_batch *b, struct pnet_error *e)
{
    enum pnet_status st = pnet_device_wait(s->memory->device, e);
    double begin = pnet_seconds();
    for (int n = 0; n < s->clock->times && !st; n++) st = walk_item(s, i, b, e);
    if (!st) st = pnet_device_wait(s->memory->device, e);
    s->clock->seconds += (pnet_seconds() - begin) / s->clock->times;
    return st;
}

static enum pnet_status build_item(
    struct pnet_slot *s, int i, const struct pnet_batch *b, struct pnet_error *e)
{
    const struct pnet_geo_places now = {place_at, splits_at, live_at, grid_at, s};
    bool timed = s->clock && s->clock->kind == s->plan->geo[i].request.kind;
    enum pnet_status st = timed ? time_item(s, i, b, e) : walk_item(s, i, b, e);
    if (!st) s->views[i] = view_of(s, i, false, &now);
    return st;
}

static bool is_field(const struct pnet_plan *p, int tensor)
{
    return p->tensors[tensor].role == PNET_ROLE_INPUT && p->tensors[tensor].first >= 0;
}

/* Where the CPU counts for a GPU, only the counts matter. */
static enum pnet_storage storage_of(const struct pnet_slot *s, int field)
{
    return s->device == PNET_CPU ? PNET_STORE_F32 : s->bound->storage[field];
}

/* Allocates memory for all fields of the batch. */
static enum pnet_status make_fields(
    struct pnet_slot *s, const struct pnet_batch *b, struct pnet_error *e)
{
    const struct pnet_plan *p = s->plan;
    s->idle = NULL;
    for (int i = 0; i < p->tensor_count; i++) {
        const struct pnet_plan_tensor *t = &p->tensors[i];
        if (!is_field(p, i)) continue;
        bool points = p->levels[t->type.level].kind == PNET_GEO_INPUT;
        int64_t n = points ? b->inputs[t->input].rows : b->samples,
                each = t->type.width * pnet_storage_bytes(storage_of(s, i));
        enum pnet_status st = pnet_buffer_ensure(s->memory, &s->fields[i],
            (size_t)(pnet_capacity(n) * each), "the fields of the batch", e);
        if (st) return st;
        if (!s->idle || s->fields[i].size > s->idle->size) s->idle = &s->fields[i];
    }
    return PNET_OK;
}

/* Gives the memory in which rows of a field arrive, after the geometry is built: that of the level's points if they are not
   kept, else scratch. */
static enum pnet_status field_room(
    struct pnet_slot *s, int level, size_t bytes, void **at, struct pnet_error *e)
{
    int item = s->bound->level_item[level];
    struct pnet_buffer *points = item < 0 ? NULL : &s->work->buffers[item][LEVEL_XYZ];
    if (points && bytes <= points->size && s->bound->owner[item][LEVEL_XYZ] == PNET_OWNER_SHARED) {
        *at = points->data;
        return PNET_OK;
    }
    struct pnet_geo_walk w = {.plan = s->plan, .slot = s, .error = e};
    *at = pnet_slot_shared_scratch(&w, bytes);
    return w.status;
}

/* Copies a field; its rows follow the order of its level's rows. */
static enum pnet_status take_field(
    struct pnet_slot *s, int tensor, const struct pnet_batch *b, struct pnet_error *e)
{
    const struct pnet_plan_tensor *t = &s->plan->tensors[tensor];
    const struct pnet_batch_input *in = &b->inputs[t->input];
    bool position = s->plan->inputs[t->input].fields[t->field].kind == PNET_INPUT_POSITION;
    const void *from = position ? (const void *)in->xyz : in->fields[t->field];
    int64_t n = s->counts.rows[t->type.level];
    int32_t width = t->type.width;
    enum pnet_storage storage = storage_of(s, tensor);
    const int32_t *order = pnet_slot_order(s, t->type.level);
    if (s->device != PNET_CPU && !b->there) {
        size_t row = (size_t)width * 4;
        void *to;
        enum pnet_status st = field_room(s, t->type.level, (size_t)pnet_capacity(n) * row, &to, e);
        if (st) return st;
        pnet_device_stage_in(s->memory->device, s->stage, to, from, (size_t)n * row);
        from = to;
    }
    if (storage == PNET_STORE_F32)
        PNET_KERNEL(s, gather)(n, width, from, order, s->fields[tensor].data);
    else
        PNET_KERNEL(s, gather_features)
    (n, width, from, order, storage, s->fields[tensor].data);
    return PNET_OK;
}

static enum pnet_status build_geometry(
    struct pnet_slot *s, const struct pnet_batch *b, struct pnet_error *e)
{
    const struct pnet_plan *p = s->plan;
    enum pnet_status st;
    if (s->clock) s->clock->seconds = 0;
    s->counts.samples = b->samples;
    if ((st = pnet_buffer_ensure(s->memory, &s->splits,
             (size_t)p->level_count * (size_t)(b->samples + 1) * sizeof(int64_t),
             "the geometry of the batch", e)))
        return st;
    memset(s->counts.rows, 0, (size_t)p->level_count * sizeof *s->counts.rows);
    s->counts.rows[p->scalar_level] = 1;
    s->counts.rows[p->sample_level] = b->samples;
    int64_t *own = malloc((size_t)(b->samples + 1) * sizeof *own);
    if (!own) return pnet_error_memory(e);
    for (int64_t i = 0; i <= b->samples; i++) own[i] = i;
    pnet_device_put(s->memory->device, splits_of(s, p->sample_level), own,
        (size_t)(b->samples + 1) * sizeof *own);
    free(own); /* pageable memory: the copy has ended */
    for (int l = 0; l < p->level_count; l++) s->grids[l] = p->levels[l].grid;
    for (int i = 0; i < p->geo_count; i++)
        if ((st = build_item(s, i, b, e))) return st;
    const struct pnet_geo_places own_places = {own_at, splits_at, live_at, grid_at, s};
    for (int i = 0; i < p->geo_count; i++) {
        s->views[i] = view_of(s, i, false, &own_places);
        s->step_views[i] = s->device == PNET_CPU ? s->views[i] : view_of(s, i, true, &own_places);
    }
    return PNET_OK;
}

static enum pnet_status build(struct pnet_slot *s, const struct pnet_batch *b, struct pnet_error *e)
{
    enum pnet_status st = pnet_device_enter(s->memory->device, e);
    if (st || (st = make_fields(s, b, e))) return st;
    if (!b->id || b->id != s->batch) {
        s->batch = 0;
        if ((st = build_geometry(s, b, e)) || (st = pnet_slot_check_sizes(s, e))) return st;
        s->batch = b->id;
    }
    for (int t = 0; t < s->plan->tensor_count; t++)
        if (is_field(s->plan, t) && (st = take_field(s, t, b, e))) return st;
    st = pnet_device_wait(s->memory->device, e);
    if (st) s->batch = 0;
    return st;
}

enum pnet_status pnet_slot_build(
    struct pnet_slot *s, const struct pnet_batch *b, struct pnet_error *e)
{
    pthread_mutex_lock(&s->work->turn);
    enum pnet_status st = build(s, b, e);
    pthread_mutex_unlock(&s->work->turn);
    return st;
}

static uint64_t hash_address(uint64_t hash, const void *p)
{
    return (hash ^ (uint64_t)(uintptr_t)p) * 0x100000001b3u;
}

uint64_t pnet_slot_addresses(const struct pnet_slot *s)
{
    uint64_t hash = hash_address(0xcbf29ce484222325u, s->splits.data);
    for (int i = 0; i < s->plan->geo_count; i++)
        for (int k = 0; k < PNET_GEO_BUFFERS; k++) hash = hash_address(hash, s->buffers[i][k].data);
    for (int t = 0; t < s->plan->tensor_count; t++) hash = hash_address(hash, s->fields[t].data);
    return hash;
}

size_t pnet_slot_bytes(const struct pnet_slot *s)
{
    const struct pnet_geo_work *w = s->work;
    size_t sum = s->splits.size + w->scratch.size;
    for (int k = 0; k < PNET_GEO_BUFFERS; k++) {
        for (int i = 0; i < s->plan->geo_count; i++)
            sum += s->buffers[i][k].size + w->buffers[i][k].size;
        sum += w->set[k].size;
    }
    for (int t = 0; t < s->plan->tensor_count; t++) sum += s->fields[t].size;
    return sum;
}
