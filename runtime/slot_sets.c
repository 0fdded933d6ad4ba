/* Triplet sets of a slot: found, transposed, laid out as tiles. */
#include "runtime/slot_build.h"

#include "kernels/cpu/geo.h"
#ifdef PNET_CUDA_BUILT
#include "kernels/cuda/geo.h"
#endif

static const int32_t *parent_between(const struct pnet_slot *s, int fine, int coarse)
{
    for (int i = 0; i < s->plan->geo_count; i++) {
        const struct pnet_geo_request *q = &s->plan->geo[i].request;
        if (q->kind == PNET_GEO_PARENT && q->a == fine && q->b == coarse) return s->views[i].parent;
    }
    return NULL;
}

/* The levels of a set, and the same with the rows of their classes. */
struct sides {
    const struct pnet_level *out, *in;
    struct pnet_level out_room, in_room;
};

static struct sides sides_of(const struct pnet_slot *s, const struct pnet_geo_request *q)
{
    struct sides z = {
        .out = &s->views[s->level_item[q->a]].level, .in = &s->views[s->level_item[q->b]].level};
    z.out_room = pnet_slot_roomy(z.out);
    z.in_room = pnet_slot_roomy(z.in);
    return z;
}

static void *data_of(const struct pnet_slot *s, int item, int which)
{
    return pnet_slot_place(s, item, which)->data;
}

static enum pnet_status build_forward(struct pnet_slot *s, int item, struct pnet_error *e)
{
    const struct pnet_geo_request *q = &s->plan->geo[item].request;
    struct sides z = sides_of(s, q);
    size_t work =
        PNET_KERNEL(s, triplets_work)(&z.out_room, q->a == q->b ? &z.out_room : &z.in_room, &q->nb);
    const int32_t *parent = q->a == q->b ? NULL : parent_between(s, q->b, q->a);
    void *scratch;
    enum pnet_status st;
    if ((st = pnet_slot_buffer(s, item, SET_START, z.out->rows, 1, 1, sizeof(int64_t), e)) ||
        (st = pnet_slot_scratch(s, work, &scratch, e)))
        return st;
    int64_t *start = data_of(s, item, SET_START);
    int64_t count = PNET_KERNEL(s, triplets_count)(z.out, z.in, &q->nb, parent, start, scratch);
    if ((st = pnet_slot_buffer(s, item, SET_OTHER, count, 1, 0, sizeof(int32_t), e)) ||
        (st = pnet_slot_buffer(s, item, SET_CELL, count, 1, 0, sizeof(uint16_t), e)))
        return st;
    struct pnet_triplets *f = &s->views[item].forward;
    *f = (struct pnet_triplets){.rows = z.out->rows,
        .others = z.in->rows,
        .count = count,
        .cells = q->nb.kernel * q->nb.kernel * q->nb.kernel,
        .start = start,
        .other = data_of(s, item, SET_OTHER),
        .cell = data_of(s, item, SET_CELL)};
    /* the shape of the other form is there whether it is built or not: workspaces are sized by it */
    s->views[item].transposed = (struct pnet_triplets){
        .rows = z.in->rows, .others = z.out->rows, .count = count, .cells = f->cells};
    PNET_KERNEL(s, triplets_write)
    (z.out, z.in, &q->nb, parent, start, data_of(s, item, SET_OTHER), data_of(s, item, SET_CELL),
        scratch);
    s->counts.triplets[item] = count;
    return PNET_OK;
}

static enum pnet_status build_transposed(struct pnet_slot *s, int item, struct pnet_error *e)
{
    const struct pnet_geo_request *q = &s->plan->geo[item].request;
    struct sides z = sides_of(s, q);
    const struct pnet_triplets *f = &s->views[item].forward;
    struct pnet_triplets *t = &s->views[item].transposed, room = {.rows = z.out_room.rows,
                                                              .others = z.in_room.rows,
                                                              .count = pnet_capacity(f->count),
                                                              .cells = f->cells};
    enum pnet_status st;
    if ((st = pnet_slot_buffer(s, item, SET_T_OTHER, f->count, 1, 0, sizeof(int32_t), e)) ||
        (st = pnet_slot_buffer(s, item, SET_T_CELL, f->count, 1, 0, sizeof(uint16_t), e)))
        return st;
    void *scratch;
    int32_t *other = data_of(s, item, SET_T_OTHER);
    uint16_t *cell = data_of(s, item, SET_T_CELL);
    *t = (struct pnet_triplets){.rows = z.in->rows,
        .others = z.out->rows,
        .count = f->count,
        .cells = f->cells,
        .start = f->start,
        .other = other,
        .cell = cell};
#ifdef PNET_CUDA_BUILT
    if (pnet_slot_searches_back(s->device, q)) {
        size_t work = pnet_cuda_triplets_work(&z.in_room, &z.in_room, &q->nb);
        if ((st = pnet_slot_scratch(s, work, &scratch, e))) return st;
        pnet_cuda_triplets_back(z.in, &q->nb, f->start, other, cell, scratch);
        return PNET_OK;
    }
#endif
    if ((st = pnet_slot_buffer(s, item, SET_T_START, z.in->rows, 1, 1, sizeof(int64_t), e)) ||
        (st = pnet_slot_scratch(s, PNET_KERNEL(s, transpose_work)(&room), &scratch, e)))
        return st;
    t->start = data_of(s, item, SET_T_START);
    PNET_KERNEL(s, transpose)
    (f, data_of(s, item, SET_T_START), other, cell, scratch);
    return PNET_OK;
}

#ifdef PNET_CUDA_BUILT
/* Rows behind the true number, up to the capacity class, get tiles in which there is nothing. */
static enum pnet_status lay_tiles(struct pnet_slot *s, int item, int form,
    struct pnet_triplets *set, bool *unlisted, struct pnet_error *e)
{
    const struct pnet_geo_request *q = &s->plan->geo[item].request;
    struct pnet_buffer *tile = pnet_slot_place(s, item, SET_TILE + form);
    struct pnet_triplets room = *set;
    void *scratch;
    enum pnet_status st;
    room.rows = pnet_capacity(set->rows);
    room.live = pnet_slot_live(s, form ? q->b : q->a);
    if ((st = pnet_buffer_ensure(
             s->memory, tile, pnet_slot_tile_bytes(set->rows), "the geometry of the batch", e)) ||
        (st = pnet_slot_scratch(s, pnet_cuda_tiles_work(room.rows), &scratch, e)))
        return st;
    int64_t words = pnet_cuda_tiles_count(&room, tile->data, scratch);
    *unlisted = pnet_cuda_tiles_unlisted(room.rows, tile->data) > 0;
    if ((st = pnet_slot_buffer(s, item, SET_LIST + form, words, 1, 0, sizeof(uint32_t), e)))
        return st;
    pnet_cuda_tiles_write(&room, tile->data, data_of(s, item, SET_LIST + form));
    set->tiles = (struct pnet_tiles){words, tile->data, data_of(s, item, SET_LIST + form)};
    return PNET_OK;
}
#endif

/* The set as tiles. Where the host measures for a GPU's plan, how much they would take. */
static enum pnet_status build_tiles(
    struct pnet_slot *s, int item, int form, struct pnet_triplets *set, struct pnet_error *e)
{
    bool *unlisted = &s->counts.unlisted[item][form];
#ifdef PNET_CUDA_BUILT
    if (s->device != PNET_CPU) {
        enum pnet_status st = lay_tiles(s, item, form, set, unlisted, e);
        s->counts.tile_words[item][form] = set->tiles.words;
        return st;
    }
#else
    (void)e;
#endif
    s->counts.tile_words[item][form] = pnet_cpu_tiles_words(set, unlisted);
    return PNET_OK;
}

/* Triplets that lie where the next set will are kept where a tile lists nothing, and have no pointers otherwise. What was
   kept for another batch stays in the set all the same: a recorded schedule may read it. */
static enum pnet_status keep_triplets(
    struct pnet_slot *s, int item, int form, struct pnet_triplets *set, struct pnet_error *e)
{
    enum { OTHER, CELL };
    static const int which[2][2] = {{SET_OTHER, SET_CELL}, {SET_T_OTHER, SET_T_CELL}};
    static const size_t size[2] = {sizeof(int32_t), sizeof(uint16_t)};
    struct pnet_buffer *to[2];
    if (pnet_slot_keeps(s->plan, item, s->work->forms[item], which[form][OTHER])) return PNET_OK;
    for (int k = OTHER; k <= CELL; k++) {
        to[k] = &s->buffers[item][which[form][k]];
        if (!s->counts.unlisted[item][form]) continue;
        enum pnet_status st = pnet_buffer_ensure(s->memory, to[k],
            (size_t)pnet_capacity(set->count) * size[k], "the geometry of the batch", e);
        if (st) return st;
        pnet_device_copy(s->memory->device, to[k]->data,
            k == OTHER ? (const void *)set->other : set->cell, (size_t)set->count * size[k]);
    }
    set->other = to[OTHER]->data;
    set->cell = to[CELL]->data;
    return PNET_OK;
}

enum pnet_status pnet_slot_build_set(struct pnet_slot *s, int item, struct pnet_error *e)
{
    struct pnet_triplets *sets[2] = {&s->views[item].forward, &s->views[item].transposed};
    unsigned forms = s->work->forms[item];
    enum pnet_status st = build_forward(s, item, e);
    if (!st && pnet_slot_transposes(forms)) st = build_transposed(s, item, e);
    for (int form = 0; form < 2 && !st; form++)
        if (pnet_slot_has_tiles(forms, form)) st = build_tiles(s, item, form, sets[form], e);
    for (int form = 0; form < 2 && !st; form++) st = keep_triplets(s, item, form, sets[form], e);
    return st;
}
