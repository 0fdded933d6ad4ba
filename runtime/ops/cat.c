/* Values side by side. */
#include "kernels/rows.h"
#include "runtime/ops/common.h"

static bool rule(struct pnet_rule *r)
{
    int64_t width = r->in[0].width;
    for (int i = 1; i < r->in_count; i++) {
        width += r->in[i].width;
        if (r->in[i].level == r->in[0].level) continue;
        r->error_in = i;
        pnet_op_rule_move_help(r, r->in[i].level, r->in[0].level);
        return pnet_rule_fail(r, 0, "cat() joins points of different levels");
    }
    if (width > INT32_MAX) return pnet_rule_fail(r, -1, "cat() makes too many channels");
    r->out = (struct pnet_type){PNET_F32, (int32_t)width, r->in[0].level, 0, false};
    return true;
}

static void forward(const struct pnet_exec *x)
{
    int32_t at = 0;
    for (int i = 0; i < x->in_count; i++) {
        PNET_KERNEL(x, columns_put)
        (pnet_op_rows(&x->out), x->in[i].width, x->in[i].data, x->out.width, at, x->out.data);
        at += x->in[i].width;
    }
}

static void backward(const struct pnet_exec *x)
{
    int32_t at = 0;
    for (int i = 0; i < x->in_count; i++) {
        if (x->gin[i].data) PNET_KERNEL(x, columns_take)
        (pnet_op_rows(&x->gout), x->in[i].width, x->gout.data, x->gout.width, at, x->gin_add[i],
            x->gin[i].data);
        at += x->in[i].width;
    }
}

static void reference(const struct pnet_exec *x)
{
    for (int64_t row = 0; row < x->out.rows; row++) {
        double *out = (double *)x->out.data + row * x->out.width;
        for (int i = 0; i < x->in_count; i++)
            for (int32_t c = 0; c < x->in[i].width; c++)
                *out++ = ((const double *)x->in[i].data)[row * x->in[i].width + c];
    }
}

const struct pnet_op pnet_op_cat = {
    .name = "cat",
    .class_ = PNET_LAYER,
    .summary = "Values of one level side by side",
    .doc = "The channels of the first value, then those of the second, and so on. All values lie "
           "on one level.",
    .args =
        {
            {"values", PNET_ARG_VALUES, NULL, 0, 0, NULL, "values of one level"},
        },
    .flags = PNET_JOINS,
    .rule = rule,
    .work = pnet_op_no_work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .cases = "cat(x, y)\n"
             "cat(x)\n"
             "cat(x, x -> linear(1), y)\n",
};
