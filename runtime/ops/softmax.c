/* Softmax over channels. */
#include "kernels/norm.h"
#include "runtime/ops/common.h"

#include <math.h>

static void forward(const struct pnet_exec *x)
{
    PNET_KERNEL(x, softmax)(pnet_op_rows(&x->out), x->out.width, x->in[0].data, x->out.data);
}

static void backward(const struct pnet_exec *x)
{
    if (x->gin[0].data) PNET_KERNEL(x, softmax_backward)
    (pnet_op_rows(&x->out), x->out.width, x->out.data, x->gout.data, x->gin_add[0], x->gin[0].data);
}

static void reference(const struct pnet_exec *x)
{
    int32_t c = x->out.width;
    for (int64_t row = 0; row < x->out.rows; row++) {
        const double *in = (const double *)x->in[0].data + row * c;
        double *out = (double *)x->out.data + row * c, top = in[0], sum = 0;
        for (int32_t i = 0; i < c; i++) top = fmax(top, in[i]);
        for (int32_t i = 0; i < c; i++) sum += exp(in[i] - top);
        for (int32_t i = 0; i < c; i++) out[i] = exp(in[i] - top) / sum;
    }
}

const struct pnet_op pnet_op_softmax = {
    .name = "softmax",
    .class_ = PNET_LAYER,
    .summary = "Softmax over the channels of each point",
    .doc = "`out[c] = exp(x[c]) / sum of exp(x)`. Losses with labels, such as "
           "`cross_entropy`, take scores without it.",
    .args =
        {
            {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "scores"},
        },
    .flags = PNET_IN_PLACE | PNET_GRAD_IN_PLACE,
    .keep = PNET_KEEP_OUT,
    .rule = pnet_op_rule_like_input,
    .work = pnet_op_no_work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .cases = "x -> softmax\n"
             "x -> linear(1) -> softmax\n",
};
