/* Batch normalisation over all rows of the batch. */
#include "kernels/norm.h"
#include "runtime/ops/common.h"

#include <math.h>

enum { IN, MOMENTUM, EPS };
enum { WEIGHT, BIAS, RUNNING_MEAN, RUNNING_VAR };
enum { MEAN, INVERSE };

static bool rule(struct pnet_rule *r)
{
    int32_t c = r->in[0].width;
    struct pnet_type statistics = {PNET_F32, c, r->scalar_level, 0, false};
    pnet_op_rule_vector(r, "weight", c, PNET_INIT_ONE, true);
    pnet_op_rule_vector(r, "bias", c, PNET_INIT_ZERO, true);
    pnet_op_rule_vector(r, "running_mean", c, PNET_INIT_ZERO, false);
    pnet_op_rule_vector(r, "running_var", c, PNET_INIT_ONE, false);
    pnet_rule_save(r, statistics, true);
    pnet_rule_save(r, statistics, true);
    return pnet_op_rule_like_input(r);
}

/* The batch is one segment. */
static struct pnet_norm norm_of(const struct pnet_exec *x)
{
    const struct pnet_tensor *in = &x->in[0];
    return (struct pnet_norm){.segments = {.rows = in->rows,
                                  .count = 1,
                                  .splits = in->row_splits,
                                  .stride = in->samples,
                                  .storage = in->storage},
        .c = x->in[0].width,
        .groups = x->in[0].width,
        .x = x->in[0].data,
        .weight = x->param[WEIGHT],
        .bias = x->param[BIAS],
        .sum = x->in_count > 1,
        .added = x->in_count > 1 ? x->in[1].data : NULL,
        .act = (enum pnet_activation)x->act,
        .slope = x->slope};
}

/* Mean and inverse of each channel stand before the kernels' workspace where they are not saved. */
static size_t own_bytes(const struct pnet_exec *x)
{
    return (size_t)x->in[0].width * 2 * sizeof(float);
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    struct pnet_norm n = norm_of(x);
    (void)backward;
    return own_bytes(x) + PNET_WORK(x->device, norm_work)(&n);
}

static void forward(const struct pnet_exec *x)
{
    struct pnet_norm n = norm_of(x);
    struct pnet_running running = {
        x->param[RUNNING_MEAN], x->param[RUNNING_VAR], x->attr[MOMENTUM].r};
    float *own = x->work;
    float *mean = x->saved[MEAN].data ? x->saved[MEAN].data : own;
    float *inverse = x->saved[INVERSE].data ? x->saved[INVERSE].data : own + n.c;
    void *rest = (char *)x->work + own_bytes(x);
    PNET_KERNEL(x, batchnorm)
    (&n, x->attr[EPS].r, x->training, running, mean, inverse, x->out.data, rest);
}

static void backward(const struct pnet_exec *x)
{
    struct pnet_norm n = norm_of(x);
    struct pnet_norm_gradient g = {.gout = x->gout.data,
        .out = n.act == PNET_ACT_NONE ? NULL : x->out.data,
        .constant_rows = x->training ? 1 : INT64_MAX,
        .gx = x->gin[0].data,
        .gadded = n.sum ? x->gin[1].data : NULL,
        .gweight = x->gparam[WEIGHT],
        .gbias = x->gparam[BIAS],
        .gx_add = x->gin_add[0],
        .gadded_add = x->gin_add[1],
        .gweight_add = x->gparam_add[WEIGHT],
        .gbias_add = x->gparam_add[BIAS]};
    PNET_KERNEL(x, norm_backward)
    (&n, x->saved[MEAN].data, x->saved[INVERSE].data, &g, (char *)x->work + own_bytes(x));
}

/* Leaves the running statistics alone, so that it can be evaluated any number of times. */
static void reference(const struct pnet_exec *x)
{
    const double *in = x->in[0].data, *weight = x->param[WEIGHT], *bias = x->param[BIAS];
    const double *running_mean = x->param[RUNNING_MEAN], *running_var = x->param[RUNNING_VAR];
    double *out = x->out.data, rows = (double)x->in[0].rows;
    int32_t width = x->in[0].width;
    for (int32_t c = 0; c < width; c++) {
        double mean = 0, variance = 0;
        for (int64_t row = 0; row < x->in[0].rows; row++) mean += in[row * width + c] / rows;
        for (int64_t row = 0; row < x->in[0].rows; row++)
            variance += (in[row * width + c] - mean) * (in[row * width + c] - mean) / rows;
        if (!x->training || rows <= 1) {
            mean = running_mean[c];
            variance = running_var[c];
        }
        for (int64_t row = 0; row < x->in[0].rows; row++)
            out[row * width + c] =
                (in[row * width + c] - mean) / sqrt(variance + x->attr[EPS].r) * weight[c] +
                bias[c];
    }
}

const struct pnet_op pnet_op_bn = {
    .name = "bn",
    .class_ = PNET_LAYER,
    .summary = "Batch normalisation over all points of the batch",
    .doc =
        "`out = (x - mean) / sqrt(var + eps) * weight + bias`, channel by channel. In training, "
        "mean and biased variance are taken over all rows of the batch, and the running "
        "statistics move towards them: `running = (1 - momentum) * running + momentum * batch`, "
        "with the unbiased variance. Otherwise, and for a batch of one row or none, the running "
        "statistics are used.\n\n"
        "Of this norm, `instancenorm`, `groupnorm` and `layernorm`, the variance is the mean of "
        "squares less the square of the mean, in float64: right to 1e-4 where the mean is at most "
        "1e5 times the standard deviation, percent off at 1e6 times, where the deviation is some "
        "ten steps of float32. Subtract such an offset before.\n\n"
        "Ioffe, Szegedy, Batch Normalization, 2015.",
    .args =
        {
            [IN] = {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "features"},
            [MOMENTUM] = {"momentum", PNET_ARG_REAL, "0.1", 0, 1, NULL,
                "weight of this batch in the running statistics"},
            [EPS] = {"eps", PNET_ARG_REAL, "1e-5", 1e-12, 1, NULL, "added to the variance"},
        },
    .flags = PNET_FUSES_SUM | PNET_FUSES_ACT | PNET_RUNS_ALWAYS | PNET_IN_PLACE |
             PNET_GRAD_IN_PLACE | PNET_FOLDS,
    .keep = PNET_KEEP_IN0,
    .rule = rule,
    .work = work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .cases =
        "x -> bn\n"
        "x -> bn(0.05, eps=1e-3)\n"
        "z -> bn\n"
        "t -> bn\n"
        "x -> linear(1) -> bn\n"
        "(x -> linear(6, bias=no) -> bn) + y\n"
        "y + (x -> linear(6, bias=no) -> bn) -> relu\n"
        "(x -> linear(6, bias=no) -> bn) + (y -> linear(6, bias=no) -> bn) -> leaky_relu(0.2)\n"
        "(x -> bn) + x -> relu\n"
        "(x -> bn) - y -> relu\n",
};
