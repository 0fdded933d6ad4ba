/* Chamfer distance of two point sets. */
#include "runtime/ops/common_sets.h"

#include <math.h>

enum { KIND = PNET_SETS_INPUTS };
enum { L1, L2 };

static bool rule(struct pnet_rule *r)
{
    return pnet_op_near_rule(r, "chamfer");
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    struct pnet_set_pair p = pnet_op_sets(x);
    return backward ? pnet_op_near_backward_work(x) : PNET_WORK(x->device, chamfer_work)(&p);
}

static void forward(const struct pnet_exec *x)
{
    struct pnet_set_pair p = pnet_op_sets(x);
    PNET_KERNEL(x, chamfer)
    (&p, x->attr[KIND].i == L2, x->out.data, x->saved[PNET_SETS_X_PULL].data,
        x->saved[PNET_SETS_Y_PULL].data, x->work);
}

static double term(const struct pnet_exec *x, const struct pnet_op_near_point *p)
{
    return x->attr[KIND].i == L2 ? p->square / (double)p->rows
                                 : sqrt(p->square) / (double)(2 * p->rows);
}

static void reference(const struct pnet_exec *x)
{
    *(double *)x->out.data = pnet_op_near_reference(x, term);
}

const struct pnet_op pnet_op_chamfer = {
    .name = "chamfer",
    .class_ = PNET_LOSS,
    .summary = "Chamfer distance of two point sets",
    .doc = "With `a` the distance of each point of `x` to its nearest point of `y` in the same "
           "sample, "
           "and `b` that of each point of `y` to its nearest point of `x`: `(mean a + mean b) / 2` "
           "(`l1`), or `mean a^2 + mean b^2` (`l2`); then the mean over the samples. A sample in "
           "which either set is empty gives 0. Among equally near points the first is taken.\n\n"
           "Fan, Su, Guibas, A Point Set Generation Network for 3D Object Reconstruction from a "
           "Single Image, 2017.",
    .args = {PNET_SETS_ARGS, [KIND] = {"kind", PNET_ARG_CHOICE, "l2", 0, 0, "l1|l2",
                                 "distances, or their squares"}},
    .flags = PNET_READS_EXACT,
    .keep = PNET_KEEP_ALL_IN,
    .rule = rule,
    .work = work,
    .forward = forward,
    .backward = pnet_op_near_backward,
    .reference = reference,
    .mean = pnet_op_sets_mean,
    .cases = "chamfer(x -> linear(3), z -> linear(3))\n"
             "chamfer(p.f -> linear(3), q.f -> linear(3), kind=l1)\n"
             "chamfer(t -> linear(15) -> split(to=points(sample, 5)), p.xyz)\n"
             "chamfer(p.xyz, x -> linear(3), kind=l1)\n",
};
