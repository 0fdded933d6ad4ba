/* One row cut into the rows of the points that are generated for it. */
#include "kernels/act.h"
#include "runtime/ops/common.h"

#include <string.h>

enum { IN, TO };

static bool rule(struct pnet_rule *r)
{
    int from = r->in[0].level, to = (int)r->attr[TO].i;
    const struct pnet_level_info *a = &r->levels[from], *b = &r->levels[to];
    if (b->kind != PNET_GEO_POINTS || b->from != from) {
        pnet_rule_help(r, "points(level, count) makes such a level");
        return pnet_rule_fail(r, TO,
            "split() cannot go from %s to %s: that level is not generated from it", a->name,
            b->name);
    }
    if (r->in[0].width % b->count) {
        r->error_in = IN;
        return pnet_rule_fail(r, IN, "split() cannot cut %d channels into %d rows of %s",
            (int)r->in[0].width, (int)b->count, b->name);
    }
    r->out = (struct pnet_type){PNET_F32, r->in[0].width / b->count, to, 0, false};
    return true;
}

static void forward(const struct pnet_exec *x)
{
    if (x->in[0].data != x->out.data)
        PNET_KERNEL(x, copy_elements)(pnet_op_elements(&x->in[0]), x->in[0].data, x->out.data);
}

static void backward(const struct pnet_exec *x)
{
    if (x->gin[0].data && x->gin[0].data != x->gout.data) PNET_KERNEL(x, scale)
    (pnet_op_elements(&x->in[0]), 1, x->gout.data, x->gin_add[0], x->gin[0].data);
}

static void reference(const struct pnet_exec *x)
{
    memcpy(x->out.data, x->in[0].data, (size_t)pnet_op_count_of(&x->out) * sizeof(double));
}

const struct pnet_op pnet_op_split = {
    .name = "split",
    .class_ = PNET_LAYER,
    .summary = "Cuts a row into rows of generated points",
    .doc =
        "With `C = points(level, n)` a row of `n * c` channels becomes `n` rows of `c` channels: "
        "row `r` of them has the channels from `r * c` on. Where nothing else reads `x`, nothing "
        "is "
        "copied.",
    .args =
        {
            [IN] = {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "features"},
            [TO] = {"to", PNET_ARG_LEVEL, NULL, 0, 0, NULL, "points generated for the level of x"},
        },
    .flags = PNET_IN_PLACE | PNET_GRAD_IN_PLACE,
    .rule = rule,
    .work = pnet_op_no_work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .cases = "t -> split(to=points(sample, 3))\n"
             "t -> linear(12) -> split(to=points(sample, 4)) -> linear(2)\n"
             "x -> split(to=points(g[0], 2)) -> pool(max, to=g[1])\n"
             "t -> linear(24) -> relu -> split(to=points(sample, 4)) -> "
             "split(to=points(points(sample, 4), 2)) -> pool(mean, to=points(sample, 4))\n",
};
