/* The rectifier that keeps a part of negative values. */
#include "kernels/act.h"
#include "runtime/ops/common.h"

enum { IN, SLOPE };

static void forward(const struct pnet_exec *x)
{
    PNET_KERNEL(x, act)
    (pnet_op_elements(&x->out), PNET_ACT_LEAKY, (float)x->attr[SLOPE].r, x->in[0].data,
        x->out.data);
}

static void backward(const struct pnet_exec *x)
{
    if (x->gin[0].data) PNET_KERNEL(x, act_gradient)
    (pnet_op_elements(&x->out), PNET_ACT_LEAKY, (float)x->attr[SLOPE].r, x->out.data, x->gout.data,
        x->gin_add[0], x->gin[0].data);
}

static void reference(const struct pnet_exec *x)
{
    const double *in = x->in[0].data;
    double *out = x->out.data;
    for (int64_t i = 0; i < pnet_op_count_of(&x->out); i++)
        out[i] = in[i] > 0 ? in[i] : in[i] * x->attr[SLOPE].r;
}

const struct pnet_op pnet_op_leaky_relu = {
    .name = "leaky_relu",
    .class_ = PNET_LAYER,
    .summary = "Rectifier that keeps a part of negative values",
    .doc = "`out = x` where x is positive, else `slope * x`. Runs as part of the layer before it "
           "if that layer supports this.\n\n"
           "Maas, Hannun, Ng, Rectifier Nonlinearities Improve Neural Network Acoustic Models, "
           "2013.",
    .args =
        {
            [IN] = {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "features"},
            [SLOPE] = {"slope", PNET_ARG_REAL, "0.01", 0, 1, NULL, "factor of negative values"},
        },
    .flags = PNET_IN_PLACE | PNET_GRAD_IN_PLACE,
    .keep = PNET_KEEP_OUT,
    .rule = pnet_op_rule_like_input,
    .work = pnet_op_no_work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .cases = "x -> leaky_relu\n"
             "x -> leaky_relu(0.2)\n"
             "x -> linear(5) -> leaky_relu(20%)\n",
    .act = PNET_ACT_LEAKY,
};
