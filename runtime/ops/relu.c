/* The rectifier. */
#include "kernels/act.h"
#include "runtime/ops/common.h"

static void forward(const struct pnet_exec *x)
{
    PNET_KERNEL(x, act)(pnet_op_elements(&x->out), PNET_ACT_RELU, 0, x->in[0].data, x->out.data);
}

static void backward(const struct pnet_exec *x)
{
    if (x->gin[0].data) PNET_KERNEL(x, act_gradient)
    (pnet_op_elements(&x->out), PNET_ACT_RELU, 0, x->out.data, x->gout.data, x->gin_add[0],
        x->gin[0].data);
}

static void reference(const struct pnet_exec *x)
{
    const double *in = x->in[0].data;
    double *out = x->out.data;
    for (int64_t i = 0; i < pnet_op_count_of(&x->out); i++) out[i] = in[i] > 0 ? in[i] : 0;
}

const struct pnet_op pnet_op_relu = {
    .name = "relu",
    .class_ = PNET_LAYER,
    .summary = "Rectifier: negative values become 0",
    .doc = "`out = max(x, 0)`; the gradient at 0 is 0. Runs as part of the layer before it if that "
           "layer supports this.",
    .args =
        {
            {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "features"},
        },
    .flags = PNET_IN_PLACE | PNET_GRAD_IN_PLACE,
    .keep = PNET_KEEP_OUT,
    .rule = pnet_op_rule_like_input,
    .work = pnet_op_no_work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .cases = "x -> relu\n"
             "t -> relu\n"
             "x -> linear(5) -> relu\n"
             "x -> bn -> relu\n"
             "x + y -> relu\n",
    .act = PNET_ACT_RELU,
};
