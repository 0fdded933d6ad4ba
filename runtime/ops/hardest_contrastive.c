/* The hardest contrastive loss of matched points. */
#include "runtime/ops/common.h"

#include <math.h>

enum { SOURCE, TARGET, MATCHES, POS, NEG, POSITIVES, CANDIDATES };
enum { MINED, SIZES };

static bool rule(struct pnet_rule *r)
{
    if (!pnet_op_matched_rule(r, "hardest_contrastive")) return false;
    int32_t mined = 4 * (int32_t)r->attr[POSITIVES].i;
    pnet_rule_save(r, (struct pnet_type){PNET_I32, mined, r->sample_level, 0, false}, false);
    pnet_rule_save(r, (struct pnet_type){PNET_F32, 3, r->scalar_level, 0, false}, false);
    return true;
}

static struct pnet_hardest loss_of(const struct pnet_exec *x)
{
    return (struct pnet_hardest){.pair = pnet_op_matched(x),
        .positives = (int32_t)x->attr[POSITIVES].i,
        .candidates = (int32_t)x->attr[CANDIDATES].i,
        .pos = x->attr[POS].r,
        .neg = x->attr[NEG].r};
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    struct pnet_hardest h = loss_of(x);
    return PNET_WORK(x->device, hardest_work)(&h, backward);
}

static void forward(const struct pnet_exec *x)
{
    struct pnet_hardest h = loss_of(x);
    PNET_KERNEL(x, hardest)
    (&h, x->saved[MINED].data, x->saved[SIZES].data, x->out.data, x->work);
}

static void backward(const struct pnet_exec *x)
{
    struct pnet_hardest h = loss_of(x);
    struct pnet_matched_gradients g = pnet_op_matched_gradients(x);
    PNET_KERNEL(x, hardest_backward)
    (&h, x->saved[MINED].data, x->saved[SIZES].data, x->gout.data, &g, x->work);
}

/* The three means have counts of their own, which differ little: that of the positives. */
static struct pnet_mean mean(const struct pnet_exec *x, double value)
{
    double count = (double)*(const float *)x->saved[SIZES].data;
    return (struct pnet_mean){value * count, count};
}

/* The nearest of the drawn rows of the other side. */
static double nearest(const struct pnet_exec *x, const struct pnet_hardest *h, int32_t sample,
    bool of_b, int64_t row, int32_t *best)
{
    const int64_t *splits = of_b ? h->pair.b_splits : h->pair.a_splits;
    int64_t count = splits[sample + 1] - splits[sample];
    double least = INFINITY;
    for (int32_t k = 0; k < h->candidates && k < count; k++) {
        int64_t other = splits[sample] + pnet_matched_draw(&h->pair.rand, sample,
                                             of_b ? PNET_DRAW_TARGET : PNET_DRAW_SOURCE, count,
                                             h->candidates, k);
        double d = of_b ? pnet_op_matched_distance(x, row, other)
                        : pnet_op_matched_distance(x, other, row);
        if (d >= least) continue;
        least = d;
        *best = (int32_t)other;
    }
    return least;
}

static bool in_row(const struct pnet_matched *p, int64_t i, int32_t j)
{
    for (int64_t at = p->start[i]; at < p->start[i + 1]; at++)
        if (p->other[at] == j) return true;
    return false;
}

static void reference(const struct pnet_exec *x)
{
    struct pnet_hardest h = loss_of(x);
    double sum[3] = {0, 0, 0}, count[3] = {0, 0, 0};
    for (int32_t s = 0; s < h.pair.samples; s++)
        for (int32_t k = 0; k < h.positives; k++) {
            int32_t i, j, hard_a = -1, hard_b = -1;
            if (!pnet_matched_at(&h.pair, &h.pair.rand, s, h.positives, k, &i, &j)) continue;
            double to_b = nearest(x, &h, s, true, i, &hard_b),
                   to_a = nearest(x, &h, s, false, j, &hard_a);
            sum[0] += pow(fmax(pnet_op_matched_distance(x, i, j) - h.pos, 0), 2);
            count[0]++;
            if (!in_row(&h.pair, i, hard_b)) {
                sum[1] += pow(fmax(h.neg - to_b, 0), 2) / 2;
                count[1]++;
            }
            if (!in_row(&h.pair, hard_a, j)) {
                sum[2] += pow(fmax(h.neg - to_a, 0), 2) / 2;
                count[2]++;
            }
        }
    double *out = x->out.data;
    *out = 0;
    for (int k = 0; k < 3; k++) *out += count[k] > 0 ? sum[k] / count[k] : 0;
}

const struct pnet_op pnet_op_hardest_contrastive = {
    .name = "hardest_contrastive",
    .class_ = PNET_LOSS,
    .summary = "Hardest contrastive loss of the features of two matched clouds",
    .doc =
        "From each sample the loss draws `positives` matches `(i, j)` (all matches if there are "
        "fewer) and `candidates` points of each cloud. The hardest negative of `i` is the drawn "
        "point `k` of the target with the nearest features; the hardest negative of `j` is the "
        "drawn point `k` of the source with the nearest features. If the hardest negative matches "
        "`i` (or `j`), its term is left out; the next nearest point does not replace it. With `d` "
        "the Euclidean distance of features, the loss is\n\n"
        "`mean [d(i, j) - pos]+^2 + mean [neg - d(i, k)]+^2 / 2 + mean [neg - d(j, k)]+^2 / 2`,\n\n"
        "each mean over the terms of the batch that are not left out, 0 if there are none (Choy, "
        "Park, Koltun: *Fully Convolutional Geometric Features*, 2019, equation 4). For n draws "
        "the list is divided into n equal parts, and one match or point is drawn from each; every "
        "step draws anew.\n\n"
        "The features should have length 1 (`l2norm`), and `M` is the result of `matches` for "
        "their levels.",
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
            [POSITIVES] = {"positives", PNET_ARG_INT, "1024", 1, 65536, NULL,
                "matches drawn from a sample at most"},
            [CANDIDATES] = {"candidates", PNET_ARG_INT, "256", 1, 65536, NULL,
                "points drawn from either cloud of a sample at most"},
        },
    .keep = PNET_KEEP_IN0 | PNET_KEEP_IN1,
    .rule = rule,
    .work = work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .mean = mean,
    .cases = "hardest_contrastive(x, u, M)\n"
             "hardest_contrastive(x -> l2norm, u -> l2norm, M, pos=0, neg=1)\n"
             "hardest_contrastive(p.f, q.f, N, positives=40, candidates=7)\n"
             "hardest_contrastive(x -> linear(1), u -> linear(1), M, positives=3, candidates=5)\n",
};
