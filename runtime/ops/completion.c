/* What completed clouds are judged by. */
#include "kernels/emd.h"
#include "runtime/ops/common_pairs.h"
#include "runtime/ops/common_sets.h"

#include <math.h>

enum { LABEL = PNET_SETS_INPUTS, AT, EMD };

static bool has_label(const struct pnet_exec *x)
{
    return x->in_count > 2 * PNET_SETS_INPUTS + (x->attr[EMD].i ? 1 : 0);
}

/* The assignment of x; NULL where it is not asked for. It stands before the nearest rows. */
static const int32_t *partner_of(const struct pnet_exec *x)
{
    return x->attr[EMD].i ? x->in[x->in_count - PNET_SETS_INPUTS - 1].data : NULL;
}

static bool rule(struct pnet_rule *r)
{
    int32_t classes = 0;
    if (r->in_count > LABEL) {
        classes = r->in[LABEL].classes;
        if (r->in[LABEL].level != r->sample_level) {
            r->error_in = LABEL;
            return pnet_rule_fail(r, LABEL, "completion() takes one label a cloud");
        }
    }
    if (!pnet_op_sets_rule(r, "completion")) return false;
    if (r->attr[EMD].i) {
        if (!pnet_op_sets_same_sizes(
                r, "completion(emd=yes)", "emd=no compares sets of different sizes"))
            return false;
        pnet_rule_reads(r, &pnet_op_emd_partners, PNET_SETS_X, PNET_SETS_Y);
    }
    pnet_op_sets_read_near(r);
    r->out = (struct pnet_type){
        PNET_F64, (classes ? classes : 1) * PNET_COMPLETION_SUMS, r->scalar_level, classes, false};
    return true;
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    struct pnet_set_pair p = pnet_op_sets(x);
    return backward ? 0 : PNET_WORK(x->device, completion_work)(&p);
}

static void forward(const struct pnet_exec *x)
{
    struct pnet_set_pair p = pnet_op_sets(x);
    struct pnet_completion c = {.at = x->attr[AT].r,
        .label = has_label(x) ? x->in[LABEL].data : NULL,
        .classes = x->out.width / PNET_COMPLETION_SUMS,
        .partner = partner_of(x)};
    PNET_KERNEL(x, completion)(&p, &c, x->out.data, x->work);
}

/* The squared distance of row i of `a` to the nearest row of `b` in the sample, by comparing all. */
static double nearest_square(
    const struct pnet_tensor *a, const struct pnet_tensor *b, int32_t s, int64_t i)
{
    const double *from = a->data, *to = b->data;
    double best = INFINITY;
    for (int64_t j = b->row_splits[s]; j < b->row_splits[s + 1]; j++) {
        double square = 0;
        for (int c = 0; c < 3; c++) square += pow(from[3 * i + c] - to[3 * j + c], 2);
        best = fmin(best, square);
    }
    return best;
}

static double reference_covered(const struct pnet_exec *x, int32_t s)
{
    const int64_t *a = x->in[PNET_SETS_X].row_splits + s, *b = x->in[PNET_SETS_Y].row_splits + s;
    const int32_t *near = x->in[x->in_count - PNET_SETS_INPUTS].data;
    double hits = 0;
    for (int64_t j = b[0]; j < b[1]; j++) {
        bool hit = false;
        for (int64_t i = a[0]; i < a[1]; i++) hit |= near[i] == j;
        hits += hit;
    }
    return hits / (double)(b[1] - b[0]);
}

static void reference_partners(const struct pnet_exec *x, int32_t s, double *own)
{
    const double *from = x->in[PNET_SETS_X].data, *to = x->in[PNET_SETS_Y].data;
    const int64_t *rows = x->in[PNET_SETS_X].row_splits + s;
    const int32_t *partner = partner_of(x);
    for (int64_t i = rows[0]; i < rows[1] && partner; i++) {
        double square = 0;
        int64_t j = partner[i];
        if (j <= PNET_EMD_LEFT) {
            own[PNET_COMPLETION_LEFT] = 1;
            j = PNET_EMD_LEFT - j;
        }
        for (int c = 0; c < 3; c++) square += pow(from[3 * i + c] - to[3 * j + c], 2);
        own[PNET_COMPLETION_EMD] += sqrt(square) / (double)(rows[1] - rows[0]);
    }
}

static void reference_sample(const struct pnet_exec *x, int32_t s, double *sum)
{
    double shares[2] = {0, 0}, l1 = 0, l2 = 0;
    for (int side = 0; side < 2; side++) {
        const struct pnet_tensor *a = &x->in[side], *b = &x->in[1 - side];
        double n = (double)(a->row_splits[s + 1] - a->row_splits[s]);
        for (int64_t i = a->row_splits[s]; i < a->row_splits[s + 1]; i++) {
            double square = nearest_square(a, b, s, i);
            l1 += sqrt(square) / n / 2;
            l2 += square / n;
            shares[side] += (sqrt(square) < x->attr[AT].r) / n;
        }
    }
    double both = shares[0] + shares[1];
    double own[PNET_COMPLETION_SUMS] = {1, l1, l2, shares[0], shares[1],
        both > 0 ? 2 * shares[0] * shares[1] / both : 0, reference_covered(x, s)};
    reference_partners(x, s, own);
    for (int k = 0; k < PNET_COMPLETION_SUMS; k++) sum[k] += own[k];
}

static void reference(const struct pnet_exec *x)
{
    double *out = x->out.data;
    const int32_t *label = has_label(x) ? x->in[LABEL].data : NULL;
    int32_t classes = x->out.width / PNET_COMPLETION_SUMS;
    for (int32_t i = 0; i < x->out.width; i++) out[i] = 0;
    for (int32_t s = 0; s < x->in[0].samples; s++) {
        bool empty = false;
        for (int side = 0; side < 2; side++)
            empty |= x->in[side].row_splits[s] == x->in[side].row_splits[s + 1];
        int32_t class = label ? label[s] : 0;
        if (!empty && class >= 0 && class < classes)
            reference_sample(x, s, out + (int64_t) class * PNET_COMPLETION_SUMS);
    }
}

/* The mean over classes that occur of the mean over their clouds. */
static double mean(const double *sum, int32_t classes, int which)
{
    double total = 0, count = 0;
    for (int32_t c = 0; c < classes; c++, sum += PNET_COMPLETION_SUMS)
        if (sum[PNET_COMPLETION_CLOUDS] > 0) {
            total += sum[which] / sum[PNET_COMPLETION_CLOUDS];
            count++;
        }
    return count > 0 ? total / count : (double)NAN;
}

static void finish(const struct pnet_attr *attr, const double *sum, struct pnet_metric_result *r)
{
    int32_t classes = r->classes ? r->classes : 1;
    double clouds = 0, left = 0;
    for (int32_t c = 0; c < classes; c++) {
        const double *own = sum + (int64_t)c * PNET_COMPLETION_SUMS;
        clouds += own[PNET_COMPLETION_CLOUDS];
        left += own[PNET_COMPLETION_LEFT];
        if (r->classes && own[PNET_COMPLETION_CLOUDS] > 0 && r->per_class)
            r->per_class[c] = 1000 * own[PNET_COMPLETION_L1] / own[PNET_COMPLETION_CLOUDS];
    }
    r->value = 1000 * mean(sum, classes, PNET_COMPLETION_L1);
    pnet_metric_name(r, "cd_l2", 1000 * mean(sum, classes, PNET_COMPLETION_L2));
    if (attr[EMD].i) {
        pnet_metric_name(r, "emd", 1000 * mean(sum, classes, PNET_COMPLETION_EMD));
        pnet_metric_name(r, "emd_incomplete", left);
    }
    pnet_metric_name(r, "f_score", mean(sum, classes, PNET_COMPLETION_F));
    pnet_metric_name(r, "precision", mean(sum, classes, PNET_COMPLETION_PRECISION));
    pnet_metric_name(r, "recall", mean(sum, classes, PNET_COMPLETION_RECALL));
    pnet_metric_name(r, "covered", mean(sum, classes, PNET_COMPLETION_COVERED));
    pnet_metric_name(r, "clouds", clouds);
}

const struct pnet_op pnet_op_completion = {
    .name = "completion",
    .class_ = PNET_METRIC,
    .summary = "Chamfer distances, earth mover's distance and F-score of completed clouds",
    .doc =
        "With `a` the distance of each point of `x` to its nearest point of `y` and `b` that of "
        "each point of `y` to its nearest point of `x`, a cloud has: CD-L1 `(mean a + mean b) / "
        "2`, "
        "CD-L2 `mean a^2 + mean b^2`, the precision, which is the share of `a < at`, the recall, "
        "which is the share of `b < at`, their F-score `2 p r / (p + r)`, and the share of points "
        "of "
        "`y` that are the nearest of some point of `x` (`covered`). The headline is CD-L1 times "
        "1000; `cd_l2` is times 1000 as well. All are means over clouds or, with `label`, the "
        "means "
        "over the classes of the means over their clouds. Clouds with an empty set do not count, "
        "nor do clouds with the label -1.\n\n"
        "`emd=yes` also gives the earth mover's distance times 1000 (`emd`): the mean of `|x_i - "
        "y_phi(i)|`, phi being the assignment of an auction with eps 0.002, until all points have "
        "a partner. The mean is at most 0.002 above the least possible one. Unlike the loss `emd`, "
        "the auction has phases of falling eps, and spreads bids among the points that serve "
        "equally well, so that points that lie in one place or far away take little longer than "
        "others. It ends after 100,000 rounds; then the rest is assigned greedily, and the mean "
        "may "
        "be farther above: `emd_incomplete` is the number of clouds for which that happened. Both "
        "sets need as many points: a cloud whose sets have different sizes is an error of the "
        "run.\n\n"
        "Yuan, Khot, Held, Mertz, Hebert, PCN: Point Completion Network, 2018; Tatarchenko et al., "
        "What Do Single-view 3D Reconstruction Networks Learn?, 2019 (F-score); Bertsekas, "
        "Castanon, Auction Algorithms for Network Flow Problems, 1992 (phases).",
    .args =
        {PNET_SETS_ARGS, [LABEL] = {"label", PNET_ARG_LABEL, "", 0, 0, NULL, "class of each cloud"},
            [AT] = {"at", PNET_ARG_REAL, "0.01", 1e-9, 1e9, NULL,
                "distance below which a point is met"},
            [EMD] = {"emd", PNET_ARG_BOOL, "no", 0, 0, NULL, "measure the earth mover's distance"}},
    .flags = PNET_NO_GRAD | PNET_READS_EXACT | PNET_LESS_IS_BETTER,
    .rule = rule,
    .work = work,
    .forward = forward,
    .reference = reference,
    .finish = finish,
    .cases = "completion(x -> linear(3), z -> linear(3), at=0.5)\n"
             "completion(p.f -> linear(3), q.f -> linear(3), at=1, label=p.tag)\n"
             "completion(t -> linear(15) -> split(to=points(sample, 5)), p.xyz)\n"
             "completion(x -> linear(3), y -> linear(3), emd=yes)\n"
             "completion(p.f -> linear(3), p.e -> linear(3), emd=yes, label=p.tag)\n",
};
