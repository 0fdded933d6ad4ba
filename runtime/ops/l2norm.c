/* Rows of length 1. */
#include "kernels/norm.h"
#include "runtime/ops/common.h"

#include <math.h>

enum { IN, EPS };

static void forward(const struct pnet_exec *x)
{
    PNET_KERNEL(x, l2norm)
    (pnet_op_rows(&x->out), x->out.width, x->attr[EPS].r, x->in[0].data, x->out.data);
}

static void backward(const struct pnet_exec *x)
{
    if (x->gin[0].data) PNET_KERNEL(x, l2norm_backward)
    (pnet_op_rows(&x->gout), x->gout.width, x->attr[EPS].r, x->in[0].data, x->gout.data,
        x->gin_add[0], x->gin[0].data);
}

static void reference(const struct pnet_exec *x)
{
    int32_t c = x->out.width;
    for (int64_t row = 0; row < x->out.rows; row++) {
        const double *in = (const double *)x->in[0].data + row * c;
        double *out = (double *)x->out.data + row * c, length = 0;
        for (int32_t i = 0; i < c; i++) length += in[i] * in[i];
        for (int32_t i = 0; i < c; i++) out[i] = in[i] / fmax(sqrt(length), x->attr[EPS].r);
    }
}

const struct pnet_op pnet_op_l2norm = {
    .name = "l2norm",
    .class_ = PNET_LAYER,
    .summary = "Scales the channels of each point to length 1",
    .doc = "`out = x / max(|x|, eps)`, with the Euclidean length over the channels.",
    .args =
        {
            [IN] = {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "features"},
            [EPS] = {"eps", PNET_ARG_REAL, "1e-12", 1e-30, 1, NULL,
                "lower bound of the length that x is divided by"},
        },
    .flags = PNET_IN_PLACE | PNET_GRAD_IN_PLACE,
    .keep = PNET_KEEP_IN0,
    .rule = pnet_op_rule_like_input,
    .work = pnet_op_no_work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .cases = "x -> l2norm\n"
             "t -> l2norm\n"
             "x -> l2norm(eps=1)\n",
};
