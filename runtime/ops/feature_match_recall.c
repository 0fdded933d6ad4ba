/* The share of pairs of clouds whose features match well enough. */
#include "runtime/ops/common.h"
#include "runtime/ops/common_pairs.h"

#include <math.h>
#include <stdlib.h>

enum { NEAR = PNET_PAIRS_INPUTS, RATIO, POINTS, MUTUAL };
enum { PAIRS, RECALLED, INLIER_RATIO, MATCHES, SUMS };

static bool rule(struct pnet_rule *r)
{
    if (!pnet_op_pairs_rule(r, "feature_match_recall")) return false;
    r->out = (struct pnet_type){.type = PNET_F64, .width = SUMS, .level = r->scalar_level};
    return true;
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    size_t used;
    return backward ? 0 : pnet_op_pairs_work(x, x->attr[POINTS].i, &used);
}

static void add(const struct pnet_exec *x, const struct pnet_op_pairs *p)
{
    double *sum = x->out.data, ratio = 0;
    if (p->count)
        ratio = (double)pnet_register_inliers(
                    p->count, p->pairs, p->source, p->target, p->truth, x->attr[NEAR].r) /
                (double)p->count;
    sum[PAIRS]++;
    sum[RECALLED] += ratio > x->attr[RATIO].r;
    sum[INLIER_RATIO] += ratio;
    sum[MATCHES] += (double)p->count;
}

static void forward(const struct pnet_exec *x)
{
    for (int k = 0; k < SUMS; k++) ((double *)x->out.data)[k] = 0;
    for (int32_t s = 0; s < x->in[PNET_PAIRS_SOURCE].samples; s++) {
        struct pnet_op_pairs p;
        pnet_op_pairs_make(x, s, x->attr[POINTS].i, x->attr[MUTUAL].i, &p);
        add(x, &p);
    }
}

static void reference(const struct pnet_exec *x)
{
    for (int k = 0; k < SUMS; k++) ((double *)x->out.data)[k] = 0;
    for (int32_t s = 0; s < x->in[PNET_PAIRS_SOURCE].samples; s++) {
        struct pnet_op_pairs p;
        pnet_op_pairs_reference(x, s, x->attr[POINTS].i, x->attr[MUTUAL].i, &p);
        add(x, &p);
        free(p.pairs);
    }
}

static void finish(const struct pnet_attr *attr, const double *sum, struct pnet_metric_result *r)
{
    (void)attr;
    double n = sum[PAIRS] > 0 ? sum[PAIRS] : (double)NAN;
    r->value = sum[RECALLED] / n;
    pnet_metric_name(r, "pairs", sum[PAIRS]);
    pnet_metric_name(r, "inlier_ratio", sum[INLIER_RATIO] / n);
    pnet_metric_name(r, "matches", sum[MATCHES] / n);
}

const struct pnet_op pnet_op_feature_match_recall = {
    .name = "feature_match_recall",
    .class_ = PNET_METRIC,
    .summary = "Share of pairs of clouds with more than 5 % of right correspondences",
    .doc = "`points` rows of each cloud are drawn; each is matched to the row of the other cloud "
           "with the nearest features. A correspondence is right if its points lie within `near` "
           "of each other under the true pose. The inlier ratio of a pair of clouds is the share "
           "of right correspondences; the pair counts if its ratio is above `ratio` (Deng, Birdal, "
           "Ilic, PPFNet, CVPR 2018). Also gives the mean inlier ratio and the mean number of "
           "correspondences. docs/registration.md names the protocols.",
    .args =
        {
            PNET_PAIRS_ARGS,
            [NEAR] = {"near", PNET_ARG_LENGTH, "0.1m", 1e-6, 1e5, NULL,
                "a correspondence is right within this distance"},
            [RATIO] = {"ratio", PNET_ARG_REAL, "0.05", 0, 1, NULL,
                "inlier ratio above which a pair counts"},
            [POINTS] = {"points", PNET_ARG_INT, "5000", 1, 1e9, NULL, "rows drawn from each cloud"},
            [MUTUAL] = {"mutual", PNET_ARG_BOOL, "yes", 0, 0, NULL,
                "only pairs of rows that are each other's nearest"},
        },
    .flags = PNET_NO_GRAD | PNET_ON_HOST,
    .rule = rule,
    .work = work,
    .forward = forward,
    .reference = reference,
    .finish = finish,
    .cases = "feature_match_recall(x, u, T, near=20cm)\n"
             "feature_match_recall(p.f, u, T, near=30cm, ratio=10%, points=40, mutual=no)\n",
};
