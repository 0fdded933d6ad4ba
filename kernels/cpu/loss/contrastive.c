#include "kernels/contrastive.h"
#include "kernels/cpu/loss/matched.h"

#include <math.h>

/* The terms that a positive adds to the three sums; a negative term is not added. */
struct terms {
    double of[3];
};

static size_t candidate_bytes(const struct pnet_hardest *h)
{
    return (size_t)h->pair.samples * 2 * (size_t)h->candidates * sizeof(int32_t);
}

size_t pnet_cpu_hardest_work(const struct pnet_hardest *h, bool backward)
{
    size_t positives = (size_t)h->pair.samples * (size_t)h->positives;
    if (backward) return pnet_matched_gradient_bytes(&h->pair, 2 * h->positives);
    return positives * sizeof(struct terms) + candidate_bytes(h);
}

/* rows [samples, 2, candidates] of a, then of b; -1 where a sample has fewer. */
static void draw_candidates(const struct pnet_hardest *h, int32_t *rows)
{
    const struct pnet_matched *p = &h->pair;
    for (int32_t s = 0; s < p->samples; s++)
        for (int side = 0; side < 2; side++) {
            const int64_t *splits = side ? p->b_splits : p->a_splits;
            int64_t count = splits[s + 1] - splits[s];
            enum pnet_matched_draw what = side ? PNET_DRAW_TARGET : PNET_DRAW_SOURCE;
            for (int32_t i = 0; i < h->candidates; i++, rows++)
                *rows = i < count ? (int32_t)(splits[s] + pnet_matched_draw(&p->rand, s, what,
                                                              count, h->candidates, i))
                                  : -1;
        }
}

/* The candidate of the other side that lies nearest to x; *distance to it. */
static int32_t hardest_of(const struct pnet_hardest *h, const float *x, const float *features,
    const int32_t *candidate, double *distance)
{
    int32_t best = candidate[0]; /* of what is not a number, any */
    double least = INFINITY;
    for (int32_t k = 0; k < h->candidates && candidate[k] >= 0; k++) {
        double d =
            matched_distance2(h->pair.width, x, features + (int64_t)candidate[k] * h->pair.width);
        if (d >= least) continue;
        least = d;
        best = candidate[k];
    }
    *distance = sqrt(least);
    return best;
}

static double squared_excess(double x)
{
    return x > 0 ? x * x : 0;
}

/* Fills mined[4] and the terms of one positive. */
static void mine(const struct pnet_hardest *h, int32_t sample, int32_t draw,
    const int32_t *candidate, int32_t mined[4], struct terms *t)
{
    const struct pnet_matched *p = &h->pair;
    *t = (struct terms){{-1, -1, -1}};
    mined[2] = mined[3] = -1;
    if (!pnet_matched_at(p, &p->rand, sample, h->positives, draw, &mined[0], &mined[1])) return;
    const float *x = p->a + (int64_t)mined[0] * p->width, *y = p->b + (int64_t)mined[1] * p->width;
    double to_b, to_a;
    int32_t hard_b = hardest_of(h, x, p->b, candidate + h->candidates, &to_b);
    int32_t hard_a = hardest_of(h, y, p->a, candidate, &to_a);
    t->of[0] = squared_excess(sqrt(matched_distance2(p->width, x, y)) - h->pos);
    if (!pnet_matched_in(p->start, p->other, mined[0], hard_b)) {
        mined[2] = hard_b;
        t->of[1] = squared_excess(h->neg - to_b);
    }
    if (!pnet_matched_in(p->start, p->other, hard_a, mined[1])) {
        mined[3] = hard_a;
        t->of[2] = squared_excess(h->neg - to_a);
    }
}

void pnet_cpu_hardest(
    const struct pnet_hardest *h, int32_t *mined, float *sizes, float *loss, void *work)
{
    struct terms *terms = work;
    int64_t all = (int64_t)h->pair.samples * h->positives;
    int32_t *candidate = (int32_t *)(terms + all);
    double sum[3] = {0, 0, 0};
    int64_t count[3] = {0, 0, 0};
    draw_candidates(h, candidate);
#pragma omp parallel for schedule(static, 16)
    for (int64_t n = 0; n < all; n++) {
        int32_t sample = (int32_t)(n / h->positives);
        mine(h, sample, (int32_t)(n % h->positives),
            candidate + (int64_t)sample * 2 * h->candidates, mined + 4 * n, &terms[n]);
    }
    for (int64_t n = 0; n < all; n++)
        for (int k = 0; k < 3; k++) {
            if (terms[n].of[k] < 0) continue;
            sum[k] += terms[n].of[k];
            count[k]++;
        }
    double total = 0;
    for (int k = 0; k < 3; k++) {
        sizes[k] = (float)count[k];
        if (count[k]) total += (k ? 0.5 : 1) * sum[k] / (double)count[k];
    }
    *loss = (float)total;
}

/* to += share * excess * (x - y) / |x - y|: the gradient by x of half the square of how far the
   distance lies above the margin, or with `push` below it. */
static void add_gradient(int32_t width, const float *x, const float *y, double margin, bool push,
    double share, float *to)
{
    double d = sqrt(matched_distance2(width, x, y)), excess = d - margin;
    if (d == 0 || (push ? excess > 0 : excess < 0)) return;
    double factor = share * excess / d;
    for (int32_t c = 0; c < width; c++) to[c] += (float)(factor * ((double)x[c] - (double)y[c]));
}

/* The two gradients of one positive on one side: of its own row, and of the row that was mined
   there. share: of the loss's gradient, for each of the three sums. */
static void positive_gradients(const struct pnet_hardest *h, const int32_t mined[4], int side,
    const double share[3], float *own, float *hard)
{
    const struct pnet_matched *p = &h->pair;
    int32_t width = p->width, hard_here = mined[3 - side], hard_there = mined[2 + side];
    const float *here = side ? p->b : p->a, *there = side ? p->a : p->b;
    for (int32_t c = 0; c < width; c++) own[c] = hard[c] = 0;
    if (mined[0] < 0) return; /* nothing is there to point at */
    const float *x = here + (int64_t)mined[side] * width,
                *y = there + (int64_t)mined[!side] * width;
    add_gradient(width, x, y, h->pos, false, share[0], own);
    if (hard_there >= 0)
        add_gradient(
            width, x, there + (int64_t)hard_there * width, h->neg, true, share[1 + side], own);
    if (hard_here >= 0)
        add_gradient(
            width, here + (int64_t)hard_here * width, y, h->neg, true, share[2 - side], hard);
}

void pnet_cpu_hardest_backward(const struct pnet_hardest *h, const int32_t *mined,
    const float *sizes, const float *gloss, const struct pnet_matched_gradients *g, void *work)
{
    const struct pnet_matched *p = &h->pair;
    struct matched_entries e = pnet_matched_entries_of(p, 2 * h->positives, work);
    double share[3];
    for (int k = 0; k < 3; k++)
        share[k] = sizes[k] > 0 ? (k ? 1 : 2) * (double)*gloss / (double)sizes[k] : 0;
    int64_t all = (int64_t)p->samples * h->positives;
#pragma omp parallel for schedule(static, 16)
    for (int64_t n = 0; n < 2 * all; n++) {
        int side = n >= all;
        int64_t positive = side ? n - all : n;
        const int32_t *m = mined + 4 * positive;
        int64_t at = (positive / h->positives * 2 + side) * e.each + 2 * (positive % h->positives);
        positive_gradients(
            h, m, side, share, e.gradient + at * p->width, e.gradient + (at + 1) * p->width);
        e.row[at] = m[side];
        e.row[at + 1] = m[3 - side];
    }
    pnet_matched_add_entries(p, &e, g);
}
