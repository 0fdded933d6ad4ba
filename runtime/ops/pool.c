/* Pooling to a coarser level, or to one row a sample. Features and labels. */
#include "kernels/act.h"
#include "runtime/ops/common.h"

#include <string.h>

enum { IN, KIND, TO };
enum { ARGMAX };

static bool rule(struct pnet_rule *r)
{
    struct pnet_type in = r->in[0];
    int to = (int)r->attr[TO].i;
    bool to_sample = r->levels[to].kind == PNET_GEO_SAMPLE;
    char text[96];
    if (in.type == PNET_I32 && r->attr[KIND].i != PNET_POOL_MEAN) {
        pnet_rule_help(r, "leave the kind out");
        return pnet_rule_fail(r, KIND, "pool() joins labels by majority only");
    }
    if (!to_sample && !pnet_level_reaches(r->levels, in.level, to)) {
        if (r->levels[in.level].kind == PNET_GEO_SAMPLE)
            pnet_rule_help(r, "-> expand(to=%s) gives every point its sample's row",
                pnet_level_written(&r->levels[to], text));
        else if (pnet_level_reaches(r->levels, to, in.level))
            pnet_rule_help(r, "-> upsample(to=%s) goes to a finer level",
                pnet_level_written(&r->levels[to], text));
        return pnet_rule_fail(r, TO, "pool() cannot go from %s to %s: it is not a coarser level",
            r->levels[in.level].name, r->levels[to].name);
    }
    if (!to_sample && in.level != to)
        pnet_rule_geo(r,
            (struct pnet_geo_request){.kind = PNET_GEO_PARENT,
                .a = in.level,
                .b = to,
                .forward_forms = PNET_FORM_CHILDREN | (in.type == PNET_I32 ? PNET_FORM_PARENT : 0),
                .backward_forms = PNET_FORM_CHILDREN | PNET_FORM_PARENT});
    if (r->attr[KIND].i == PNET_POOL_MAX && in.level != to)
        pnet_rule_save(r, (struct pnet_type){PNET_I32, in.width, to, 0, false}, true);
    r->out = (struct pnet_type){in.type, in.width, to, in.classes, false};
    return true;
}

static bool is_identity(const struct pnet_exec *x)
{
    return x->in[0].level == x->out.level;
}

static bool has_labels(const struct pnet_exec *x)
{
    return x->out.type == PNET_I32;
}

/* A sample's points are one stretch of rows; `start` and `child` of a grid come from the item. */
static struct pnet_cells cells_of(const struct pnet_exec *x)
{
    if (x->geo[0]) return pnet_op_cells(x->geo[0], x->out.storage);
    return (struct pnet_cells){.fine_rows = pnet_op_rows(&x->in[0]),
        .coarse_rows = pnet_op_rows(&x->out),
        .start = x->in[0].row_splits};
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    if (is_identity(x)) return 0;
    if (has_labels(x)) {
        struct pnet_cells cells = cells_of(x);
        return backward ? 0 : PNET_WORK(x->device, cells_majority_work)(&cells);
    }
    return x->geo[0] ? PNET_WORK(x->device, cells_sum_work)(x->in[0].width)
                     : PNET_WORK(x->device, segments_pool_work)(
                           pnet_op_samples(&x->in[0]), x->in[0].width);
}

static void forward_samples(const struct pnet_exec *x, enum pnet_pool kind)
{
    struct pnet_segments s = pnet_op_samples(&x->in[0]);
    int32_t c = x->in[0].width;
    if (kind == PNET_POOL_MAX) PNET_KERNEL(x, segments_max)
    (s, c, x->in[0].data, x->out.data, x->saved[ARGMAX].data, x->work);
    else PNET_KERNEL(x, segments_sum)(
        s, c, x->in[0].data, kind == PNET_POOL_MEAN, false, x->out.data, x->work);
}

static void forward(const struct pnet_exec *x)
{
    enum pnet_pool kind = (enum pnet_pool)x->attr[KIND].i;
    struct pnet_cells cells = cells_of(x);
    int32_t c = x->in[0].width;
    if (is_identity(x))
        PNET_KERNEL(x, copy_elements)(pnet_op_elements(&x->out), x->in[0].data, x->out.data);
    else if (has_labels(x))
        PNET_KERNEL(x, cells_majority)(&cells, x->in[0].data, x->out.data, x->work);
    else if (!x->geo[0])
        forward_samples(x, kind);
    else if (kind == PNET_POOL_MAX)
        PNET_KERNEL(x, cells_max)(&cells, c, x->in[0].data, x->out.data, x->saved[ARGMAX].data);
    else
        PNET_KERNEL(x, cells_sum)
    (&cells, c, x->in[0].data, kind == PNET_POOL_MEAN, false, x->out.data, x->work);
}

static void backward(const struct pnet_exec *x)
{
    enum pnet_pool kind = (enum pnet_pool)x->attr[KIND].i;
    struct pnet_segments s = pnet_op_samples(&x->in[0]);
    bool add = x->gin_add[0], mean = kind == PNET_POOL_MEAN;
    int32_t c = x->gout.width;
    const float *g = x->gout.data;
    float *gx = x->gin[0].data;
    if (!gx) return;
    if (is_identity(x)) {
        PNET_KERNEL(x, scale)(pnet_op_elements(&x->gout), 1, g, add, gx);
    } else if (!x->geo[0]) {
        if (kind == PNET_POOL_MAX)
            PNET_KERNEL(x, segments_max_backward)(s, c, x->saved[ARGMAX].data, g, add, gx);
        else
            PNET_KERNEL(x, segments_spread)(s, c, g, mean, add, gx);
    } else {
        struct pnet_cells cells = pnet_op_cells(x->geo[0], x->out.storage);
        if (kind == PNET_POOL_MAX)
            PNET_KERNEL(x, cells_max_backward)(&cells, c, x->saved[ARGMAX].data, g, add, gx);
        else
            PNET_KERNEL(x, cells_spread)(&cells, c, g, mean, add, gx);
    }
}

static void reference_labels(const struct pnet_exec *x, const struct pnet_cells *cells)
{
    const int32_t *label = x->in[0].data;
    int32_t *out = x->out.data;
    for (int64_t cell = 0; cell < cells->coarse_rows.most; cell++) {
        int64_t most = 0, begin = cells->start[cell], end = cells->start[cell + 1];
        out[cell] = -1;
        for (int64_t at = begin; at < end; at++) {
            int32_t candidate = label[cells->child ? cells->child[at] : at];
            int64_t count = 0;
            for (int64_t other = begin; other < end; other++)
                count += label[cells->child ? cells->child[other] : other] == candidate;
            if (candidate >= 0 && (count > most || (count == most && candidate < out[cell]))) {
                most = count;
                out[cell] = candidate;
            }
        }
    }
}

static double reference_cell(
    const struct pnet_exec *x, const struct pnet_cells *cells, int64_t cell, int32_t c)
{
    const double *in = x->in[0].data;
    int64_t begin = cells->start[cell], end = cells->start[cell + 1];
    double sum = 0, top = 0;
    for (int64_t at = begin; at < end; at++) {
        double v = in[(cells->child ? cells->child[at] : at) * x->in[0].width + c];
        sum += v;
        top = at == begin || v > top ? v : top;
    }
    if (x->attr[KIND].i == PNET_POOL_MAX) return top;
    return x->attr[KIND].i == PNET_POOL_MEAN && end > begin ? sum / (double)(end - begin) : sum;
}

static void reference(const struct pnet_exec *x)
{
    struct pnet_cells cells = cells_of(x);
    int32_t width = x->out.width;
    double *out = x->out.data;
    if (is_identity(x)) {
        size_t size = has_labels(x) ? sizeof(int32_t) : sizeof(double);
        memcpy(out, x->in[0].data, (size_t)pnet_op_count_of(&x->out) * size);
    } else if (has_labels(x)) {
        reference_labels(x, &cells);
    } else {
        for (int64_t cell = 0; cell < x->out.rows; cell++)
            for (int32_t c = 0; c < width; c++)
                out[cell * width + c] = reference_cell(x, &cells, cell, c);
    }
}

const struct pnet_op pnet_op_pool = {
    .name = "pool",
    .class_ = PNET_LAYER,
    .summary = "Mean, maximum or sum of the points of each coarser cell, or of each sample",
    .doc = "`to=` is a coarser level of the same cloud, or `sample` for one row a sample. A point "
           "belongs to the cell that it lies in; below a grid of chunks, to the cell of its "
           "chunk's point. The result of an empty cell or sample is 0; among "
           "equal maxima the lowest row gets the gradient. Pooling to the level of `x` changes "
           "nothing.\n\n"
           "Labels can be pooled too: the result is the most frequent label of the cell, the "
           "lowest one among equals; ignored labels (-1) do not count. Labels have no gradient.",
    .args =
        {
            [IN] = {"x", PNET_ARG_ANY, NULL, 0, 0, NULL, "features, or labels"},
            [KIND] = {"kind", PNET_ARG_CHOICE, "mean", 0, 0, "mean|max|sum",
                "how the features of a cell are reduced"},
            [TO] = {"to", PNET_ARG_LEVEL, NULL, 0, 0, NULL, "coarser level, or sample"},
        },
    .flags = PNET_MOVES_SCORES,
    .rule = rule,
    .work = work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .cases = "x -> pool(mean, to=g[1])\n"
             "x -> pool(max, to=g[1])\n"
             "x -> pool(sum, to=g[2])\n"
             "x -> pool(max, to=g[0])\n"
             "p.f -> pool(mean, to=g[0])\n"
             "p.f -> pool(max, to=g[1])\n"
             "x -> pool(mean, to=sample)\n"
             "x -> pool(max, to=sample)\n"
             "p.f -> pool(sum, to=sample)\n"
             "p.f -> pool(max, to=chunks(p, 3))\n"
             "p.f -> expand(to=points(p, 1)) -> pool(mean, to=g[1])\n"
             "p.f -> linear(6) -> split(to=points(p, 1)) -> pool(max, to=level(p))\n"
             "x -> pool(mean, to=chunks(g[0], 4)) -> pool(max, to=grid(chunks(g[0], 4), 40cm))\n"
             "cross_entropy(x -> linear(5), p.label -> pool(to=g[0]))\n"
             "cross_entropy(x -> pool(mean, to=chunks(g[0], 2)) -> linear(5), p.label -> "
             "pool(to=chunks(g[0], 2)))\n"
             "cross_entropy(t -> linear(5), p.label -> pool(to=sample))\n",
};
