/* Density-aware Chamfer distance. */
#include "runtime/ops/common_sets.h"

#include <math.h>

enum { ALPHA = PNET_SETS_INPUTS, LAMBDA, AT_LEAST_ONE };

static bool rule(struct pnet_rule *r)
{
    return pnet_op_near_rule(r, "dcd");
}

static struct pnet_dcd dcd_of(const struct pnet_exec *x)
{
    return (struct pnet_dcd){x->attr[ALPHA].r, x->attr[LAMBDA].r, x->attr[AT_LEAST_ONE].i != 0};
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    struct pnet_set_pair p = pnet_op_sets(x);
    return backward ? pnet_op_near_backward_work(x) : PNET_WORK(x->device, dcd_work)(&p);
}

static void forward(const struct pnet_exec *x)
{
    struct pnet_set_pair p = pnet_op_sets(x);
    struct pnet_dcd d = dcd_of(x);
    PNET_KERNEL(x, dcd)
    (&p, &d, x->out.data, x->saved[PNET_SETS_X_PULL].data, x->saved[PNET_SETS_Y_PULL].data,
        x->work);
}

static double term(const struct pnet_exec *x, const struct pnet_op_near_point *p)
{
    double n = (double)p->rows, f = n / (double)p->others, count = 0;
    for (int64_t i = p->begin; i < p->begin + p->rows; i++) count += p->nearest[i] == p->near;
    if (x->attr[AT_LEAST_ONE].i) f = fmax(f, 1);
    double weight = f / (pow(count, x->attr[LAMBDA].r) + 1e-6);
    return (1 - weight * exp(-x->attr[ALPHA].r * p->square)) / n / 2;
}

static void reference(const struct pnet_exec *x)
{
    *(double *)x->out.data = pnet_op_near_reference(x, term);
}

const struct pnet_op pnet_op_dcd = {
    .name = "dcd",
    .class_ = PNET_LOSS,
    .summary = "Density-aware Chamfer distance of two point sets",
    .doc =
        "With `a` the distance of each of the `n` points of `x` to its nearest of the `m` points "
        "of `y` "
        "in the same sample, and `c` the number of points of `x` that have the same nearest point: "
        "the mean of `1 - f exp(-alpha a^2) / (c^lambda + 1e-6)` with `f = n / m`, and the same "
        "from `y` to `x` with `f = m / n`; half of their sum, then the mean over the samples. With "
        "`at_least_one` neither `f` is below 1. The numbers `c` are constant in the gradient. The "
        "distances are squared and have no unit: `alpha` fits shapes of size 1.\n\n"
        "Wu, Pan, Zhang, Wang, Liu, Lin, Density-aware Chamfer Distance as a Comprehensive Metric "
        "for Point Cloud Completion, 2021.",
    .args = {PNET_SETS_ARGS,
        [ALPHA] = {"alpha", PNET_ARG_REAL, "1000", 1e-6, 1e9, NULL,
            "how fast far points cease to count"},
        [LAMBDA] = {"lambda", PNET_ARG_REAL, "1", 0, 8, NULL,
            "how much shared nearest points count less"},
        [AT_LEAST_ONE] = {"at_least_one", PNET_ARG_BOOL, "no", 0, 0, NULL, "f is 1 at least"}},
    .flags = PNET_READS_EXACT,
    .keep = PNET_KEEP_ALL_IN,
    .rule = rule,
    .work = work,
    .forward = forward,
    .backward = pnet_op_near_backward,
    .reference = reference,
    .mean = pnet_op_sets_mean,
    .cases = "dcd(x -> linear(3), z -> linear(3), alpha=3)\n"
             "dcd(p.f -> linear(3), q.f -> linear(3), alpha=1, lambda=50%, at_least_one=yes)\n"
             "dcd(t -> linear(15) -> split(to=points(sample, 5)), p.xyz, alpha=2)\n",
};
