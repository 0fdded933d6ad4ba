/* Stochastic depth. */
#include "kernels/act.h"
#include "kernels/drop_path.h"
#include "runtime/ops/common.h"

enum { IN, P, EACH };

static bool rule(struct pnet_rule *r)
{
    if (r->in[IN].level == r->scalar_level) {
        r->error_in = IN;
        return pnet_rule_fail(r, IN, "drop_path() drops rows of points or samples, not a loss");
    }
    return pnet_op_rule_like_input(r);
}

/* to (+)= what is left of `from`, a tensor of the same level. */
static void drop(const struct pnet_exec *x, const struct pnet_tensor *from, bool add,
    const struct pnet_tensor *to)
{
    if (x->training) PNET_KERNEL(x, drop_path)
    (pnet_op_samples(from), from->width, (enum pnet_drop_each)x->attr[EACH].i, (float)x->attr[P].r,
        &x->rand, from->data, add, to->data);
    else PNET_KERNEL(x, scale)(pnet_op_elements(from), 1, from->data, add, to->data);
}

static void forward(const struct pnet_exec *x)
{
    drop(x, &x->in[IN], false, &x->out);
}

/* The mask is drawn again: it depends on the row alone. */
static void backward(const struct pnet_exec *x)
{
    if (x->gin[IN].data) drop(x, &x->gout, x->gin_add[IN], &x->gin[IN]);
}

static void reference(const struct pnet_exec *x)
{
    const double *in = x->in[IN].data;
    double *out = x->out.data, p = x->attr[P].r;
    int64_t c = x->out.width;
    for (int32_t s = 0; s < x->out.samples; s++) {
        int64_t begin = x->out.row_splits[s];
        for (int64_t row = begin; row < x->out.row_splits[s + 1]; row++) {
            uint64_t number = (uint64_t)s * ((uint64_t)1 << 32) +
                              (x->attr[EACH].i == PNET_DROP_POINT ? (uint64_t)(row - begin) : 0);
            bool dropped = x->training && pnet_rand_unit(&x->rand, number) < (float)p;
            for (int64_t i = row * c; i < (row + 1) * c; i++)
                out[i] = dropped ? 0 : x->training ? in[i] / (1 - p) : in[i];
        }
    }
}

const struct pnet_op pnet_op_drop_path = {
    .name = "drop_path",
    .class_ = PNET_LAYER,
    .summary = "Sets random rows, or samples, to 0 while training",
    .doc = "In training all channels of a point are set to 0 with probability `p`, else divided by "
           "`1 - p`; with `each=sample` all points of a sample together. So of "
           "`x + (x -> .. -> drop_path(0.1))` a point, or a sample, leaves out the branch. In "
           "inference the layer does nothing. Draws are numbered by step, layer, sample in the "
           "batch and row in the sample, so forward, backward and all devices draw the same. What "
           "a point draws does not depend on other samples, but for the points of a cloud that no "
           "grid is sampled from, and chunks of them: the order of their rows depends on the whole "
           "batch.\n\n"
           "Huang, Sun, Liu, Sedra, Weinberger, Deep Networks with Stochastic Depth, 2016.",
    .args =
        {
            [IN] = {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "features"},
            [P] = {"p", PNET_ARG_REAL, NULL, 0, 1, NULL, "probability of 0"},
            [EACH] = {"each", PNET_ARG_CHOICE, "point", 0, 0, "point|sample",
                "what is dropped as a whole"},
        },
    .flags = PNET_IN_PLACE | PNET_GRAD_IN_PLACE,
    .rule = rule,
    .work = pnet_op_no_work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .cases = "x -> drop_path(0.4)\n"
             "x -> drop_path(50%, each=sample)\n"
             "t -> drop_path(0.3)\n"
             "t -> linear(5) -> drop_path(0.5, each=sample)\n"
             "x + (x -> linear(6) -> drop_path(0.2))\n"
             "x -> drop_path(0)\n"
             "x -> drop_path(1) -> linear(3, bias=yes)\n"
             "z -> linear(32) -> drop_path(0.6) -> upsample(to=g[0])\n",
};
