/* One row a sample to all of its points; one row of a level to the points generated for it. */
#include "runtime/ops/common.h"

enum { IN, TO };

static bool rule(struct pnet_rule *r)
{
    int from = r->in[0].level, to = (int)r->attr[TO].i;
    const struct pnet_level_info *a = &r->levels[from], *b = &r->levels[to];
    bool generated = b->kind == PNET_GEO_POINTS;
    char text[96];
    if (a->kind != PNET_GEO_SAMPLE && !generated) {
        if (pnet_level_reaches(r->levels, to, from))
            pnet_rule_help(
                r, "-> upsample(to=%s) goes to a finer level", pnet_level_written(b, text));
        r->error_in = IN;
        return pnet_rule_fail(
            r, IN, "expand() takes one row a sample, not the points of %s", a->name);
    }
    if (b->input < 0 && !generated)
        return pnet_rule_fail(r, TO, "expand() goes to the points of a level, not to %s", b->name);
    if (from == to || (a->kind != PNET_GEO_SAMPLE && !pnet_level_reaches(r->levels, to, from)))
        return pnet_rule_fail(r, TO,
            "expand() cannot go from %s to %s: these points were not generated for it", a->name,
            b->name);
    if (a->kind != PNET_GEO_SAMPLE)
        pnet_rule_geo(r, (struct pnet_geo_request){.kind = PNET_GEO_PARENT,
                             .a = to,
                             .b = from,
                             .forward_forms = PNET_FORM_PARENT,
                             .backward_forms = PNET_FORM_CHILDREN});
    r->out = (struct pnet_type){PNET_F32, r->in[0].width, to, 0, false};
    return true;
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    if (!backward) return 0;
    return x->geo[0]
               ? PNET_WORK(x->device, cells_sum_work)(x->out.width)
               : PNET_WORK(x->device, segments_pool_work)(pnet_op_samples(&x->out), x->out.width);
}

static void forward(const struct pnet_exec *x)
{
    if (x->geo[0]) {
        struct pnet_cells cells = pnet_op_cells(x->geo[0], x->out.storage);
        PNET_KERNEL(x, cells_spread)
        (&cells, x->out.width, x->in[0].data, false, false, x->out.data);
        return;
    }
    PNET_KERNEL(x, segments_spread)
    (pnet_op_samples(&x->out), x->out.width, x->in[0].data, false, false, x->out.data);
}

static void backward(const struct pnet_exec *x)
{
    if (!x->gin[0].data) return;
    if (x->geo[0]) {
        struct pnet_cells cells = pnet_op_cells(x->geo[0], x->gout.storage);
        PNET_KERNEL(x, cells_sum)
        (&cells, x->gout.width, x->gout.data, false, x->gin_add[0], x->gin[0].data, x->work);
        return;
    }
    PNET_KERNEL(x, segments_sum)
    (pnet_op_samples(&x->gout), x->gout.width, x->gout.data, false, x->gin_add[0], x->gin[0].data,
        x->work);
}

static void reference(const struct pnet_exec *x)
{
    const double *in = x->in[0].data;
    double *out = x->out.data;
    int32_t c = x->out.width;
    for (int32_t s = 0; s < x->out.samples; s++)
        for (int64_t row = x->out.row_splits[s]; row < x->out.row_splits[s + 1]; row++) {
            int64_t from = x->geo[0] ? x->geo[0]->parent[row] : s;
            for (int32_t i = 0; i < c; i++) out[row * c + i] = in[from * c + i];
        }
}

const struct pnet_op pnet_op_expand = {
    .name = "expand",
    .class_ = PNET_LAYER,
    .summary = "Gives every point the row of its sample, or of what it was generated for",
    .doc =
        "`out[point] = x[sample of the point]`: copies the result of a pool with `to=sample` to "
        "the points. From another level to points that `points(..)` generates for it, each point "
        "takes the row that it was generated for.",
    .args =
        {
            [IN] = {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL,
                "one row a sample, or a level with generated points"},
            [TO] = {"to", PNET_ARG_LEVEL, NULL, 0, 0, NULL, "level of the result"},
        },
    .flags = PNET_REPEATS,
    .rule = rule,
    .work = work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .cases = "t -> expand(to=g[1])\n"
             "t -> expand(to=level(p.f))\n"
             "t -> expand(to=chunks(g[1], 2))\n"
             "cat(x, x -> pool(max, to=sample) -> expand(to=g[0]))\n"
             "t -> expand(to=points(points(sample, 2), 3))\n"
             "x -> expand(to=points(g[0], 3)) -> linear(2)\n"
             "z -> expand(to=points(points(g[0], 2), 2))\n"
             "x -> expand(to=points(g[0], 1))\n"
             "z -> expand(to=points(points(g[0], 1), 1))\n",
};
