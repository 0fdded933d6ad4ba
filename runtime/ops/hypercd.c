/* Chamfer distance in hyperbolic space. */
#include "runtime/ops/common_sets.h"

#include <math.h>

enum { ALPHA = PNET_SETS_INPUTS };

static bool rule(struct pnet_rule *r)
{
    return pnet_op_near_rule(r, "hypercd");
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    struct pnet_set_pair p = pnet_op_sets(x);
    return backward ? pnet_op_near_backward_work(x) : PNET_WORK(x->device, hypercd_work)(&p);
}

static void forward(const struct pnet_exec *x)
{
    struct pnet_set_pair p = pnet_op_sets(x);
    PNET_KERNEL(x, hypercd)
    (&p, x->attr[ALPHA].r, x->out.data, x->saved[PNET_SETS_X_PULL].data,
        x->saved[PNET_SETS_Y_PULL].data, x->work);
}

static double term(const struct pnet_exec *x, const struct pnet_op_near_point *p)
{
    return acosh(1 + fmax(x->attr[ALPHA].r * p->square, 1e-5)) / (double)p->rows;
}

static void reference(const struct pnet_exec *x)
{
    *(double *)x->out.data = pnet_op_near_reference(x, term);
}

const struct pnet_op pnet_op_hypercd = {
    .name = "hypercd",
    .class_ = PNET_LOSS,
    .summary = "Chamfer distance in hyperbolic space of two point sets",
    .doc =
        "With `a` and `b` the distances to the nearest points as in `chamfer`: the mean of "
        "`arcosh(1 + alpha a^2)` and the mean of `arcosh(1 + alpha b^2)`, added; then the mean "
        "over "
        "the samples. The argument of arcosh is at least `1 + 1e-5`, where the gradient is 0.\n\n"
        "Lin, Yue, Hou, Yu, Xu, Yamada, Zhang, Hyperbolic Chamfer Distance for Point Cloud "
        "Completion, 2023.",
    .args = {PNET_SETS_ARGS, [ALPHA] = {"alpha", PNET_ARG_REAL, "1", 1e-6, 1e9, NULL,
                                 "factor of squared distances"}},
    .flags = PNET_READS_EXACT,
    .keep = PNET_KEEP_ALL_IN,
    .rule = rule,
    .work = work,
    .forward = forward,
    .backward = pnet_op_near_backward,
    .reference = reference,
    .mean = pnet_op_sets_mean,
    .cases = "hypercd(x -> linear(3), z -> linear(3))\n"
             "hypercd(p.f -> linear(3), q.f -> linear(3), alpha=0.5)\n"
             "hypercd(t -> linear(15) -> split(to=points(sample, 5)), p.xyz, alpha=20)\n",
};
