/* The source rows around each query, with weights, by query and by source row (kernels/corners.h). */
#include "kernels/corners.h"
#include "kernels/geometry_stage.h"
#include "runtime/base/json.h"
#include "runtime/base/number.h"
#include "runtime/geo/walk.h"

enum {
    START,
    OTHER,
    WEIGHT,
    CELL,    /* read while the item is built */
    T_START, /* of the transposed form */
    T_OTHER,
    T_WEIGHT,
    T_CELL
};

static bool same(const struct pnet_geo_request *q, const struct pnet_geo_request *r)
{
    return q->corners.kind == r->corners.kind && q->corners.outside == r->corners.outside;
}

static uint32_t mix(const struct pnet_geo_request *q)
{
    return (uint32_t)q->corners.kind << 1 | q->corners.outside;
}

/* The nearest source row of queries around which there is none. */
static bool needs(const struct pnet_geo_request *q, struct pnet_geo_request *needed)
{
    *needed = (struct pnet_geo_request){
        .kind = PNET_GEO_NEAREST, .a = q->a, .b = q->b, .nearest = {.k = 1}};
    return q->corners.outside;
}

static enum pnet_geo_owner owner(const struct pnet_plan *p, int item, unsigned forms, int which)
{
    (void)p;
    (void)item;
    (void)forms;
    return which == CELL || which == T_CELL ? PNET_OWNER_PASSING : PNET_OWNER_SLOT;
}

static const int32_t *nearest_of(const struct pnet_geo_walk *w)
{
    struct pnet_geo_request map;
    if (!needs(w->q, &map) || !pnet_geo_builds(w)) return NULL;
    return pnet_geo_built(w, pnet_geo_find(w->plan, &map))->nearest;
}

/* Weights are stored where they are not all 1. */
static float *weights(struct pnet_geo_walk *w, int which, int64_t count)
{
    if (w->q->corners.kind == PNET_CORNERS_NEAREST) return NULL;
    return pnet_geo_buffer(w, which, count, 1, 0, sizeof(float));
}

static void walk_transposed(
    struct pnet_geo_walk *w, const struct pnet_triplets *f, const float *weight)
{
    struct pnet_triplets t = {
        .rows = f->others, .others = f->rows, .count = f->count, .cells = f->cells};
    int64_t *start = pnet_geo_buffer(w, T_START, t.rows, 1, 1, sizeof *start);
    int32_t *other = pnet_geo_buffer(w, T_OTHER, t.count, 1, 0, sizeof *other);
    uint16_t *cell = pnet_geo_buffer(w, T_CELL, t.count, 1, 0, sizeof *cell);
    float *back = weights(w, T_WEIGHT, t.count);
    struct pnet_triplets room = {.rows = pnet_capacity(f->rows),
        .others = pnet_capacity(f->others),
        .count = pnet_capacity(f->count),
        .cells = f->cells};
    void *work = pnet_geo_scratch(w, PNET_WORK(w->device, transpose_work)(&room));
    if (!pnet_geo_builds(w)) return;
    PNET_KERNEL(w, transpose)(f, start, other, cell, work);
    t.start = start;
    t.other = other;
    t.cell = cell;
    if (back) PNET_KERNEL(w, corners_transpose)(f, weight, &t, back);
}

static void walk(struct pnet_geo_walk *w)
{
    enum pnet_corner_kind kind = (enum pnet_corner_kind)w->q->corners.kind;
    struct pnet_level queries = pnet_geo_level(w, w->q->a), source = pnet_geo_level(w, w->q->b),
                      queries_room = pnet_geo_room(w, w->q->a),
                      source_room = pnet_geo_room(w, w->q->b);
    const int32_t *nearest = nearest_of(w);
    int64_t *count = &w->counts->of[w->item][0];
    int64_t *start = pnet_geo_buffer(w, START, queries.rows, 1, 1, sizeof *start);
    void *work =
        pnet_geo_scratch(w, PNET_WORK(w->device, corners_work)(&queries_room, &source_room, kind));
    if (pnet_geo_builds(w))
        *count = PNET_KERNEL(w, corners_count)(&queries, &source, kind, nearest, start, work);
    int32_t *other = pnet_geo_buffer(w, OTHER, *count, 1, 0, sizeof *other);
    uint16_t *cell = pnet_geo_buffer(w, CELL, *count, 1, 0, sizeof *cell);
    float *weight = weights(w, WEIGHT, *count);
    if (pnet_geo_builds(w)) PNET_KERNEL(w, corners_write)
    (&queries, &source, kind, nearest, start, other, cell, weight, work);
    struct pnet_triplets f = {.rows = queries.rows,
        .others = source.rows,
        .count = *count,
        .cells = PNET_CORNERS,
        .start = start,
        .other = other,
        .cell = cell};
    if (w->forms & PNET_FORM_TRANSPOSED) walk_transposed(w, &f, weight);
}

/* Weights that are not stored are all 1. */
static const float *weights_at(const struct pnet_geo_look *l, int which)
{
    bool ones = l->q->corners.kind == PNET_CORNERS_NEAREST;
    return ones ? NULL : pnet_look_data(l, l->item, which);
}

static void view(const struct pnet_geo_look *l, struct pnet_geo_view *v)
{
    v->forward = (struct pnet_triplets){.rows = v->a_rows,
        .others = v->b_rows,
        .count = pnet_look_count(l, 0),
        .start = pnet_look_data(l, l->item, START),
        .other = pnet_look_data(l, l->item, OTHER),
        .live = v->a_live};
    v->weight = weights_at(l, WEIGHT);
    if (!(l->forms & PNET_FORM_TRANSPOSED)) return;
    v->transposed = (struct pnet_triplets){.rows = v->b_rows,
        .others = v->a_rows,
        .count = pnet_look_count(l, 0),
        .start = pnet_look_data(l, l->item, T_START),
        .other = pnet_look_data(l, l->item, T_OTHER),
        .live = v->b_live};
    v->transposed_weight = weights_at(l, T_WEIGHT);
}

/* Two thirds of the corners of a query near a surface are present. */
static void assume(const struct pnet_plan *p, int item, unsigned forms, struct pnet_counts *c)
{
    (void)forms;
    const struct pnet_geo_request *q = &p->geo[item].request;
    c->of[item][0] = c->rows[q->a] * (q->corners.kind == PNET_CORNERS_NEAREST ? 1 : 5);
}

static void print(const struct pnet_plan *p, const struct pnet_geo_request *q, FILE *out)
{
    (void)p;
    fputs(q->corners.kind == PNET_CORNERS_NEAREST ? "  nearest" : "  trilinear", out);
    if (q->corners.outside) fputs(" outside=nearest", out);
}

static void describe(const struct pnet_plan *p, int item, const struct pnet_counts *c, FILE *out)
{
    const struct pnet_geo_request *q = &p->geo[item].request;
    int64_t number = c->of[item][0], rows = c->rows[q->a];
    pnet_number_write(out, "corners: %s among %s: %lld, %.1f a point\n", p->levels[q->a].name,
        p->levels[q->b].name, (long long)number, rows ? (double)number / (double)rows : 0);
}

static void json(
    const struct pnet_plan *p, int item, const struct pnet_counts *c, struct pnet_json *j)
{
    const struct pnet_geo_request *q = &p->geo[item].request;
    pnet_json_string(j, "queries", p->levels[q->a].name);
    pnet_json_string(j, "source", p->levels[q->b].name);
    pnet_json_int(j, "corners", c->of[item][0]);
}

/* Voxels within one and a half of a query, or its own. Where none has a point, `outside` may take one from anywhere; that of a
   query always has where the level was sampled from that of the queries. */
static struct pnet_geo_reach reach(const struct pnet_plan *p, const struct pnet_geo_request *q)
{
    double far = p->levels[q->b].cell * (q->corners.kind == PNET_CORNERS_NEAREST ? 1 : 1.5);
    if (q->corners.outside && (!pnet_level_reaches(p->levels, q->a, q->b) ||
                                  isinf(pnet_geo_parent_reach(p, q->a, q->b).apart)))
        return pnet_geo_anywhere();
    return (struct pnet_geo_reach){far, {far, (double)INFINITY}};
}

const struct pnet_geo_kind pnet_geo_corners = {
    .name = "corners",
    .counts = 1,
    .part = {PNET_PART_MAPS, PNET_PART_MAPS, PNET_PART_MAPS, PNET_PART_MAPS, PNET_PART_MAPS,
        PNET_PART_MAPS, PNET_PART_MAPS, PNET_PART_MAPS},
    .same = same,
    .mix = mix,
    .needs = needs,
    .owner = owner,
    .reach = reach,
    .walk = walk,
    .view = view,
    .assume = assume,
    .print = print,
    .describe = describe,
    .list = "corners",
    .json = json,
};
