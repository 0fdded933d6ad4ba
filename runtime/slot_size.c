/* What slots take for given counts: the same formulas as slot.c and slot_sets.c, without the points. A test holds the two
   equal. */
#include "kernels/cpu/geo.h"
#include "kernels/cpu/geo_matches.h"
#ifdef PNET_CUDA_BUILT
#include "kernels/cuda/geo.h"
#include "kernels/cuda/geo_matches.h"
#endif
#include "runtime/slot_build.h"

bool pnet_slot_searched(const struct pnet_plan *p, int level)
{
    for (int i = 0; i < p->geo_count; i++) {
        const struct pnet_geo_request *q = &p->geo[i].request;
        bool search = q->kind == PNET_GEO_TRIPLETS || q->kind == PNET_GEO_NEAREST ||
                      q->kind == PNET_GEO_MATCHES;
        if (search && (q->a == level || q->b == level)) return true;
    }
    return false;
}

bool pnet_slot_stretches(const struct pnet_plan *p, int fine, int coarse)
{
    for (int l = coarse; l != fine; l = p->levels[l].finer)
        if (!pnet_grid_follows(p->levels[p->levels[l].finer].grid, p->levels[l].grid)) return false;
    return true;
}

bool pnet_slot_transposes(unsigned forms)
{
    return forms & (PNET_FORM_TRANSPOSED | PNET_FORM_TRANSPOSED_TILES);
}

bool pnet_slot_searches_back(enum pnet_device_kind device, const struct pnet_geo_request *q)
{
#ifdef PNET_CUDA_BUILT
    if (device == PNET_CUDA) return q->a == q->b && pnet_cuda_triplets_mutual(&q->nb);
#endif
    (void)device;
    (void)q;
    return false;
}

bool pnet_slot_has_tiles(unsigned forms, int form)
{
    return forms & (form ? PNET_FORM_TRANSPOSED_TILES : PNET_FORM_FORWARD_TILES);
}

bool pnet_slot_tiled(const struct pnet_plan *p, int item, int form)
{
    return pnet_slot_has_tiles(pnet_plan_forms(p, item), form);
}

/* Is the map from a level to the one that was sampled from it read by a layer? */
static bool parent_read(const struct pnet_plan *p, int level)
{
    for (int i = 0; i < p->geo_count; i++) {
        const struct pnet_geo_request *q = &p->geo[i].request;
        if (q->kind == PNET_GEO_PARENT && q->b == level && q->a == p->levels[level].finer &&
            p->geo[i].forms & PNET_FORM_PARENT)
            return true;
    }
    return false;
}

/* Beside inference the caller has no use for points and maps; what it reads, results in the order of the batch, has one
   slot. */
bool pnet_slot_keeps(const struct pnet_plan *p, int item, unsigned forms, int which)
{
    const struct pnet_geo_item *g = &p->geo[item];
    switch (g->request.kind) {
    case PNET_GEO_LEVEL:
        if (which == LEVEL_ORDER || !p->training) return true;
        return which == LEVEL_PARENT ? parent_read(p, g->request.a) : g->users > 0;
    case PNET_GEO_TRIPLETS: return !pnet_slot_passes(p, item, forms, which);
    case PNET_GEO_PARENT: return which != MAP_PARENT || !p->training || forms & PNET_FORM_PARENT;
    case PNET_GEO_NEAREST:
    case PNET_GEO_MATCHES:
    case PNET_GEO_KINDS: break;
    }
    return true;
}

bool pnet_slot_passes(const struct pnet_plan *p, int item, unsigned forms, int which)
{
    if (p->geo[item].request.kind != PNET_GEO_TRIPLETS) return false;
    if (which == SET_OTHER || which == SET_CELL) return !(forms & PNET_FORM_FORWARD);
    if (which == SET_T_OTHER || which == SET_T_CELL) return !(forms & PNET_FORM_TRANSPOSED);
    return false;
}

size_t pnet_slot_tile_bytes(int64_t rows)
{
    int64_t tiles = (pnet_capacity(rows) + PNET_TILE_ROWS - 1) / PNET_TILE_ROWS;
    return (size_t)tiles * sizeof(struct pnet_tile);
}

struct sizes {
    const struct pnet_plan *plan;
    const struct pnet_counts *counts;
    struct pnet_slot_sizes all;
    unsigned forms;                /* of the item that is being looked at */
    size_t idle;                   /* the largest field, which is scratch until it comes */
    size_t set[PNET_SLOT_BUFFERS]; /* what passes from set to set: the largest */
};

/* `kept`: where it counts if it is. */
static void buffer(struct sizes *z, size_t *kept, int item, int which, int64_t rows, int64_t each,
    int64_t more, size_t size)
{
    size_t bytes = pnet_round_bytes((size_t)(pnet_capacity(rows) * each + more) * size);
    if (pnet_slot_keeps(z->plan, item, z->forms, which))
        *kept += bytes;
    else if (!pnet_slot_passes(z->plan, item, z->forms, which))
        z->all.passing += bytes;
    else if (bytes > z->set[which])
        z->set[which] = bytes;
}

static void shared_scratch(struct sizes *z, size_t bytes)
{
    bytes = pnet_round_bytes(bytes);
    if (bytes > z->all.scratch) z->all.scratch = bytes;
}

static void scratch(struct sizes *z, size_t bytes)
{
    if (bytes > z->idle) shared_scratch(z, bytes);
}

/* Scratch, and on a GPU rows as they are in the batch. */
static void arrive(struct sizes *z, size_t work, int64_t n, size_t row)
{
    size_t room = (size_t)pnet_capacity(n) * row;
    if (z->plan->device == PNET_CPU)
        scratch(z, work);
    else
        shared_scratch(z, room <= z->idle ? work : pnet_round_bytes(work) + room);
}

static void size_level(struct sizes *z, int item)
{
    int level = z->plan->geo[item].request.a;
    const struct pnet_level_info *info = &z->plan->levels[level];
    size_t *kept = &z->all.levels;
    int64_t n = z->counts->rows[level];
    buffer(z, kept, item, LEVEL_XYZ, n, 1, 0, 3 * sizeof(float));
    if (pnet_slot_searched(z->plan, level))
        buffer(z, kept, item, LEVEL_KEY, n, 1, 0, sizeof(uint64_t));
    if (info->kind == PNET_LEVEL_INPUT) {
        buffer(z, kept, item, LEVEL_ORDER, n, 1, 0, sizeof(int32_t));
        arrive(z, PNET_KERNEL(z->plan, order_points_work)(pnet_capacity(n)), n, 3 * sizeof(float));
    } else {
        int64_t fine = z->counts->rows[info->finer], room = pnet_capacity(fine);
        buffer(z, &z->all.maps, item, LEVEL_PARENT, fine, 1, 0, sizeof(int32_t));
        bool ordered = pnet_slot_stretches(z->plan, info->finer, level);
        scratch(z, pnet_round_bytes(PNET_KERNEL(z->plan, sample_work)(room, ordered)) +
                       (size_t)room * sizeof(int32_t));
    }
}

/* With the rows of the capacity class, as workspaces are sized. */
static struct pnet_level shape_of(const struct sizes *z, int level)
{
    /* the key is there, but is not read for a size */
    static const uint64_t key = 0;
    return (struct pnet_level){.rows = pnet_capacity(z->counts->rows[level]),
        .samples = z->counts->samples,
        .key = &key,
        .grid = z->plan->levels[level].grid};
}

static void size_tiles(struct sizes *z, int item, int form)
{
    const struct pnet_geo_request *q = &z->plan->geo[item].request;
    int64_t rows = z->counts->rows[form ? q->b : q->a], t = z->counts->triplets[item];
    if (!pnet_slot_has_tiles(z->forms, form)) return;
    z->all.tiles += pnet_round_bytes(pnet_slot_tile_bytes(rows));
    buffer(z, &z->all.tiles, item, SET_LIST + form, z->counts->tile_words[item][form], 1, 0,
        sizeof(uint32_t));
#ifdef PNET_CUDA_BUILT
    scratch(z, pnet_cuda_tiles_work(pnet_capacity(rows)));
#endif
    if (!z->counts->unlisted[item][form] ||
        pnet_slot_keeps(z->plan, item, z->forms, form ? SET_T_OTHER : SET_OTHER))
        return;
    z->all.triplets += pnet_round_bytes((size_t)pnet_capacity(t) * sizeof(int32_t));
    z->all.triplets += pnet_round_bytes((size_t)pnet_capacity(t) * sizeof(uint16_t));
}

static void size_set(struct sizes *z, int item)
{
    const struct pnet_geo_request *q = &z->plan->geo[item].request;
    struct pnet_level out = shape_of(z, q->a), in = shape_of(z, q->b);
    size_t *kept = &z->all.triplets;
    int64_t t = z->counts->triplets[item];
    struct pnet_triplets set = {.rows = out.rows,
        .others = in.rows,
        .count = pnet_capacity(t),
        .cells = q->nb.kernel * q->nb.kernel * q->nb.kernel};
    buffer(z, kept, item, SET_START, z->counts->rows[q->a], 1, 1, sizeof(int64_t));
    buffer(z, kept, item, SET_OTHER, t, 1, 0, sizeof(int32_t));
    buffer(z, kept, item, SET_CELL, t, 1, 0, sizeof(uint16_t));
    scratch(z, PNET_KERNEL(z->plan, triplets_work)(&out, q->a == q->b ? &out : &in, &q->nb));
    for (int form = 0; form < 2; form++) size_tiles(z, item, form);
    if (!pnet_slot_transposes(z->forms)) return;
    buffer(z, kept, item, SET_T_OTHER, t, 1, 0, sizeof(int32_t));
    buffer(z, kept, item, SET_T_CELL, t, 1, 0, sizeof(uint16_t));
    if (pnet_slot_searches_back(z->plan->device, q)) return;
    buffer(z, kept, item, SET_T_START, z->counts->rows[q->b], 1, 1, sizeof(int64_t));
    scratch(z, PNET_KERNEL(z->plan, transpose_work)(&set));
}

static void size_parent(struct sizes *z, int item)
{
    const struct pnet_geo_request *q = &z->plan->geo[item].request;
    size_t *kept = &z->all.maps;
    if (z->plan->levels[q->b].finer != q->a)
        buffer(z, kept, item, MAP_PARENT, z->counts->rows[q->a], 1, 0, sizeof(int32_t));
    if (!(z->plan->geo[item].forms & PNET_FORM_CHILDREN)) return;
    buffer(z, kept, item, MAP_START, z->counts->rows[q->b], 1, 1, sizeof(int64_t));
    if (!pnet_slot_stretches(z->plan, q->a, q->b))
        buffer(z, kept, item, MAP_CHILD, z->counts->rows[q->a], 1, 0, sizeof(int32_t));
}

static void size_nearest(struct sizes *z, int item)
{
    const struct pnet_geo_request *q = &z->plan->geo[item].request;
    struct pnet_level fine = shape_of(z, q->a), coarse = shape_of(z, q->b);
    size_t *kept = &z->all.maps;
    buffer(z, kept, item, NEAR_INDEX, z->counts->rows[q->a], q->k, 0, sizeof(int32_t));
    buffer(z, kept, item, NEAR_DISTANCE, z->counts->rows[q->a], q->k, 0, sizeof(float));
    scratch(z, PNET_KERNEL(z->plan, nearest_work)(&fine, &coarse, q->k));
}

static void size_matches(struct sizes *z, int item)
{
    const struct pnet_geo_request *q = &z->plan->geo[item].request;
    struct pnet_level from = shape_of(z, q->a), to = shape_of(z, q->b);
    size_t *kept = &z->all.maps;
    int64_t number = z->counts->triplets[item];
    buffer(z, kept, item, MATCH_START, z->counts->rows[q->a], 1, 1, sizeof(int64_t));
    buffer(z, kept, item, MATCH_OTHER, number, 1, 0, sizeof(int32_t));
    size_t first = PNET_KERNEL(z->plan, matches_work)(&from, &to, q->radius, 0),
           second =
               PNET_KERNEL(z->plan, matches_work)(&from, &to, q->radius, pnet_capacity(number));
    arrive(z, first > second ? first : second, z->counts->samples, 16 * sizeof(float));
}

/* Fields lie there from the start; on a GPU they arrive, in the end, among points that are not kept. */
static void size_fields(struct sizes *z)
{
    const struct pnet_plan *p = z->plan;
    for (int t = 0; t < p->tensor_count; t++) {
        if (p->tensors[t].role != PNET_ROLE_INPUT || p->tensors[t].first < 0) continue;
        int64_t rows = pnet_capacity(z->counts->rows[p->tensors[t].type.level]);
        int32_t each = p->tensors[t].type.width * pnet_storage_bytes(pnet_plan_storage(p, t));
        size_t bytes = pnet_round_bytes((size_t)(rows * each));
        z->all.fields += bytes;
        if (bytes > z->idle) z->idle = bytes;
    }
}

static void size_arrivals(struct sizes *z)
{
    const struct pnet_plan *p = z->plan;
    for (int t = 0; t < p->tensor_count && p->device != PNET_CPU; t++) {
        const struct pnet_type *type = &p->tensors[t].type;
        if (p->tensors[t].role != PNET_ROLE_INPUT || p->tensors[t].first < 0) continue;
        size_t rows = (size_t)pnet_capacity(z->counts->rows[type->level]),
               bytes = rows * (size_t)type->width * 4, points = 0;
        for (int i = 0; i < p->geo_count; i++)
            if (p->geo[i].request.kind == PNET_GEO_LEVEL && p->geo[i].request.a == type->level &&
                !pnet_slot_keeps(p, i, pnet_plan_forms(p, i), LEVEL_XYZ))
                points = pnet_round_bytes(rows * 3 * sizeof(float));
        if (bytes > points) shared_scratch(z, bytes);
    }
}

static void size_item(struct sizes *z, int item)
{
    z->forms = pnet_plan_forms(z->plan, item);
    switch (z->plan->geo[item].request.kind) {
    case PNET_GEO_LEVEL: size_level(z, item); break;
    case PNET_GEO_TRIPLETS: size_set(z, item); break;
    case PNET_GEO_PARENT: size_parent(z, item); break;
    case PNET_GEO_NEAREST: size_nearest(z, item); break;
    case PNET_GEO_MATCHES: size_matches(z, item); break;
    case PNET_GEO_KINDS: break;
    }
}

struct pnet_slot_sizes pnet_slot_estimate(const struct pnet_plan *p, const struct pnet_counts *c)
{
    struct sizes z = {.plan = p, .counts = c};
    z.all.levels =
        pnet_round_bytes((size_t)p->level_count * (size_t)(c->samples + 1) * sizeof(int64_t));
    size_fields(&z);
    for (int i = 0; i < p->geo_count; i++) size_item(&z, i);
    size_arrivals(&z);
    struct pnet_slot_sizes *a = &z.all;
    for (int k = 0; k < PNET_SLOT_BUFFERS; k++) a->passing += z.set[k];
    a->kept = a->fields + a->levels + a->maps + a->triplets + a->tiles;
    a->shared = a->passing + a->scratch;
    return *a;
}
