/* Going to a finer level without weights. */
#include "kernels/act.h"
#include "runtime/ops/common.h"

enum { IN, TO, KIND, K };
enum { NEAREST, INVERSE_DISTANCE };

static bool rule(struct pnet_rule *r)
{
    int from = r->in[0].level, to = (int)r->attr[TO].i;
    char text[96];
    r->out = (struct pnet_type){PNET_F32, r->in[0].width, to, 0, false};
    if (from == to) return true;
    if (!pnet_level_reaches(r->levels, to, from)) {
        if (r->levels[from].kind == PNET_GEO_SAMPLE)
            pnet_rule_help(r, "-> expand(to=%s) gives every point its sample's row",
                pnet_level_written(&r->levels[to], text));
        else if (pnet_level_reaches(r->levels, from, to))
            pnet_rule_help(r, "-> pool(mean, to=%s) goes to a coarser level",
                pnet_level_written(&r->levels[to], text));
        return pnet_rule_fail(r, TO, "upsample() cannot go from %s to %s: it is not a finer level",
            r->levels[from].name, r->levels[to].name);
    }
    struct pnet_geo_request q = {.kind = PNET_GEO_PARENT,
        .a = to,
        .b = from,
        .forward_forms = PNET_FORM_PARENT,
        .backward_forms = PNET_FORM_CHILDREN};
    if (r->attr[KIND].i == INVERSE_DISTANCE)
        q = (struct pnet_geo_request){
            .kind = PNET_GEO_NEAREST, .a = to, .b = from, .nearest = {(int32_t)r->attr[K].i}};
    pnet_rule_geo(r, q);
    return true;
}

static bool is_identity(const struct pnet_exec *x)
{
    return !x->geo[0];
}

static struct pnet_nearest nearest_of(const struct pnet_exec *x)
{
    const struct pnet_geo_view *g = x->geo[0];
    return (struct pnet_nearest){.fine_rows = {g->a_rows, g->a_live, 1, x->out.storage},
        .coarse_rows = {g->b_rows, g->b_live, 1, x->out.storage},
        .k = g->k,
        .index = g->nearest,
        .distance2 = g->distance2};
}

/* Row counts come from the tensors: the item's are not known where workspace is planned. */
static size_t work(const struct pnet_exec *x, bool backward)
{
    if (!backward || is_identity(x)) return 0;
    if (x->attr[KIND].i == NEAREST) return PNET_WORK(x->device, cells_sum_work)(x->in[0].width);
    struct pnet_nearest n = {.fine_rows = pnet_op_rows(&x->out),
        .coarse_rows = pnet_op_rows(&x->in[0]),
        .k = (int32_t)x->attr[K].i};
    return PNET_WORK(x->device, interpolate_backward_work)(&n, x->in[0].width);
}

static void forward(const struct pnet_exec *x)
{
    if (is_identity(x)) {
        PNET_KERNEL(x, copy_elements)(pnet_op_elements(&x->out), x->in[0].data, x->out.data);
    } else if (x->attr[KIND].i == NEAREST) {
        struct pnet_cells cells = pnet_op_cells(x->geo[0], x->out.storage);
        PNET_KERNEL(x, cells_spread)
        (&cells, x->out.width, x->in[0].data, false, false, x->out.data);
    } else {
        struct pnet_nearest n = nearest_of(x);
        PNET_KERNEL(x, interpolate)(&n, x->out.width, x->in[0].data, x->out.data);
    }
}

static void backward(const struct pnet_exec *x)
{
    float *gx = x->gin[0].data;
    bool add = x->gin_add[0];
    if (!gx) return;
    if (is_identity(x)) {
        PNET_KERNEL(x, scale)(pnet_op_elements(&x->gout), 1, x->gout.data, add, gx);
    } else if (x->attr[KIND].i == NEAREST) {
        struct pnet_cells cells = pnet_op_cells(x->geo[0], x->out.storage);
        PNET_KERNEL(x, cells_sum)(&cells, x->gout.width, x->gout.data, false, add, gx, x->work);
    } else {
        struct pnet_nearest n = nearest_of(x);
        PNET_KERNEL(x, interpolate_backward)(&n, x->gout.width, x->gout.data, add, gx, x->work);
    }
}

static double reference_weight(const struct pnet_geo_view *g, int64_t at)
{
    return g->nearest[at] < 0 ? 0 : 1 / ((double)g->distance2[at] + 1e-8);
}

static void reference(const struct pnet_exec *x)
{
    const double *in = x->in[0].data;
    double *out = x->out.data;
    const struct pnet_geo_view *g = x->geo[0];
    int32_t width = x->out.width;
    for (int64_t i = 0; i < pnet_op_count_of(&x->out); i++) {
        int64_t row = i / width, c = i % width;
        double sum = 0, weights = 0;
        if (is_identity(x)) {
            out[i] = in[i];
            continue;
        }
        if (x->attr[KIND].i == NEAREST) {
            out[i] = in[(int64_t)g->parent[row] * width + c];
            continue;
        }
        for (int64_t at = row * g->k; at < (row + 1) * g->k; at++)
            weights += reference_weight(g, at);
        for (int64_t at = row * g->k; at < (row + 1) * g->k; at++)
            if (g->nearest[at] >= 0)
                sum += reference_weight(g, at) / weights * in[(int64_t)g->nearest[at] * width + c];
        out[i] = sum;
    }
}

const struct pnet_op pnet_op_upsample = {
    .name = "upsample",
    .class_ = PNET_LAYER,
    .summary = "Values of a coarser level on the points of a finer one",
    .doc = "`nearest`: each point takes the row of the coarse point that represents its cell. "
           "`inverse_distance`: the mean of the `k` nearest coarse points of the sample, weighted "
           "by `1 / (distance^2 + 1e-8)`, distances in metres. Upsampling to the level of `x` "
           "changes nothing.\n\n"
           "Qi, Yi, Su, Guibas, PointNet++, 2017.",
    .args =
        {
            [IN] = {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "features of the coarser points"},
            [TO] = {"to", PNET_ARG_LEVEL, NULL, 0, 0, NULL, "finer level"},
            [KIND] = {"kind", PNET_ARG_CHOICE, "nearest", 0, 0, "nearest|inverse_distance",
                "the point of its cell, or a weighted mean"},
            [K] = {"k", PNET_ARG_INT, "3", 1, 64, NULL, "number of points in the weighted mean"},
        },
    .rule = rule,
    .work = work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .cases = "z -> upsample(to=g[0])\n"
             "z -> upsample(to=g[1])\n"
             "z -> upsample(to=level(p.f))\n"
             "z -> upsample(to=g[0], kind=inverse_distance)\n"
             "z -> upsample(to=g[0], kind=inverse_distance, k=1)\n"
             "z -> upsample(to=level(p.f), kind=inverse_distance, k=5)\n"
             "z -> pool(mean, to=chunks(g[1], [2, 4])[1]) -> upsample(to=g[0])\n"
             "x -> pool(max, to=chunks(g[0], 3)) -> upsample(to=g[0], kind=inverse_distance)\n",
};
