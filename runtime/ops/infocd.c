/* Contrastive Chamfer distance. */
#include "runtime/ops/common_sets.h"

#include <math.h>

enum { TAU = PNET_SETS_INPUTS, LAMBDA, REDUCE };

static bool rule(struct pnet_rule *r)
{
    return pnet_op_near_rule(r, "infocd");
}

static struct pnet_infocd infocd_of(const struct pnet_exec *x)
{
    return (struct pnet_infocd){x->attr[TAU].r, x->attr[LAMBDA].r, x->attr[REDUCE].i != 0};
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    struct pnet_set_pair p = pnet_op_sets(x);
    return backward ? pnet_op_near_backward_work(x) : PNET_WORK(x->device, infocd_work)(&p);
}

static void forward(const struct pnet_exec *x)
{
    struct pnet_set_pair p = pnet_op_sets(x);
    struct pnet_infocd d = infocd_of(x);
    PNET_KERNEL(x, infocd)
    (&p, &d, x->out.data, x->saved[PNET_SETS_X_PULL].data, x->saved[PNET_SETS_Y_PULL].data,
        x->work);
}

static double distance(double square)
{
    return sqrt(fmax(square, 1e-9));
}

static double term(const struct pnet_exec *x, const struct pnet_op_near_point *p)
{
    const double *from = x->in[p->own].data, *to = x->in[1 - p->own].data;
    double tau = x->attr[TAU].r, sum = 0;
    for (int64_t i = p->begin; i < p->begin + p->rows; i++) {
        double square = 0;
        for (int c = 0; c < 3; c++) square += pow(from[3 * i + c] - to[3 * p->nearest[i] + c], 2);
        sum += exp(-distance(square) / tau) + 1e-7;
    }
    double v = distance(p->square) / tau + x->attr[LAMBDA].r * log(sum);
    return x->attr[REDUCE].i ? v / 2 : v / (double)(2 * p->rows);
}

static void reference(const struct pnet_exec *x)
{
    *(double *)x->out.data = pnet_op_near_reference(x, term);
}

const struct pnet_op pnet_op_infocd = {
    .name = "infocd",
    .class_ = PNET_LOSS,
    .summary = "Contrastive Chamfer distance of two point sets",
    .doc =
        "With `a` the distances to the nearest points as in `chamfer`, at least `sqrt(1e-9)`: the "
        "mean "
        "(or the sum) of `a / tau + lambda ln S`, `S` being the sum of `exp(-a / tau) + 1e-7` over "
        "the sample; the same from `y` to `x`; half of their sum, then the mean over the samples. "
        "With the default `lambda` this is nearly half of the distances of `chamfer(kind=l1)`. The "
        "code of the authors takes the sum.\n\n"
        "Lin, Yue, Hou, Yu, Xu, Yamada, Zhang, InfoCD: A Contrastive Chamfer Distance Loss for "
        "Point Cloud Completion, 2023.",
    .args = {PNET_SETS_ARGS,
        [TAU] = {"tau", PNET_ARG_REAL, "2", 1e-6, 1e6, NULL, "distance that counts as 1"},
        [LAMBDA] = {"lambda", PNET_ARG_REAL, "1e-7", 0, 1e6, NULL, "weight of the contrast"},
        [REDUCE] = {"reduce", PNET_ARG_CHOICE, "mean", 0, 0, "mean|sum",
            "over the points of a sample"}},
    .flags = PNET_READS_EXACT,
    .keep = PNET_KEEP_ALL_IN,
    .rule = rule,
    .work = work,
    .forward = forward,
    .backward = pnet_op_near_backward,
    .reference = reference,
    .mean = pnet_op_sets_mean,
    .cases = "infocd(x -> linear(3), z -> linear(3))\n"
             "infocd(p.f -> linear(3), q.f -> linear(3), tau=0.5, lambda=0.3, reduce=sum)\n"
             "infocd(t -> linear(15) -> split(to=points(sample, 5)), p.xyz, lambda=0.1)\n",
};
