/* How many points the loss apml looks at, and whether its limits cut. */
#include "runtime/ops/common.h"
#include "runtime/ops/common_apml.h"
#include "runtime/ops/common_pairs.h"

#include <math.h>

enum { MOST = PNET_APML_NEXT, ENTRIES };

static bool rule(struct pnet_rule *r)
{
    if (!pnet_op_apml_rule(r, "apml_support")) return false;
    r->out = (struct pnet_type){PNET_F64, PNET_APML_SUMS, r->scalar_level, 0, false};
    return true;
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    struct pnet_apml a = pnet_op_apml_search(x, MOST);
    return backward ? 0 : PNET_WORK(x->device, apml_support_work)(&a);
}

static void forward(const struct pnet_exec *x)
{
    struct pnet_apml a = pnet_op_apml_search(x, MOST);
    PNET_KERNEL(x, apml_support)(&a, x->out.data, x->work);
}

static void reference(const struct pnet_exec *x)
{
    struct pnet_apml_dense d = pnet_op_apml_dense(x, MOST);
    double *sum = x->out.data, kept;
    for (int k = 0; k < PNET_APML_SUMS; k++) sum[k] = 0;
    for (int side = 0; side < 2; side++) pnet_op_apml_counts(&d, side, d.limit[side], sum, &kept);
}

static void finish(const struct pnet_attr *attr, const double *sum, struct pnet_metric_result *r)
{
    (void)attr;
    double rows = sum[PNET_APML_ROWS] > 0 ? sum[PNET_APML_ROWS] : (double)NAN,
           largest = (double)NAN;
    for (int k = 0; k < PNET_APML_BINS; k++)
        if (sum[PNET_APML_BIN + k] > 0) largest = (double)pnet_apml_bin_count(k);
    r->value = sum[PNET_APML_COUNT] / rows;
    pnet_metric_name(r, "largest", largest);
    pnet_metric_name(r, "cut", sum[PNET_APML_CUT] / rows);
}

const struct pnet_op pnet_op_apml_support = {
    .name = "apml_support",
    .class_ = PNET_METRIC,
    .summary = "How many points of the other set a point has in `apml`",
    .doc =
        "The mean number of points of the other set, over the points of both sets, whose "
        "similarity in `apml` is at least `tau`. Also gives the `largest` number, from 1024 on "
        "rounded down to an eighth of a power of two, and `cut`, the share of points that do "
        "not keep all of theirs, because of `most` or `entries`. Take the arguments of the loss.",
    .args = {PNET_APML_FIRST_ARGS, PNET_APML_LIMIT_ARGS(MOST)},
    .flags = PNET_NO_GRAD | PNET_READS_EXACT,
    .rule = rule,
    .work = work,
    .forward = forward,
    .reference = reference,
    .finish = finish,
    .cases = "apml_support(p.xyz, q.xyz)\n"
             "apml_support(x -> linear(3), u -> linear(3), tau=1e-4)\n"
             "apml_support(z -> linear(3), p.xyz, p=95%, most=4, entries=2)\n",
};
