/* Sets between points on a GPU: the steps of library/set_points.c on its kernels. */
#include "library/set_points.h"

#ifdef PNET_CUDA_BUILT
#include "kernels/cuda/base/cuda.h"
#include "kernels/geometry_stage.h"
#include "kernels/given.h"

/* Memory of a form. */
struct form {
    int64_t *start;
    int32_t *other;
    uint16_t *cell;
};

struct making {
    struct pnet_making w;
    const struct pnet_between *b;
};

static enum pnet_status take_triplets(
    struct making *m, struct form *f, const struct pnet_triplets *shape, struct pnet_triplets *to)
{
    f->other = pnet_making_keep(&m->w, shape->count, sizeof *f->other);
    f->cell = pnet_making_keep(&m->w, shape->count, sizeof *f->cell);
    *to = *shape;
    to->start = f->start;
    to->other = f->other;
    to->cell = f->cell;
    return f->other && f->cell ? PNET_OK : PNET_NO_MEMORY;
}

/* The set inside: rows as they lie along the curve. */
static enum pnet_status find_triplets(struct making *m, struct pnet_triplets *to)
{
    const struct pnet_between *b = m->b;
    const struct pnet_level *out = &b->coarse->level,
                            *in = b->fine == b->coarse ? out : &b->fine->level;
    struct form f = {.start = pnet_making_keep(&m->w, out->rows + 1, sizeof *f.start)};
    int32_t *parent = NULL, k = b->nb.kernel;
    void *work = pnet_making_once(&m->w, (int64_t)pnet_cuda_triplets_work(out, in, &b->nb), 1);
    if (in != out) parent = pnet_making_once(&m->w, in->rows, sizeof *parent);
    if (!f.start || !work || (in != out && !parent)) return PNET_NO_MEMORY;
    if (parent) pnet_points_lead_on_gpu(b->fine, b->coarse, parent);
    int64_t count = pnet_cuda_triplets_count(out, in, &b->nb, parent, f.start, work);
    enum pnet_status st = pnet_making_error(&m->w);
    if (st) return st;
    const struct pnet_triplets shape = {
        .rows = out->rows, .others = in->rows, .count = count, .cells = k * k * k};
    st = take_triplets(m, &f, &shape, to);
    if (st) return st;
    pnet_cuda_triplets_write(out, in, &b->nb, parent, f.start, f.other, f.cell, work);
    return pnet_making_step(&m->w);
}

static enum pnet_status turn(
    struct making *m, const struct pnet_triplets *t, struct pnet_triplets *to)
{
    const struct pnet_triplets shape = {
        .rows = t->others, .others = t->rows, .count = t->count, .cells = t->cells};
    struct form f = {.start = pnet_making_keep(&m->w, shape.rows + 1, sizeof *f.start)};
    void *work = pnet_making_once(&m->w, (int64_t)pnet_cuda_transpose_work(t), 1);
    if (!f.start || !work) return PNET_NO_MEMORY;
    enum pnet_status st = take_triplets(m, &f, &shape, to);
    if (st) return st;
    pnet_cuda_transpose(t, f.start, f.other, f.cell, work);
    return pnet_making_step(&m->w);
}

/* Copies the order of a side's rows along the curve, in which its triplets lie. */
static enum pnet_status order_side(
    struct making *m, const struct pnet_points *p, struct pnet_set_side *side)
{
    const int32_t *order = pnet_points_order(p);
    if (!order) return PNET_OK;
    enum pnet_status st = pnet_set_side_keep(&m->w, side);
    int32_t *number = st ? NULL : pnet_making_once(&m->w, side->rows, sizeof *number);
    if (!number) return PNET_NO_MEMORY;
    pnet_cuda_copy(side->row, order, (size_t)side->rows * sizeof *order);
    pnet_cuda_count_up(side->rows, number);
    pnet_cuda_scatter(side->rows, 1, number, order, side->place);
    return pnet_making_step(&m->w);
}

static enum pnet_status make(struct making *m, struct pnet_set *s)
{
    const struct pnet_between *b = m->b;
    const struct pnet_points *out = b->up ? b->fine : b->coarse, *in = b->up ? b->coarse : b->fine;
    struct pnet_triplets *by_coarse = b->up ? &s->by_in.triplets : &s->by_out.triplets,
                         *by_fine = b->up ? &s->by_out.triplets : &s->by_in.triplets;
    enum pnet_status st = find_triplets(m, by_coarse);
    if (!st) st = turn(m, by_coarse, by_fine);
    if (!st) st = order_side(m, in, &s->in);
    if (!st && out == in) {
        s->out.row = s->in.row;
        s->out.place = s->in.place;
    } else if (!st) {
        st = order_side(m, out, &s->out);
    }
    if (st) return st;
    s->inside = s->in.row || s->out.row;
    pnet_set_name_rows_on_gpu(s);
    struct pnet_set_form *const both[] = {&s->by_out, &s->by_in};
    return pnet_set_lay_tiles(&m->w, both);
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
