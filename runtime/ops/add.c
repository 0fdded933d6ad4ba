/* Sum of two values. */
#include "kernels/act.h"
#include "runtime/ops/common.h"

enum { A, B, SCALE };

static bool rule(struct pnet_rule *r)
{
    if (!pnet_op_rule_same_type(r, "add", B, true)) return false;
    return pnet_op_rule_like_input(r);
}

static void forward(const struct pnet_exec *x)
{
    PNET_KERNEL(x, add)
    (pnet_op_elements(&x->out), x->in[A].data, x->in[B].data, (float)x->attr[SCALE].r,
        (enum pnet_activation)x->act, x->slope, x->out.data);
}

/* In the order of the inputs: both may be one value, whose gradient is then written and added to.
 */
static void backward(const struct pnet_exec *x)
{
    struct pnet_count n = pnet_op_elements(&x->gout);
    PNET_KERNEL(x, act_backward)
    (n, (enum pnet_activation)x->act, x->slope, x->out.data, x->gout.data);
    if (x->gin[A].data) PNET_KERNEL(x, scale)(n, 1, x->gout.data, x->gin_add[A], x->gin[A].data);
    if (x->gin[B].data) PNET_KERNEL(x, scale)
    (n, (float)x->attr[SCALE].r, x->gout.data, x->gin_add[B], x->gin[B].data);
}

static void reference(const struct pnet_exec *x)
{
    const double *a = x->in[A].data, *b = x->in[B].data;
    double *out = x->out.data;
    for (int64_t i = 0; i < pnet_op_count_of(&x->out); i++) out[i] = a[i] + x->attr[SCALE].r * b[i];
}

const struct pnet_op pnet_op_add = {
    .name = "add",
    .class_ = PNET_LAYER,
    .summary = "Sum of two values; `a + b` and `a - b`",
    .doc = "`out = a + scale * b`. Both values have the same level and width. With a scale of 1 "
           "the sum runs as part of the norm before it, if nothing else reads the result of the "
           "norm and the other value is computed before the norm.",
    .args =
        {
            [A] = {"a", PNET_ARG_VALUE, NULL, 0, 0, NULL, "first value"},
            [B] = {"b", PNET_ARG_VALUE, NULL, 0, 0, NULL, "second value"},
            [SCALE] = {"scale", PNET_ARG_REAL, "1", 0, 0, NULL, "factor of the second value"},
        },
    .flags = PNET_SUMS | PNET_FUSES_ACT | PNET_IN_PLACE | PNET_GRAD_IN_PLACE,
    .rule = rule,
    .work = pnet_op_no_work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .cases = "x + y\n"
             "x - y\n"
             "add(x, y, scale=0.3)\n"
             "x + x\n",
};
