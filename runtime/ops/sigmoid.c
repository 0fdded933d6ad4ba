/* The logistic function. */
#include "kernels/act.h"
#include "runtime/ops/common.h"

#include <math.h>

static void forward(const struct pnet_exec *x)
{
    PNET_KERNEL(x, sigmoid)(pnet_op_elements(&x->out), x->in[0].data, x->out.data);
}

static void backward(const struct pnet_exec *x)
{
    if (x->gin[0].data) PNET_KERNEL(x, sigmoid_backward)
    (pnet_op_elements(&x->out), x->out.data, x->gout.data, x->gin_add[0], x->gin[0].data);
}

static void reference(const struct pnet_exec *x)
{
    const double *in = x->in[0].data;
    double *out = x->out.data;
    for (int64_t i = 0; i < pnet_op_count_of(&x->out); i++) out[i] = 1 / (1 + exp(-in[i]));
}

const struct pnet_op pnet_op_sigmoid = {
    .name = "sigmoid",
    .class_ = PNET_LAYER,
    .summary = "Logistic function: values between 0 and 1",
    .doc = "`out = 1 / (1 + exp(-x))`.",
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
    .cases = "x -> sigmoid\n"
             "x -> mul(x -> linear(1) -> sigmoid)\n",
};
