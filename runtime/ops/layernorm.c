/* Layer normalisation. */
#include "kernels/act.h"
#include "kernels/norm.h"
#include "runtime/ops/common.h"

#include <math.h>

enum { IN, EPS };
enum { WEIGHT, BIAS };

static bool rule(struct pnet_rule *r)
{
    pnet_op_rule_vector(r, "weight", r->in[0].width, PNET_INIT_ONE, true);
    pnet_op_rule_vector(r, "bias", r->in[0].width, PNET_INIT_ZERO, true);
    return pnet_op_rule_like_input(r);
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    return backward ? PNET_WORK(x->device, layernorm_backward_work)(
                          pnet_op_rows(&x->in[0]), x->in[0].width)
                    : 0;
}

static void forward(const struct pnet_exec *x)
{
    PNET_KERNEL(x, layernorm)
    (pnet_op_rows(&x->out), x->out.width, x->attr[EPS].r, x->in[0].data, x->param[WEIGHT],
        x->param[BIAS], (enum pnet_activation)x->act, x->slope, x->out.data);
}

static void backward(const struct pnet_exec *x)
{
    struct pnet_norm_gradient g = {.gout = x->gout.data,
        .gx = x->gin[0].data,
        .gweight = x->gparam[WEIGHT],
        .gbias = x->gparam[BIAS],
        .gx_add = x->gin_add[0],
        .gweight_add = x->gparam_add[WEIGHT],
        .gbias_add = x->gparam_add[BIAS]};
    PNET_KERNEL(x, act_backward)
    (pnet_op_elements(&x->gout), (enum pnet_activation)x->act, x->slope, x->out.data, x->gout.data);
    PNET_KERNEL(x, layernorm_backward)
    (pnet_op_rows(&x->gout), x->gout.width, x->attr[EPS].r, x->in[0].data, x->param[WEIGHT], &g,
        x->work);
}

static void reference(const struct pnet_exec *x)
{
    const double *weight = x->param[WEIGHT], *bias = x->param[BIAS];
    int32_t c = x->out.width;
    for (int64_t row = 0; row < x->out.rows; row++) {
        const double *in = (const double *)x->in[0].data + row * c;
        double *out = (double *)x->out.data + row * c, mean = 0, variance = 0;
        for (int32_t i = 0; i < c; i++) mean += in[i] / c;
        for (int32_t i = 0; i < c; i++) variance += (in[i] - mean) * (in[i] - mean) / c;
        for (int32_t i = 0; i < c; i++)
            out[i] = (in[i] - mean) / sqrt(variance + x->attr[EPS].r) * weight[i] + bias[i];
    }
}

const struct pnet_op pnet_op_layernorm = {
    .name = "layernorm",
    .class_ = PNET_LAYER,
    .summary = "Normalisation over the channels of each point",
    .doc =
        "`out = (x - mean) / sqrt(var + eps) * weight + bias` with mean and biased variance over "
        "the channels of the point.\n\n"
        "Ba, Kiros, Hinton, Layer Normalization, 2016.",
    .args =
        {
            [IN] = {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "features"},
            [EPS] = {"eps", PNET_ARG_REAL, "1e-5", 1e-12, 1, NULL, "added to the variance"},
        },
    .flags = PNET_FUSES_ACT | PNET_IN_PLACE | PNET_GRAD_IN_PLACE,
    .keep = PNET_KEEP_IN0,
    .rule = rule,
    .work = work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .cases = "x -> layernorm\n"
             "t -> layernorm(eps=1e-3)\n"
             "x -> linear(3) -> layernorm -> relu\n",
};
