/* Batch normalisation over all rows of the batch. */
#include "kernels/cpu/act.h"
#include "runtime/ops/common.h"

#include <math.h>

enum { IN, MOMENTUM, EPS };
enum { WEIGHT, BIAS, RUNNING_MEAN, RUNNING_VAR };
enum { MEAN, INVERSE };

static bool rule(struct pnet_rule *r)
{
    int32_t c = r->in[0].width;
    struct pnet_type statistics = {PNET_F32, c, r->scalar_level, 0};
    pnet_op_rule_vector(r, "weight", c, PNET_INIT_ONE, true);
    pnet_op_rule_vector(r, "bias", c, PNET_INIT_ZERO, true);
    pnet_op_rule_vector(r, "running_mean", c, PNET_INIT_ZERO, false);
    pnet_op_rule_vector(r, "running_var", c, PNET_INIT_ONE, false);
    pnet_rule_save(r, statistics, true);
    pnet_rule_save(r, statistics, true);
    return pnet_op_rule_like_input(r);
}

/* One row has no variance: it uses the running statistics, like inference. */
static bool uses_batch(const struct pnet_exec *x)
{
    return x->training && x->in[0].rows > 1;
}

/* The batch is one segment; `splits` must live as long as the result. */
static struct pnet_norm norm_of(const struct pnet_exec *x, int64_t splits[2])
{
    splits[0] = 0;
    splits[1] = x->in[0].rows;
    return (struct pnet_norm){.segments = {x->in[0].rows, 1, splits},
        .c = x->in[0].width,
        .groups = x->in[0].width,
        .x = x->in[0].data,
        .weight = x->param[WEIGHT],
        .bias = x->param[BIAS],
        .act = (enum pnet_activation)x->act,
        .slope = x->slope};
}

/* Variance, mean and inverse of each channel stand before the kernels' workspace. */
static size_t own_bytes(const struct pnet_exec *x)
{
    return (size_t)x->in[0].width * (sizeof(double) + 2 * sizeof(float));
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    int64_t splits[2];
    struct pnet_norm n = norm_of(x, splits);
    (void)backward;
    return own_bytes(x) + pnet_cpu_norm_work(&n);
}

static void update_running(const struct pnet_exec *x, const float *mean, const double *variance)
{
    float *running_mean = x->param[RUNNING_MEAN], *running_var = x->param[RUNNING_VAR];
    double rows = (double)x->in[0].rows, m = x->attr[MOMENTUM].r;
    for (int32_t c = 0; c < x->in[0].width; c++) {
        double unbiased = variance[c] * rows / (rows - 1);
        running_mean[c] = (float)((1 - m) * (double)running_mean[c] + m * (double)mean[c]);
        running_var[c] = (float)((1 - m) * (double)running_var[c] + m * unbiased);
    }
}

static void forward(const struct pnet_exec *x)
{
    int64_t splits[2];
    struct pnet_norm n = norm_of(x, splits);
    double *variance = x->work, eps = x->attr[EPS].r;
    float *own = (float *)(variance + n.c);
    float *mean = x->saved[MEAN].data ? x->saved[MEAN].data : own;
    float *inverse = x->saved[INVERSE].data ? x->saved[INVERSE].data : own + n.c;
    void *rest = (char *)x->work + own_bytes(x);
    if (uses_batch(x)) {
        pnet_cpu_norm_statistics(&n, eps, mean, inverse, variance, rest);
        update_running(x, mean, variance);
    } else {
        const float *running_mean = x->param[RUNNING_MEAN], *running_var = x->param[RUNNING_VAR];
        for (int32_t c = 0; c < n.c; c++) {
            mean[c] = running_mean[c];
            inverse[c] = (float)(1 / sqrt((double)running_var[c] + eps));
        }
    }
    pnet_cpu_norm_forward(&n, mean, inverse, x->out.data, rest);
}

static void backward(const struct pnet_exec *x)
{
    int64_t splits[2];
    struct pnet_norm n = norm_of(x, splits);
    struct pnet_norm_gradient g = {.gout = x->gout.data,
        .constant = !uses_batch(x),
        .gx = x->gin[0].data,
        .gweight = x->gparam[WEIGHT],
        .gbias = x->gparam[BIAS],
        .gx_add = x->gin_add[0],
        .gweight_add = x->gparam_add[WEIGHT],
        .gbias_add = x->gparam_add[BIAS]};
    pnet_cpu_act_backward(pnet_op_count_of(&x->gout), n.act, n.slope, x->out.data, x->gout.data);
    pnet_cpu_norm_backward(
        &n, x->saved[MEAN].data, x->saved[INVERSE].data, &g, (char *)x->work + own_bytes(x));
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
        if (!uses_batch(x)) {
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
    .doc = "`out = (x - mean) / sqrt(var + eps) * weight + bias`, channel by channel. While "
           "training, mean and biased variance are those of all rows of the batch, and the running "
           "ones move towards them: `running = (1 - momentum) * running + momentum * batch`, with "
           "the unbiased variance. Otherwise, and for a batch of one row or none, the running "
           "statistics are used.\n\n"
           "Ioffe, Szegedy, Batch Normalization, 2015.",
    .args =
        {
            [IN] = {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "features"},
            [MOMENTUM] = {"momentum", PNET_ARG_REAL, "0.1", 0, 1, NULL,
                "weight of this batch in the running statistics"},
            [EPS] = {"eps", PNET_ARG_REAL, "1e-5", 1e-12, 1, NULL, "added to the variance"},
        },
    .flags = PNET_FUSES_ACT | PNET_RUNS_ALWAYS | PNET_IN_PLACE | PNET_GRAD_IN_PLACE | PNET_FOLDS,
    .keep = PNET_KEEP_IN0,
    .rule = rule,
    .work = work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .cases = "x -> bn\n"
             "x -> bn(0.05, eps=1e-3)\n"
             "z -> bn\n"
             "t -> bn\n"
             "x -> linear(1) -> bn\n",
};
