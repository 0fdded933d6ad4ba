/* Mean squared error. */
#include "runtime/ops/common.h"

enum { IN, TARGET };

static bool rule(struct pnet_rule *r)
{
    if (!pnet_op_rule_same_type(r, "mse", TARGET, true)) return false;
    r->out = (struct pnet_type){PNET_F32, 1, r->scalar_level, 0, false};
    return true;
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    (void)x; /* one kernel without CUDA */
    return backward ? 0 : PNET_WORK(x->device, mse_work)();
}

static void forward(const struct pnet_exec *x)
{
    PNET_KERNEL(x, mse)
    (pnet_op_elements(&x->in[IN]), x->in[IN].data, x->in[TARGET].data, x->out.data, x->work);
}

static void backward(const struct pnet_exec *x)
{
    struct pnet_count n = pnet_op_elements(&x->in[IN]);
    const float *gloss = x->gout.data, *a = x->in[IN].data, *b = x->in[TARGET].data;
    if (x->gin[IN].data)
        PNET_KERNEL(x, mse_backward)(n, a, b, gloss, x->gin_add[IN], x->gin[IN].data);
    if (x->gin[TARGET].data)
        PNET_KERNEL(x, mse_backward)(n, b, a, gloss, x->gin_add[TARGET], x->gin[TARGET].data);
}

static void reference(const struct pnet_exec *x)
{
    const double *a = x->in[IN].data, *b = x->in[TARGET].data;
    double *out = x->out.data, sum = 0;
    int64_t n = pnet_op_count_of(&x->in[IN]);
    for (int64_t i = 0; i < n; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
    *out = n ? sum / (double)n : 0;
}

const struct pnet_op pnet_op_mse = {
    .name = "mse",
    .class_ = PNET_LOSS,
    .summary = "Mean squared error of two values",
    .doc =
        "The mean of `(x - target)^2` over all channels of all points; 0 where there is none. Both "
        "values have the same level and width.",
    .args =
        {
            [IN] = {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "prediction"},
            [TARGET] = {"target", PNET_ARG_VALUE, NULL, 0, 0, NULL, "target values"},
        },
    .keep = PNET_KEEP_IN0 | PNET_KEEP_IN1,
    .rule = rule,
    .work = work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .mean = pnet_op_elements_mean,
    .cases = "mse(x, y)\n"
             "mse(p.f -> linear(6), p.f)\n"
             "mse(t, x -> linear(6) -> pool(mean, to=sample))\n",
};
