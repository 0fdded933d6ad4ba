#include "kernels/contrastive.h"
#include "kernels/cpu/loss/matched.h"

#include <math.h>

/* The logarithm of a sum of exponentials, term by term. */
struct log_sum {
    double top, rest; /* the sum is rest * exp(top) */
};

static void add_term(struct log_sum *s, double x)
{
    if (x > s->top) {
        s->rest = s->rest * exp(s->top - x) + 1;
        s->top = x;
    } else {
        s->rest += exp(x - s->top);
    }
}

static double square(double x)
{
    return x * x;
}

/* A pair of drawn rows. */
struct relation {
    bool positive, negative;
    double distance;
};

static struct relation relate(const struct pnet_circle *c, int32_t i, int32_t j)
{
    const struct pnet_matched *p = &c->pair;
    struct relation r = {.positive = pnet_matched_in(p->start, p->other, i, j)};
    r.negative = !r.positive && !pnet_matched_in(c->safe_start, c->safe_other, i, j);
    if (r.positive || r.negative)
        r.distance = sqrt(matched_distance2(
            p->width, p->a + (int64_t)i * p->width, p->b + (int64_t)j * p->width));
    return r;
}

/* The exponent of a pair: its excess over the margin, squared. */
static double exponent(const struct pnet_circle *c, const struct relation *r)
{
    return c->scale *
           square(r->positive ? fmax(r->distance - c->pos, 0) : fmax(c->neg - r->distance, 0));
}

size_t pnet_cpu_circle_work(const struct pnet_circle *c, bool backward)
{
    return backward ? pnet_matched_gradient_bytes(&c->pair, c->pairs) : 0;
}

/* The sums of one anchor: draw n of side 0 is a row of a, which meets all drawn rows of b; of side
   1 the other way round. */
static void anchor_sums(
    const struct pnet_circle *c, const int32_t *drawn, int side, int32_t n, double sums[2])
{
    struct log_sum of[2] = {{-INFINITY, 0}, {-INFINITY, 0}};
    for (int32_t k = 0; k < c->pairs && drawn[2 * n] >= 0 && drawn[2 * k] >= 0; k++) {
        struct relation r = relate(c, drawn[2 * (side ? k : n)], drawn[2 * (side ? n : k) + 1]);
        if (r.positive || r.negative) add_term(&of[r.negative], exponent(c, &r));
    }
    for (int k = 0; k < 2; k++) sums[k] = of[k].rest > 0 ? of[k].top + log(of[k].rest) : -INFINITY;
}

static bool counts(const double sums[2])
{
    return sums[0] > -INFINITY && sums[1] > -INFINITY;
}

/* log(1 + exp(x)) */
static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

void pnet_cpu_circle(const struct pnet_circle *c, int32_t *drawn, double *sums, float *sizes,
    float *loss, void *work)
{
    const struct pnet_matched *p = &c->pair;
    int64_t all = (int64_t)p->samples * c->pairs;
    double total = 0;
    (void)work;
    for (int64_t n = 0; n < all; n++)
        pnet_matched_at(p, &p->rand, (int32_t)(n / c->pairs), c->pairs, (int32_t)(n % c->pairs),
            &drawn[2 * n], &drawn[2 * n + 1]);
#pragma omp parallel for schedule(static, 16)
    for (int64_t n = 0; n < 2 * all; n++) {
        int64_t sample = n / (2 * c->pairs), place = n % (2 * c->pairs);
        anchor_sums(c, drawn + sample * 2 * c->pairs, place >= c->pairs,
            (int32_t)(place % c->pairs), sums + 2 * n);
    }
    for (int side = 0; side < 2; side++) {
        double sum = 0;
        int64_t count = 0;
        for (int64_t n = 0; n < all; n++) {
            const double *of = sums + 2 * ((n / c->pairs * 2 + side) * c->pairs + n % c->pairs);
            if (!counts(of)) continue;
            sum += softplus(of[0] + of[1]) / c->scale;
            count++;
        }
        sizes[side] = (float)count;
        if (count) total += sum / (double)count / 2;
    }
    *loss = (float)total;
}

/* What an anchor adds to the derivative of the loss by the distance of one of its pairs. */
static double anchor_slope(
    const struct pnet_circle *c, const double sums[2], const struct relation *r, double share)
{
    if (!counts(sums)) return 0;
    double excess = r->positive ? fmax(r->distance - c->pos, 0) : fmin(r->distance - c->neg, 0);
    double part = exp(exponent(c, r) - sums[r->negative]);
    return share / (1 + exp(-(sums[0] + sums[1]))) * part * 2 * excess;
}

/* The gradient of the row that draw n of one side stands for. */
static void anchor_gradient(const struct pnet_circle *c, const int32_t *drawn, const double *sums,
    int side, int32_t n, const double share[2], float *to)
{
    const struct pnet_matched *p = &c->pair;
    for (int32_t w = 0; w < p->width; w++) to[w] = 0;
    for (int32_t k = 0; k < c->pairs && drawn[2 * n] >= 0 && drawn[2 * k] >= 0; k++) {
        int32_t of_a = side ? k : n, of_b = side ? n : k;
        int64_t i = drawn[2 * of_a], j = drawn[2 * of_b + 1];
        struct relation r = relate(c, (int32_t)i, (int32_t)j);
        if (!(r.positive || r.negative) || r.distance == 0) continue;
        double slope = anchor_slope(c, sums + 2 * of_a, &r, share[0]) +
                       anchor_slope(c, sums + 2 * (c->pairs + of_b), &r, share[1]);
        double factor = (side ? -slope : slope) / r.distance;
        for (int32_t w = 0; w < p->width && factor != 0; w++)
            to[w] +=
                (float)(factor * ((double)p->a[i * p->width + w] - (double)p->b[j * p->width + w]));
    }
}

void pnet_cpu_circle_backward(const struct pnet_circle *c, const int32_t *drawn, const double *sums,
    const float *sizes, const float *gloss, const struct pnet_matched_gradients *g, void *work)
{
    const struct pnet_matched *p = &c->pair;
    struct matched_entries e = pnet_matched_entries_of(p, c->pairs, work);
    double share[2];
    for (int k = 0; k < 2; k++) share[k] = sizes[k] > 0 ? (double)*gloss / (double)sizes[k] / 2 : 0;
#pragma omp parallel for schedule(static, 16)
    for (int64_t n = 0; n < (int64_t)p->samples * 2 * c->pairs; n++) {
        int64_t sample = n / (2 * c->pairs);
        int32_t place = (int32_t)(n % (2 * c->pairs)), draw = place % c->pairs;
        int side = place >= c->pairs;
        const int32_t *own = drawn + sample * 2 * c->pairs;
        anchor_gradient(
            c, own, sums + sample * 4 * c->pairs, side, draw, share, e.gradient + n * p->width);
        e.row[n] = own[2 * draw + side];
    }
    pnet_matched_add_entries(p, &e, g);
}
