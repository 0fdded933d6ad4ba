/* One row a sample to all of its points. */
#include "runtime/ops/common.h"

enum { IN, TO };

static bool rule(struct pnet_rule *r)
{
    int from = r->in[0].level, to = (int)r->attr[TO].i;
    if (r->levels[from].kind != PNET_GEO_SAMPLE) {
        if (pnet_level_reaches(r->levels, to, from))
            pnet_rule_help(r, "-> upsample(to=%s) goes to a finer level", r->levels[to].name);
        r->error_in = IN;
        return pnet_rule_fail(
            r, IN, "expand() takes one row a sample, not the points of %s", r->levels[from].name);
    }
    if (r->levels[to].kind != PNET_GEO_INPUT && r->levels[to].kind != PNET_GEO_GRID)
        return pnet_rule_fail(
            r, TO, "expand() goes to the points of a level, not to %s", r->levels[to].name);
    r->out = (struct pnet_type){PNET_F32, r->in[0].width, to, 0, false};
    return true;
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    return backward
               ? PNET_WORK(x->device, segments_pool_work)(pnet_op_samples(&x->out), x->out.width)
               : 0;
}

static void forward(const struct pnet_exec *x)
{
    PNET_KERNEL(x, segments_spread)
    (pnet_op_samples(&x->out), x->out.width, x->in[0].data, false, false, x->out.data);
}

static void backward(const struct pnet_exec *x)
{
    if (x->gin[0].data) PNET_KERNEL(x, segments_sum)
    (pnet_op_samples(&x->gout), x->gout.width, x->gout.data, false, x->gin_add[0], x->gin[0].data,
        x->work);
}

static void reference(const struct pnet_exec *x)
{
    const double *in = x->in[0].data;
    double *out = x->out.data;
    int32_t c = x->out.width;
    for (int32_t s = 0; s < x->out.samples; s++)
        for (int64_t row = x->out.row_splits[s]; row < x->out.row_splits[s + 1]; row++)
            for (int32_t i = 0; i < c; i++) out[row * c + i] = in[(int64_t)s * c + i];
}

const struct pnet_op pnet_op_expand = {
    .name = "expand",
    .class_ = PNET_LAYER,
    .summary = "Gives every point the row of its sample",
    .doc = "`out[point] = x[sample of the point]`: copies the result of a pool with `to=sample` to "
           "the points.",
    .args =
        {
            [IN] = {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "one row a sample"},
            [TO] = {"to", PNET_ARG_LEVEL, NULL, 0, 0, NULL, "level of the result"},
        },
    .rule = rule,
    .work = work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .cases = "t -> expand(to=g[1])\n"
             "t -> expand(to=level(p.f))\n"
             "cat(x, x -> pool(max, to=sample) -> expand(to=g[0]))\n",
};
