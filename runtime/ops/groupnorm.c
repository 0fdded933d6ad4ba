/* Group normalisation. */
#include "runtime/ops/common.h"

enum { IN, GROUPS, EPS };

static bool rule(struct pnet_rule *r)
{
    int64_t groups = r->attr[GROUPS].i, c = r->in[0].width;
    if (c % groups)
        return pnet_rule_fail(r, GROUPS, "groups=%d does not divide the %d channels of the input",
            (int)groups, (int)c);
    return pnet_op_samplenorm_rule(r, (int32_t)groups);
}

static int32_t groups_of(const struct pnet_exec *x)
{
    return (int32_t)x->attr[GROUPS].i;
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    (void)backward;
    return pnet_op_samplenorm_work(x, groups_of(x));
}

static void forward(const struct pnet_exec *x)
{
    pnet_op_samplenorm_forward(x, groups_of(x), x->attr[EPS].r);
}

static void backward(const struct pnet_exec *x)
{
    pnet_op_samplenorm_backward(x, groups_of(x));
}

static void reference(const struct pnet_exec *x)
{
    pnet_op_samplenorm_reference(x, groups_of(x), x->attr[EPS].r);
}

const struct pnet_op pnet_op_groupnorm = {
    .name = "groupnorm",
    .class_ = PNET_LAYER,
    .summary = "Normalisation over the points of each sample, by groups of channels",
    .doc =
        "`out = (x - mean) / sqrt(var + eps) * weight + bias` with mean and biased variance over "
        "the points of the sample and the channels of the group. `groups` groups of neighbouring "
        "channels; `weight` and `bias` are learned for each channel.\n\n"
        "Wu, He, Group Normalization, 2018.",
    .args =
        {
            [IN] = {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "features"},
            [GROUPS] = {"groups", PNET_ARG_INT, NULL, 1, 65536, NULL,
                "number of groups; divides the channels"},
            [EPS] = {"eps", PNET_ARG_REAL, "1e-5", 1e-12, 1, NULL, "added to the variance"},
        },
    .flags = PNET_FUSES_SUM | PNET_FUSES_ACT | PNET_IN_PLACE | PNET_GRAD_IN_PLACE | PNET_OF_SAMPLE,
    .keep = PNET_KEEP_IN0,
    .rule = rule,
    .work = work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .cases = "x -> groupnorm(3)\n"
             "x -> groupnorm(1)\n"
             "z -> groupnorm(4, eps=1e-3)\n"
             "t -> groupnorm(2) -> relu\n"
             "(x -> linear(6, bias=no) -> groupnorm(2)) + y -> leaky_relu(0.1)\n",
};
