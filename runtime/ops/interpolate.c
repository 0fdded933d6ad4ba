/* Features of a grid level at the points of any level, of this cloud or of another one. */
#include "kernels/corners.h"
#include "runtime/ops/common.h"

enum { IN, TO, KIND, OUTSIDE };
enum { ZERO, NEAREST_POINT }; /* of `outside` */

static bool rule(struct pnet_rule *r)
{
    struct pnet_type in = r->in[0];
    const struct pnet_level_info *from = &r->levels[in.level], *to = &r->levels[r->attr[TO].i];
    bool labels = in.type == PNET_I32;
    if (from->kind != PNET_GEO_GRID) {
        if (from->kind == PNET_GEO_INPUT)
            pnet_rule_help(r, "-> pool(to=grid(.., 10cm)) brings them to one");
        r->error_in = 0;
        return pnet_rule_fail(
            r, IN, "interpolate() takes values on the cells of a grid, not on %s", from->name);
    }
    if (to->input < 0)
        return pnet_rule_fail(
            r, TO, "interpolate() goes to points, and %s has no coordinates", to->name);
    if (labels && r->attr[KIND].i == PNET_CORNERS_TRILINEAR) {
        pnet_rule_help(r, "kind=nearest takes the label of the cell");
        return pnet_rule_fail(r, KIND, "interpolate() cannot mix labels");
    }
    pnet_rule_geo(r, (struct pnet_geo_request){.kind = PNET_GEO_CORNERS,
                         .a = (int)r->attr[TO].i,
                         .b = in.level,
                         .corners = {.kind = (int32_t)r->attr[KIND].i,
                             .outside = r->attr[OUTSIDE].i == NEAREST_POINT},
                         .forward_forms = PNET_FORM_FORWARD,
                         .backward_forms = PNET_FORM_TRANSPOSED});
    r->out = (struct pnet_type){in.type, in.width, (int)r->attr[TO].i, in.classes, false};
    return true;
}

static void forward(const struct pnet_exec *x)
{
    const struct pnet_geo_view *g = x->geo[0];
    struct pnet_weighted w = {.rows = pnet_op_rows(&x->out),
        .start = g->forward.start,
        .other = g->forward.other,
        .weight = g->weight};
    if (x->out.type == PNET_I32)
        PNET_KERNEL(x, weighted_labels)(&w, x->in[0].data, x->out.data);
    else
        PNET_KERNEL(x, weighted_rows)(&w, x->out.width, x->in[0].data, false, x->out.data);
}

static void backward(const struct pnet_exec *x)
{
    const struct pnet_geo_view *g = x->geo[0];
    if (!x->gin[0].data) return;
    struct pnet_weighted w = {.rows = pnet_op_rows(&x->gin[0]),
        .start = g->transposed.start,
        .other = g->transposed.other,
        .weight = g->transposed_weight};
    PNET_KERNEL(x, weighted_rows)
    (&w, x->gout.width, x->gout.data, x->gin_add[0], x->gin[0].data);
}

static void reference(const struct pnet_exec *x)
{
    const struct pnet_geo_view *g = x->geo[0];
    const double *in = x->in[0].data;
    double *out = x->out.data;
    int32_t width = x->out.width;
    for (int64_t row = 0; row < x->out.rows; row++) {
        int64_t begin = g->forward.start[row], end = g->forward.start[row + 1];
        if (x->out.type == PNET_I32) {
            const int32_t *label = x->in[0].data;
            ((int32_t *)x->out.data)[row] = begin < end ? label[g->forward.other[begin]] : -1;
            continue;
        }
        for (int32_t c = 0; c < width; c++) {
            double sum = 0;
            for (int64_t at = begin; at < end; at++)
                sum += (g->weight ? (double)g->weight[at] : 1) *
                       in[(int64_t)g->forward.other[at] * width + c];
            out[row * width + c] = sum;
        }
    }
}

const struct pnet_op pnet_op_interpolate = {
    .name = "interpolate",
    .class_ = PNET_LAYER,
    .summary =
        "Values of a grid level at the points of any level, of the same cloud or of another one",
    .doc = "The features of a point of the grid count as lying on the centre of its cell, as in "
           "voxel mode. `trilinear`: of "
           "the eight cells whose centres enclose a query, those that hold a point of the grid, "
           "weighted by "
           "`wx wy wz / max(sum, 1e-12)`, where `w = 1 - distance to the centre in cells` on each "
           "axis, and the sum is over "
           "these cells. `nearest`: the cell that holds the query; labels too. Where there is no "
           "such cell, `zero` gives 0, "
           "or the label -1, and `nearest` the row of the nearest point of the grid, by distance "
           "between points.\n\n"
           "The gradient goes to the features, none to coordinates. Where `to` is of another "
           "input, `to=level(query)`, both "
           "clouds must lie in one frame: clouds of a completion data set do, and `pnetc infer` "
           "brings them into one.\n\n"
           "Grid sampling of sparse voxels as in FlexGEMM, 2025.",
    .args =
        {
            [IN] = {"x", PNET_ARG_ANY, NULL, 0, 0, NULL, "features or labels on a grid"},
            [TO] = {"to", PNET_ARG_LEVEL, NULL, 0, 0, NULL, "level of the queries"},
            [KIND] = {"kind", PNET_ARG_CHOICE, "trilinear", 0, 0, "trilinear|nearest",
                "a weighted mean of the cells around, or the cell itself"},
            [OUTSIDE] = {"outside", PNET_ARG_CHOICE, "zero", 0, 0, "zero|nearest",
                "where there is no such cell"},
        },
    .flags = PNET_MOVES_SCORES,
    .rule = rule,
    .work = pnet_op_no_work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .cases =
        "z -> interpolate(to=g[0])\n"
        "z -> interpolate(to=level(p.f), kind=nearest)\n"
        "x -> interpolate(to=g[0])\n"
        "x -> interpolate(to=g[2], outside=nearest)\n"
        "x -> interpolate(to=level(q))\n"
        "x -> linear(37) -> interpolate(to=level(q), kind=nearest, outside=nearest)\n"
        "u -> interpolate(to=g[1], outside=nearest) -> linear(20)\n"
        "p.label -> pool(to=g[1]) -> interpolate(to=level(q), kind=nearest)\n"
        "p.label -> pool(to=g[1]) -> interpolate(to=level(q), kind=nearest, outside=nearest)\n",
};
