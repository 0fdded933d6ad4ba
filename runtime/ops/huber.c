/* Huber loss. */
#include "runtime/ops/common.h"

#include <math.h>

enum { IN, TARGET, DELTA };

static bool rule(struct pnet_rule *r)
{
    if (!pnet_op_rule_same_type(r, "huber", TARGET, true)) return false;
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
    PNET_KERNEL(x, huber)
    (pnet_op_elements(&x->in[IN]), x->attr[DELTA].r, x->in[IN].data, x->in[TARGET].data,
        x->out.data, x->work);
}

static void backward(const struct pnet_exec *x)
{
    struct pnet_count n = pnet_op_elements(&x->in[IN]);
    const float *gloss = x->gout.data, *a = x->in[IN].data, *b = x->in[TARGET].data;
    if (x->gin[IN].data) PNET_KERNEL(x, huber_backward)
    (n, x->attr[DELTA].r, a, b, gloss, x->gin_add[IN], x->gin[IN].data);
    if (x->gin[TARGET].data) PNET_KERNEL(x, huber_backward)
    (n, x->attr[DELTA].r, b, a, gloss, x->gin_add[TARGET], x->gin[TARGET].data);
}

static void reference(const struct pnet_exec *x)
{
    const double *a = x->in[IN].data, *b = x->in[TARGET].data;
    double *out = x->out.data, sum = 0, delta = x->attr[DELTA].r;
    int64_t n = pnet_op_count_of(&x->in[IN]);
    for (int64_t i = 0; i < n; i++) {
        double size = fabs(a[i] - b[i]), near = fmin(size, delta);
        sum += near * near / 2 + delta * (size - near);
    }
    *out = n ? sum / (double)n : 0;
}

const struct pnet_op pnet_op_huber = {
    .name = "huber",
    .class_ = PNET_LOSS,
    .summary = "Huber loss: squares of small differences, the size of large ones",
    .doc = "The mean over all channels of all points of `d^2 / 2` where `|d| <= delta`, and of "
           "`delta * (|d| - delta / 2)` elsewhere, with `d = x - target`; 0 where there is none. "
           "Both values have the same level and width.\n\n"
           "Huber, Robust Estimation of a Location Parameter, 1964.",
    .args =
        {
            [IN] = {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "prediction"},
            [TARGET] = {"target", PNET_ARG_VALUE, NULL, 0, 0, NULL, "target values"},
            [DELTA] = {"delta", PNET_ARG_REAL, "1", 1e-6, 1e6, NULL,
                "difference from which the loss grows in proportion"},
        },
    .keep = PNET_KEEP_IN0 | PNET_KEEP_IN1,
    .rule = rule,
    .work = work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .mean = pnet_op_elements_mean,
    .cases = "huber(x, y)\n"
             "huber(p.f -> linear(6), p.f, delta=0.3)\n"
             "huber(t, x -> linear(6) -> pool(mean, to=sample), delta=1e6)\n",
};
