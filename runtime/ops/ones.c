/* A constant value. */
#include "kernels/act.h"
#include "runtime/ops/common.h"

enum { LEVEL, CHANNELS };

static bool rule(struct pnet_rule *r)
{
    r->out =
        (struct pnet_type){PNET_F32, (int32_t)r->attr[CHANNELS].i, (int)r->attr[LEVEL].i, 0, false};
    return true;
}

static void forward(const struct pnet_exec *x)
{
    PNET_KERNEL(x, fill)(pnet_op_elements(&x->out), 1, x->out.data);
}

static void reference(const struct pnet_exec *x)
{
    double *out = x->out.data;
    for (int64_t i = 0; i < pnet_op_count_of(&x->out); i++) out[i] = 1;
}

const struct pnet_op pnet_op_ones = {
    .name = "ones",
    .class_ = PNET_LAYER,
    .summary = "The number 1 on every point of a level",
    .doc = "The input of a net that uses the positions of points and no features.",
    .args =
        {
            [LEVEL] = {"level", PNET_ARG_LEVEL, NULL, 0, 0, NULL, "level of the result"},
            [CHANNELS] = {"channels", PNET_ARG_INT, "1", 1, 65536, NULL, "width of the result"},
        },
    .flags = PNET_NO_GRAD,
    .rule = rule,
    .work = pnet_op_no_work,
    .forward = forward,
    .reference = reference,
    .cases = "ones(g[0])\n"
             "ones(g[1], 3)\n"
             "ones(sample)\n",
};
