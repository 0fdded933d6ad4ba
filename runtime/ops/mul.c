/* Product of two values. */
#include "kernels/act.h"
#include "runtime/ops/common.h"

enum { A, B };

static bool rule(struct pnet_rule *r)
{
    if (!pnet_op_rule_same_type(r, "mul", B, false)) return false;
    if (r->in[A].width == 1 && r->in[B].width > 1) {
        r->error_in = B;
        pnet_rule_help(r, "a value of one channel comes second");
        return pnet_rule_fail(r, B,
            "mul() spreads its second value over the channels of the first, "
            "not the other way");
    }
    if (r->in[B].width != 1 && !pnet_op_rule_same_type(r, "mul", B, true)) return false;
    return pnet_op_rule_like_input(r);
}

static void forward(const struct pnet_exec *x)
{
    PNET_KERNEL(x, mul)
    (pnet_op_rows(&x->out), x->out.width, x->in[A].data, x->in[B].data, x->in[B].width, false,
        x->out.data);
}

static void backward(const struct pnet_exec *x)
{
    struct pnet_count rows = pnet_op_rows(&x->gout);
    int32_t width = x->gout.width, b_width = x->in[B].width;
    if (x->gin[A].data) PNET_KERNEL(x, mul)
    (rows, width, x->gout.data, x->in[B].data, b_width, x->gin_add[A], x->gin[A].data);
    if (!x->gin[B].data) return;
    if (b_width == width) PNET_KERNEL(x, mul)
    (rows, width, x->gout.data, x->in[A].data, width, x->gin_add[B], x->gin[B].data);
    else PNET_KERNEL(x, row_dot)(
        rows, width, x->gout.data, x->in[A].data, x->gin_add[B], x->gin[B].data);
}

static void reference(const struct pnet_exec *x)
{
    const double *a = x->in[A].data, *b = x->in[B].data;
    double *out = x->out.data;
    int32_t width = x->out.width;
    for (int64_t row = 0; row < x->out.rows; row++)
        for (int32_t c = 0; c < width; c++)
            out[row * width + c] =
                a[row * width + c] * (x->in[B].width == 1 ? b[row] : b[row * width + c]);
}

const struct pnet_op pnet_op_mul = {
    .name = "mul",
    .class_ = PNET_LAYER,
    .summary = "Product of two values, element by element; `a * b`",
    .doc = "`out = a * b`. Both values have the same level; they have the same width, or `b` has "
           "one channel, which multiplies all channels of `a`: a gate.",
    .args =
        {
            [A] = {"a", PNET_ARG_VALUE, NULL, 0, 0, NULL, "first value"},
            [B] = {"b", PNET_ARG_VALUE, NULL, 0, 0, NULL, "second value, as wide or one channel"},
        },
    .flags = PNET_IN_PLACE,
    .keep = PNET_KEEP_IN0 | PNET_KEEP_IN1,
    .rule = rule,
    .work = pnet_op_no_work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .cases = "x * y\n"
             "x * x\n"
             "mul(x, y -> linear(1))\n"
             "mul(x -> linear(1), y -> linear(1))\n",
};
