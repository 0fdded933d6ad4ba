#include "runtime/slot.h"

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

/* Buffers of an item, by kind. */
enum {
    LEVEL_XYZ,
    LEVEL_KEY,
    LEVEL_ORDER,
    LEVEL_PARENT
}; /* LEVEL: order (INPUT), parent of the finer (GRID) */
enum {
    SET_START,
    SET_OTHER,
    SET_CELL,
    SET_T_START,
    SET_T_OTHER,
    SET_T_CELL,
    SET_TILE, /* and the transposed form's behind it */
    SET_LIST = SET_TILE + 2
};                                         /* TRIPLETS */
enum { MAP_PARENT, MAP_START, MAP_CHILD }; /* PARENT */
enum { NEAR_INDEX, NEAR_DISTANCE };        /* NEAREST */
enum { MATCH_START, MATCH_OTHER };         /* MATCHES */

enum pnet_status pnet_slot_new(
    const struct pnet_plan *p, struct pnet_memory *m, struct pnet_slot **slot, struct pnet_error *e)
{
    struct pnet_slot *s = calloc(1, sizeof *s);
    if (!s) return pnet_error_memory(e);
    s->plan = p;
    s->memory = m;
    s->device = m->device.kind;
    s->counts.rows = calloc((size_t)p->level_count + 1, sizeof *s->counts.rows);
    s->counts.triplets = calloc((size_t)p->geo_count + 1, sizeof *s->counts.triplets);
    s->counts.tile_words = calloc((size_t)p->geo_count + 1, sizeof *s->counts.tile_words);
    s->views = calloc((size_t)p->geo_count + 1, sizeof *s->views);
    s->bound = calloc((size_t)p->geo_count + 1, sizeof *s->bound);
    s->buffers = calloc((size_t)p->geo_count + 1, sizeof *s->buffers);
    s->fields = calloc((size_t)p->tensor_count + 1, sizeof *s->fields);
    s->level_item = calloc((size_t)p->level_count + 1, sizeof *s->level_item);
    if (!s->counts.rows || !s->counts.triplets || !s->counts.tile_words || !s->views || !s->bound ||
        !s->buffers || !s->fields || !s->level_item) {
        pnet_slot_free(s);
        return pnet_error_memory(e);
    }
    enum pnet_status st = pnet_device_stage_new(m->device, &s->stage, e);
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
    pnet_buffer_free(s->memory, &s->scratch);
    pnet_buffer_free(s->memory, &s->arrival);
    pnet_device_stage_free(s->memory->device, s->stage);
    free(s->counts.rows);
    free(s->counts.triplets);
    free(s->counts.tile_words);
    free(s->views);
    free(s->bound);
    free(s->buffers);
    free(s->fields);
    free(s->level_item);
    free(s);
}

/* `each` elements for each of `rows`, and `more`: room for the capacity class of the rows, so that
 * another batch of it fits. */
static enum pnet_status item_buffer(struct pnet_slot *s, int item, int which, int64_t rows,
    int64_t each, int64_t more, size_t size, struct pnet_error *e)
{
    return pnet_buffer_ensure(s->memory, &s->buffers[item][which],
        (size_t)(pnet_capacity(rows) * each + more) * size, "the geometry of the batch", e);
}

static enum pnet_status scratch(struct pnet_slot *s, size_t bytes, struct pnet_error *e)
{
    return pnet_buffer_ensure(s->memory, &s->scratch, bytes, "the workspace of the geometry", e);
}

/* A level with the rows of its capacity class: workspaces are sized for the class, so that another
 * batch of it needs no more. */
static struct pnet_level roomy(const struct pnet_level *l)
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
               ? s->buffers[item][LEVEL_ORDER].data
               : NULL;
}

const int64_t *pnet_slot_live(const struct pnet_slot *s, int level)
{
    const int64_t *splits = s->device == PNET_CPU ? NULL : pnet_slot_splits(s, level);
    return splits ? splits + s->counts.samples : NULL;
}

/* Rows of the batch where kernels can read them: on a GPU a copy, good until the next one. */
static enum pnet_status arrive(struct pnet_slot *s, const void *rows, int64_t n, size_t row,
    const void **at, struct pnet_error *e)
{
    *at = rows;
    if (s->device == PNET_CPU) return PNET_OK;
    enum pnet_status st = pnet_buffer_ensure(
        s->memory, &s->arrival, (size_t)pnet_capacity(n) * row, "the points of the batch", e);
    if (st) return st;
    pnet_device_stage_in(s->memory->device, s->stage, s->arrival.data, rows, (size_t)n * row);
    *at = s->arrival.data;
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
    int64_t n = in->rows, room = pnet_capacity(n);
    size_t order_work = pnet_round_bytes(PNET_KERNEL(s, order_work)(room));
    const void *arrived;
    struct pnet_grid grid = info->grid.base > 0 ? info->grid : ordering_grid(in);
    enum pnet_status st;
    if (n > INT32_MAX)
        return pnet_error_set(
            e, PNET_BAD_DATA, "a batch holds at most 2147483647 points, not %lld", (long long)n);
    if ((st = item_buffer(s, item, LEVEL_XYZ, n, 1, 0, 3 * sizeof(float), e)) ||
        (st = item_buffer(s, item, LEVEL_KEY, n, 1, 0, sizeof(uint64_t), e)) ||
        (st = item_buffer(s, item, LEVEL_ORDER, n, 1, 0, sizeof(int32_t), e)) ||
        (st = scratch(s, order_work + (size_t)room * sizeof(uint64_t), e)) ||
        (st = arrive(s, in->xyz, n, 3 * sizeof(float), &arrived, e)))
        return st;
    float *xyz = s->buffers[item][LEVEL_XYZ].data;
    uint64_t *key = s->buffers[item][LEVEL_KEY].data;
    int32_t *order = s->buffers[item][LEVEL_ORDER].data;
    uint64_t *unsorted = (uint64_t *)((char *)s->scratch.data + order_work);
    int64_t outside = PNET_KERNEL(s, keys)(n, arrived, grid, unsorted);
    if (outside)
        return pnet_error_set(e, PNET_BAD_DATA,
            "%lld points of input '%s' lie beyond the %d cells of %g m that a grid reaches from "
            "the origin",
            (long long)outside, s->plan->inputs[info->input].name, PNET_KEY_BIAS,
            (double)grid.base);
    pnet_device_put(s->memory->device, splits_of(s, level), in->row_splits,
        (size_t)(b->samples + 1) * sizeof(int64_t));
    PNET_KERNEL(s, order)(n, b->samples, splits_of(s, level), unsorted, order, s->scratch.data);
    PNET_KERNEL(s, gather)(n, 3, arrived, order, xyz);
    PNET_KERNEL(s, gather)(n, 2, unsorted, order, key);
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
    size_t sample_work = pnet_round_bytes(PNET_KERNEL(s, sample_work)(room));
    enum pnet_status st;
    if ((st = item_buffer(s, item, LEVEL_PARENT, n, 1, 0, sizeof(int32_t), e)) ||
        (st = scratch(s, sample_work + (size_t)room * sizeof(int32_t), e)))
        return st;
    int32_t *parent = s->buffers[item][LEVEL_PARENT].data,
            *keep = (int32_t *)((char *)s->scratch.data + sample_work);
    int64_t rows = PNET_KERNEL(s, sample)(
        fine, info->grid, keep, parent, splits_of(s, level), s->scratch.data);
    if ((st = item_buffer(s, item, LEVEL_XYZ, rows, 1, 0, 3 * sizeof(float), e)) ||
        (st = item_buffer(s, item, LEVEL_KEY, rows, 1, 0, sizeof(uint64_t), e)))
        return st;
    float *xyz = s->buffers[item][LEVEL_XYZ].data;
    uint64_t *key = s->buffers[item][LEVEL_KEY].data;
    PNET_KERNEL(s, gather)(rows, 3, fine->xyz, keep, xyz);
    PNET_KERNEL(s, keys)(rows, xyz, info->grid, key);
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
        v->parent = s->buffers[chain[0]][LEVEL_PARENT].data;
    } else {
        if ((st = item_buffer(s, item, MAP_PARENT, n, 1, 0, sizeof(int32_t), e))) return st;
        int32_t *parent = s->buffers[item][MAP_PARENT].data;
        const int32_t *row = s->buffers[chain[depth - 1]][LEVEL_PARENT].data;
        for (int k = depth - 2; k >= 0; k--) {
            PNET_KERNEL(s, gather)(n, 1, s->buffers[chain[k]][LEVEL_PARENT].data, row, parent);
            row = parent;
        }
        v->parent = parent;
    }
    if (!(s->plan->geo[item].forms & PNET_FORM_CHILDREN)) return PNET_OK;
    if ((st = item_buffer(s, item, MAP_START, m, 1, 1, sizeof(int64_t), e)) ||
        (st = item_buffer(s, item, MAP_CHILD, n, 1, 0, sizeof(int32_t), e)))
        return st;
    PNET_KERNEL(s, children)
    (n, m, v->parent, s->buffers[item][MAP_START].data, s->buffers[item][MAP_CHILD].data);
    v->child_start = s->buffers[item][MAP_START].data;
    v->child = s->buffers[item][MAP_CHILD].data;
    return PNET_OK;
}

static const int32_t *parent_between(const struct pnet_slot *s, int fine, int coarse)
{
    for (int i = 0; i < s->plan->geo_count; i++) {
        const struct pnet_geo_request *q = &s->plan->geo[i].request;
        if (q->kind == PNET_GEO_PARENT && q->a == fine && q->b == coarse) return s->views[i].parent;
    }
    return NULL;
}

static enum pnet_status build_triplets(struct pnet_slot *s, int item, struct pnet_error *e)
{
    const struct pnet_geo_request *q = &s->plan->geo[item].request;
    const struct pnet_level *out = &s->views[s->level_item[q->a]].level,
                            *in = &s->views[s->level_item[q->b]].level;
    struct pnet_level out_room = roomy(out), in_room = roomy(in);
    size_t work =
        PNET_KERNEL(s, triplets_work)(&out_room, q->a == q->b ? &out_room : &in_room, &q->nb);
    const int32_t *parent = q->a == q->b ? NULL : parent_between(s, q->b, q->a);
    struct pnet_buffer *b = s->buffers[item];
    enum pnet_status st;
    if ((st = item_buffer(s, item, SET_START, out->rows, 1, 1, sizeof(int64_t), e)) ||
        (st = scratch(s, work, e)))
        return st;
    int64_t count =
        PNET_KERNEL(s, triplets_count)(out, in, &q->nb, parent, b[SET_START].data, s->scratch.data);
    if ((st = item_buffer(s, item, SET_OTHER, count, 1, 0, sizeof(int32_t), e)) ||
        (st = item_buffer(s, item, SET_CELL, count, 1, 0, sizeof(uint16_t), e)))
        return st;
    PNET_KERNEL(s, triplets_write)
    (out, in, &q->nb, parent, b[SET_START].data, b[SET_OTHER].data, b[SET_CELL].data,
        s->scratch.data);
    int32_t cells = q->nb.kernel * q->nb.kernel * q->nb.kernel;
    s->counts.triplets[item] = count;
    struct pnet_triplets *f = &s->views[item].forward;
    *f = (struct pnet_triplets){out->rows, in->rows, count, cells, b[SET_START].data,
        b[SET_OTHER].data, b[SET_CELL].data, NULL, {0}};
    if (!(s->plan->geo[item].forms & PNET_FORM_TRANSPOSED)) return PNET_OK;
    struct pnet_triplets *t = &s->views[item].transposed,
                         room = {out_room.rows, in_room.rows, pnet_capacity(count), cells, NULL,
                             NULL, NULL, NULL, {0}};
    if ((st = item_buffer(s, item, SET_T_OTHER, count, 1, 0, sizeof(int32_t), e)) ||
        (st = item_buffer(s, item, SET_T_CELL, count, 1, 0, sizeof(uint16_t), e)))
        return st;
    *t = (struct pnet_triplets){in->rows, out->rows, count, cells, b[SET_START].data,
        b[SET_T_OTHER].data, b[SET_T_CELL].data, NULL, {0}};
#ifdef PNET_CUDA_BUILT
    if (pnet_slot_searches_back(s->device, q)) {
        pnet_cuda_triplets_back(in, &q->nb, b[SET_START].data, b[SET_T_OTHER].data,
            b[SET_T_CELL].data, s->scratch.data);
        return PNET_OK;
    }
#endif
    if ((st = item_buffer(s, item, SET_T_START, in->rows, 1, 1, sizeof(int64_t), e)) ||
        (st = scratch(s, PNET_KERNEL(s, transpose_work)(&room), e)))
        return st;
    t->start = b[SET_T_START].data;
    PNET_KERNEL(s, transpose)
    (f, b[SET_T_START].data, b[SET_T_OTHER].data, b[SET_T_CELL].data, s->scratch.data);
    return PNET_OK;
}

#ifdef PNET_CUDA_BUILT
/* Rows behind the true number, up to the capacity class, get tiles in which there is nothing. */
static enum pnet_status lay_tiles(
    struct pnet_slot *s, int item, int form, struct pnet_triplets *set, struct pnet_error *e)
{
    const struct pnet_geo_request *q = &s->plan->geo[item].request;
    struct pnet_buffer *tile = &s->buffers[item][SET_TILE + form],
                       *list = &s->buffers[item][SET_LIST + form];
    struct pnet_triplets room = *set;
    enum pnet_status st;
    room.rows = pnet_capacity(set->rows);
    room.live = pnet_slot_live(s, form ? q->b : q->a);
    if ((st = pnet_buffer_ensure(
             s->memory, tile, pnet_slot_tile_bytes(set->rows), "the geometry of the batch", e)) ||
        (st = scratch(s, pnet_cuda_tiles_work(room.rows), e)))
        return st;
    int64_t words = pnet_cuda_tiles_count(&room, tile->data, s->scratch.data);
    if ((st = item_buffer(s, item, SET_LIST + form, words, 1, 0, sizeof(uint32_t), e))) return st;
    pnet_cuda_tiles_write(&room, tile->data, list->data);
    set->tiles = (struct pnet_tiles){words, tile->data, list->data};
    return PNET_OK;
}
#endif

/* The set as tiles. Where the host measures for a GPU's plan, how much they would take. */
static enum pnet_status build_tiles(struct pnet_slot *s, int item, struct pnet_error *e)
{
    struct pnet_triplets *sets[2] = {&s->views[item].forward, &s->views[item].transposed};
    for (int form = 0; form < 2; form++) {
        if (!pnet_slot_tiled(s->plan, item, form)) continue;
#ifdef PNET_CUDA_BUILT
        if (s->device != PNET_CPU) {
            enum pnet_status st = lay_tiles(s, item, form, sets[form], e);
            if (st) return st;
            s->counts.tile_words[item][form] = sets[form]->tiles.words;
            continue;
        }
#else
        (void)e;
#endif
        s->counts.tile_words[item][form] = pnet_cpu_tiles_words(sets[form]);
    }
    return PNET_OK;
}

static enum pnet_status build_nearest(struct pnet_slot *s, int item, struct pnet_error *e)
{
    const struct pnet_geo_request *q = &s->plan->geo[item].request;
    const struct pnet_level *fine = &s->views[s->level_item[q->a]].level,
                            *coarse = &s->views[s->level_item[q->b]].level;
    struct pnet_level fine_room = roomy(fine), coarse_room = roomy(coarse);
    enum pnet_status st;
    if ((st = item_buffer(s, item, NEAR_INDEX, fine->rows, q->k, 0, sizeof(int32_t), e)) ||
        (st = item_buffer(s, item, NEAR_DISTANCE, fine->rows, q->k, 0, sizeof(float), e)) ||
        (st = scratch(s, PNET_KERNEL(s, nearest_work)(&fine_room, &coarse_room, q->k), e)))
        return st;
    PNET_KERNEL(s, nearest)
    (fine, coarse, q->k, s->buffers[item][NEAR_INDEX].data, s->buffers[item][NEAR_DISTANCE].data,
        s->scratch.data);
    struct pnet_geo_view *v = &s->views[item];
    v->fine_rows = fine->rows;
    v->coarse_rows = coarse->rows;
    v->k = q->k;
    v->nearest = s->buffers[item][NEAR_INDEX].data;
    v->distance2 = s->buffers[item][NEAR_DISTANCE].data;
    return PNET_OK;
}

static enum pnet_status build_matches(
    struct pnet_slot *s, int item, const struct pnet_batch *b, struct pnet_error *e)
{
    const struct pnet_geo_request *q = &s->plan->geo[item].request;
    const struct pnet_plan_tensor *t = &s->plan->tensors[q->pose];
    const struct pnet_level *from = &s->views[s->level_item[q->a]].level,
                            *to = &s->views[s->level_item[q->b]].level;
    struct pnet_level from_room = roomy(from), to_room = roomy(to);
    struct pnet_buffer *own = s->buffers[item];
    const void *pose;
    enum pnet_status st;
    if ((st = item_buffer(s, item, MATCH_START, from->rows, 1, 1, sizeof(int64_t), e)) ||
        (st = scratch(s, PNET_KERNEL(s, matches_work)(&from_room, &to_room, q->radius, 0), e)) ||
        (st = arrive(
             s, b->inputs[t->input].fields[t->field], b->samples, 16 * sizeof(float), &pose, e)))
        return st;
    int64_t number = PNET_KERNEL(s, matches_count)(
        from, to, pose, q->radius, own[MATCH_START].data, s->scratch.data);
    size_t work =
        PNET_KERNEL(s, matches_work)(&from_room, &to_room, q->radius, pnet_capacity(number));
    if ((st = item_buffer(s, item, MATCH_OTHER, number, 1, 0, sizeof(int32_t), e)) ||
        (st = scratch(s, work, e)))
        return st;
    PNET_KERNEL(s, matches_write)
    (from, to, pose, q->radius, number, own[MATCH_START].data, own[MATCH_OTHER].data,
        s->scratch.data);
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
    enum pnet_status st;
    s->views[i] = (struct pnet_geo_view){.a = q->a, .b = q->b};
    switch (q->kind) {
    case PNET_GEO_LEVEL:
        return s->plan->levels[q->a].kind == PNET_LEVEL_INPUT ? build_input(s, i, b, e)
                                                              : build_grid(s, i, e);
    case PNET_GEO_TRIPLETS: st = build_triplets(s, i, e); return st ? st : build_tiles(s, i, e);
    case PNET_GEO_PARENT: return build_parent(s, i, e);
    case PNET_GEO_NEAREST: return build_nearest(s, i, e);
    case PNET_GEO_MATCHES: return build_matches(s, i, b, e);
    case PNET_GEO_KINDS: break;
    }
    return PNET_OK;
}

/* Rows of a field follow the rows of its level. */
static enum pnet_status take_field(
    struct pnet_slot *s, int tensor, const struct pnet_batch *b, struct pnet_error *e)
{
    const struct pnet_plan_tensor *t = &s->plan->tensors[tensor];
    const struct pnet_batch_input *in = &b->inputs[t->input];
    bool position = s->plan->inputs[t->input].fields[t->field].kind == PNET_INPUT_POSITION;
    const char *from = position ? (const char *)in->xyz : in->fields[t->field];
    int64_t n = s->counts.rows[t->type.level];
    int32_t width = t->type.width;
    /* on the host of a GPU that the plan is for, only counts matter */
    enum pnet_storage storage =
        s->device == PNET_CPU ? PNET_STORE_F32 : pnet_plan_storage(s->plan, tensor);
    const int32_t *order = pnet_slot_order(s, t->type.level);
    enum pnet_status st = pnet_buffer_ensure(s->memory, &s->fields[tensor],
        (size_t)(pnet_capacity(n) * width * pnet_storage_bytes(storage)), "the fields of the batch",
        e);
    if (st) return st;
    const void *arrived;
    if ((st = arrive(s, from, n, (size_t)width * 4, &arrived, e))) return st;
    if (storage == PNET_STORE_F32)
        PNET_KERNEL(s, gather)(n, width, arrived, order, s->fields[tensor].data);
    else
        PNET_KERNEL(s, gather_features)
    (n, width, arrived, order, storage, s->fields[tensor].data);
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
    for (int i = 0; i < p->geo_count; i++)
        s->bound[i] = s->device == PNET_CPU ? s->views[i] : bound_view(s, i);
    return PNET_OK;
}

enum pnet_status pnet_slot_build(
    struct pnet_slot *s, const struct pnet_batch *b, struct pnet_error *e)
{
    enum pnet_status st = pnet_device_enter(s->memory->device, e);
    if (st) return st;
    if (!b->id || b->id != s->batch) {
        s->batch = 0;
        if ((st = build_geometry(s, b, e))) return st;
        s->batch = b->id;
    }
    for (int t = 0; t < s->plan->tensor_count; t++)
        if (s->plan->tensors[t].role == PNET_ROLE_INPUT && s->plan->tensors[t].first >= 0 &&
            (st = take_field(s, t, b, e)))
            return st;
    st = pnet_device_wait(s->memory->device, e);
    if (st) s->batch = 0;
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
    size_t sum = s->splits.size + s->scratch.size + s->arrival.size;
    for (int i = 0; i < s->plan->geo_count; i++)
        for (int k = 0; k < PNET_SLOT_BUFFERS; k++) sum += s->buffers[i][k].size;
    for (int t = 0; t < s->plan->tensor_count; t++) sum += s->fields[t].size;
    return sum;
}
