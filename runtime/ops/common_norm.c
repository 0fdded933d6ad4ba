/* Normalisation over the points of each sample: instance norm and group norm. */
#include "kernels/norm.h"
#include "runtime/ops/common.h"

#include <math.h>

enum { WEIGHT, BIAS };
enum { MEAN, INVERSE };

bool pnet_op_samplenorm_rule(struct pnet_rule *r, int32_t groups)
{
    int32_t c = r->in[0].width;
    struct pnet_type statistics = {PNET_F32, groups, r->sample_level, 0, false};
    pnet_op_rule_vector(r, "weight", c, PNET_INIT_ONE, true);
    pnet_op_rule_vector(r, "bias", c, PNET_INIT_ZERO, true);
    pnet_rule_save(r, statistics, true);
    pnet_rule_save(r, statistics, true);
    r->out = r->in[0];
    return true;
}

static struct pnet_norm norm_of(const struct pnet_exec *x, int32_t groups)
{
    return (struct pnet_norm){.segments = pnet_op_samples(&x->in[0]),
        .c = x->in[0].width,
        .groups = groups,
        .x = x->in[0].data,
        .weight = x->param[WEIGHT],
        .bias = x->param[BIAS],
        .sum = x->in_count > 1,
        .added = x->in_count > 1 ? x->in[1].data : NULL,
        .act = (enum pnet_activation)x->act,
        .slope = x->slope};
}

/* Mean and inverse stand before the kernels' workspace where they are not saved. */
static int64_t statistics_count(const struct pnet_exec *x, int32_t groups)
{
    return (int64_t)x->in[0].samples * groups;
}

size_t pnet_op_samplenorm_work(const struct pnet_exec *x, int32_t groups)
{
    struct pnet_norm n = norm_of(x, groups);
    return 2 * (size_t)statistics_count(x, groups) * sizeof(float) +
           PNET_WORK(x->device, norm_work)(&n);
}

void pnet_op_samplenorm_forward(const struct pnet_exec *x, int32_t groups, double eps)
{
    struct pnet_norm n = norm_of(x, groups);
    int64_t count = statistics_count(x, groups);
    float *own = x->work;
    float *mean = x->saved[MEAN].data ? x->saved[MEAN].data : own;
    float *inverse = x->saved[INVERSE].data ? x->saved[INVERSE].data : own + count;
    PNET_KERNEL(x, norm)(&n, eps, mean, inverse, x->out.data, own + 2 * count);
}

void pnet_op_samplenorm_backward(const struct pnet_exec *x, int32_t groups)
{
    struct pnet_norm n = norm_of(x, groups);
    struct pnet_norm_gradient g = {.gout = x->gout.data,
        .out = n.act == PNET_ACT_NONE ? NULL : x->out.data,
        .gx = x->gin[0].data,
        .gadded = n.sum ? x->gin[1].data : NULL,
        .gweight = x->gparam[WEIGHT],
        .gbias = x->gparam[BIAS],
        .gx_add = x->gin_add[0],
        .gadded_add = x->gin_add[1],
        .gweight_add = x->gparam_add[WEIGHT],
        .gbias_add = x->gparam_add[BIAS]};
    PNET_KERNEL(x, norm_backward)
    (&n, x->saved[MEAN].data, x->saved[INVERSE].data, &g,
        (float *)x->work + 2 * statistics_count(x, groups));
}

void pnet_op_samplenorm_reference(const struct pnet_exec *x, int32_t groups, double eps)
{
    const double *in = x->in[0].data, *weight = x->param[WEIGHT], *bias = x->param[BIAS];
    double *out = x->out.data;
    int32_t c = x->in[0].width, per = c / groups;
    for (int32_t s = 0; s < x->in[0].samples; s++)
        for (int32_t group = 0; group < groups; group++) {
            int64_t begin = x->in[0].row_splits[s], end = x->in[0].row_splits[s + 1];
            double count = (double)(end - begin) * per, mean = 0, variance = 0;
            for (int64_t row = begin; row < end; row++)
                for (int32_t i = group * per; i < (group + 1) * per; i++)
                    mean += in[row * c + i] / count;
            for (int64_t row = begin; row < end; row++)
                for (int32_t i = group * per; i < (group + 1) * per; i++)
                    variance += (in[row * c + i] - mean) * (in[row * c + i] - mean) / count;
            for (int64_t row = begin; row < end; row++)
                for (int32_t i = group * per; i < (group + 1) * per; i++)
                    out[row * c + i] =
                        (in[row * c + i] - mean) / sqrt(variance + eps) * weight[i] + bias[i];
        }
}
