/* Maps between points: which rows of the one make a row of the other. */
#include "library/map.h"

#include "kernels/geometry_stage.h"

#include <stdlib.h>
#include <string.h>

static void free_lists(struct pnet_map_lists *l)
{
    free(l->start);
    free(l->other);
    free(l->weight);
}

void pnet_map_free(struct pnet_map *map)
{
    if (!map || !pnet_handle_is(map, PNET_CLASS_MAP)) return;
    if (pnet_map_on_gpu(map)) {
        pnet_home_give(&map->home, map->home.stream, &map->rooms);
    } else {
        free(map->row);
        free(map->start);
        free(map->child);
        free(map->parent);
        free(map->index);
        free(map->distance2);
        free_lists(&map->by_out);
        free_lists(&map->by_in);
    }
    pnet_handle_free(map);
}

/* Copies the order of the points, in which the map's places are. */
static enum pnet_status take_rows(
    struct pnet_map *map, const struct pnet_points *p, struct pnet_error *e)
{
    const int32_t *order = pnet_points_order(p);
    int64_t n = p->level.rows;
    if (!order) return PNET_OK;
    map->row = pnet_library_room(n, sizeof *map->row, e);
    if (!map->row) return PNET_NO_MEMORY;
    if (n) memcpy(map->row, order, (size_t)n * sizeof *order);
    return PNET_OK;
}

/* Which points of `fine` lie in which cell of `coarse`. */
static enum pnet_status find_cells(struct pnet_map *map, const struct pnet_points *fine,
    const struct pnet_points *coarse, struct pnet_error *e)
{
    int64_t n = fine->level.rows, cells = coarse->level.rows;
    enum pnet_status st = take_rows(map, fine, e);
    if (st) return st;
    map->start = pnet_library_room(cells + 1, sizeof *map->start, e);
    map->child = map->start ? pnet_library_room(n, sizeof *map->child, e) : NULL;
    map->parent = map->child ? pnet_library_room(n, sizeof *map->parent, e) : NULL;
    if (!map->parent) return PNET_NO_MEMORY;
    pnet_points_lead(fine, coarse, map->parent);
    pnet_cpu_children(n, cells, map->parent, map->start, map->child);
    pnet_points_name(n, map->row, map->child);
    map->cells = (struct pnet_cells){.fine_rows = pnet_count(n),
        .coarse_rows = pnet_count(cells),
        .parent = map->parent,
        .start = map->start,
        .child = map->child,
        .fine = map->row};
    return PNET_OK;
}

/* The k nearest rows of `in` for the rows of `out`, both as they are inside. */
static enum pnet_status search(
    const struct pnet_mapping *m, int32_t k, int32_t *index, float *distance2, struct pnet_error *e)
{
    const struct pnet_level *out = &m->out->level, *in = &m->in->level;
    void *work = pnet_library_room((int64_t)pnet_cpu_nearest_work(out, in, k), 1, e);
    if (!work) return PNET_NO_MEMORY;
    pnet_cpu_nearest(out, in, k, index, distance2, work);
    free(work);
    return PNET_OK;
}

static enum pnet_status find_nearest(struct pnet_mapping *m, struct pnet_error *e)
{
    struct pnet_map *map = m->map;
    int64_t n = m->out->level.rows * map->k;
    const int32_t *in = pnet_points_order(m->in);
    map->index = pnet_library_room(n, sizeof *map->index, e);
    map->distance2 = map->index ? pnet_library_room(n, sizeof *map->distance2, e) : NULL;
    enum pnet_status st = map->distance2 ? take_rows(map, m->out, e) : PNET_NO_MEMORY;
    if (!st) st = search(m, map->k, map->index, map->distance2, e);
    for (int64_t i = 0; in && i < n && !st; i++)
        if (map->index[i] >= 0) map->index[i] = in[map->index[i]];
    return st;
}

/* Lists of corners inside, sorted by query, with the corner of each entry. */
struct corners {
    int64_t count;
    struct pnet_map_lists lists;
    uint16_t *cell;
    int32_t *nearest; /* [queries]; NULL: outside there is nothing */
    float *distance2;
    void *work;
};

static void free_corners(struct corners *c)
{
    free_lists(&c->lists);
    free(c->cell);
    free(c->nearest);
    free(c->distance2);
    free(c->work);
}

static enum pnet_status take_lists(
    struct pnet_map_lists *l, int64_t rows, int64_t count, bool weighted, struct pnet_error *e)
{
    if (!l->start) l->start = pnet_library_room(rows + 1, sizeof *l->start, e);
    if (!l->start) return PNET_NO_MEMORY;
    l->other = pnet_library_room(count, sizeof *l->other, e);
    if (!l->other) return PNET_NO_MEMORY;
    if (weighted) l->weight = pnet_library_room(count, sizeof *l->weight, e);
    return weighted && !l->weight ? PNET_NO_MEMORY : PNET_OK;
}

static enum pnet_status find_corners(
    struct pnet_mapping *m, struct corners *c, struct pnet_error *e)
{
    bool weighted = m->o.kind == PNET_MAP_TRILINEAR;
    enum pnet_corner_kind kind = weighted ? PNET_CORNERS_TRILINEAR : PNET_CORNERS_NEAREST;
    const struct pnet_level *queries = &m->out->level, *source = &m->in->level;
    int64_t n = queries->rows;
    if (m->o.outside_nearest) {
        c->nearest = pnet_library_room(n, sizeof *c->nearest, e);
        c->distance2 = c->nearest ? pnet_library_room(n, sizeof *c->distance2, e) : NULL;
        enum pnet_status st =
            c->distance2 ? search(m, 1, c->nearest, c->distance2, e) : PNET_NO_MEMORY;
        if (st) return st;
    }
    c->lists.start = pnet_library_room(n + 1, sizeof *c->lists.start, e);
    if (!c->lists.start) return PNET_NO_MEMORY;
    c->work = pnet_library_room((int64_t)pnet_cpu_corners_work(queries, source, kind), 1, e);
    if (!c->work) return PNET_NO_MEMORY;
    c->count = pnet_cpu_corners_count(queries, source, kind, c->nearest, c->lists.start, c->work);
    enum pnet_status st = take_lists(&c->lists, n, c->count, weighted, e);
    if (st) return st;
    c->cell = pnet_library_room(c->count, sizeof *c->cell, e);
    if (!c->cell) return PNET_NO_MEMORY;
    pnet_cpu_corners_write(queries, source, kind, c->nearest, c->lists.start, c->lists.other,
        c->cell, c->lists.weight, c->work);
    return PNET_OK;
}

/* The lists of the rows of `in`. */
static enum pnet_status turn_corners(
    struct pnet_mapping *m, const struct corners *c, struct pnet_error *e)
{
    struct pnet_map_lists *to = &m->map->by_in;
    struct pnet_triplets from = {.rows = m->out->level.rows,
        .others = m->in->level.rows,
        .count = c->count,
        .cells = PNET_CORNERS,
        .start = c->lists.start,
        .other = c->lists.other,
        .cell = c->cell};
    enum pnet_status st = take_lists(to, from.others, c->count, c->lists.weight != NULL, e);
    uint16_t *cell = st ? NULL : pnet_library_room(c->count, sizeof *cell, e);
    void *work = cell ? pnet_library_room((int64_t)pnet_cpu_transpose_work(&from), 1, e) : NULL;
    if (work) {
        pnet_cpu_transpose(&from, to->start, to->other, cell, work);
        struct pnet_triplets back = {.rows = from.others,
            .others = from.rows,
            .count = c->count,
            .cells = PNET_CORNERS,
            .start = to->start,
            .other = to->other,
            .cell = cell};
        if (to->weight) pnet_cpu_corners_transpose(&from, c->lists.weight, &back, to->weight);
    }
    free(cell);
    free(work);
    return work ? PNET_OK : PNET_NO_MEMORY;
}

static enum pnet_status make_corners(struct pnet_mapping *m, struct pnet_error *e)
{
    struct pnet_map *map = m->map;
    struct corners c = {0};
    enum pnet_status st = take_rows(map, m->out, e);
    if (!st) st = find_corners(m, &c, e);
    if (!st) st = turn_corners(m, &c, e);
    if (!st) { /* `in` is a level, whose rows are the caller's */
        pnet_points_name(c.count, map->row, map->by_in.other);
        map->by_out = c.lists;
        c.lists = (struct pnet_map_lists){0};
    }
    free_corners(&c);
    return st;
}

/* Do the points lie to each other as the kind says? */
static enum pnet_status check(const struct pnet_mapping *m, struct pnet_error *e)
{
    switch (m->o.kind) {
    case PNET_MAP_MEAN:
    case PNET_MAP_MAX:
    case PNET_MAP_SUM:
        if (pnet_points_reach(m->in, m->out)) return PNET_OK;
        return pnet_error_set(e, PNET_USAGE,
            "`out` was not sampled from `in`: mean, max and sum go from points to a level of "
            "theirs");
    case PNET_MAP_PARENT:
        if (pnet_points_reach(m->out, m->in)) return PNET_OK;
        return pnet_error_set(e, PNET_USAGE,
            "`in` was not sampled from `out`: a parent is of a level, and goes to its points");
    case PNET_MAP_INVERSE_DISTANCE:
        if (m->o.k >= 0 && m->o.k <= 64) return PNET_OK;
        return pnet_error_set(e, PNET_USAGE, "k %d: expected 1 to 64", (int)m->o.k);
    case PNET_MAP_TRILINEAR:
    case PNET_MAP_NEAREST:
        if (m->in->finer) return PNET_OK;
        return pnet_error_set(e, PNET_USAGE, "`in` is no level: its points have no cells");
    }
    return pnet_error_set(
        e, PNET_USAGE, "kind %d: expected a value of enum pnet_map_kind", (int)m->o.kind);
}

static enum pnet_status make(struct pnet_mapping *m, struct pnet_error *e)
{
    struct pnet_map *map = m->map;
    enum pnet_status st = pnet_points_same_samples("out", m->out, "in", m->in, e);
    if (!st) st = pnet_points_same_home("out", m->out, "in", m->in, e);
    if (!st) st = check(m, e);
    if (st) return st;
    map->kind = m->o.kind;
    map->k = m->o.k ? m->o.k : 3;
    map->rows_in = m->in->level.rows;
    map->rows_out = m->out->level.rows;
    map->home = m->out->home;
    if (pnet_map_on_gpu(map)) return PNET_ON_GPU(&map->home, pnet_map_find_on_gpu(m, e), e);
    if (map->kind <= PNET_MAP_SUM) return find_cells(map, m->in, m->out, e);
    if (map->kind == PNET_MAP_PARENT) return find_cells(map, m->out, m->in, e);
    return map->kind == PNET_MAP_INVERSE_DISTANCE ? find_nearest(m, e) : make_corners(m, e);
}

enum pnet_status pnet_map_new(const struct pnet_points *out, const struct pnet_points *in,
    const struct pnet_map_options *o, struct pnet_map **map, struct pnet_error *e)
{
    PNET_REQUIRE_PLACE(e, map);
    PNET_REQUIRE(e, PNET_A(POINTS, out), PNET_A(POINTS, in));
    PNET_OWN_ERROR(e);
    struct pnet_mapping m = {.out = out, .in = in};
    enum pnet_status st = pnet_library_take("pnet_map_options", o, &m.o, sizeof m.o, e);
    if (st) return st;
    m.map = pnet_handle_new(PNET_CLASS_MAP, sizeof *m.map, e);
    if (!m.map) return PNET_NO_MEMORY;
    st = make(&m, e);
    if (st)
        pnet_map_free(m.map);
    else
        *map = m.map;
    return st;
}
