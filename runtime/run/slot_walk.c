/* The memory of a walk: taken from a slot, or added up. */
#include "runtime/geo/levels.h"
#include "runtime/run/slot_build.h"

#include <stdarg.h>
#include <stdio.h>

void pnet_geo_fail(struct pnet_geo_walk *w, enum pnet_status status, const char *format, ...)
{
    va_list rest;
    if (w->status) return;
    va_start(rest, format);
    w->status = pnet_error_vset(w->error, status, format, rest);
    va_end(rest);
}

static void add_up(struct pnet_geo_walk *w, int which, size_t bytes)
{
    struct pnet_geo_sizes *z = w->sizes;
    bytes = pnet_round_bytes(bytes);
    switch (w->owner[which]) {
    case PNET_OWNER_SLOT: z->part[pnet_geo_kind(w->q->kind)->part[which]] += bytes; break;
    case PNET_OWNER_SHARED: z->passing += bytes; break;
    case PNET_OWNER_PASSING:
        if (bytes > z->set[which]) z->set[which] = bytes;
        break;
    }
}

/* Returns a buffer of which this batch uses `used` bytes. */
static void *ensure(struct pnet_geo_walk *w, int which, size_t bytes, size_t used)
{
    if (w->sizes) add_up(w, which, bytes);
    if (!pnet_geo_builds(w)) return NULL;
    struct pnet_buffer *b = pnet_slot_place(w->slot, w->item, which);
    w->slot->used[w->item][which] = used;
    w->status =
        pnet_buffer_ensure(w->slot->memory, b, bytes, "the geometry of the batch", w->error);
    return w->status ? NULL : b->data;
}

void *pnet_geo_buffer(
    struct pnet_geo_walk *w, int which, int64_t rows, int64_t each, int64_t more, size_t size)
{
    return ensure(w, which, (size_t)(pnet_capacity(rows) * each + more) * size,
        (size_t)(rows * each + more) * size);
}

void *pnet_geo_block(struct pnet_geo_walk *w, int which, size_t bytes)
{
    return ensure(w, which, bytes, bytes);
}

void pnet_geo_own(struct pnet_geo_walk *w, int which, const void *from, int64_t count, size_t size)
{
    size_t bytes = (size_t)pnet_capacity(count) * size;
    if (w->sizes) w->sizes->part[pnet_geo_kind(w->q->kind)->part[which]] += pnet_round_bytes(bytes);
    if (!pnet_geo_builds(w)) return;
    struct pnet_buffer *own = &w->slot->buffers[w->item][which];
    w->status =
        pnet_buffer_ensure(w->slot->memory, own, bytes, "the geometry of the batch", w->error);
    if (!w->status)
        pnet_device_copy(w->slot->memory->device, own->data, from, (size_t)count * size);
}

void *pnet_slot_shared_scratch(struct pnet_geo_walk *w, size_t bytes)
{
    if (w->sizes) {
        bytes = pnet_round_bytes(bytes);
        if (bytes > w->sizes->scratch) w->sizes->scratch = bytes;
    }
    if (!pnet_geo_builds(w)) return NULL;
    struct pnet_geo_work *work = w->slot->work;
    struct pnet_buffer *scratch = work->idle ? work->idle : &work->scratch;
    w->status = pnet_buffer_ensure(
        w->slot->memory, scratch, bytes, "the workspace of the geometry", w->error);
    return w->status ? NULL : scratch->data;
}

/* The largest field is scratch until it arrives: its bytes, and its address. */
static size_t idle_bytes(const struct pnet_geo_walk *w)
{
    if (w->sizes) return w->sizes->idle;
    return w->slot->idle ? w->slot->idle->size : 0;
}

void *pnet_geo_scratch(struct pnet_geo_walk *w, size_t bytes)
{
    if (bytes > idle_bytes(w) || (w->slot && !w->slot->idle))
        return pnet_slot_shared_scratch(w, bytes);
    return pnet_geo_builds(w) ? w->slot->idle->data : NULL;
}

const void *pnet_geo_arrive(
    struct pnet_geo_walk *w, size_t bytes, void **work, const void *rows, int64_t n, size_t row)
{
    size_t room = (size_t)pnet_capacity(n) * row, offset = pnet_round_bytes(bytes);
    if (w->device == PNET_CPU || (w->batch && w->batch->there)) {
        *work = pnet_geo_scratch(w, bytes);
        return rows;
    }
    bool fits = room <= idle_bytes(w) && !(w->slot && !w->slot->idle);
    *work = pnet_slot_shared_scratch(w, fits ? bytes : offset + room);
    if (!pnet_geo_builds(w)) return NULL;
    void *to = fits ? w->slot->idle->data : (char *)*work + offset;
    pnet_device_stage_in(w->slot->memory->device, w->slot->stage, to, rows, (size_t)n * row);
    return to;
}

struct pnet_level pnet_geo_level(const struct pnet_geo_walk *w, int level)
{
    if (w->slot) return w->slot->views[w->slot->bound->level_item[level]].level;
    return (struct pnet_level){.rows = w->counts->rows[level],
        .samples = w->counts->samples,
        .grid = w->plan->levels[level].grid};
}

struct pnet_level pnet_geo_room(const struct pnet_geo_walk *w, int level)
{
    struct pnet_level l = pnet_geo_level(w, level);
    l.rows = pnet_capacity(l.rows);
    return l;
}

int64_t *pnet_geo_splits(const struct pnet_geo_walk *w, int level)
{
    return w->slot ? (int64_t *)(uintptr_t)pnet_slot_splits(w->slot, level) : NULL;
}

void pnet_geo_put_splits(const struct pnet_geo_walk *w, int level, const int64_t *splits)
{
    pnet_device_put(w->slot->memory->device, pnet_geo_splits(w, level), splits,
        (size_t)(w->counts->samples + 1) * sizeof *splits);
}

const int64_t *pnet_geo_live(const struct pnet_geo_walk *w, int level)
{
    return w->slot ? pnet_slot_live(w->slot, level) : NULL;
}

void pnet_geo_set_grid(struct pnet_geo_walk *w, struct pnet_grid grid)
{
    w->slot->grids[w->q->a] = grid;
}

void *pnet_geo_data(const struct pnet_geo_walk *w, int item, int which)
{
    return pnet_slot_place(w->slot, item, which)->data;
}

const struct pnet_geo_view *pnet_geo_built(const struct pnet_geo_walk *w, int item)
{
    return &w->slot->views[item];
}

/* Adds up the bytes of fields. Their memory exists from the start; on a GPU they arrive in the memory of points that are not
   kept. */
static size_t size_fields(
    const struct pnet_bound *b, const struct pnet_counts *c, struct pnet_geo_sizes *z)
{
    const struct pnet_plan *p = b->plan;
    size_t sum = 0;
    for (int t = 0; t < p->tensor_count; t++) {
        if (p->tensors[t].role != PNET_ROLE_INPUT || p->tensors[t].first < 0) continue;
        int64_t rows = pnet_capacity(c->rows[p->tensors[t].type.level]);
        int32_t each = p->tensors[t].type.width * pnet_storage_bytes(b->storage[t]);
        size_t bytes = pnet_round_bytes((size_t)(rows * each));
        sum += bytes;
        if (bytes > z->idle) z->idle = bytes;
    }
    return sum;
}

/* Returns the bytes of a level's points that arriving fields may overwrite; 0 if the points are kept, or never had a buffer. */
static size_t points_room(const struct pnet_bound *b, int level, size_t rows)
{
    int item = b->level_item[level];
    if (item < 0 || b->owner[item][LEVEL_XYZ] == PNET_OWNER_SLOT ||
        pnet_level_unread(b->plan, level))
        return 0;
    return pnet_round_bytes(rows * 3 * sizeof(float));
}

static void size_arrivals(
    const struct pnet_bound *b, const struct pnet_counts *c, struct pnet_geo_sizes *z)
{
    const struct pnet_plan *p = b->plan;
    for (int t = 0; t < p->tensor_count && b->device != PNET_CPU; t++) {
        const struct pnet_type *type = &p->tensors[t].type;
        if (p->tensors[t].role != PNET_ROLE_INPUT || p->tensors[t].first < 0) continue;
        size_t rows = (size_t)pnet_capacity(c->rows[type->level]),
               bytes = rows * (size_t)type->width * 4;
        if (bytes > points_room(b, type->level, rows) && bytes > z->scratch)
            z->scratch = pnet_round_bytes(bytes);
    }
}

struct pnet_slot_sizes pnet_slot_estimate(const struct pnet_bound *b, const struct pnet_counts *c)
{
    const struct pnet_plan *p = b->plan;
    struct pnet_geo_sizes z = {.part[PNET_PART_LEVELS] = pnet_round_bytes(
                                   (size_t)p->level_count * (size_t)(c->samples + 1) * 8)};
    struct pnet_slot_sizes a = {.fields = size_fields(b, c, &z)};
    for (int i = 0; i < p->geo_count; i++) {
        struct pnet_geo_walk w = {.plan = p,
            .q = &p->geo[i].request,
            .item = i,
            .forms = b->forms[i],
            .owner = b->owner[i],
            .device = b->device,
            .counts = (struct pnet_counts *)(uintptr_t)c, /* sizing does not change them */
            .sizes = &z};
        pnet_geo_kind(w.q->kind)->walk(&w);
    }
    size_arrivals(b, c, &z);
    for (int k = 0; k < PNET_GEO_BUFFERS; k++) z.passing += z.set[k];
    a.levels = z.part[PNET_PART_LEVELS];
    a.maps = z.part[PNET_PART_MAPS];
    a.triplets = z.part[PNET_PART_TRIPLETS];
    a.tiles = z.part[PNET_PART_TILES];
    a.passing = z.passing;
    a.scratch = z.scratch;
    a.kept = a.fields + a.levels + a.maps + a.triplets + a.tiles;
    a.shared = a.passing + a.scratch;
    return a;
}
