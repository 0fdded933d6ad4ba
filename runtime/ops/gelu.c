/* The Gaussian error linear unit, in its exact form. */
#include "kernels/act.h"
#include "runtime/ops/common.h"

#include <math.h>

static void forward(const struct pnet_exec *x)
{
    PNET_KERNEL(x, gelu)(pnet_op_elements(&x->out), x->in[0].data, x->out.data);
}

static void backward(const struct pnet_exec *x)
{
    if (x->gin[0].data) PNET_KERNEL(x, gelu_backward)
    (pnet_op_elements(&x->in[0]), x->in[0].data, x->gout.data, x->gin_add[0], x->gin[0].data);
}

static void reference(const struct pnet_exec *x)
{
    const double *in = x->in[0].data;
    double *out = x->out.data;
    for (int64_t i = 0; i < pnet_op_count_of(&x->out); i++)
        out[i] = in[i] * (1 + erf(in[i] / sqrt(2.0))) / 2;
}

const struct pnet_op pnet_op_gelu = {
    .name = "gelu",
    .class_ = PNET_LAYER,
    .summary = "Gaussian error linear unit",
    .doc = "`out = x * P(x)`, P the distribution function of the standard normal: the exact form, "
           "with the error function.\n\n"
           "Hendrycks, Gimpel, Gaussian Error Linear Units, 2016.",
    .args =
        {
            {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "features"},
        },
    .flags = PNET_IN_PLACE | PNET_GRAD_IN_PLACE,
    .keep = PNET_KEEP_IN0,
    .rule = pnet_op_rule_like_input,
    .work = pnet_op_no_work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .cases = "x -> gelu\n"
             "t -> gelu\n",
};
