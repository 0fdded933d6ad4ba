/* Coordinates as other features are stored, and other features as coordinates are: the compiler puts these rows before layers
   that read both. Models cannot name them. */
#include "kernels/rows.h"
#include "runtime/ops/common.h"

#include <string.h>

static void forward(const struct pnet_exec *x)
{
    PNET_KERNEL(x, convert)
    (pnet_op_elements(&x->in[0]), x->in[0].data, x->out.storage, false, x->out.data);
}

static void backward(const struct pnet_exec *x)
{
    if (x->gin[0].data) PNET_KERNEL(x, convert)
    (pnet_op_elements(&x->gout), x->gout.data, x->gin[0].storage, x->gin_add[0], x->gin[0].data);
}

static void reference(const struct pnet_exec *x)
{
    memcpy(x->out.data, x->in[0].data, (size_t)pnet_op_count_of(&x->out) * sizeof(double));
}

const struct pnet_op pnet_op_narrow = {
    .name = "narrow",
    .class_ = PNET_LAYER,
    .args = {{"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "coordinates"}},
    .work = pnet_op_no_work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
};

const struct pnet_op pnet_op_widen = {
    .name = "widen",
    .class_ = PNET_LAYER,
    .args = {{"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "features"}},
    .work = pnet_op_no_work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
};
