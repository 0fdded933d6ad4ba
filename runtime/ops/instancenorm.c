/* Instance normalisation. */
#include "runtime/ops/common.h"

enum { IN, EPS };

static bool rule(struct pnet_rule *r)
{
    return pnet_op_samplenorm_rule(r, r->in[0].width);
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    (void)backward;
    return pnet_op_samplenorm_work(x, x->in[0].width);
}

static void forward(const struct pnet_exec *x)
{
    pnet_op_samplenorm_forward(x, x->in[0].width, x->attr[EPS].r);
}

static void backward(const struct pnet_exec *x)
{
    pnet_op_samplenorm_backward(x, x->in[0].width);
}

static void reference(const struct pnet_exec *x)
{
    pnet_op_samplenorm_reference(x, x->in[0].width, x->attr[EPS].r);
}

const struct pnet_op pnet_op_instancenorm = {
    .name = "instancenorm",
    .class_ = PNET_LAYER,
    .summary = "Normalisation over the points of each sample, channel by channel",
    .doc = "`out = (x - mean) / sqrt(var + eps) * weight + bias` with mean and biased variance of "
           "the channel over the points of the sample, in training and inference alike. `weight` "
           "and `bias` are learned for each channel.\n\n"
           "Ulyanov, Vedaldi, Lempitsky, Instance Normalization, 2016.",
    .args =
        {
            [IN] = {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "features"},
            [EPS] = {"eps", PNET_ARG_REAL, "1e-5", 1e-12, 1, NULL, "added to the variance"},
        },
    .flags = PNET_FUSES_SUM | PNET_FUSES_ACT | PNET_IN_PLACE | PNET_GRAD_IN_PLACE | PNET_OF_SAMPLE,
    .keep = PNET_KEEP_IN0,
    .rule = rule,
    .work = work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .cases = "x -> instancenorm\n"
             "z -> instancenorm(eps=1e-3)\n"
             "t -> instancenorm\n"
             "x -> instancenorm -> relu\n"
             "y + (x -> linear(6, bias=no) -> instancenorm(eps=0.1)) -> leaky_relu(0.5)\n",
};
