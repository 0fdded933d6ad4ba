/* One matrix for every point. */
#include "kernels/act.h"
#include "kernels/conv.h"
#include "kernels/rows.h"
#include "runtime/device/memory.h"
#include "runtime/ops/common.h"

extern const struct pnet_op pnet_op_linear_parts;

enum { IN, CHANNELS, BIAS };
enum { WEIGHT, BIAS_PARAM };

static bool rule(struct pnet_rule *r)
{
    int64_t cin = r->in[0].width, cout = r->attr[CHANNELS].i;
    pnet_rule_param(r, (struct pnet_param_info){.suffix = "weight",
                           .kind = PNET_PARAM_MATRIX,
                           .dims = 2,
                           .shape = {cout, cin},
                           .init = PNET_INIT_UNIFORM,
                           .fan = cin,
                           .trained = true,
                           .decay = true});
    if (r->attr[BIAS].i)
        pnet_rule_param(r, (struct pnet_param_info){.suffix = "bias",
                               .dims = 1,
                               .shape = {cout},
                               .init = PNET_INIT_UNIFORM,
                               .fan = cin,
                               .trained = true});
    r->out = (struct pnet_type){PNET_F32, (int32_t)cout, r->in[0].level, 0, false};
    return true;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Is one of input and result stored in float32, and the other one in 16 bits? */
static bool mixes(const struct pnet_exec *x)
{
    return x->in[IN].storage != x->out.storage;
}

/* Products of few channels take both as they are: those of an input in float32, */
static bool reads_exact(const struct pnet_exec *x)
{
    return mixes(x) && x->in[IN].storage == PNET_STORE_F32;
}

/* of a result, */
static bool writes_exact(const struct pnet_exec *x)
{
    return mixes(x) && !reads_exact(x) && x->out.width <= PNET_EXACT_CHANNELS;
}

/* of either. */
static bool is_exact(const struct pnet_exec *x)
{
    return reads_exact(x) || writes_exact(x);
}

/* Other products read and write float32: the input is widened in the workspace. */
static bool widens(const struct pnet_exec *x)
{
    return mixes(x) && !is_exact(x);
}

static enum pnet_storage storage_of(const struct pnet_exec *x)
{
    return writes_exact(x) ? x->in[IN].storage : x->out.storage;
}

static size_t wide_bytes(const struct pnet_exec *x)
{
    return widens(x) ? pnet_round_bytes((size_t)pnet_op_count_of(&x->in[IN]) * sizeof(float)) : 0;
}

/* The input in the storage of the result; *work moves behind what it takes of it. */
static const float *wide_input(const struct pnet_exec *x, void **work)
{
    if (!widens(x)) return x->in[IN].data;
    float *wide = *work;
    PNET_KERNEL(x, convert)
    (pnet_op_elements(&x->in[IN]), x->in[IN].data, x->out.storage, false, wide);
    *work = (char *)*work + wide_bytes(x);
    return wide;
}

static size_t product_work(const struct pnet_exec *x, int32_t cin, int32_t cout)
{
    if (is_exact(x)) return 0;
    return wide_bytes(x) +
           PNET_WORK(x->device, gemm_work)(pnet_op_rows(&x->out), cin, cout, x->precision);
}

static size_t input_work(const struct pnet_exec *x)
{
    return product_work(x, x->out.width, x->in[0].width);
}

static size_t weight_work(const struct pnet_exec *x)
{
    if (reads_exact(x))
        return PNET_WORK(x->device, outer_work)(
            pnet_op_rows(&x->out), x->out.width, x->in[0].width, x->precision);
    return wide_bytes(x) + PNET_WORK(x->device, outer_work)(
                               pnet_op_rows(&x->out), x->in[0].width, x->out.width, x->precision);
}

static size_t params_work(const struct pnet_exec *x)
{
    return larger(
        weight_work(x), PNET_WORK(x->device, column_sum_work)(pnet_op_rows(&x->out), x->out.width));
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    if (!backward) return product_work(x, x->in[0].width, x->out.width);
    return pnet_op_backward_work(x, input_work(x), params_work(x));
}

static const char *kernel(const struct pnet_exec *x, enum pnet_direction direction)
{
    struct pnet_conv_sum sum = pnet_op_dense_sum(x, direction);
    sum.storage = storage_of(x);
    sum.exact = is_exact(x);
    return PNET_WORK(x->device, conv_kernel)(&sum);
}

static void forward(const struct pnet_exec *x)
{
    void *work = x->work;
    struct pnet_gemm g = {.n = pnet_op_rows(&x->out),
        .cin = x->in[0].width,
        .cout = x->out.width,
        .x = wide_input(x, &work),
        .w = x->param[WEIGHT],
        .bias = x->param[BIAS_PARAM],
        .y = x->out.data,
        .transposed = true,
        .act = (enum pnet_activation)x->act,
        .slope = x->slope,
        .precision = x->precision,
        .storage = storage_of(x),
        .exact_x = reads_exact(x),
        .exact_y = writes_exact(x)};
    PNET_KERNEL(x, gemm)(&g, work);
}

/* The weight is stored [cout, cin]: as it is for going back. */
static void to_input(const struct pnet_exec *x, void *work)
{
    struct pnet_gemm g = {.n = pnet_op_rows(&x->gout),
        .cin = x->gout.width,
        .cout = x->in[0].width,
        .x = x->gout.data,
        .w = x->param[WEIGHT],
        .y = x->gin[0].data,
        .add = x->gin_add[0],
        .precision = x->precision,
        .storage = storage_of(x),
        .exact_x = writes_exact(x),
        .exact_y = reads_exact(x)};
    if (widens(x)) {
        g.y = work;
        g.add = false;
        work = (char *)work + wide_bytes(x);
    }
    PNET_KERNEL(x, gemm)(&g, work);
    if (!widens(x)) return;
    struct pnet_count n = pnet_op_elements(&x->in[IN]);
    n.storage = x->out.storage;
    PNET_KERNEL(x, convert)(n, g.y, x->gin[0].storage, x->gin_add[0], x->gin[0].data);
}

/* The product of the transposed gradient and the input, which has the form [cout, cin] as it is. */
static void to_weight_from_exact(const struct pnet_exec *x, void *work)
{
    struct pnet_outer o = {.n = pnet_op_rows(&x->gout),
        .cin = x->gout.width,
        .cout = x->in[0].width,
        .x = x->gout.data,
        .g = x->in[IN].data,
        .gw = x->gparam[WEIGHT],
        .add = x->gparam_add[WEIGHT],
        .precision = x->precision,
        .storage = storage_of(x),
        .exact_g = true};
    PNET_KERNEL(x, outer)(&o, work);
}

static void to_weight(const struct pnet_exec *x, void *work)
{
    if (reads_exact(x)) {
        to_weight_from_exact(x, work);
        return;
    }
    struct pnet_outer o = {.n = pnet_op_rows(&x->gout),
        .cin = x->in[0].width,
        .cout = x->gout.width,
        .x = wide_input(x, &work),
        .g = x->gout.data,
        .gw = x->gparam[WEIGHT],
        .transposed = true,
        .add = x->gparam_add[WEIGHT],
        .precision = x->precision,
        .storage = storage_of(x),
        .exact_g = writes_exact(x)};
    PNET_KERNEL(x, outer)(&o, work);
}

static void to_params(const struct pnet_exec *x, void *work)
{
    if (x->gparam[BIAS_PARAM]) PNET_KERNEL(x, column_sum)
    (pnet_op_rows(&x->gout), x->gout.width, x->gout.data, x->gparam_add[BIAS_PARAM],
        x->gparam[BIAS_PARAM], work);
    if (x->gparam[WEIGHT]) to_weight(x, work);
}

static void backward(const struct pnet_exec *x)
{
    PNET_KERNEL(x, act_backward)
    (pnet_op_elements(&x->gout), (enum pnet_activation)x->act, x->slope, x->out.data, x->gout.data);
    pnet_op_backward_both(x, input_work(x), params_work(x), to_input, to_params);
}

static void reference(const struct pnet_exec *x)
{
    const double *in = x->in[0].data, *w = x->param[WEIGHT], *bias = x->param[BIAS_PARAM];
    double *out = x->out.data;
    int32_t cin = x->in[0].width, cout = x->out.width;
    for (int64_t row = 0; row < x->out.rows; row++)
        for (int32_t o = 0; o < cout; o++) {
            double sum = bias ? bias[o] : 0;
            for (int32_t c = 0; c < cin; c++) sum += in[row * cin + c] * w[o * cin + c];
            out[row * cout + o] = sum;
        }
}

const struct pnet_op pnet_op_linear = {
    .name = "linear",
    .class_ = PNET_LAYER,
    .summary = "One matrix for every point",
    .doc = "`out = W x + bias` point by point, W `[channels, width of x]`.",
    .args =
        {
            [IN] = {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "features"},
            [CHANNELS] = {"channels", PNET_ARG_INT, NULL, 1, 65536, NULL, "width of the result"},
            [BIAS] = {"bias", PNET_ARG_BOOL, "yes", 0, 0, NULL,
                "add a learned constant to each channel"},
        },
    .flags = PNET_FUSES_ACT | PNET_LINEAR_OUT | PNET_GRADS_APART | PNET_WIDENS | PNET_NARROWS,
    .keep = PNET_KEEP_IN0,
    .rule = rule,
    .work = work,
    .kernel = kernel,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .parts = &pnet_op_linear_parts,
    .cases = "x -> linear(5)\n"
             "cat(t -> expand(to=g[0]), x, y) -> linear(5)\n"
             "cat(x, t -> linear(9) -> expand(to=g[0])) -> linear(4, bias=no) -> relu\n"
             "cat(x, t -> expand(to=g[0]), x, y) -> linear(3)\n"
             "cat(x -> expand(to=points(g[0], 2)), lattice(points(g[0], 4), 1) -> "
             "pool(mean, to=g[0]) -> expand(to=points(g[0], 2))) -> linear(3)\n"
             "x -> linear(1)\n"
             "x -> linear(37, bias=no)\n"
             "t -> linear(7)\n"
             "x -> linear(1) -> linear(3)\n"
             "p.xyz -> pool(mean, to=g[0]) -> linear(5) -> relu\n"
             "cat(p.xyz, p.f) -> pool(mean, to=g[0]) -> linear(7)\n"
             "cat(p.xyz -> pool(mean, to=g[0]), x -> linear(8)) -> linear(4)\n"
             "cat(p.xyz -> pool(mean, to=g[0]), t -> linear(4) -> expand(to=g[0])) -> linear(3)\n",
};
