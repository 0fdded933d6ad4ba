#include "runtime/slot_build.h"

#include "kernels/cpu/gather.h"
#include "kernels/cpu/geo.h"
#include "kernels/cpu/geo_matches.h"
#ifdef PNET_CUDA_BUILT
#include "kernels/cuda/gather.h"
#include "kernels/cuda/geo.h"
#include "kernels/cuda/geo_matches.h"
#endif

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum pnet_status pnet_counts_new(
    const struct pnet_plan *p, struct pnet_counts *c, struct pnet_error *e)
{
    size_t items = (size_t)p->geo_count + 1;
    *c = (struct pnet_counts){.rows = calloc((size_t)p->level_count + 1, sizeof *c->rows),
        .triplets = calloc(items, sizeof *c->triplets),
        .tile_words = calloc(items, sizeof *c->tile_words),
        .unlisted = calloc(items, sizeof *c->unlisted)};
    if (c->rows && c->triplets && c->tile_words && c->unlisted) return PNET_OK;
    pnet_counts_free(c);
    return pnet_error_memory(e);
}

void pnet_counts_free(struct pnet_counts *c)
{
    free(c->rows);
    free(c->triplets);
    free(c->tile_words);
    free(c->unlisted);
    *c = (struct pnet_counts){0};
}

enum pnet_status pnet_geo_work_new(const struct pnet_plan *p, struct pnet_memory *m,
    struct pnet_geo_work **work, struct pnet_error *e)
{
    struct pnet_geo_work *w = calloc(1, sizeof *w);
    if (!w) return pnet_error_memory(e);
    w->buffers = calloc((size_t)p->geo_count + 1, sizeof *w->buffers);
    w->forms = calloc((size_t)p->geo_count + 1, sizeof *w->forms);
    if (!w->buffers || !w->forms) {
        free(w->buffers);
        free(w->forms);
        free(w);
        return pnet_error_memory(e);
    }
    for (int i = 0; i < p->geo_count; i++) w->forms[i] = pnet_plan_forms(p, i);
    w->plan = p;
    w->memory = m;
    pthread_mutex_init(&w->turn, NULL);
    *work = w;
    return PNET_OK;
}

void pnet_geo_work_free(struct pnet_geo_work *w)
{
    if (!w) return;
    for (int k = 0; k < PNET_SLOT_BUFFERS; k++) {
        for (int i = 0; i < w->plan->geo_count; i++) pnet_buffer_free(w->memory, &w->buffers[i][k]);
        pnet_buffer_free(w->memory, &w->set[k]);
    }
    pnet_buffer_free(w->memory, &w->scratch);
    pthread_mutex_destroy(&w->turn);
    free(w->buffers);
    free(w->forms);
    free(w);
}

enum pnet_status pnet_slot_new(const struct pnet_plan *p, struct pnet_geo_work *work,
    struct pnet_slot **slot, struct pnet_error *e)
{
    struct pnet_slot *s = calloc(1, sizeof *s);
    if (!s) return pnet_error_memory(e);
    s->plan = p;
    s->work = work;
    s->memory = work->memory;
    s->device = work->memory->device.kind;
    work->slots++;
    s->views = calloc((size_t)p->geo_count + 1, sizeof *s->views);
    s->bound = calloc((size_t)p->geo_count + 1, sizeof *s->bound);
    s->buffers = calloc((size_t)p->geo_count + 1, sizeof *s->buffers);
    s->fields = calloc((size_t)p->tensor_count + 1, sizeof *s->fields);
    s->level_item = calloc((size_t)p->level_count + 1, sizeof *s->level_item);
    enum pnet_status st = pnet_counts_new(p, &s->counts, e);
    if (!st && (!s->views || !s->bound || !s->buffers || !s->fields || !s->level_item))
        st = pnet_error_memory(e);
    if (!st) st = pnet_device_stage_new(s->memory->device, &s->stage, e);
    if (st) {
        pnet_slot_free(s);
        return st;
    }
    for (int l = 0; l < p->level_count; l++) s->level_item[l] = -1;
    for (int i = 0; i < p->geo_count; i++)
        if (p->geo[i].request.kind == PNET_GEO_LEVEL) s->level_item[p->geo[i].request.a] = i;
    *slot = s;
    return PNET_OK;
}

void pnet_slot_free(struct pnet_slot *s)
{
    if (!s) return;
    for (int i = 0; s->buffers && i < s->plan->geo_count; i++)
        for (int k = 0; k < PNET_SLOT_BUFFERS; k++) pnet_buffer_free(s->memory, &s->buffers[i][k]);
    for (int t = 0; s->fields && t < s->plan->tensor_count; t++)
        pnet_buffer_free(s->memory, &s->fields[t]);
    pnet_buffer_free(s->memory, &s->splits);
    pnet_device_stage_free(s->memory->device, s->stage);
    s->work->slots--;
    pnet_counts_free(&s->counts);
    free(s->views);
    free(s->bound);
    free(s->buffers);
    free(s->fields);
    free(s->level_item);
    free(s);
}

struct pnet_buffer *pnet_slot_place(const struct pnet_slot *s, int item, int which)
{
    unsigned forms = s->work->forms[item];
    if (pnet_slot_keeps(s->plan, item, forms, which)) return &s->buffers[item][which];
    return pnet_slot_passes(s->plan, item, forms, which) ? &s->work->set[which]
                                                         : &s->work->buffers[item][which];
}

enum pnet_status pnet_slot_buffer(struct pnet_slot *s, int item, int which, int64_t rows,
    int64_t each, int64_t more, size_t size, struct pnet_error *e)
{
    return pnet_buffer_ensure(s->memory, pnet_slot_place(s, item, which),
        (size_t)(pnet_capacity(rows) * each + more) * size, "the geometry of the batch", e);
}

static enum pnet_status shared_scratch(
    struct pnet_slot *s, size_t bytes, void **at, struct pnet_error *e)
{
    enum pnet_status st =
        pnet_buffer_ensure(s->memory, &s->work->scratch, bytes, "the workspace of the geometry", e);
    *at = s->work->scratch.data;
    return st;
}

enum pnet_status pnet_slot_scratch(
    struct pnet_slot *s, size_t bytes, void **at, struct pnet_error *e)
{
    if (!s->idle || bytes > s->idle->size) return shared_scratch(s, bytes, at, e);
    *at = s->idle->data;
    return PNET_OK;
}

struct pnet_level pnet_slot_roomy(const struct pnet_level *l)
{
    struct pnet_level r = *l;
    r.rows = pnet_capacity(l->rows);
    return r;
}

static int64_t *splits_of(const struct pnet_slot *s, int level)
{
    return (int64_t *)s->splits.data + (int64_t)level * (s->counts.samples + 1);
}

const int64_t *pnet_slot_splits(const struct pnet_slot *s, int level)
{
    return s->plan->levels[level].kind == PNET_LEVEL_SCALAR ? NULL : splits_of(s, level);
}

const int32_t *pnet_slot_order(const struct pnet_slot *s, int level)
{
    int item = s->level_item[level];
    return item >= 0 && s->plan->levels[level].kind == PNET_LEVEL_INPUT
               ? pnet_slot_place(s, item, LEVEL_ORDER)->data
               : NULL;
}

const int64_t *pnet_slot_live(const struct pnet_slot *s, int level)
{
    const int64_t *splits = s->device == PNET_CPU ? NULL : pnet_slot_splits(s, level);
    return splits ? splits + s->counts.samples : NULL;
}

/* Scratch, and the rows of the batch where kernels can read them beside it. */
static enum pnet_status arrive(struct pnet_slot *s, size_t scratch, void **work, const void *rows,
    int64_t n, size_t row, const void **at, struct pnet_error *e)
{
    size_t room = (size_t)pnet_capacity(n) * row, offset = pnet_round_bytes(scratch);
    *at = rows;
    if (s->device == PNET_CPU) return pnet_slot_scratch(s, scratch, work, e);
    bool fits = s->idle && room <= s->idle->size;
    enum pnet_status st = shared_scratch(s, fits ? scratch : offset + room, work, e);
    if (st) return st;
    void *to = fits ? s->idle->data : (char *)*work + offset;
    pnet_device_stage_in(s->memory->device, s->stage, to, rows, (size_t)n * row);
    *at = to;
    return PNET_OK;
}

/* A level no grid is sampled from is still ordered along a curve: its cells are 2^-19 of the
 * extent. */
static struct pnet_grid ordering_grid(const struct pnet_batch_input *in)
{
    float extent = 1e-6f;
    for (int64_t i = 0; i < 3 * in->rows; i++) extent = fmaxf(extent, fabsf(in->xyz[i]));
    float base = extent / (1 << 19);
    return (struct pnet_grid){base, (float)(1 / (double)base), 1};
}

static enum pnet_status build_input(
    struct pnet_slot *s, int item, const struct pnet_batch *b, struct pnet_error *e)
{
    int level = s->plan->geo[item].request.a;
    const struct pnet_level_info *info = &s->plan->levels[level];
    const struct pnet_batch_input *in = &b->inputs[info->input];
    int64_t n = in->rows;
    const void *arrived;
    void *work;
    struct pnet_grid grid = info->grid.base > 0 ? info->grid : ordering_grid(in);
    bool keyed = pnet_slot_searched(s->plan, level);
    enum pnet_status st;
    if (n > INT32_MAX)
        return pnet_error_set(
            e, PNET_BAD_DATA, "a batch holds at most 2147483647 points, not %lld", (long long)n);
    if ((st = pnet_slot_buffer(s, item, LEVEL_XYZ, n, 1, 0, 3 * sizeof(float), e)) ||
        (st = pnet_slot_buffer(s, item, LEVEL_ORDER, n, 1, 0, sizeof(int32_t), e)) ||
        (keyed && (st = pnet_slot_buffer(s, item, LEVEL_KEY, n, 1, 0, sizeof(uint64_t), e))) ||
        (st = arrive(s, PNET_KERNEL(s, order_points_work)(pnet_capacity(n)), &work, in->xyz, n,
             3 * sizeof(float), &arrived, e)))
        return st;
    float *xyz = pnet_slot_place(s, item, LEVEL_XYZ)->data;
    uint64_t *key = keyed ? pnet_slot_place(s, item, LEVEL_KEY)->data : NULL;
    int32_t *order = pnet_slot_place(s, item, LEVEL_ORDER)->data;
    pnet_device_put(s->memory->device, splits_of(s, level), in->row_splits,
        (size_t)(b->samples + 1) * sizeof(int64_t));
    int64_t outside = PNET_KERNEL(s, order_points)(
        n, b->samples, splits_of(s, level), arrived, grid, order, xyz, work);
    if (outside)
        return pnet_error_set(e, PNET_BAD_DATA,
            "%lld points of input '%s' lie beyond the %d cells of %g m that a grid reaches from "
            "the origin",
            (long long)outside, s->plan->inputs[info->input].name, PNET_KEY_BIAS,
            (double)grid.base);
    PNET_KERNEL(s, gather)(n, 3, arrived, order, xyz);
    if (keyed) PNET_KERNEL(s, keys)(n, xyz, grid, key);
    s->counts.rows[level] = n;
    s->views[item].level = (struct pnet_level){n, b->samples, splits_of(s, level), xyz, key, grid};
    return PNET_OK;
}

static enum pnet_status build_grid(struct pnet_slot *s, int item, struct pnet_error *e)
{
    int level = s->plan->geo[item].request.a;
    const struct pnet_level_info *info = &s->plan->levels[level];
    const struct pnet_level *fine = &s->views[s->level_item[info->finer]].level;
    int64_t n = fine->rows, room = pnet_capacity(n);
    bool keyed = pnet_slot_searched(s->plan, level),
         ordered = pnet_slot_stretches(s->plan, info->finer, level);
    size_t sample_work = pnet_round_bytes(PNET_KERNEL(s, sample_work)(room, ordered));
    void *work;
    enum pnet_status st;
    if ((st = pnet_slot_buffer(s, item, LEVEL_PARENT, n, 1, 0, sizeof(int32_t), e)) ||
        (st = pnet_slot_scratch(s, sample_work + (size_t)room * sizeof(int32_t), &work, e)))
        return st;
    int32_t *parent = pnet_slot_place(s, item, LEVEL_PARENT)->data,
            *keep = (int32_t *)((char *)work + sample_work);
    int64_t rows =
        PNET_KERNEL(s, sample)(fine, info->grid, ordered, keep, parent, splits_of(s, level), work);
    if ((st = pnet_slot_buffer(s, item, LEVEL_XYZ, rows, 1, 0, 3 * sizeof(float), e)) ||
        (keyed && (st = pnet_slot_buffer(s, item, LEVEL_KEY, rows, 1, 0, sizeof(uint64_t), e))))
        return st;
    float *xyz = pnet_slot_place(s, item, LEVEL_XYZ)->data;
    uint64_t *key = keyed ? pnet_slot_place(s, item, LEVEL_KEY)->data : NULL;
    PNET_KERNEL(s, gather)(rows, 3, fine->xyz, keep, xyz);
    if (keyed) PNET_KERNEL(s, keys)(rows, xyz, info->grid, key);
    s->counts.rows[level] = rows;
    s->views[item].level =
        (struct pnet_level){rows, s->counts.samples, splits_of(s, level), xyz, key, info->grid};
    return PNET_OK;
}

/* The map from a level to a coarser one: the sampling's own, or several of them one behind the
 * other. */
static enum pnet_status build_parent(struct pnet_slot *s, int item, struct pnet_error *e)
{
    const struct pnet_geo_request *q = &s->plan->geo[item].request;
    struct pnet_geo_view *v = &s->views[item];
    int64_t n = s->counts.rows[q->a], m = s->counts.rows[q->b];
    int chain[64], depth = 0;
    enum pnet_status st;
    v->fine_rows = n;
    v->coarse_rows = m;
    for (int l = q->b; l != q->a && depth < 64; l = s->plan->levels[l].finer)
        chain[depth++] = s->level_item[l];
    assert(depth); /* the coarser level was sampled from the finer one */
    if (depth == 1) {
        v->parent = pnet_slot_place(s, chain[0], LEVEL_PARENT)->data;
    } else {
        if ((st = pnet_slot_buffer(s, item, MAP_PARENT, n, 1, 0, sizeof(int32_t), e))) return st;
        int32_t *parent = pnet_slot_place(s, item, MAP_PARENT)->data;
        const int32_t *row = pnet_slot_place(s, chain[depth - 1], LEVEL_PARENT)->data;
        for (int k = depth - 2; k >= 0; k--) {
            PNET_KERNEL(s, gather)
            (n, 1, pnet_slot_place(s, chain[k], LEVEL_PARENT)->data, row, parent);
            row = parent;
        }
        v->parent = parent;
    }
    if (!(s->work->forms[item] & PNET_FORM_CHILDREN)) return PNET_OK;
    bool stretches = pnet_slot_stretches(s->plan, q->a, q->b);
    if ((st = pnet_slot_buffer(s, item, MAP_START, m, 1, 1, sizeof(int64_t), e)) ||
        (!stretches && (st = pnet_slot_buffer(s, item, MAP_CHILD, n, 1, 0, sizeof(int32_t), e))))
        return st;
    v->child_start = pnet_slot_place(s, item, MAP_START)->data;
    v->child = stretches ? NULL : pnet_slot_place(s, item, MAP_CHILD)->data;
    PNET_KERNEL(s, children)
    (n, m, v->parent, pnet_slot_place(s, item, MAP_START)->data, (int32_t *)(uintptr_t)v->child);
    return PNET_OK;
}

static enum pnet_status build_nearest(struct pnet_slot *s, int item, struct pnet_error *e)
{
    const struct pnet_geo_request *q = &s->plan->geo[item].request;
    const struct pnet_level *fine = &s->views[s->level_item[q->a]].level,
                            *coarse = &s->views[s->level_item[q->b]].level;
    struct pnet_level fine_room = pnet_slot_roomy(fine), coarse_room = pnet_slot_roomy(coarse);
    void *work;
    enum pnet_status st;
    if ((st = pnet_slot_buffer(s, item, NEAR_INDEX, fine->rows, q->k, 0, sizeof(int32_t), e)) ||
        (st = pnet_slot_buffer(s, item, NEAR_DISTANCE, fine->rows, q->k, 0, sizeof(float), e)) ||
        (st = pnet_slot_scratch(
             s, PNET_KERNEL(s, nearest_work)(&fine_room, &coarse_room, q->k), &work, e)))
        return st;
    PNET_KERNEL(s, nearest)
    (fine, coarse, q->k, s->buffers[item][NEAR_INDEX].data, s->buffers[item][NEAR_DISTANCE].data,
        work);
    struct pnet_geo_view *v = &s->views[item];
    v->fine_rows = fine->rows;
    v->coarse_rows = coarse->rows;
    v->k = q->k;
    v->nearest = s->buffers[item][NEAR_INDEX].data;
    v->distance2 = s->buffers[item][NEAR_DISTANCE].data;
    return PNET_OK;
}

enum { POSE_BYTES = 16 * sizeof(float) };

static enum pnet_status build_matches(
    struct pnet_slot *s, int item, const struct pnet_batch *b, struct pnet_error *e)
{
    const struct pnet_geo_request *q = &s->plan->geo[item].request;
    const struct pnet_plan_tensor *t = &s->plan->tensors[q->pose];
    const struct pnet_level *from = &s->views[s->level_item[q->a]].level,
                            *to = &s->views[s->level_item[q->b]].level;
    struct pnet_level from_room = pnet_slot_roomy(from), to_room = pnet_slot_roomy(to);
    struct pnet_buffer *own = s->buffers[item];
    const void *given = b->inputs[t->input].fields[t->field], *pose;
    void *work;
    enum pnet_status st;
    if ((st = pnet_slot_buffer(s, item, MATCH_START, from->rows, 1, 1, sizeof(int64_t), e)) ||
        (st = arrive(s, PNET_KERNEL(s, matches_work)(&from_room, &to_room, q->radius, 0), &work,
             given, b->samples, POSE_BYTES, &pose, e)))
        return st;
    int64_t number =
        PNET_KERNEL(s, matches_count)(from, to, pose, q->radius, own[MATCH_START].data, work);
    size_t bytes =
        PNET_KERNEL(s, matches_work)(&from_room, &to_room, q->radius, pnet_capacity(number));
    if ((st = pnet_slot_buffer(s, item, MATCH_OTHER, number, 1, 0, sizeof(int32_t), e)) ||
        (st = arrive(s, bytes, &work, given, b->samples, POSE_BYTES, &pose, e)))
        return st;
    PNET_KERNEL(s, matches_write)
    (from, to, pose, q->radius, number, own[MATCH_START].data, own[MATCH_OTHER].data, work);
    s->counts.triplets[item] = number;
    s->views[item].forward = (struct pnet_triplets){.rows = from->rows,
        .others = to->rows,
        .count = number,
        .start = own[MATCH_START].data,
        .other = own[MATCH_OTHER].data};
    return PNET_OK;
}

static enum pnet_status build_item(
    struct pnet_slot *s, int i, const struct pnet_batch *b, struct pnet_error *e)
{
    const struct pnet_geo_request *q = &s->plan->geo[i].request;
    s->views[i] = (struct pnet_geo_view){.a = q->a, .b = q->b};
    switch (q->kind) {
    case PNET_GEO_LEVEL:
        return s->plan->levels[q->a].kind == PNET_LEVEL_INPUT ? build_input(s, i, b, e)
                                                              : build_grid(s, i, e);
    case PNET_GEO_TRIPLETS: return pnet_slot_build_set(s, i, e);
    case PNET_GEO_PARENT: return build_parent(s, i, e);
    case PNET_GEO_NEAREST: return build_nearest(s, i, e);
    case PNET_GEO_MATCHES: return build_matches(s, i, b, e);
    case PNET_GEO_KINDS: break;
    }
    return PNET_OK;
}

static bool is_field(const struct pnet_plan *p, int tensor)
{
    return p->tensors[tensor].role == PNET_ROLE_INPUT && p->tensors[tensor].first >= 0;
}

/* On the host of a GPU that the plan is for, only counts matter. */
static enum pnet_storage storage_of(const struct pnet_slot *s, int field)
{
    return s->device == PNET_CPU ? PNET_STORE_F32 : pnet_plan_storage(s->plan, field);
}

/* Memory for all fields of the batch. */
static enum pnet_status make_fields(
    struct pnet_slot *s, const struct pnet_batch *b, struct pnet_error *e)
{
    const struct pnet_plan *p = s->plan;
    s->idle = NULL;
    for (int i = 0; i < p->tensor_count; i++) {
        const struct pnet_plan_tensor *t = &p->tensors[i];
        if (!is_field(p, i)) continue;
        bool points = p->levels[t->type.level].kind == PNET_LEVEL_INPUT;
        int64_t n = points ? b->inputs[t->input].rows : b->samples,
                each = t->type.width * pnet_storage_bytes(storage_of(s, i));
        enum pnet_status st = pnet_buffer_ensure(s->memory, &s->fields[i],
            (size_t)(pnet_capacity(n) * each), "the fields of the batch", e);
        if (st) return st;
        if (!s->idle || s->fields[i].size > s->idle->size) s->idle = &s->fields[i];
    }
    return PNET_OK;
}

/* Where rows of a field can arrive, behind the geometry: among points that have served, where they are not kept. */
static enum pnet_status field_room(
    struct pnet_slot *s, int level, size_t bytes, void **at, struct pnet_error *e)
{
    int item = s->level_item[level];
    if (item < 0 || pnet_slot_keeps(s->plan, item, s->work->forms[item], LEVEL_XYZ) ||
        bytes > s->work->buffers[item][LEVEL_XYZ].size)
        return shared_scratch(s, bytes, at, e);
    *at = s->work->buffers[item][LEVEL_XYZ].data;
    return PNET_OK;
}

/* Rows of a field follow the rows of its level. */
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
    if (s->device != PNET_CPU) {
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

/* The view of an item with the counts of its capacity class, and where the true ones stand. */
static struct pnet_geo_view bound_view(const struct pnet_slot *s, int item)
{
    struct pnet_geo_view v = s->views[item];
    struct pnet_triplets *sets[2] = {&v.forward, &v.transposed};
    v.fine_rows = pnet_capacity(v.fine_rows);
    v.coarse_rows = pnet_capacity(v.coarse_rows);
    v.fine_live = pnet_slot_live(s, v.a);
    v.coarse_live = pnet_slot_live(s, v.b);
    v.level.rows = pnet_capacity(v.level.rows);
    for (int k = 0; k < 2; k++) {
        sets[k]->rows = pnet_capacity(sets[k]->rows);
        sets[k]->others = pnet_capacity(sets[k]->others);
        sets[k]->count = pnet_capacity(sets[k]->count);
        sets[k]->tiles.words = pnet_capacity(sets[k]->tiles.words);
        sets[k]->live = pnet_slot_live(s, k == 0 ? v.a : v.b);
    }
    return v;
}

/* Nothing may lead to what the fields, or the next slot to be built, write to. */
static void forget_passing(struct pnet_slot *s)
{
    for (int i = 0; i < s->plan->geo_count; i++) {
        struct pnet_geo_view *v = &s->views[i];
        enum pnet_geo_kind_id kind = s->plan->geo[i].request.kind;
        unsigned forms = s->work->forms[i];
        if (kind == PNET_GEO_LEVEL && !pnet_slot_keeps(s->plan, i, forms, LEVEL_XYZ)) {
            v->level.xyz = NULL;
            v->level.key = NULL;
        }
        if (kind == PNET_GEO_PARENT && s->work->slots > 1 &&
            !pnet_slot_keeps(s->plan, i, forms, MAP_PARENT))
            v->parent = NULL;
    }
}

static enum pnet_status build_geometry(
    struct pnet_slot *s, const struct pnet_batch *b, struct pnet_error *e)
{
    const struct pnet_plan *p = s->plan;
    enum pnet_status st;
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
    free(own); /* pageable: it has been read */
    for (int i = 0; i < p->geo_count; i++)
        if ((st = build_item(s, i, b, e))) return st;
    forget_passing(s);
    for (int i = 0; i < p->geo_count; i++)
        s->bound[i] = s->device == PNET_CPU ? s->views[i] : bound_view(s, i);
    return PNET_OK;
}

static enum pnet_status build(struct pnet_slot *s, const struct pnet_batch *b, struct pnet_error *e)
{
    enum pnet_status st = pnet_device_enter(s->memory->device, e);
    if (st || (st = make_fields(s, b, e))) return st;
    if (!b->id || b->id != s->batch) {
        s->batch = 0;
        if ((st = build_geometry(s, b, e))) return st;
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
        for (int k = 0; k < PNET_SLOT_BUFFERS; k++)
            hash = hash_address(hash, s->buffers[i][k].data);
    for (int t = 0; t < s->plan->tensor_count; t++) hash = hash_address(hash, s->fields[t].data);
    return hash;
}

size_t pnet_slot_bytes(const struct pnet_slot *s)
{
    const struct pnet_geo_work *w = s->work;
    size_t sum = s->splits.size + w->scratch.size;
    for (int k = 0; k < PNET_SLOT_BUFFERS; k++) {
        for (int i = 0; i < s->plan->geo_count; i++)
            sum += s->buffers[i][k].size + w->buffers[i][k].size;
        sum += w->set[k].size;
    }
    for (int t = 0; t < s->plan->tensor_count; t++) sum += s->fields[t].size;
    return sum;
}
