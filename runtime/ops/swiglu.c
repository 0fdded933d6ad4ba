/* Half of the channels gate the other half. */
#include "kernels/swiglu.h"
#include "runtime/ops/common.h"

#include <math.h>

enum { IN };

static bool rule(struct pnet_rule *r)
{
    int32_t width = r->in[IN].width;
    if (width % 2) {
        r->error_in = IN;
        pnet_rule_help(r, "bring it to an even width with -> linear(%d)", (int)width + 1);
        return pnet_rule_fail(
            r, IN, "swiglu() halves the channels: it cannot halve %d", (int)width);
    }
    r->out = r->in[IN];
    r->out.width = width / 2;
    return true;
}

static void forward(const struct pnet_exec *x)
{
    PNET_KERNEL(x, swiglu)
    (pnet_op_rows(&x->out), x->out.width, x->in[IN].data, x->out.data);
}

static void backward(const struct pnet_exec *x)
{
    if (x->gin[IN].data) PNET_KERNEL(x, swiglu_backward)
    (pnet_op_rows(&x->gout), x->gout.width, x->in[IN].data, x->gout.data, x->gin_add[IN],
        x->gin[IN].data);
}

static void reference(const struct pnet_exec *x)
{
    const double *in = x->in[IN].data;
    double *out = x->out.data;
    int64_t c = x->out.width;
    for (int64_t row = 0; row < x->out.rows; row++)
        for (int64_t i = 0; i < c; i++) {
            double gate = in[2 * row * c + i];
            out[row * c + i] = gate / (1 + exp(-gate)) * in[(2 * row + 1) * c + i];
        }
}

const struct pnet_op pnet_op_swiglu = {
    .name = "swiglu",
    .class_ = PNET_LAYER,
    .summary = "Gates one half of the channels by the other half",
    .doc = "From `2 C` channels `C`: `out[i] = silu(x[i]) * x[C + i]`, with "
           "`silu(a) = a / (1 + exp(-a))`. Behind `linear(2 * h)` it is the hidden layer of a "
           "block with `h` channels.\n\n"
           "Shazeer, GLU Variants Improve Transformer, 2020.",
    .args =
        {
            [IN] = {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "features: gates, then as many values"},
        },
    .keep = PNET_KEEP_IN0,
    .rule = rule,
    .work = pnet_op_no_work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .cases = "x -> swiglu\n"
             "x -> linear(32) -> swiglu -> linear(3)\n"
             "t -> linear(2) -> swiglu\n"
             "x -> linear(10) -> swiglu\n"
             "x -> linear(12) -> swiglu * 2\n"
             "x -> pool(mean, to=chunks(g[0], 2)) -> swiglu -> upsample(to=g[0])\n",
};
