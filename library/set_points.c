/* Sets between points and levels: the options, and the triplets in the caller's rows. */
#include "library/set_points.h"

#include "kernels/geometry_stage.h"

#include <stdlib.h>
#include <string.h>

/* What a set is made of. */
struct making {
    struct pnet_near_options o;
    struct pnet_between b;
    int32_t *parent; /* [rows of fine] */
};

static enum pnet_status check_options(const struct pnet_near_options *o, struct pnet_error *e)
{
    if (o->kernel < 1 || o->kernel > PNET_KERNEL_LIMIT)
        return pnet_error_set(
            e, PNET_USAGE, "kernel %d: expected 1 to %d", (int)o->kernel, PNET_KERNEL_LIMIT);
    if (o->radius != 0 && !(o->radius >= 1e-6 && o->radius <= 1e5))
        return pnet_error_set(e, PNET_USAGE, "radius %g: expected 1e-6 to 1e5 m", o->radius);
    if (o->knn < 0 || o->knn > PNET_KNN_LIMIT)
        return pnet_error_set(
            e, PNET_USAGE, "knn %d: expected 1 to %d", (int)o->knn, PNET_KNN_LIMIT);
    if (o->shape != PNET_NEAR_BALL && o->shape != PNET_NEAR_CUBE)
        return pnet_error_set(
            e, PNET_USAGE, "shape %d: expected a value of enum pnet_near_shape", (int)o->shape);
    if (o->degrade & ~PNET_DEGRADE_VOXEL)
        return pnet_error_set(
            e, PNET_USAGE, "degrade %d: expected a sum of enum pnet_degradation", (int)o->degrade);
    if (o->knn && o->radius != 0)
        return pnet_error_set(e, PNET_USAGE, "radius and knn: knn chooses the radius");
    if (o->knn && o->degrade)
        return pnet_error_set(e, PNET_USAGE, "degrade: knn has no voxel mode");
    return PNET_OK;
}

/* The neighbourhood of a model's layer (runtime/ops/conv.c). */
static enum pnet_status find_neighbourhood(struct making *m, struct pnet_error *e)
{
    const struct pnet_near_options *o = &m->o;
    bool same = m->b.coarse == m->b.fine;
    m->b.nb = (struct pnet_neighbourhood){.kernel = o->kernel,
        .radius = (float)(o->radius != 0 ? o->radius : (double)o->kernel / 2 * m->b.fine->cell),
        .knn = o->knn,
        .shape = o->shape == PNET_NEAR_CUBE ? PNET_CUBE : PNET_BALL,
        .degrade = (unsigned)o->degrade};
    if (o->kernel == 1 && same && o->radius == 0 && !o->knn) {
        m->b.nb.pointwise = true;
        m->b.nb.degrade = 0; /* a point is its own neighbour in any mode */
        return PNET_OK;
    }
    if (same && o->kernel % 2 == 0)
        return pnet_error_set(e, PNET_USAGE,
            "kernel %d: an even kernel is for going between levels only", (int)o->kernel);
    if (o->degrade && (!m->b.fine->finer || !m->b.coarse->finer))
        return pnet_error_set(e, PNET_USAGE, "degrade: points without cells have no voxel mode");
    if (!o->knn && o->radius == 0 && !m->b.fine->finer)
        return pnet_error_set(
            e, PNET_USAGE, "radius: it is needed, as the finer points have no cell size");
    if (o->knn) m->b.nb.radius = 0;
    return PNET_OK;
}

/* The set inside: rows as they lie along the curve. */
static enum pnet_status find_triplets(
    struct making *m, struct pnet_set_form *form, struct pnet_error *e)
{
    const struct pnet_level *out = &m->b.coarse->level,
                            *in = m->b.fine == m->b.coarse ? out : &m->b.fine->level;
    form->start = pnet_library_room(out->rows + 1, sizeof *form->start, e);
    if (!form->start) return PNET_NO_MEMORY;
    if (in != out) {
        m->parent = pnet_library_room(in->rows, sizeof *m->parent, e);
        if (!m->parent) return PNET_NO_MEMORY;
        pnet_points_lead(m->b.fine, m->b.coarse, m->parent);
    }
    void *work = pnet_library_room((int64_t)pnet_cpu_triplets_work(out, in, &m->b.nb), 1, e);
    if (!work) return PNET_NO_MEMORY;
    int64_t count = pnet_cpu_triplets_count(out, in, &m->b.nb, m->parent, form->start, work);
    int32_t k = m->b.nb.kernel;
    enum pnet_status st = pnet_set_form_take(form, out->rows, in->rows, count, k * k * k, e);
    if (!st)
        pnet_cpu_triplets_write(
            out, in, &m->b.nb, m->parent, form->start, form->other, form->cell, work);
    free(work);
    return st;
}

/* Copies the order of a side's rows along the curve, in which its triplets lie. */
static enum pnet_status order_side(
    const struct pnet_points *p, struct pnet_set_side *side, struct pnet_error *e)
{
    const int32_t *order = pnet_points_order(p);
    enum pnet_status st = order ? pnet_set_side_take(side, e) : PNET_OK;
    if (st || !order) return st;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < side->rows; i++) {
        side->row[i] = order[i];
        side->place[order[i]] = (int32_t)i;
    }
    return PNET_OK;
}

static enum pnet_status make(struct making *m, struct pnet_set *s, struct pnet_error *e)
{
    struct pnet_set_form *by_coarse = m->b.up ? &s->by_in : &s->by_out,
                         *by_fine = m->b.up ? &s->by_out : &s->by_in;
    const struct pnet_points *out = m->b.up ? m->b.fine : m->b.coarse,
                             *in = m->b.up ? m->b.coarse : m->b.fine;
    enum pnet_status st = find_triplets(m, by_coarse, e);
    if (!st) st = pnet_set_form_turn(by_coarse, by_fine, e);
    if (!st) st = order_side(in, &s->in, e);
    if (!st && out == in) {
        s->out.row = s->in.row;
        s->out.place = s->in.place;
    } else if (!st) {
        st = order_side(out, &s->out, e);
    }
    if (!st) pnet_set_name_rows(s);
    return st;
}

enum pnet_status pnet_set_points(const struct pnet_points *out, const struct pnet_points *in,
    const struct pnet_near_options *o, struct pnet_set **set, struct pnet_error *e)
{
    PNET_REQUIRE_PLACE(e, set);
    PNET_REQUIRE(e, PNET_A(POINTS, out), PNET_A(POINTS, in));
    PNET_OWN_ERROR(e);
    struct making m = {.b = {.coarse = out, .fine = in}};
    bool up = pnet_points_reach(out, in); /* to the finer ones: the set of the way back, turned */
    if (out != in && !up && !pnet_points_reach(in, out))
        return pnet_error_set(
            e, PNET_USAGE, "neither of `out` and `in` was sampled from the other");
    if (up) {
        m.b = (struct pnet_between){.coarse = in, .fine = out, .up = true};
    }
    enum pnet_status st = pnet_library_take("pnet_near_options", o, &m.o, sizeof m.o, e);
    if (!m.o.kernel) m.o.kernel = 3;
    if (!st) st = check_options(&m.o, e);
    if (!st) st = find_neighbourhood(&m, e);
    struct pnet_set *s = st ? NULL : pnet_handle_new(PNET_CLASS_SET, sizeof *s, e);
    if (!st && !s) st = PNET_NO_MEMORY;
    if (!st) {
        atomic_init(&s->owners, 1);
        s->out = (struct pnet_set_side){.rows = out->level.rows, .extent = {1, 1, 1}};
        s->in = (struct pnet_set_side){.rows = in->level.rows, .extent = {1, 1, 1}};
        s->samples = out->level.samples;
        s->home = out->home;
        st = pnet_set_on_gpu(s) ? PNET_ON_GPU(&s->home, pnet_set_points_on_gpu(s, &m.b, e), e)
                                : make(&m, s, e);
    }
    free(m.parent);
    if (st) {
        pnet_set_free(s);
        return st;
    }
    *set = s;
    return PNET_OK;
}
