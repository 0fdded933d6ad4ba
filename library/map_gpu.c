/* Maps on a GPU: the steps of library/map.c on its kernels. */
#include "library/map.h"

#ifdef PNET_CUDA_BUILT
#include "kernels/cuda/base/cuda.h"
#include "kernels/geometry_stage.h"
#include "kernels/given.h"

struct making {
    struct pnet_making w;
    const struct pnet_mapping *of;
    struct pnet_map *map;
};

/* Copies the order of the points, in which the map's places are. */
static enum pnet_status take_rows(struct making *m, const struct pnet_points *p)
{
    const int32_t *order = pnet_points_order(p);
    int64_t n = p->level.rows;
    if (!order) return PNET_OK;
    m->map->row = pnet_making_keep(&m->w, n, sizeof *m->map->row);
    if (!m->map->row) return PNET_NO_MEMORY;
    if (n) pnet_cuda_copy(m->map->row, order, (size_t)n * sizeof *order);
    return PNET_OK;
}

/* Which points of `fine` lie in which cell of `coarse`. */
static enum pnet_status find_cells(
    struct making *m, const struct pnet_points *fine, const struct pnet_points *coarse)
{
    struct pnet_map *map = m->map;
    int64_t n = fine->level.rows, cells = coarse->level.rows;
    enum pnet_status st = take_rows(m, fine);
    if (st) return st;
    map->start = pnet_making_keep(&m->w, cells + 1, sizeof *map->start);
    map->child = pnet_making_keep(&m->w, n, sizeof *map->child);
    map->parent = pnet_making_keep(&m->w, n, sizeof *map->parent);
    if (!map->start || !map->child || !map->parent) return PNET_NO_MEMORY;
    pnet_points_lead_on_gpu(fine, coarse, map->parent);
    pnet_cuda_children(n, cells, map->parent, map->start, map->child);
    if (map->row) pnet_cuda_rename(n, map->row, map->child);
    map->cells = (struct pnet_cells){.fine_rows = pnet_count(n),
        .coarse_rows = pnet_count(cells),
        .parent = map->parent,
        .start = map->start,
        .child = map->child,
        .fine = map->row};
    return pnet_making_step(&m->w);
}

/* The k nearest rows of `in` for the rows of `out`, both as they are inside. */
static enum pnet_status search(struct making *m, int32_t k, int32_t *index, float *distance2)
{
    const struct pnet_level *out = &m->of->out->level, *in = &m->of->in->level;
    void *work = pnet_making_once(&m->w, (int64_t)pnet_cuda_nearest_work(out, in, k), 1);
    if (!work) return PNET_NO_MEMORY;
    pnet_cuda_nearest(out, in, k, index, distance2, work);
    return pnet_making_step(&m->w);
}

static enum pnet_status find_nearest(struct making *m)
{
    struct pnet_map *map = m->map;
    int64_t count = map->rows_out * map->k;
    const int32_t *in = pnet_points_order(m->of->in);
    map->index = pnet_making_keep(&m->w, count, sizeof *map->index);
    map->distance2 = pnet_making_keep(&m->w, count, sizeof *map->distance2);
    if (!map->index || !map->distance2) return PNET_NO_MEMORY;
    enum pnet_status st = take_rows(m, m->of->out);
    if (!st) st = search(m, map->k, map->index, map->distance2);
    if (st) return st;
    if (in) pnet_cuda_rename(count, in, map->index);
    return pnet_making_error(&m->w);
}

/* Lists of corners inside, sorted by query, with the corner of each entry. */
struct corners {
    struct pnet_map_lists lists;
    struct pnet_triplets triplets; /* the same */
    uint16_t *cell;
    int32_t *nearest; /* [queries]; NULL: outside there is nothing */
};

static enum pnet_status find_outside(struct making *m, struct corners *c)
{
    int64_t n = m->map->rows_out;
    c->nearest = pnet_making_take(&m->w, n, sizeof *c->nearest);
    float *distance2 = pnet_making_take(&m->w, n, sizeof *distance2);
    if (!c->nearest || !distance2) return PNET_NO_MEMORY;
    return search(m, 1, c->nearest, distance2);
}

static enum pnet_status find_corners(struct making *m, struct corners *c)
{
    bool weighted = m->map->kind == PNET_MAP_TRILINEAR;
    enum pnet_corner_kind kind = weighted ? PNET_CORNERS_TRILINEAR : PNET_CORNERS_NEAREST;
    const struct pnet_level *queries = &m->of->out->level, *source = &m->of->in->level;
    struct pnet_map_lists *l = &c->lists;
    enum pnet_status st = m->of->o.outside_nearest ? find_outside(m, c) : PNET_OK;
    if (st) return st;
    l->start = pnet_making_keep(&m->w, queries->rows + 1, sizeof *l->start);
    void *work = pnet_making_once(&m->w, (int64_t)pnet_cuda_corners_work(queries, source, kind), 1);
    if (!l->start || !work) return PNET_NO_MEMORY;
    int64_t count = pnet_cuda_corners_count(queries, source, kind, c->nearest, l->start, work);
    st = pnet_making_error(&m->w);
    if (st) return st;
    l->other = pnet_making_keep(&m->w, count, sizeof *l->other);
    l->weight = weighted ? pnet_making_keep(&m->w, count, sizeof *l->weight) : NULL;
    c->cell = pnet_making_take(&m->w, count, sizeof *c->cell);
    if (!l->other || (weighted && !l->weight) || !c->cell) return PNET_NO_MEMORY;
    pnet_cuda_corners_write(
        queries, source, kind, c->nearest, l->start, l->other, c->cell, l->weight, work);
    c->triplets = (struct pnet_triplets){.rows = queries->rows,
        .others = source->rows,
        .count = count,
        .cells = PNET_CORNERS,
        .start = l->start,
        .other = l->other,
        .cell = c->cell};
    return pnet_making_step(&m->w);
}

/* The lists of the rows of `in`. */
static enum pnet_status turn_corners(struct making *m, const struct corners *c)
{
    const struct pnet_triplets *t = &c->triplets;
    struct pnet_map_lists *to = &m->map->by_in;
    bool weighted = c->lists.weight != NULL;
    to->start = pnet_making_keep(&m->w, t->others + 1, sizeof *to->start);
    to->other = pnet_making_keep(&m->w, t->count, sizeof *to->other);
    to->weight = weighted ? pnet_making_keep(&m->w, t->count, sizeof *to->weight) : NULL;
    uint16_t *cell = pnet_making_once(&m->w, t->count, sizeof *cell);
    void *work = pnet_making_once(&m->w, (int64_t)pnet_cuda_transpose_work(t), 1);
    if (!to->start || !to->other || (weighted && !to->weight) || !cell || !work)
        return PNET_NO_MEMORY;
    pnet_cuda_transpose(t, to->start, to->other, cell, work);
    struct pnet_triplets back = {.rows = t->others,
        .others = t->rows,
        .count = t->count,
        .cells = PNET_CORNERS,
        .start = to->start,
        .other = to->other,
        .cell = cell};
    if (weighted) pnet_cuda_corners_transpose(t, c->lists.weight, &back, to->weight);
    return pnet_making_step(&m->w);
}

static enum pnet_status make_corners(struct making *m)
{
    struct pnet_map *map = m->map;
    struct corners c = {.cell = NULL};
    enum pnet_status st = take_rows(m, m->of->out);
    if (!st) st = find_corners(m, &c);
    if (!st) st = turn_corners(m, &c);
    if (st) return st;
    /* `in` is a level, whose rows are the caller's */
    if (map->row) pnet_cuda_rename(c.triplets.count, map->row, map->by_in.other);
    map->by_out = c.lists;
    return pnet_making_error(&m->w);
}

enum pnet_status pnet_map_find_on_gpu(const struct pnet_mapping *of, struct pnet_error *e)
{
    struct pnet_map *map = of->map;
    struct making m = {
        .w = {.home = &map->home, .kept = &map->rooms, .e = e}, .of = of, .map = map};
    enum pnet_status st = pnet_making_begin(&m.w);
    if (st) return st;
    if (map->kind <= PNET_MAP_SUM)
        st = find_cells(&m, of->in, of->out);
    else if (map->kind == PNET_MAP_PARENT)
        st = find_cells(&m, of->out, of->in);
    else
        st = map->kind == PNET_MAP_INVERSE_DISTANCE ? find_nearest(&m) : make_corners(&m);
    return pnet_making_end(&m.w, st);
}

static struct pnet_count stored(struct pnet_count n, enum pnet_storage storage)
{
    n.storage = storage;
    return n;
}

/* `row`: that each list makes; NULL: as they are. */
static void weigh(const struct pnet_map_call *r, const struct pnet_map_lists *l, int64_t rows,
    const int32_t *row, const float *x, float *y)
{
    struct pnet_weighted w = {.rows = stored(pnet_count(rows), r->storage),
        .start = l->start,
        .other = l->other,
        .weight = l->weight,
        .row = row};
    pnet_cuda_weighted_rows(&w, r->width, x, r->o.accumulate != 0, y);
}

static void forward(const struct pnet_map_call *r, const struct pnet_cells *cells,
    const struct pnet_nearest *n, const float *x, float *y)
{
    const struct pnet_map *map = r->map;
    const struct pnet_triplets children = {.rows = map->rows_out,
        .others = map->rows_in,
        .count = map->rows_in,
        .start = map->start,
        .other = map->child};
    switch (map->kind) {
    case PNET_MAP_MEAN:
    case PNET_MAP_SUM:
        pnet_cuda_cells_sum(cells, r->width, x, map->kind == PNET_MAP_MEAN, false, y, NULL);
        break;
    case PNET_MAP_MAX: /* of equals the first inside, which the caller's rows do not tell */
        pnet_cuda_triplets_max(&children, r->width, r->storage, x, y, r->o.argmax);
        break;
    case PNET_MAP_PARENT: pnet_cuda_cells_spread(cells, r->width, x, false, false, y); break;
    case PNET_MAP_INVERSE_DISTANCE: pnet_cuda_interpolate(n, r->width, x, y); break;
    case PNET_MAP_TRILINEAR:
    case PNET_MAP_NEAREST: weigh(r, &map->by_out, map->rows_out, map->row, x, y); break;
    }
}

static void backward(const struct pnet_map_call *r, const struct pnet_cells *cells,
    const struct pnet_nearest *n, const float *g, float *gx, void *work)
{
    const struct pnet_map *map = r->map;
    bool add = r->o.accumulate != 0;
    switch (map->kind) {
    case PNET_MAP_MEAN:
    case PNET_MAP_SUM:
        pnet_cuda_cells_spread(cells, r->width, g, map->kind == PNET_MAP_MEAN, add, gx);
        break;
    case PNET_MAP_MAX:
        pnet_cuda_cells_max_backward(cells, r->width, r->o.argmax, g, add, gx);
        break;
    case PNET_MAP_PARENT: pnet_cuda_cells_sum(cells, r->width, g, false, add, gx, NULL); break;
    case PNET_MAP_INVERSE_DISTANCE:
        pnet_cuda_interpolate_backward(n, r->width, g, add, gx, work);
        break;
    case PNET_MAP_TRILINEAR:
    case PNET_MAP_NEAREST: weigh(r, &map->by_in, map->rows_in, NULL, g, gx); break;
    }
}

enum pnet_status pnet_map_run_on_gpu(
    const struct pnet_map_call *r, const void *from, void *to, struct pnet_error *e)
{
    struct pnet_running run = {.home = &r->map->home, .stream = r->o.stream, .e = e};
    struct pnet_cells cells = r->map->cells;
    struct pnet_nearest n = pnet_map_nearest(r->map);
    enum pnet_status st = pnet_running_begin(
        &run, r->o.workspace, r->o.workspace_bytes, r->bytes, "pnet_map_workspace");
    if (st) return st;
    cells.fine_rows = stored(cells.fine_rows, r->storage);
    cells.coarse_rows = stored(cells.coarse_rows, r->storage);
    n.fine_rows = stored(n.fine_rows, r->storage);
    n.coarse_rows = stored(n.coarse_rows, r->storage);
    if (r->backward)
        backward(r, &cells, &n, from, to, run.work);
    else
        forward(r, &cells, &n, from, to);
    return pnet_running_end(&run, st);
}
#endif
