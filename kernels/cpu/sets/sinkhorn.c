#include "kernels/sinkhorn.h"
#include "kernels/cpu/sets/pairs.h"

#include <math.h>

enum { PARTS = 4, DYNAMIC_ROWS = 8 };

static const double log2_e = 1.4426950408889634;

/* One set in arrays of whole panels, in units of the box. */
struct side {
    const struct pnet_point_set *set;
    float *at[3];
    float *potential[2]; /* of the pair (x, y); of the pair of the set with itself */
    float *value[2];     /* log2 of a point's weight, times exp(potential / eps) */
};

struct transport {
    const struct pnet_sinkhorn *s;
    const struct pnet_pairs_isa *isa;
    struct side side[2];
    struct pnet_pairs_box *box; /* [samples] */
    bool *skip;  /* [samples]: a set is empty, a coordinate is not finite, or the box is a point */
    double *sum; /* [samples] */
    double eps;  /* of the present step */
    size_t bytes;
};

static struct transport lay_out(const struct pnet_sinkhorn *s, void *work)
{
    struct transport t = {.s = s};
    struct pnet_pairs_work w = {work, 0};
    int32_t samples = s->sets.x.samples;
    t.side[0].set = &s->sets.x;
    t.side[1].set = &s->sets.y;
    for (int k = 0; k < 2; k++) {
        struct side *of = &t.side[k];
        int64_t room = pnet_pairs_room(of->set);
        for (int a = 0; a < 3; a++) of->at[a] = pnet_pairs_take(&w, room, sizeof *of->at[a]);
        for (int i = 0; i < 2; i++) {
            of->potential[i] = pnet_pairs_take(&w, room, sizeof *of->potential[i]);
            of->value[i] = pnet_pairs_take(&w, room, sizeof *of->value[i]);
        }
    }
    t.box = pnet_pairs_take(&w, samples, sizeof *t.box);
    t.skip = pnet_pairs_take(&w, samples, sizeof *t.skip);
    t.sum = pnet_pairs_take(&w, samples, sizeof *t.sum);
    t.bytes = w.bytes;
    return t;
}

size_t pnet_cpu_sinkhorn_work(const struct pnet_sinkhorn *s, bool backward)
{
    (void)backward;
    return lay_out(s, NULL).bytes;
}

static void put_points(struct transport *t, struct side *of, int32_t sample)
{
    const struct pnet_pairs_box *box = &t->box[sample];
    int64_t n = pnet_pairs_points(of->set, sample), padded = pnet_pairs_padded(of->set, sample),
            to = pnet_pairs_begin(of->set, sample);
    const float *xyz = of->set->xyz + 3 * of->set->splits[sample];
    for (int64_t i = 0; i < padded; i++) {
        for (int a = 0; a < 3; a++)
            of->at[a][to + i] =
                i < n ? (float)(((double)xyz[3 * i + a] - box->centre[a]) / box->diagonal) : 0;
        for (int k = 0; k < 2; k++) {
            of->potential[k][to + i] = 0;
            of->value[k][to + i] = PNET_PAIR_NOTHING;
        }
    }
}

static void begin(struct transport *t)
{
    const struct pnet_set_pair *p = &t->s->sets;
    t->isa = pnet_pairs_isa();
#pragma omp parallel for schedule(dynamic)
    for (int32_t s = 0; s < p->x.samples; s++) {
        t->skip[s] = true;
        t->box[s] = (struct pnet_pairs_box){.diagonal = 0};
        if (!pnet_pairs_points(&p->x, s) || !pnet_pairs_points(&p->y, s)) continue;
        t->box[s] = pnet_pairs_box(p, s);
        t->skip[s] = !(t->box[s].diagonal > 0);
        for (int k = 0; k < 2 && !t->skip[s]; k++) put_points(t, &t->side[k], s);
    }
}

/* Forms the values of a set's points from potentials: its own, or element `part` of those of backward. */
static void put_values(
    struct transport *t, struct side *of, int which, const float *potential, int part)
{
    float factor = (float)(log2_e / t->eps);
#pragma omp parallel for schedule(dynamic)
    for (int32_t s = 0; s < of->set->samples; s++) {
        int64_t n = pnet_pairs_points(of->set, s), to = pnet_pairs_begin(of->set, s),
                from = of->set->splits[s];
        float weight = n > 0 ? (float)-log2((double)n) : 0;
        for (int64_t i = 0; i < n && !t->skip[s]; i++) {
            float v =
                potential ? potential[PARTS * (from + i) + part] : of->potential[which][to + i];
            of->value[which][to + i] = v * factor + weight;
        }
    }
}

static struct pnet_pair_points points_of(const struct side *of, int which, int64_t place)
{
    return (struct pnet_pair_points){
        {of->at[0] + place, of->at[1] + place, of->at[2] + place}, of->value[which] + place};
}

/* -eps ln of the sum over the points of `other` of exp((their potential - C) / eps) / their number. */
static float soft_least(const struct transport *t, int32_t sample, const float x[3],
    const struct side *other, int which)
{
    struct pnet_pair_points y = points_of(other, which, pnet_pairs_begin(other->set, sample));
    double sum = t->isa->log_sum(
        x, &y, pnet_pairs_padded(other->set, sample), (float)(log2_e / (2 * t->eps)));
    return (float)(-t->eps * sum / log2_e);
}

/* Updates the two potentials of one point. `kept` [PARTS], unless NULL, gets them before and after the last step. */
static void update_row(struct transport *t, int k, int64_t row, bool last, float *kept)
{
    struct side *own = &t->side[k], *other = &t->side[!k];
    int32_t s = pnet_pairs_sample(own->set, row);
    if (t->skip[s]) {
        for (int i = 0; i < PARTS && kept; i++) kept[i] = 0;
        return;
    }
    int64_t at = pnet_pairs_begin(own->set, s) + row - own->set->splits[s];
    float x[3] = {own->at[0][at], own->at[1][at], own->at[2][at]};
    for (int which = 0; which < 2; which++) {
        float old = own->potential[which][at],
              now = soft_least(t, s, x, which ? own : other, which);
        own->potential[which][at] = last ? now : (old + now) / 2;
        if (kept) {
            kept[2 * which] = old;
            kept[2 * which + 1] = now;
        }
    }
}

/* A step of all potentials of the batch: they are formed from the values, so the order of points does not matter. */
static void step(struct transport *t, double eps, bool last, float *x_potential, float *y_potential)
{
    int64_t rows = t->s->sets.x.rows.most, all = rows + t->s->sets.y.rows.most;
    t->eps = eps;
    for (int k = 0; k < 2; k++)
        for (int which = 0; which < 2; which++) put_values(t, &t->side[k], which, NULL, 0);
#pragma omp parallel for schedule(dynamic, DYNAMIC_ROWS)
    for (int64_t i = 0; i < all; i++) {
        int k = i >= rows;
        int64_t row = k ? i - rows : i;
        float *to = k ? y_potential : x_potential;
        update_row(t, k, row, last, to ? to + PARTS * row : NULL);
    }
}

/* The mean over the points of one set of f - a, or g - b. */
static double mean_gain(const struct side *of, int32_t sample)
{
    int64_t n = pnet_pairs_points(of->set, sample), at = pnet_pairs_begin(of->set, sample);
    double sum = 0;
    for (int64_t i = at; i < at + n; i++)
        sum += (double)of->potential[0][i] - (double)of->potential[1][i];
    return sum / (double)n;
}

void pnet_cpu_sinkhorn(
    const struct pnet_sinkhorn *s, float *x_potential, float *y_potential, float *loss, void *work)
{
    struct transport t = lay_out(s, work);
    double least = s->blur * s->blur, total = 0;
    int32_t samples = s->sets.x.samples;
    begin(&t);
    for (double eps = 1; eps > least; eps *= s->scaling * s->scaling)
        step(&t, eps, false, NULL, NULL);
    step(&t, least, false, NULL, NULL);
    step(&t, least, true, x_potential, y_potential);
#pragma omp parallel for schedule(dynamic)
    for (int32_t i = 0; i < samples; i++) {
        double d = t.box[i].diagonal;
        /* d is 0 for a point, NaN where a coordinate is not finite */
        t.sum[i] = t.skip[i] ? d : d * d * (mean_gain(&t.side[0], i) + mean_gain(&t.side[1], i));
    }
    for (int32_t i = 0; i < samples; i++) total += t.sum[i];
    *loss = samples > 0 ? (float)(total / samples) : 0;
}

/* The gradient of one point, in units of the box. */
static void pull_row(const struct transport *t, int k, int32_t sample, int64_t row,
    const float potential[PARTS], double to[3])
{
    const struct side *own = &t->side[k];
    int64_t at = pnet_pairs_begin(own->set, sample) + row - own->set->splits[sample];
    float x[3] = {own->at[0][at], own->at[1][at], own->at[2][at]};
    for (int a = 0; a < 3; a++) to[a] = 0;
    for (int which = 0; which < 2; which++) {
        const struct side *other = &t->side[which ? k : !k];
        struct pnet_pair_points y = points_of(other, which, pnet_pairs_begin(other->set, sample));
        double sum[4], top = -(double)potential[2 * which + 1] * log2_e / t->eps;
        t->isa->pull(x, &y, pnet_pairs_padded(other->set, sample), (float)(log2_e / (2 * t->eps)),
            (float)top, sum);
        for (int a = 0; a < 3; a++) to[a] += (which ? -1 : 1) * sum[a] / sum[3];
    }
}

static void backward_row(const struct transport *t, int k, int64_t row, const float *potential,
    double gloss, bool add, float *to)
{
    const struct pnet_point_set *set = t->side[k].set;
    int32_t s = pnet_pairs_sample(set, row);
    double d = t->box[s].diagonal, v[3] = {d, d, d}; /* as in the loss: 0 or NaN */
    if (!t->skip[s]) {
        double factor = gloss * d / (double)pnet_pairs_points(set, s) / set->samples;
        pull_row(t, k, s, row, potential + PARTS * row, v);
        for (int a = 0; a < 3; a++) v[a] *= factor;
    }
    for (int a = 0; a < 3; a++) to[3 * row + a] = (add ? to[3 * row + a] : 0) + (float)v[a];
}

void pnet_cpu_sinkhorn_backward(const struct pnet_sinkhorn *s, const float *x_potential,
    const float *y_potential, const float *gloss, const struct pnet_set_gradients *g, void *work)
{
    struct transport t = lay_out(s, work);
    const float *potential[2] = {x_potential, y_potential};
    float *to[2] = {g->x, g->y};
    bool add[2] = {g->add_x, g->add_y};
    begin(&t);
    t.eps = s->blur * s->blur;
    for (int k = 0; k < 2; k++) {
        put_values(&t, &t.side[k], 0, potential[k], PNET_SINKHORN_CROSS);
        put_values(&t, &t.side[k], 1, potential[k], PNET_SINKHORN_SELF);
    }
    for (int k = 0; k < 2; k++) {
        if (!to[k]) continue;
#pragma omp parallel for schedule(dynamic, DYNAMIC_ROWS)
        for (int64_t row = 0; row < t.side[k].set->rows.most; row++)
            backward_row(&t, k, row, potential[k], (double)*gloss, add[k], to[k]);
    }
}
