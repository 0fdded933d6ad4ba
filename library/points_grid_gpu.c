/* Levels on a GPU: the steps of library/points_grid.c on its kernels. */
#include "library/points.h"

#ifdef PNET_CUDA_BUILT
#include "kernels/cuda/base/cuda.h"
#include "kernels/geometry_stage.h"
#include "kernels/given.h"
#include "kernels/rows.h"
#include "kernels/taps.h"

/* What a level is sampled from, with what sampling fills. */
struct sampling {
    struct pnet_making w;
    const struct pnet_points *of;
    struct pnet_points *to;
    struct pnet_level fine;
    bool ordered; /* along the grid of the level */
    int32_t
        *place; /* [rows]: rows of `fine` among those inside the points; NULL: they are the same */
    int32_t *keep, *parent;
};

/* Sorts inside[rows], the rows inside by the caller's row, by their sample; they stay in their order there. As triplets (sample,
   the caller's row, 0). */
static enum pnet_status group_rows(struct sampling *s, const int32_t *inside)
{
    const struct pnet_level *l = &s->of->level;
    int64_t n = l->rows;
    int64_t *start = pnet_making_once(&s->w, (int64_t)l->samples + 1, sizeof *start);
    int32_t *sample = pnet_making_once(&s->w, n, sizeof *sample);
    int32_t *row = pnet_making_once(&s->w, n, sizeof *row);
    int32_t *zero = pnet_making_once(&s->w, n, sizeof *zero);
    uint16_t *cell = pnet_making_once(&s->w, n, sizeof *cell);
    void *work = pnet_making_once(&s->w, (int64_t)pnet_cuda_listed_work(n, l->samples), 1);
    if (!start || !sample || !row || !zero || !cell || !work) return PNET_NO_MEMORY;
    pnet_cuda_list_samples(n, l->samples, l->row_splits, s->of->source, sample);
    pnet_cuda_count_up(n, row);
    pnet_cuda_fill_bytes(zero, 0, (size_t)n * sizeof *zero);
    const struct pnet_listed listed = {n, sample, row, zero};
    pnet_cuda_listed(&listed, l->samples, start, s->place, cell, work);
    pnet_cuda_gather(n, 1, inside, s->place, s->place);
    return PNET_OK;
}

/* Points that lie along another grid are sampled in the order of the caller's rows: by it, points of one cell of this grid that
   are equally near to its centre are told apart. */
static enum pnet_status in_order_of_caller(struct sampling *s)
{
    int64_t n = s->fine.rows;
    int32_t *row = pnet_making_once(&s->w, n, sizeof *row);
    int32_t *inside = pnet_making_once(&s->w, n, sizeof *inside);
    float *xyz = pnet_making_take(&s->w, n, 3 * sizeof *xyz);
    s->place = pnet_making_take(&s->w, n, sizeof *s->place);
    if (!row || !inside || !xyz || !s->place) return PNET_NO_MEMORY;
    pnet_cuda_count_up(n, row);
    pnet_cuda_scatter(n, 1, row, s->of->source, inside);
    enum pnet_status st = group_rows(s, inside);
    if (st) return st;
    pnet_cuda_gather(n, 3, s->of->xyz, s->place, xyz);
    s->fine.xyz = xyz;
    s->fine.key = NULL;
    return pnet_making_step(&s->w);
}

static enum pnet_status check_reach(struct sampling *s)
{
    const struct pnet_grid grid = s->to->level.grid;
    uint64_t *key = pnet_making_once(&s->w, s->fine.rows, sizeof *key);
    if (!key) return PNET_NO_MEMORY;
    int64_t outside = pnet_cuda_keys(s->fine.rows, s->fine.xyz, grid, key);
    enum pnet_status st = pnet_making_step(&s->w);
    return st || !outside ? st : pnet_points_beyond(outside, grid, s->w.e);
}

/* Rows of `fine` become rows inside the points. */
static void undo_order(const struct sampling *s, int64_t kept)
{
    pnet_cuda_gather(kept, 1, s->place, s->keep, s->keep);
    pnet_cuda_scatter(s->fine.rows, 1, s->parent, s->place, s->to->parent);
}

/* Sets the level's rows and splits. */
static enum pnet_status sample(struct sampling *s)
{
    struct pnet_points *l = s->to;
    int64_t n = s->fine.rows, samples = s->fine.samples;
    int64_t *splits = pnet_making_keep(&s->w, samples + 1, sizeof *splits);
    l->parent = pnet_making_keep(&s->w, n, sizeof *l->parent);
    l->splits = pnet_library_room(samples + 1, sizeof *l->splits, s->w.e);
    s->keep = pnet_making_take(&s->w, n, sizeof *s->keep);
    s->parent = s->place ? pnet_making_once(&s->w, n, sizeof *s->parent) : l->parent;
    void *work = pnet_making_once(&s->w, (int64_t)pnet_cuda_sample_work(n, s->ordered), 1);
    if (!splits || !l->parent || !l->splits || !s->keep || !s->parent || !work)
        return PNET_NO_MEMORY;
    int64_t rows =
        pnet_cuda_sample(&s->fine, l->level.grid, s->ordered, s->keep, s->parent, splits, work);
    if (s->place) undo_order(s, rows);
    enum pnet_status st = pnet_making_step(&s->w);
    if (!st) st = pnet_making_get(&s->w, l->splits, splits, samples + 1, sizeof *splits);
    l->level.rows = rows;
    l->level.samples = (int32_t)samples;
    l->level.row_splits = splits;
    return st;
}

static enum pnet_status take_kept(struct sampling *s)
{
    struct pnet_points *l = s->to;
    int64_t rows = l->level.rows;
    l->level.xyz = l->xyz = pnet_making_keep(&s->w, rows, 3 * sizeof *l->xyz);
    l->level.key = l->key = pnet_making_keep(&s->w, rows, sizeof *l->key);
    l->source = pnet_making_keep(&s->w, rows, sizeof *l->source);
    if (!l->xyz || !l->key || !l->source) return PNET_NO_MEMORY;
    pnet_cuda_gather(rows, 3, s->of->xyz, s->keep, l->xyz);
    pnet_cuda_gather(rows, 1, s->of->source, s->keep, l->source);
    pnet_cuda_keys(rows, l->xyz, l->level.grid, l->key);
    return pnet_making_error(&s->w);
}

enum pnet_status pnet_points_grid_on_gpu(
    const struct pnet_points *of, struct pnet_points *level, struct pnet_error *e)
{
    struct pnet_grid grid = level->level.grid;
    struct sampling s = {.w = {.home = &of->home, .kept = &level->rooms, .e = e},
        .of = of,
        .to = level,
        .fine = of->level,
        .ordered = pnet_grid_follows(of->level.grid, grid)};
    enum pnet_status st = pnet_making_begin(&s.w);
    if (st) return st;
    if (!of->finer && of->level.grid.base != grid.base) {
        st = in_order_of_caller(&s);
        if (!st) st = check_reach(&s);
    }
    if (!st) st = sample(&s);
    if (!st) st = take_kept(&s);
    return pnet_making_end(&s.w, st);
}

void pnet_points_lead_on_gpu(
    const struct pnet_points *fine, const struct pnet_points *coarse, int32_t *parent)
{
    const int32_t *row = NULL; /* of `next->finer` */
    for (const struct pnet_points *at = fine, *next; at != coarse; at = next, row = parent) {
        next = coarse;
        while (next->finer != at) next = next->finer;
        pnet_cuda_gather(fine->level.rows, 1, next->parent, row, parent);
    }
}

enum pnet_status pnet_points_parents_on_gpu(const struct pnet_points *fine,
    const struct pnet_points *coarse, void *to, struct pnet_error *e)
{
    const struct pnet_home *p = &fine->home;
    const int32_t *order = fine == coarse ? NULL : pnet_points_order(fine);
    struct pnet_rooms own = {.count = 0};
    int64_t n = fine->level.rows;
    int before;
    enum pnet_status st = pnet_home_check(p, "to", to, sizeof(int32_t), e);
    if (!st) st = pnet_home_enter(p, p->stream, &before, e);
    if (st) return st;
    int32_t *parent =
        order ? pnet_home_take(p, p->stream, (size_t)n * sizeof *parent, &own, e) : to;
    if (fine == coarse)
        pnet_cuda_count_up(n, to);
    else if (parent)
        pnet_points_lead_on_gpu(fine, coarse, parent);
    if (order && parent) pnet_cuda_scatter(n, 1, parent, order, to);
    st = pnet_home_leave(p, p->stream, before, parent || !n ? PNET_OK : e->status, e);
    pnet_home_give(p, p->stream, &own);
    return st;
}
#endif
