/* Poses from features by RANSAC, and how far from the truth they are. */
#include "runtime/ops/common.h"
#include "runtime/ops/common_pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    RRE = PNET_PAIRS_INPUTS,
    RTE,
    RANSAC,
    POINTS,
    MUTUAL,
    DISTANCE,
    SAMPLE,
    CONFIDENCE,
    NEAR,
    RMSE,
    STRICT_RRE,
    STRICT_RTE
};

/* Three ways to succeed, each with its own means. */
enum { BY_POSE, BY_STRICT_POSE, BY_RMSE, WAYS };
enum {
    PAIRS,
    FOUND,
    INLIER_RATIO,
    MATCHES,
    DISTINCT,
    SHARED,
    FITS,
    RIGHT_RMS,
    FIT_RRE,
    FIT_RTE,
    RIGHT_SPREAD,
    FIT_SHIFT,
    RRE_ALL,
    RTE_ALL,
    OVERLAP,
    TURN,
    SUCCESS,
    ERROR_POSE =
        SUCCESS + 3 * WAYS, /* its three rows [R t]; says something where there is one pair */
    SUMS = ERROR_POSE + 12
};

static const double degrees = 57.295779513082320877;

static bool rule(struct pnet_rule *r)
{
    if (!pnet_op_pairs_rule(r, "registration")) return false;
    const struct pnet_level_info *l = &r->levels[r->in[PNET_PAIRS_SOURCE].level];
    if (!r->attr[DISTANCE].set && l->cell == 0) {
        pnet_rule_fail(r, DISTANCE,
            "level %s has no cell size to derive the distance of inliers from", l->name);
        pnet_rule_help(r, "give one: distance=5cm");
        return false;
    }
    r->out = (struct pnet_type){.type = PNET_F64, .width = SUMS, .level = r->scalar_level};
    return true;
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    int64_t points = x->attr[POINTS].i, rows = x->in[PNET_PAIRS_SOURCE].rows;
    size_t used, match = pnet_op_pairs_work(x, points, &used),
                 ransac = pnet_register_ransac_work(rows < points ? rows : points),
                 rmse = pnet_register_rmse_work(rows, x->in[PNET_PAIRS_TARGET].rows);
    if (rmse < ransac) rmse = ransac;
    return backward ? 0 : match > used + rmse ? match : used + rmse;
}

static void succeed(double *sum, int way, double rre_deg, double rte_m)
{
    sum[SUCCESS + 3 * way]++;
    sum[SUCCESS + 3 * way + 1] += rre_deg;
    sum[SUCCESS + 3 * way + 2] += rte_m;
}

/* What the features are worth whatever RANSAC made of them: how far right correspondences lie apart, the pose fitted to
   them alone, and how well apart their points lie for it. Moves right ones to the front of the correspondences. */
static void add_right(double *sum, const struct pnet_op_pairs *p, double near)
{
    double fit[16], middle[3], rms, rre, rte, shift = 0;
    int64_t right =
        pnet_register_right(p->count, p->pairs, p->source, p->target, p->truth, near, &rms);
    if (p->count) sum[INLIER_RATIO] += (double)right / (double)p->count;
    if (!pnet_rigid_fit(right, p->pairs, p->source, p->target, fit)) return;
    pnet_register_error(p->truth, fit, &rre, &rte);
    sum[FITS]++;
    sum[RIGHT_RMS] += rms;
    sum[FIT_RRE] += rre;
    sum[FIT_RTE] += rte;
    sum[RIGHT_SPREAD] += pnet_register_spread(right, p->pairs, p->source, middle);
    for (int k = 0; k < 12; k += 4) {
        double d = fit[k + 3] - p->truth[k + 3];
        for (int c = 0; c < 3; c++) d += (fit[k + c] - p->truth[k + c]) * middle[c];
        shift += d * d;
    }
    sum[FIT_SHIFT] += sqrt(shift);
}

/* Estimates the pose of one pair of clouds and compares it with the true pose. `room`: workspace of the search. */
static void add(
    const struct pnet_exec *x, const struct pnet_op_pairs *p, double distance, void *room)
{
    static const double none[16] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    const struct pnet_attr *a = x->attr;
    double *sum = x->out.data, rre, rte, turn, shift;
    struct pnet_ransac o = {.distance = distance,
        .iterations = a[RANSAC].i,
        .points = (int)a[SAMPLE].i,
        .similarity = 0.9,
        .confidence = a[CONFIDENCE].r,
        .rand = p->rand};
    struct pnet_ransac_result found;
    pnet_register_ransac(p->count, p->pairs, p->source, p->target, &o, &found, room);
    pnet_register_error(p->truth, found.pose, &rre, &rte);
    double rmse = pnet_register_rmse(p->source_rows, p->source, p->target_rows, p->target, p->truth,
        found.pose, a[NEAR].r, room);
    pnet_register_error(none, p->truth, &turn, &shift);
    sum[OVERLAP] += pnet_register_overlap(
        p->source_rows, p->source, p->target_rows, p->target, p->truth, distance, room);
    sum[TURN] += turn;
    sum[PAIRS]++;
    sum[FOUND] += found.found;
    sum[MATCHES] += (double)p->count;
    sum[DISTINCT] += p->distinct;
    sum[SHARED] += p->shared;
    add_right(sum, p, a[NEAR].r);
    sum[RRE_ALL] += rre;
    sum[RTE_ALL] += rte;
    if (!found.found) return;
    double back[16];
    pnet_rigid_invert(p->truth, back);
    pnet_rigid_multiply(back, found.pose, back);
    for (int k = 0; k < 12; k++) sum[ERROR_POSE + k] += back[k];
    if (rre < a[RRE].r * degrees && rte < a[RTE].r) succeed(sum, BY_POSE, rre, rte);
    if (rre < a[STRICT_RRE].r * degrees && rte < a[STRICT_RTE].r)
        succeed(sum, BY_STRICT_POSE, rre, rte);
    if (rmse < a[RMSE].r) succeed(sum, BY_RMSE, rre, rte);
}

/* What RANSAC takes for an inlier: given, or one and a half cells as in FCGF's evaluation. */
static double inlier_distance(const struct pnet_exec *x)
{
    return x->attr[DISTANCE].set ? x->attr[DISTANCE].r
                                 : 1.5 * x->geo[0]->level.grid.base * x->geo[0]->level.grid.factor;
}

static void forward(const struct pnet_exec *x)
{
    size_t used;
    for (int k = 0; k < SUMS; k++) ((double *)x->out.data)[k] = 0;
    pnet_op_pairs_work(x, x->attr[POINTS].i, &used);
    for (int32_t s = 0; s < x->in[PNET_PAIRS_SOURCE].samples; s++) {
        struct pnet_op_pairs p;
        pnet_op_pairs_make(x, s, x->attr[POINTS].i, x->attr[MUTUAL].i, &p);
        add(x, &p, inlier_distance(x), (char *)x->work + used);
    }
}

/* Matching compares every pair in double; the rest has its own tests. */
static void reference(const struct pnet_exec *x)
{
    size_t bytes = work(x, false);
    void *room = aligned_alloc(64, (bytes + 64) / 64 * 64);
    if (!room) abort();
    for (int k = 0; k < SUMS; k++) ((double *)x->out.data)[k] = 0;
    for (int32_t s = 0; s < x->in[PNET_PAIRS_SOURCE].samples; s++) {
        struct pnet_op_pairs p;
        pnet_op_pairs_reference(x, s, x->attr[POINTS].i, x->attr[MUTUAL].i, &p);
        add(x, &p, inlier_distance(x), room);
        free(p.pairs);
    }
    free(room);
}

static void finish(const struct pnet_attr *attr, const double *sum, struct pnet_metric_result *r)
{
    static const char *const names[WAYS][3] = {{"recall", "rre_success_deg", "rte_success_m"},
        {"strict_recall", "strict_rre_success_deg", "strict_rte_success_m"},
        {"rmse_recall", "rmse_rre_success_deg", "rmse_rte_success_m"}};
    double n = sum[PAIRS] > 0 ? sum[PAIRS] : (double)NAN;
    (void)attr;
    r->value = sum[SUCCESS] / n;
    pnet_metric_name(r, "pairs", sum[PAIRS]);
    pnet_metric_name(r, "rre_all_deg", sum[RRE_ALL] / n);
    pnet_metric_name(r, "rte_all_m", sum[RTE_ALL] / n);
    for (int way = 0; way < WAYS; way++) {
        const double *s = sum + SUCCESS + 3 * way;
        pnet_metric_name(r, names[way][0], s[0] / n);
        for (int k = 1; k < 3; k++)
            pnet_metric_name(r, names[way][k], s[0] > 0 ? s[k] / s[0] : (double)NAN);
    }
    pnet_metric_name(r, "inlier_ratio", sum[INLIER_RATIO] / n);
    pnet_metric_name(r, "matches", sum[MATCHES] / n);
    pnet_metric_name(r, "found", sum[FOUND] / n);
    pnet_metric_name(r, "distinct", sum[DISTINCT] / n);
    pnet_metric_name(r, "shared", sum[SHARED] / n);
    double fits = sum[FITS] > 0 ? sum[FITS] : (double)NAN;
    pnet_metric_name(r, "right_rms_m", sum[RIGHT_RMS] / fits);
    pnet_metric_name(r, "fit_rre_deg", sum[FIT_RRE] / fits);
    pnet_metric_name(r, "fit_rte_m", sum[FIT_RTE] / fits);
    pnet_metric_name(r, "right_spread_m", sum[RIGHT_SPREAD] / fits);
    pnet_metric_name(r, "fit_shift_m", sum[FIT_SHIFT] / fits);
    pnet_metric_name(r, "fit_pairs", sum[FITS]);
    pnet_metric_name(r, "overlap", sum[OVERLAP] / n);
    pnet_metric_name(r, "turn_deg", sum[TURN] / n);
    r->has_error_pose = sum[PAIRS] == 1 && sum[FOUND] == 1;
    if (!r->has_error_pose) return;
    memcpy(r->error_pose, sum + ERROR_POSE, 12 * sizeof *sum);
    for (int k = 12; k < 16; k++) r->error_pose[k] = k == 15;
}

const struct pnet_op pnet_op_registration = {
    .name = "registration",
    .class_ = PNET_METRIC,
    .summary = "Share of pairs of clouds that features and RANSAC bring together",
    .doc = "`points` rows of each cloud are drawn; each is matched to the row of the other cloud "
           "with the nearest features. RANSAC draws `ransac` samples of `sample` correspondences "
           "each, drops samples whose edges differ by more than a tenth in length between the "
           "clouds, and fits a pose to each other sample. The pose with the most correspondences "
           "within `distance` is refitted on these correspondences.\n\n"
           "The headline is the recall: the share of pairs with a relative rotation error (the "
           "angle of `R_true^T R`) below `rre` and a relative translation error (`|t - t_true|`) "
           "below `rte`. Other values: the mean errors over all pairs (of the identity if no pose "
           "is found) and over the successes; recall and means under `strict_rre` and "
           "`strict_rte`; recall and means by 3DMatch's registration recall, where a pair succeeds "
           "if the source's points under the two poses have a root mean square distance below "
           "`rmse`, over the points with a target point within `near` under the true pose; the "
           "mean inlier ratio, where a correspondence is right within `near`. Values of the "
           "features before RANSAC: the share of different rows among the targets nearest to the "
           "drawn sources; the share of sources with the same target as their neighbour; the root "
           "mean square distance and the spread of right correspondences; the errors of the pose "
           "fitted to right correspondences alone. Values of the pairs: their overlap and the "
           "angle of their true rotation. docs/registration.md names the values and the protocols.",
    .args =
        {
            PNET_PAIRS_ARGS,
            [RRE] = {"rre", PNET_ARG_ANGLE, "5deg", 0, 0, NULL, "rotation error of a success"},
            [RTE] = {"rte", PNET_ARG_LENGTH, "2m", 0, 0, NULL, "translation error of a success"},
            [RANSAC] = {"ransac", PNET_ARG_INT, "50000", 1, 1e9, NULL, "samples that RANSAC draws"},
            [POINTS] = {"points", PNET_ARG_INT, "5000", 1, 1e9, NULL, "rows drawn from each cloud"},
            [MUTUAL] = {"mutual", PNET_ARG_BOOL, "yes", 0, 0, NULL,
                "only pairs of rows that are each other's nearest"},
            [DISTANCE] = {"distance", PNET_ARG_LENGTH, "", 1e-6, 1e5, NULL,
                "distance up to which RANSAC counts a correspondence (default: one and a half "
                "cells of the source's level)"},
            [SAMPLE] = {"sample", PNET_ARG_INT, "3", 3, 4, NULL, "correspondences of a pose"},
            [CONFIDENCE] = {"confidence", PNET_ARG_REAL, "0", 0, 0.999999, NULL,
                "stop when a better pose not yet drawn is less likely than 1 minus this; 0: never"},
            [NEAR] = {"near", PNET_ARG_LENGTH, "0.1m", 1e-6, 1e5, NULL,
                "a correspondence is right within this distance"},
            [RMSE] = {"rmse", PNET_ARG_LENGTH, "0.2m", 0, 0, NULL, "root mean square of a success"},
            [STRICT_RRE] = {"strict_rre", PNET_ARG_ANGLE, "1deg", 0, 0, NULL,
                "rotation error of a strict success"},
            [STRICT_RTE] = {"strict_rte", PNET_ARG_LENGTH, "0.2m", 0, 0, NULL,
                "translation error of a strict success"},
        },
    .flags = PNET_NO_GRAD | PNET_ON_HOST,
    .rule = rule,
    .work = work,
    .forward = forward,
    .reference = reference,
    .finish = finish,
    .cases = "registration(x, u, T, rre=60deg, rte=50cm, ransac=2000)\n"
             "registration(p.f, q.f, T, ransac=300, points=60, sample=4, distance=20cm, mutual=no, "
             "confidence=99%)\n",
};
