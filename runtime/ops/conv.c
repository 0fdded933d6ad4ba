/* Convolution on native points, and its degraded voxel mode. The mathematics: docs/geometry.md (triplets and kernel cells),
   docs/layers.md (the layer), kernels/cpu/conv/ref_conv.c (the sums as plain loops). The contract of the kernels:
   kernels/conv.h. */
#include "kernels/act.h"
#include "kernels/conv_compare.h"
#include "runtime/ops/common.h"

#include <math.h>
#include <stddef.h>

enum { IN, CHANNELS, KERNEL, TO, RADIUS, SHAPE, KNN, GROUPS, BIAS };
enum { WEIGHT, BIAS_PARAM };

/* How the levels of input and output lie to each other. */
enum direction { SAME, COARSER, FINER };

static bool choose_direction(struct pnet_rule *r, int in, int out, enum direction *d)
{
    if (in == out)
        *d = SAME;
    else if (pnet_level_reaches(r->levels, in, out))
        *d = COARSER;
    else if (pnet_level_reaches(r->levels, out, in))
        *d = FINER;
    else
        return pnet_rule_fail(r, TO,
            "conv() cannot go from %s to %s: neither was sampled from the other",
            r->levels[in].name, r->levels[out].name);
    return true;
}

/* Voxel windows that cannot reach every child of a coarse voxel lose points. */
static void warn_short_window(struct pnet_rule *r, int fine, int coarse, int64_t k)
{
    const struct pnet_level_info *f = &r->levels[fine], *c = &r->levels[coarse];
    if (!(r->degrade & PNET_NEIGHBOUR)) return;
    int64_t s = c->grid.factor / f->grid.factor;
    if (k % 2 ? (k - 1) / 2 < s - 1 : k < s)
        pnet_rule_warn(r,
            "kernel=%d does not reach all of the %d voxels an axis that %s joins into one", (int)k,
            (int)s, c->name);
}

/* Says which radius to give on a level of chunks: kernel/2 times the distance of its points where they lie on a surface. */
static void help_with_radius(struct pnet_rule *r, int level, int64_t k)
{
    const struct pnet_level_info *l = &r->levels[level];
    double rows = 1;
    for (; l->kind == PNET_GEO_CHUNKS; l = &r->levels[l->finer]) rows *= l->count;
    if (l->cell > 0)
        pnet_rule_help(r, "give one: radius=%.2gm fits surfaces, %g points of %s for each of %s",
            (double)k / 2 * l->cell * sqrt(rows), rows, l->name, r->levels[level].name);
    else
        pnet_rule_help(r, "give radius=..: chunks have points, and no cells");
}

/* The voxel mode of a neighbourhood needs cells of one chain of grids. */
static bool check_voxels(struct pnet_rule *r, int fine, int coarse)
{
    const struct pnet_level_info *f = &r->levels[fine], *c = &r->levels[coarse];
    bool cells = f->grid.base > 0 && f->cell > 0;
    if (!cells || c->grid.base <= 0) {
        const struct pnet_level_info *without = cells ? c : f;
        pnet_rule_help(r, without->kind == PNET_GEO_CHUNKS
                              ? "chunks have no cells: convolve on levels of grid(..)"
                              : "sample it with grid(..) first");
        return pnet_rule_fail(
            r, -1, "conv() has no voxel mode on %s: the level has no cell size", without->name);
    }
    if (f->grid.base != c->grid.base)
        return pnet_rule_fail(r, TO,
            "conv() has no voxel mode between %s and %s: their grids are not of one chain", f->name,
            c->name);
    return true;
}

static bool choose_neighbourhood(
    struct pnet_rule *r, enum direction d, int fine, int coarse, struct pnet_neighbourhood *nb)
{
    const struct pnet_attr *a = r->attr;
    int64_t k = a[KERNEL].i;
    double cell = r->levels[fine].cell;
    *nb = (struct pnet_neighbourhood){
        .kernel = (int32_t)k, .shape = (enum pnet_shape)a[SHAPE].i, .degrade = r->degrade};
    if (a[KNN].set && a[RADIUS].set)
        return pnet_rule_fail(
            r, RADIUS, "conv() takes either radius or knn: knn chooses the radius point by point");
    if (k == 1 && d == SAME && !a[RADIUS].set && !a[KNN].set) {
        nb->pointwise = true;
        nb->degrade = 0; /* a point is its own neighbour in any mode */
        return true;
    }
    if (d == SAME && k % 2 == 0)
        return pnet_rule_fail(r, KERNEL,
            "an even kernel is for going between levels only, kernel=%d stays on %s", (int)k,
            r->levels[fine].name);
    if (r->degrade && !check_voxels(r, fine, coarse)) return false;
    if (a[KNN].set) {
        if (r->degrade) return pnet_rule_fail(r, KNN, "knn has no voxel mode");
        nb->knn = (int32_t)a[KNN].i;
        return true;
    }
    if (!a[RADIUS].set && cell <= 0) {
        if (r->levels[fine].kind == PNET_GEO_CHUNKS)
            help_with_radius(r, fine, k);
        else
            pnet_rule_help(r, "give radius=.., or sample the points with grid(..) first");
        return pnet_rule_fail(
            r, -1, "conv() needs a radius here: %s has no cell size", r->levels[fine].name);
    }
    nb->radius = (float)(a[RADIUS].set ? a[RADIUS].r : (double)k / 2 * cell);
    if (d != SAME) warn_short_window(r, fine, coarse, k);
    return true;
}

static bool rule(struct pnet_rule *r)
{
    const struct pnet_attr *a = r->attr;
    int in = r->in[0].level, out = a[TO].set ? (int)a[TO].i : in;
    int64_t cin = r->in[0].width, cout = a[CHANNELS].i, groups = a[GROUPS].i, k = a[KERNEL].i;
    enum direction d = SAME;
    if (!choose_direction(r, in, out, &d)) return false;
    if (cin % groups)
        return pnet_rule_fail(r, GROUPS, "groups=%d does not divide the %d channels of the input",
            (int)groups, (int)cin);
    if (cout % groups)
        return pnet_rule_fail(
            r, GROUPS, "groups=%d does not divide the %d output channels", (int)groups, (int)cout);
    int fine = d == COARSER ? in : out, coarse = d == COARSER ? out : in;
    struct pnet_geo_request q = {.kind = PNET_GEO_TRIPLETS, .a = coarse, .b = fine};
    if (!choose_neighbourhood(r, d, fine, coarse, &q.triplets.nb)) return false;
    /* one matrix for each point needs no triplets; groups go through them */
    if (!q.triplets.nb.pointwise || groups > 1) pnet_rule_geo(r, q);
    int64_t fan = k * k * k * cin / groups;
    pnet_rule_param(r, (struct pnet_param_info){.suffix = "weight",
                           .kind = PNET_PARAM_CELLS,
                           .dims = 3,
                           .shape = {k * k * k, cin / groups, cout},
                           .init = PNET_INIT_KAIMING,
                           .fan = fan,
                           .trained = true,
                           .decay = true});
    if (a[BIAS].i)
        pnet_rule_param(r, (struct pnet_param_info){.suffix = "bias",
                               .dims = 1,
                               .shape = {cout},
                               .init = PNET_INIT_ZERO,
                               .fan = fan,
                               .trained = true});
    r->out = (struct pnet_type){PNET_F32, (int32_t)cout, out, 0, false};
    return true;
}

static struct pnet_conv_shape shape_of(const struct pnet_exec *x)
{
    return (struct pnet_conv_shape){
        x->in[0].width, (int32_t)x->attr[CHANNELS].i, (int32_t)x->attr[GROUPS].i};
}

/* One dense matrix for every point: no triplets needed. */
static bool is_dense(const struct pnet_exec *x)
{
    return !x->geo[0];
}

static const struct pnet_triplets *sorted_by(const struct pnet_exec *x, int level)
{
    return x->geo[0]->a == level ? &x->geo[0]->forward : &x->geo[0]->transposed;
}

/* The set sorted by output rows: forward, or transposed where the layer goes finer. */
static const struct pnet_triplets *by_output(const struct pnet_exec *x)
{
    return sorted_by(x, x->out.level);
}

/* The set sorted by input rows; on one level that is the transposed form. */
static const struct pnet_triplets *by_input(const struct pnet_exec *x)
{
    return x->in[0].level == x->out.level ? &x->geo[0]->transposed : sorted_by(x, x->in[0].level);
}

/* One of the layer's sums, for the choice of its kernel. */
static struct pnet_conv_sum sum_of(const struct pnet_exec *x, enum pnet_direction direction)
{
    struct pnet_conv_sum sum = pnet_op_dense_sum(x, direction);
    if (is_dense(x)) return sum;
    const struct pnet_triplets *t = direction == PNET_DF ? by_input(x) : by_output(x);
    sum.shape.groups = (int32_t)x->attr[GROUPS].i;
    sum.algo = x->algos.of[direction];
    sum.cells = t->cells;
    sum.rows = t->rows;
    sum.count = t->count;
    unsigned tiles =
        t == &x->geo[0]->forward ? PNET_FORM_FORWARD_TILES : PNET_FORM_TRANSPOSED_TILES;
    sum.form = x->geo[0]->forms & tiles ? PNET_CONV_TILES : PNET_CONV_TRIPLETS;
    return sum;
}

static const char *kernel(const struct pnet_exec *x, enum pnet_direction direction)
{
    struct pnet_conv_sum sum = sum_of(x, direction);
    return PNET_WORK(x->device, conv_kernel)(&sum);
}

/* A form that is read one by one, as tiles where the kernel of that sum reads those. */
static unsigned read_as(const struct pnet_exec *x, enum pnet_direction direction, unsigned form)
{
    struct pnet_conv_sum sum = sum_of(x, direction);
    if (x->device != PNET_CUDA || !pnet_cuda_conv_reads_tiles(&sum)) return form;
    return form == PNET_FORM_FORWARD ? PNET_FORM_FORWARD_TILES : PNET_FORM_TRANSPOSED_TILES;
}

static unsigned form_of(const struct pnet_exec *x, const struct pnet_triplets *sorted)
{
    return sorted == &x->geo[0]->forward ? PNET_FORM_FORWARD : PNET_FORM_TRANSPOSED;
}

static unsigned forms(const struct pnet_exec *x, enum pnet_direction direction)
{
    const struct pnet_triplets *sorted = direction == PNET_DF ? by_input(x) : by_output(x);
    return read_as(x, direction, form_of(x, sorted));
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t input_work(const struct pnet_exec *x)
{
    struct pnet_conv_shape s = shape_of(x), t = {s.cout, s.cin, s.groups};
    if (is_dense(x))
        return PNET_WORK(x->device, gemm_work)(pnet_op_rows(&x->out), s.cout, s.cin, x->precision);
    return PNET_WORK(x->device, mvmr_algo_work)(x->algos.of[PNET_DF], by_input(x), t, x->precision);
}

static size_t weight_work(const struct pnet_exec *x)
{
    struct pnet_conv_shape s = shape_of(x);
    if (is_dense(x))
        return PNET_WORK(x->device, outer_work)(pnet_op_rows(&x->out), s.cin, s.cout, x->precision);
    return PNET_WORK(x->device, vvor_algo_work)(
        x->algos.of[PNET_DW], by_output(x), s, x->precision);
}

static size_t params_work(const struct pnet_exec *x)
{
    return larger(
        weight_work(x), PNET_WORK(x->device, column_sum_work)(pnet_op_rows(&x->out), x->out.width));
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    struct pnet_conv_shape s = shape_of(x);
    struct pnet_count n = pnet_op_rows(&x->out);
    if (backward) return pnet_op_backward_work(x, input_work(x), params_work(x));
    if (is_dense(x)) return PNET_WORK(x->device, gemm_work)(n, s.cin, s.cout, x->precision);
    return PNET_WORK(x->device, mvmr_algo_work)(
        x->algos.of[PNET_FORWARD], by_output(x), s, x->precision);
}

static void forward(const struct pnet_exec *x)
{
    struct pnet_conv_shape s = shape_of(x);
    enum pnet_activation act = (enum pnet_activation)x->act;
    if (is_dense(x)) {
        struct pnet_gemm g = {.n = pnet_op_rows(&x->out),
            .cin = s.cin,
            .cout = s.cout,
            .x = x->in[0].data,
            .w = x->param[WEIGHT],
            .bias = x->param[BIAS_PARAM],
            .y = x->out.data,
            .act = act,
            .slope = x->slope,
            .precision = x->precision,
            .storage = x->out.storage};
        PNET_KERNEL(x, gemm)(&g, x->work);
        return;
    }
    struct pnet_mvmr m = {.triplets = by_output(x),
        .shape = s,
        .in = x->in[0].data,
        .weight = x->param[WEIGHT],
        .bias = x->param[BIAS_PARAM],
        .out = x->out.data,
        .act = act,
        .slope = x->slope,
        .precision = x->precision,
        .storage = x->out.storage,
        .algo = x->algos.of[PNET_FORWARD]};
    PNET_KERNEL(x, mvmr)(&m, x->work);
}

static void to_input(const struct pnet_exec *x, void *work)
{
    struct pnet_conv_shape s = shape_of(x);
    if (is_dense(x)) {
        struct pnet_gemm g = {.n = pnet_op_rows(&x->gout),
            .cin = s.cout,
            .cout = s.cin,
            .x = x->gout.data,
            .w = x->param[WEIGHT],
            .y = x->gin[0].data,
            .transposed = true,
            .add = x->gin_add[0],
            .precision = x->precision,
            .storage = x->out.storage};
        PNET_KERNEL(x, gemm)(&g, work);
        return;
    }
    struct pnet_mvmr m = {.triplets = by_input(x),
        .shape = {s.cout, s.cin, s.groups},
        .in = x->gout.data,
        .weight = x->param[WEIGHT],
        .out = x->gin[0].data,
        .transposed = true,
        .add = x->gin_add[0],
        .precision = x->precision,
        .storage = x->out.storage,
        .algo = x->algos.of[PNET_DF]};
    PNET_KERNEL(x, mvmr)(&m, work);
}

static void to_weight(const struct pnet_exec *x, void *work)
{
    struct pnet_conv_shape s = shape_of(x);
    if (is_dense(x)) {
        struct pnet_outer o = {.n = pnet_op_rows(&x->gout),
            .cin = s.cin,
            .cout = s.cout,
            .x = x->in[0].data,
            .g = x->gout.data,
            .gw = x->gparam[WEIGHT],
            .add = x->gparam_add[WEIGHT],
            .precision = x->precision,
            .storage = x->out.storage};
        PNET_KERNEL(x, outer)(&o, work);
        return;
    }
    struct pnet_vvor v = {.triplets = by_output(x),
        .shape = s,
        .in = x->in[0].data,
        .gout = x->gout.data,
        .gweight = x->gparam[WEIGHT],
        .add = x->gparam_add[WEIGHT],
        .precision = x->precision,
        .storage = x->out.storage,
        .algo = x->algos.of[PNET_DW]};
    PNET_KERNEL(x, vvor)(&v, work);
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
    struct pnet_conv_shape s = shape_of(x);
    const double *in = x->in[0].data, *w = x->param[WEIGHT], *bias = x->param[BIAS_PARAM];
    double *out = x->out.data;
    if (!is_dense(x)) {
        pnet_ref_mvmr(by_output(x), s, in, w, bias, false, out);
        return;
    }
    for (int64_t i = 0; i < x->out.rows; i++)
        for (int64_t o = 0; o < s.cout; o++) {
            double sum = bias ? bias[o] : 0;
            for (int64_t c = 0; c < s.cin; c++) sum += in[i * s.cin + c] * w[c * s.cout + o];
            out[i * s.cout + o] = sum;
        }
}

const struct pnet_op pnet_op_conv = {
    .name = "conv",
    .class_ = PNET_LAYER,
    .summary = "Convolution on points, or on voxels in voxel mode",
    .doc = "`out[i] = bias + sum of W[k]^T in[j]` over the triplets (i, j, k): the points `j` "
           "within `radius` of the centre `i`, each multiplied by the matrix of the kernel cell "
           "`k` that it lies in. A grid of `kernel` cells an axis covers the cube of edge `2 "
           "radius` around the centre; `radius` and `kernel` are independent.\n\n"
           "`to=` is a coarser or a finer level of the same cloud; a convolution to a finer level "
           "uses the transposed triplets of the convolution to the coarser one. With `kernel=1` "
           "on one level, and neither `radius` nor `knn`, the layer multiplies each point by one "
           "matrix, without neighbours.\n\n"
           "PointCNN++: Performant Convolution on Native Points, 2025.",
    .args =
        {
            [IN] = {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "features of the input points"},
            [CHANNELS] = {"channels", PNET_ARG_INT, NULL, 1, 65536, NULL, "width of the result"},
            [KERNEL] = {"kernel", PNET_ARG_INT, "3", 1, PNET_KERNEL_LIMIT, NULL,
                "kernel cells an axis; even ones only between levels"},
            [TO] = {"to", PNET_ARG_LEVEL, "", 0, 0, NULL,
                "level of the result; default: the level of `x`"},
            [RADIUS] = {"radius", PNET_ARG_LENGTH, "", 1e-6, 1e5, NULL,
                "radius of the neighbourhood; default: kernel/2 cells of the finer level"},
            [SHAPE] = {"shape", PNET_ARG_CHOICE, "ball", 0, 0, "ball|cube",
                "distance: Euclidean, or largest coordinate"},
            [KNN] = {"knn", PNET_ARG_INT, "", 1, 1024, NULL,
                "take that many nearest points instead of a radius"},
            [GROUPS] = {"groups", PNET_ARG_INT, "1", 1, 65536, NULL,
                "groups of channels that are convolved separately"},
            [BIAS] = {"bias", PNET_ARG_BOOL, "no", 0, 0, NULL,
                "add a learned constant to each channel"},
        },
    .flags = PNET_FUSES_ACT | PNET_LINEAR_OUT | PNET_CONVOLVES | PNET_GRADS_APART,
    .keep = PNET_KEEP_IN0,
    .rule = rule,
    .work = work,
    .forms = forms,
    .kernel = kernel,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .cases = "x -> conv(5)\n"
             "x -> conv(4, kernel=3, bias=yes)\n"
             "x -> conv(8, kernel=5, radius=12cm)\n"
             "x -> conv(3, shape=cube)\n"
             "x -> conv(4, knn=7)\n"
             "x -> conv(6, groups=3)\n"
             "x -> conv(6, groups=6, bias=yes)\n"
             "x -> conv(7, kernel=1, bias=yes)\n"
             "x -> conv(6, kernel=1, groups=2)\n"
             "x -> conv(1)\n"
             "x -> conv(4, to=g[1])\n"
             "x -> conv(4, kernel=2, to=g[1])\n"
             "x -> conv(4, kernel=5, to=g[2])\n"
             "z -> conv(4, to=g[0])\n"
             "z -> conv(4, kernel=2, to=g[0], groups=2, bias=yes)\n"
             "x -> pool(mean, to=chunks(g[0], 2)) -> conv(4, radius=25cm)\n"
             "x -> conv(4, kernel=2, to=chunks(g[0], [2, 4])[1])\n"
             "z -> pool(sum, to=chunks(g[1], 3)) -> conv(3, kernel=2, to=g[0])\n"
             "cat(p.xyz, p.f) -> pool(mean, to=g[0]) -> conv(8, bias=yes) -> relu\n",
};
