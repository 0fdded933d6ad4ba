/* Circle loss of matched points. */
#include "runtime/ops/common.h"

#include <math.h>

enum { SOURCE, TARGET, MATCHES, POS, NEG, SCALE, SAFE, PAIRS };
enum { DRAWN, SUMS, SIZES };

static bool rule(struct pnet_rule *r)
{
    if (!pnet_op_matched_rule(r, "circle")) return false;
    const struct pnet_matches *m = r->attr[MATCHES].matches;
    float safe = r->attr[SAFE].set ? (float)r->attr[SAFE].r : m->radius;
    int32_t pairs = (int32_t)r->attr[PAIRS].i;
    if (safe < m->radius)
        return pnet_rule_fail(r, SAFE,
            "safe=%gm of circle() is less than the radius of its matches, %gm", (double)safe,
            (double)m->radius);
    pnet_rule_matches(r, m, safe);
    pnet_rule_save(r, (struct pnet_type){PNET_I32, 2 * pairs, r->sample_level, 0, false}, false);
    pnet_rule_save(r, (struct pnet_type){PNET_F64, 4 * pairs, r->sample_level, 0, false}, false);
    pnet_rule_save(r, (struct pnet_type){PNET_F32, 2, r->scalar_level, 0, false}, false);
    return true;
}

static struct pnet_circle loss_of(const struct pnet_exec *x)
{
    return (struct pnet_circle){.pair = pnet_op_matched(x),
        .safe_start = x->geo[1]->forward.start,
        .safe_other = x->geo[1]->forward.other,
        .pairs = (int32_t)x->attr[PAIRS].i,
        .pos = x->attr[POS].r,
        .neg = x->attr[NEG].r,
        .scale = x->attr[SCALE].r};
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    struct pnet_circle c = loss_of(x);
    return PNET_WORK(x->device, circle_work)(&c, backward);
}

static void forward(const struct pnet_exec *x)
{
    struct pnet_circle c = loss_of(x);
    PNET_KERNEL(x, circle)
    (&c, x->saved[DRAWN].data, x->saved[SUMS].data, x->saved[SIZES].data, x->out.data, x->work);
}

static void backward(const struct pnet_exec *x)
{
    struct pnet_circle c = loss_of(x);
    struct pnet_matched_gradients g = pnet_op_matched_gradients(x);
    PNET_KERNEL(x, circle_backward)
    (&c, x->saved[DRAWN].data, x->saved[SUMS].data, x->saved[SIZES].data, x->gout.data, &g,
        x->work);
}

/* The halves have counts of their own, which differ little. */
static struct pnet_mean mean(const struct pnet_exec *x, double value)
{
    const float *sizes = x->saved[SIZES].data;
    double count = ((double)sizes[0] + (double)sizes[1]) / 2;
    return (struct pnet_mean){value * count, count};
}

static bool in_row(const int64_t *start, const int32_t *other, int64_t i, int32_t j)
{
    for (int64_t at = start[i]; at < start[i + 1]; at++)
        if (other[at] == j) return true;
    return false;
}

/* The loss of one anchor against all draws of the other side; NaN: it has not both kinds. */
static double anchor(const struct pnet_exec *x, const struct pnet_circle *c, int32_t sample,
    bool of_a, int32_t i, int32_t j)
{
    double sum[2] = {0, 0}; /* plain: the exponents of the cases are small */
    for (int32_t k = 0; k < c->pairs; k++) {
        int32_t a, b;
        if (!pnet_matched_at(&c->pair, &c->pair.rand, sample, c->pairs, k, &a, &b)) break;
        if (of_a)
            a = i;
        else
            b = j;
        double d = pnet_op_matched_distance(x, a, b);
        if (in_row(c->pair.start, c->pair.other, a, b))
            sum[0] += exp(c->scale * pow(fmax(d - c->pos, 0), 2));
        else if (!in_row(c->safe_start, c->safe_other, a, b))
            sum[1] += exp(c->scale * pow(fmax(c->neg - d, 0), 2));
    }
    return sum[0] > 0 && sum[1] > 0 ? log(1 + sum[0] * sum[1]) / c->scale : (double)NAN;
}

static void reference(const struct pnet_exec *x)
{
    struct pnet_circle c = loss_of(x);
    double sum[2] = {0, 0}, count[2] = {0, 0};
    for (int32_t s = 0; s < c.pair.samples; s++)
        for (int32_t k = 0; k < c.pairs; k++) {
            int32_t i, j;
            if (!pnet_matched_at(&c.pair, &c.pair.rand, s, c.pairs, k, &i, &j)) continue;
            for (int side = 0; side < 2; side++) {
                double v = anchor(x, &c, s, side == 0, i, j);
                if (isnan(v)) continue;
                sum[side] += v;
                count[side]++;
            }
        }
    double *out = x->out.data;
    *out = 0;
    for (int side = 0; side < 2; side++) *out += count[side] > 0 ? sum[side] / count[side] / 2 : 0;
}

const struct pnet_op pnet_op_circle = {
    .name = "circle",
    .class_ = PNET_LOSS,
    .summary = "Circle loss of the features of two matched clouds",
    .doc = "From each sample the loss draws `pairs` matches `(i_p, j_p)`, or all matches if there "
           "are fewer. Two drawn points `i_p` and `j_q` are a positive pair if they match, a "
           "negative pair if they lie farther apart than `safe` under the pose, else neither. With "
           "`d` the Euclidean distance of features, the loss of a point of the source is\n\n"
           "`log(1 + sum over positives exp(scale [d - pos]+^2) * sum over negatives exp(scale "
           "[neg - d]+^2)) / scale`,\n\n"
           "and the loss of a point of the target is the same over the points of the source. "
           "Points without positives or without negatives do not count. The result is the mean of "
           "the mean over the source and the mean over the target, 0 if no point counts.\n\n"
           "This is the circle loss (Sun et al.: *Circle Loss: A Unified Perspective of Pair "
           "Similarity Optimization*, 2020) in the form of D3Feat (Bai et al., 2020) and Predator "
           "(Huang et al., 2021), where the optima equal the margins. Two things differ in these "
           "papers: the weights `[d - pos]+` and `[neg - d]+` are constants in the gradient, which "
           "halves it; and pairs that are neither positive nor negative add 1 to both sums.",
    .args =
        {
            [SOURCE] = {"source", PNET_ARG_VALUE, NULL, 0, 0, NULL, "features of the source"},
            [TARGET] = {"target", PNET_ARG_VALUE, NULL, 0, 0, NULL, "features of the target"},
            [MATCHES] = {"M", PNET_ARG_MATCHES, NULL, 0, 0, NULL,
                "matching points of the two clouds"},
            [POS] = {"pos", PNET_ARG_REAL, "0.1", 0, 1e6, NULL,
                "distance up to which a match is near enough"},
            [NEG] = {"neg", PNET_ARG_REAL, "1.4", 0, 1e6, NULL,
                "distance from which a negative is far enough"},
            [SCALE] = {"scale", PNET_ARG_REAL, "16", 1e-3, 1e4, NULL,
                "how much the worst pairs outweigh the others"},
            [SAFE] = {"safe", PNET_ARG_LENGTH, "", 1e-6, 1e5, NULL,
                "distance from which points are negatives; default: the radius of `M`"},
            [PAIRS] = {"pairs", PNET_ARG_INT, "256", 1, 4096, NULL,
                "matches drawn from a sample at most"},
        },
    .keep = PNET_KEEP_IN0 | PNET_KEEP_IN1,
    .rule = rule,
    .work = work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .mean = mean,
    .cases = "circle(x, u, M, scale=2)\n"
             "circle(x -> l2norm, u -> l2norm, M, safe=40cm)\n"
             "circle(p.f, q.f, N, pairs=30, safe=30cm, scale=1)\n"
             "circle(x -> linear(1), u -> linear(1), M, pos=0, neg=1, scale=0.5, pairs=7)\n",
};
