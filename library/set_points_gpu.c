/* Sets between points on a GPU: the steps of library/set_points.c on its kernels. */
#include "library/set_points.h"

#ifdef PNET_CUDA_BUILT
#include "kernels/cuda/base/cuda.h"
#include "kernels/geometry_stage.h"
#include "kernels/given.h"

/* A form, in memory of the set or of the call. */
struct form {
    struct pnet_triplets triplets;
    int64_t *start;
    int32_t *other;
    uint16_t *cell;
};

struct making {
    struct pnet_making w;
    const struct pnet_between *b;
    struct form by_coarse, by_fine;
};

/* Memory of the set where the rows inside are the caller's, else of the call. */
static void *take(struct making *m, const int32_t *order, int64_t count, size_t each)
{
    return order ? pnet_making_take(&m->w, count, each) : pnet_making_keep(&m->w, count, each);
}

static enum pnet_status take_triplets(
    struct making *m, struct form *f, const int32_t *order, const struct pnet_triplets *shape)
{
    f->other = take(m, order, shape->count, sizeof *f->other);
    f->cell = take(m, order, shape->count, sizeof *f->cell);
    f->triplets = *shape;
    f->triplets.start = f->start;
    f->triplets.other = f->other;
    f->triplets.cell = f->cell;
    return f->other && f->cell ? PNET_OK : PNET_NO_MEMORY;
}

/* The set inside: rows as they lie along the curve. */
static enum pnet_status find_triplets(struct making *m)
{
    const struct pnet_between *b = m->b;
    const struct pnet_level *out = &b->coarse->level,
                            *in = b->fine == b->coarse ? out : &b->fine->level;
    const int32_t *order = pnet_points_order(b->coarse);
    struct form *f = &m->by_coarse;
    int32_t *parent = NULL, k = b->nb.kernel;
    f->start = take(m, order, out->rows + 1, sizeof *f->start);
    void *work = pnet_making_once(&m->w, (int64_t)pnet_cuda_triplets_work(out, in, &b->nb), 1);
    if (in != out) parent = pnet_making_once(&m->w, in->rows, sizeof *parent);
    if (!f->start || !work || (in != out && !parent)) return PNET_NO_MEMORY;
    if (parent) pnet_points_lead_on_gpu(b->fine, b->coarse, parent);
    int64_t count = pnet_cuda_triplets_count(out, in, &b->nb, parent, f->start, work);
    enum pnet_status st = pnet_making_error(&m->w);
    if (st) return st;
    const struct pnet_triplets shape = {
        .rows = out->rows, .others = in->rows, .count = count, .cells = k * k * k};
    st = take_triplets(m, f, order, &shape);
    if (st) return st;
    pnet_cuda_triplets_write(out, in, &b->nb, parent, f->start, f->other, f->cell, work);
    return pnet_making_step(&m->w);
}

static enum pnet_status turn(struct making *m)
{
    const struct pnet_triplets *t = &m->by_coarse.triplets;
    const int32_t *order = pnet_points_order(m->b->fine);
    struct form *f = &m->by_fine;
    const struct pnet_triplets shape = {
        .rows = t->others, .others = t->rows, .count = t->count, .cells = t->cells};
    f->start = take(m, order, shape.rows + 1, sizeof *f->start);
    void *work = pnet_making_once(&m->w, (int64_t)pnet_cuda_transpose_work(t), 1);
    if (!f->start || !work) return PNET_NO_MEMORY;
    enum pnet_status st = take_triplets(m, f, order, &shape);
    if (st) return st;
    pnet_cuda_transpose(t, f->start, f->other, f->cell, work);
    return pnet_making_step(&m->w);
}

/* Puts the rows that a form is sorted by in the caller's order. The triplets of a row stay in theirs. */
static enum pnet_status place_rows(
    struct making *m, const struct form *f, const int32_t *order, struct pnet_set_form *to)
{
    const struct pnet_triplets *t = &f->triplets;
    to->triplets = *t;
    if (!order) return PNET_OK;
    int64_t *start = pnet_making_keep(&m->w, t->rows + 1, sizeof *start);
    int32_t *other = pnet_making_keep(&m->w, t->count, sizeof *other);
    uint16_t *cell = pnet_making_keep(&m->w, t->count, sizeof *cell);
    void *work = pnet_making_once(&m->w, (int64_t)pnet_cuda_place_starts_work(t->rows), 1);
    if (!start || !other || !cell || !work) return PNET_NO_MEMORY;
    pnet_cuda_place_starts(t->rows, order, t->start, start, work);
    pnet_cuda_place_lists(t->rows, order, t->start, start, sizeof *other, t->other, other);
    pnet_cuda_place_lists(t->rows, order, t->start, start, sizeof *cell, t->cell, cell);
    to->triplets.start = start;
    to->triplets.other = other;
    to->triplets.cell = cell;
    return pnet_making_step(&m->w);
}

static enum pnet_status make(struct making *m, struct pnet_set *s)
{
    const int32_t *coarse = pnet_points_order(m->b->coarse), *fine = pnet_points_order(m->b->fine);
    struct pnet_set_form *by_coarse = m->b->up ? &s->by_in : &s->by_out,
                         *by_fine = m->b->up ? &s->by_out : &s->by_in;
    enum pnet_status st = find_triplets(m);
    if (!st) st = turn(m);
    if (st) return st;
    if (fine) pnet_cuda_rename(m->by_coarse.triplets.count, fine, m->by_coarse.other);
    if (coarse) pnet_cuda_rename(m->by_fine.triplets.count, coarse, m->by_fine.other);
    s->inside = coarse || fine;
    st = place_rows(m, &m->by_coarse, coarse, by_coarse);
    if (!st) st = place_rows(m, &m->by_fine, fine, by_fine);
    struct pnet_set_form *const both[] = {&s->by_out, &s->by_in};
    if (!st) st = pnet_set_lay_tiles(&m->w, both);
    return st;
}

enum pnet_status pnet_set_points_on_gpu(
    struct pnet_set *s, const struct pnet_between *b, struct pnet_error *e)
{
    struct making m = {.w = {.home = &s->home, .kept = &s->rooms, .e = e}, .b = b};
    enum pnet_status st = pnet_making_begin(&m.w);
    if (st) return st;
    return pnet_making_end(&m.w, make(&m, s));
}
#endif
