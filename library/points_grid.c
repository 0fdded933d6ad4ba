/* Levels, sampled from points or from finer levels; and the way between them. */
#include "library/points.h"

#include "kernels/geometry_stage.h"
#include "kernels/rows.h"
#include "kernels/segments.h"
#include "runtime/geo/grids.h"

#include <stdlib.h>

/* What a level is sampled from, with what sampling fills. */
struct sampling {
    struct pnet_level fine;
    bool ordered; /* along the grid of the level */
    int32_t
        *place; /* [rows]: rows of `fine` among those inside the points; NULL: they are the same */
    float *xyz; /* of `fine`, where `place` is there */
    int32_t *keep;
};

static enum pnet_status find_grid(const struct pnet_points *of, double cell, struct pnet_grid *grid,
    double *edge, struct pnet_error *e)
{
    double base = of->finer ? of->cell / of->level.grid.factor : cell;
    int32_t last = of->finer ? of->level.grid.factor : 1, factor = 1;
    if (!(cell >= 1e-6 && cell <= 1e5))
        return pnet_error_set(e, PNET_USAGE, "cell %g: expected 1e-6 to 1e5 m", cell);
    if (!pnet_grid_nests(cell, base, &factor) || factor % last)
        return pnet_error_set(e, PNET_USAGE,
            "cell sizes do not nest: %g m is no whole multiple of %g m", cell, base * last);
    *grid = (struct pnet_grid){(float)base, (float)(1 / base), factor};
    *edge = base * factor;
    return PNET_OK;
}

/* Points that lie along another grid are sampled in the order of the caller's rows: by it, points of one cell of this grid that
   are equally near to its centre are told apart. */
static enum pnet_status in_order_of_caller(
    const struct pnet_points *of, struct sampling *s, struct pnet_error *e)
{
    int64_t n = of->level.rows;
    struct pnet_segments samples = {.rows = n, .count = of->level.samples, .splits = of->splits};
    int64_t *next = pnet_library_room(samples.count, sizeof *next, e);
    int32_t *inside = next ? pnet_library_room(n, sizeof *inside, e) : NULL;
    s->place = inside ? pnet_library_room(n, sizeof *s->place, e) : NULL;
    s->xyz = s->place ? pnet_library_room(n, 3 * sizeof *s->xyz, e) : NULL;
    if (s->xyz) {
        for (int32_t k = 0; k < samples.count; k++) next[k] = of->splits[k];
        for (int64_t i = 0; i < n; i++) inside[of->source[i]] = (int32_t)i;
        for (int64_t row = 0; row < n; row++) {
            int32_t sample = pnet_segment_of(samples, inside[row]);
            s->place[next[sample]++] = inside[row];
        }
        pnet_cpu_gather(n, 3, of->xyz, s->place, s->xyz);
        s->fine.xyz = s->xyz;
        s->fine.key = NULL;
    }
    free(next);
    free(inside);
    return s->xyz ? PNET_OK : PNET_NO_MEMORY;
}

static enum pnet_status check_reach(
    const struct sampling *s, struct pnet_grid grid, struct pnet_error *e)
{
    uint64_t *key = pnet_library_room(s->fine.rows, sizeof *key, e);
    if (!key) return PNET_NO_MEMORY;
    int64_t outside = pnet_cpu_keys(s->fine.rows, s->fine.xyz, grid, key);
    free(key);
    return outside ? pnet_points_beyond(outside, grid, e) : PNET_OK;
}

/* Rows of `fine` become rows inside the points. */
static void undo_order(const struct sampling *s, int32_t *parent, int64_t kept)
{
    int32_t *by_row = (int32_t *)(void *)s->xyz; /* which is not needed any more */
    pnet_cpu_gather(kept, 1, s->place, s->keep, s->keep);
    for (int64_t i = 0; i < s->fine.rows; i++) by_row[s->place[i]] = parent[i];
    for (int64_t i = 0; i < s->fine.rows; i++) parent[i] = by_row[i];
}

static enum pnet_status sample(
    const struct pnet_points *of, struct pnet_points *l, struct sampling *s, struct pnet_error *e)
{
    int64_t n = s->fine.rows;
    s->keep = pnet_library_room(n, sizeof *s->keep, e);
    l->parent = s->keep ? pnet_library_room(n, sizeof *l->parent, e) : NULL;
    l->splits =
        l->parent ? pnet_library_room((int64_t)s->fine.samples + 1, sizeof *l->splits, e) : NULL;
    void *work =
        l->splits ? pnet_library_room((int64_t)pnet_cpu_sample_work(n, s->ordered), 1, e) : NULL;
    if (!work) return PNET_NO_MEMORY;
    int64_t rows =
        pnet_cpu_sample(&s->fine, l->level.grid, s->ordered, s->keep, l->parent, l->splits, work);
    free(work);
    if (s->place) undo_order(s, l->parent, rows);
    l->xyz = pnet_library_room(rows, 3 * sizeof *l->xyz, e);
    l->key = l->xyz ? pnet_library_room(rows, sizeof *l->key, e) : NULL;
    l->source = l->key ? pnet_library_room(rows, sizeof *l->source, e) : NULL;
    if (!l->source) return PNET_NO_MEMORY;
    pnet_cpu_gather(rows, 3, of->xyz, s->keep, l->xyz);
    pnet_cpu_gather(rows, 1, of->source, s->keep, l->source);
    pnet_cpu_keys(rows, l->xyz, l->level.grid, l->key);
    l->level.rows = rows;
    l->level.samples = s->fine.samples;
    l->level.row_splits = l->splits;
    l->level.xyz = l->xyz;
    l->level.key = l->key;
    return PNET_OK;
}

static enum pnet_status make(
    const struct pnet_points *of, struct pnet_points *l, struct pnet_error *e)
{
    struct pnet_grid grid = l->level.grid;
    struct sampling s = {.fine = of->level, .ordered = pnet_grid_follows(of->level.grid, grid)};
    enum pnet_status st = PNET_OK;
    if (!of->finer && of->level.grid.base != grid.base) {
        st = in_order_of_caller(of, &s, e);
        if (!st) st = check_reach(&s, grid, e);
    }
    if (!st) st = sample(of, l, &s, e);
    free(s.place);
    free(s.xyz);
    free(s.keep);
    return st;
}

enum pnet_status pnet_points_grid(
    const struct pnet_points *of, double cell, struct pnet_points **level, struct pnet_error *e)
{
    PNET_REQUIRE_PLACE(e, level);
    PNET_REQUIRE(e, PNET_A(POINTS, of));
    PNET_OWN_ERROR(e);
    struct pnet_points *owner = (struct pnet_points *)of; /* to count one owner more */
    struct pnet_grid grid = {0};
    double edge = 0;
    enum pnet_status st = find_grid(of, cell, &grid, &edge, e);
    if (st) return st;
    if (of->finer && of->level.grid.factor == grid.factor) {
        atomic_fetch_add(&owner->owners, 1);
        *level = owner;
        return PNET_OK;
    }
    struct pnet_points *l = pnet_handle_new(PNET_CLASS_POINTS, sizeof *l, e);
    if (!l) return PNET_NO_MEMORY;
    atomic_init(&l->owners, 1);
    l->cell = edge;
    l->home = of->home;
    l->as_given = true;
    l->level.grid = grid;
    st = pnet_points_on_gpu(of) ? PNET_ON_GPU(&of->home, pnet_points_grid_on_gpu(of, l, e), e)
                                : make(of, l, e);
    if (st) {
        pnet_points_free(l);
        return st;
    }
    atomic_fetch_add(&owner->owners, 1);
    l->finer = owner;
    *level = l;
    return PNET_OK;
}

bool pnet_points_reach(const struct pnet_points *fine, const struct pnet_points *coarse)
{
    const struct pnet_points *l = coarse;
    while (l != fine && l->finer) l = l->finer;
    return l == fine && coarse != fine;
}

void pnet_points_lead(
    const struct pnet_points *fine, const struct pnet_points *coarse, int32_t *parent)
{
    const int32_t *row = NULL; /* of `next->finer` */
    for (const struct pnet_points *at = fine, *next; at != coarse; at = next, row = parent) {
        next = coarse;
        while (next->finer != at) next = next->finer;
        pnet_cpu_gather(fine->level.rows, 1, next->parent, row, parent);
    }
}

enum pnet_status pnet_points_parents(const struct pnet_points *fine,
    const struct pnet_points *coarse, const struct pnet_array_out *to, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(POINTS, fine), PNET_A(POINTS, coarse), PNET_A(ANY, to));
    PNET_OWN_ERROR(e);
    int64_t n = fine->level.rows;
    const int32_t *order = pnet_points_order(fine);
    enum pnet_status st = pnet_library_check_filled("to", to, PNET_DTYPE_I32, n, 1, e);
    if (!st && fine != coarse && !pnet_points_reach(fine, coarse))
        st = pnet_error_set(e, PNET_USAGE, "`coarse` was not sampled from `fine`");
    if (st) return st;
    if (pnet_points_on_gpu(fine))
        return PNET_ON_GPU(&fine->home, pnet_points_parents_on_gpu(fine, coarse, to->data, e), e);
    int32_t *out = to->data;
    if (fine == coarse) {
        for (int64_t i = 0; i < n; i++) out[i] = (int32_t)i;
        return PNET_OK;
    }
    int32_t *parent = order ? pnet_library_room(n, sizeof *parent, e) : out;
    if (!parent && n) return PNET_NO_MEMORY;
    pnet_points_lead(fine, coarse, parent);
    for (int64_t i = 0; order && i < n; i++) out[order[i]] = parent[i];
    if (order) free(parent);
    return PNET_OK;
}
