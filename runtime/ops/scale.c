/* A value times a number. */
#include "kernels/act.h"
#include "runtime/ops/common.h"

enum { IN, BY };

static void forward(const struct pnet_exec *x)
{
    PNET_KERNEL(x, scale)
    (pnet_op_elements(&x->out), (float)x->attr[BY].r, x->in[0].data, false, x->out.data);
}

static void backward(const struct pnet_exec *x)
{
    if (x->gin[0].data) PNET_KERNEL(x, scale)
    (pnet_op_elements(&x->gout), (float)x->attr[BY].r, x->gout.data, x->gin_add[0], x->gin[0].data);
}

static void reference(const struct pnet_exec *x)
{
    const double *in = x->in[0].data;
    double *out = x->out.data;
    for (int64_t i = 0; i < pnet_op_count_of(&x->out); i++) out[i] = in[i] * x->attr[BY].r;
}

const struct pnet_op pnet_op_scale = {
    .name = "scale",
    .class_ = PNET_LAYER,
    .summary = "A value times a number; `x * 2`",
    .doc = "`out = by * x`.",
    .args =
        {
            [IN] = {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "features"},
            [BY] = {"by", PNET_ARG_REAL, NULL, 0, 0, NULL, "factor"},
        },
    .flags = PNET_IN_PLACE | PNET_GRAD_IN_PLACE,
    .rule = pnet_op_rule_like_input,
    .work = pnet_op_no_work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .cases = "x -> scale(0.5)\n"
             "x * 3\n"
             "-t\n",
};
