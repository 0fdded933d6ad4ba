/* Dropout. */
#include "kernels/act.h"
#include "runtime/ops/common.h"

enum { IN, P };

static void forward(const struct pnet_exec *x)
{
    struct pnet_count n = pnet_op_elements(&x->out);
    if (x->training) PNET_KERNEL(x, dropout)
    (n, (float)x->attr[P].r, &x->rand, x->in[0].data, false, x->out.data);
    else PNET_KERNEL(x, scale)(n, 1, x->in[0].data, false, x->out.data);
}

/* The mask is drawn again: it depends on the element alone. */
static void backward(const struct pnet_exec *x)
{
    struct pnet_count n = pnet_op_elements(&x->gout);
    if (!x->gin[0].data) return;
    if (x->training) PNET_KERNEL(x, dropout)
    (n, (float)x->attr[P].r, &x->rand, x->gout.data, x->gin_add[0], x->gin[0].data);
    else PNET_KERNEL(x, scale)(n, 1, x->gout.data, x->gin_add[0], x->gin[0].data);
}

static void reference(const struct pnet_exec *x)
{
    const double *in = x->in[0].data;
    double *out = x->out.data, p = x->attr[P].r;
    for (int64_t i = 0; i < pnet_op_count_of(&x->out); i++) {
        bool dropped = x->training && pnet_rand_unit(&x->rand, (uint64_t)i) < (float)p;
        out[i] = dropped ? 0 : x->training ? in[i] / (1 - p) : in[i];
    }
}

const struct pnet_op pnet_op_dropout = {
    .name = "dropout",
    .class_ = PNET_LAYER,
    .summary = "Sets random channels of points to 0 while training",
    .doc = "In training each element is set to 0 with probability `p`, else divided by `1 - p`. In "
           "inference the layer does nothing. Draws are numbered by step, layer and element, so "
           "forward, backward and all devices draw the same mask.\n\n"
           "Srivastava, Hinton, Krizhevsky, Sutskever, Salakhutdinov, Dropout, 2014.",
    .args =
        {
            [IN] = {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "features"},
            [P] = {"p", PNET_ARG_REAL, "0.5", 0, 1, NULL, "probability of 0"},
        },
    .flags = PNET_IN_PLACE | PNET_GRAD_IN_PLACE,
    .rule = pnet_op_rule_like_input,
    .work = pnet_op_no_work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .cases = "x -> dropout\n"
             "x -> dropout(10%)\n"
             "x -> dropout(0)\n"
             "x -> dropout(1)\n",
};
