/* Attention among rows that lie near each other in an order. */
#include "kernels/attend.h"
#include "runtime/ops/common.h"

#include <math.h>
#include <stdlib.h>

enum { IN, HEADS, ORDER, BUCKET, SCOPE, SHIFT, STRIDE, WRAP, SCALE, CELL };
enum { LOG_SUM };

static bool check_width(struct pnet_rule *r)
{
    int64_t width = r->in[0].width, heads = r->attr[HEADS].i, of_head = width / 3 / heads;
    if (width % 3) {
        pnet_rule_help(r, "-> linear(3 * width(x)) in front of it makes them");
        return pnet_rule_fail(r, IN,
            "attend() takes queries, keys and values side by side: %d is no multiple of 3",
            (int)width);
    }
    if (width / 3 % heads)
        return pnet_rule_fail(
            r, HEADS, "%d heads do not divide %d channels", (int)heads, (int)(width / 3));
    if (of_head != 8 && of_head != 16 && of_head != 32 && of_head != 64 && of_head != 128)
        return pnet_rule_fail(r, HEADS,
            "%d heads of %d channels have %d each: 8, 16, 32, 64 or 128 are possible", (int)heads,
            (int)(width / 3), (int)of_head);
    return true;
}

static bool check_level(struct pnet_rule *r)
{
    const struct pnet_level_info *l = &r->levels[r->in[0].level];
    if (l->kind == PNET_GEO_SAMPLE || l->kind == PNET_GEO_SCALAR)
        return pnet_rule_fail(r, IN, "attend() takes points, and %s has one row a sample", l->name);
    if (l->input < 0)
        return pnet_rule_fail(
            r, IN, "%s lies on generated points: their places are features", l->name);
    const struct pnet_level_info *with_cells = l;
    while (with_cells->kind == PNET_GEO_CHUNKS) with_cells = &r->levels[with_cells->finer];
    if (r->attr[ORDER].i == PNET_ORDER_Z || with_cells->cell > 0 || r->attr[CELL].set) return true;
    pnet_rule_help(r, "cell=5cm, say, makes voxels for the order");
    return pnet_rule_fail(r, ORDER, "%s has no cells, which this order is made of", l->name);
}

/* Orders that do not hash are the same for all buckets. */
static struct pnet_geo_request order_request(const struct pnet_rule *r)
{
    int level = r->in[0].level;
    enum pnet_order order = (enum pnet_order)r->attr[ORDER].i;
    return (struct pnet_geo_request){.kind = PNET_GEO_ORDER,
        .a = level,
        .b = level,
        .order = {(int32_t)order, pnet_order_hashes(order) ? (int32_t)r->attr[BUCKET].i : 0,
            r->attr[CELL].set ? r->attr[CELL].r : 0}};
}

static bool rule(struct pnet_rule *r)
{
    if (!check_width(r) || !check_level(r)) return false;
    if (r->attr[BUCKET].i % 16)
        return pnet_rule_fail(r, BUCKET, "bucket=%d is no multiple of 16", (int)r->attr[BUCKET].i);
    if (r->attr[ORDER].i != PNET_ORDER_Z) pnet_rule_geo(r, order_request(r));
    pnet_rule_save(
        r, (struct pnet_type){PNET_F32, (int32_t)r->attr[HEADS].i, r->in[0].level, 0, false}, true);
    r->out = r->in[0];
    r->out.width /= 3;
    return true;
}

static double scale_of(const struct pnet_exec *x)
{
    if (x->attr[SCALE].set) return x->attr[SCALE].r;
    return 1 / sqrt((double)x->in[IN].width / 3 / (double)x->attr[HEADS].i);
}

static struct pnet_attend attend_of(const struct pnet_exec *x)
{
    const struct pnet_tensor *t = &x->in[IN];
    return (struct pnet_attend){.rows = pnet_op_rows(t),
        .samples = t->samples,
        .splits = t->row_splits,
        .order = x->geo[0] ? x->geo[0]->array[0] : NULL,
        .scopes = {(int32_t)x->attr[BUCKET].i, (int32_t)x->attr[SCOPE].i, (int32_t)x->attr[SHIFT].i,
            (int32_t)x->attr[STRIDE].i, x->attr[WRAP].i != 0},
        .heads = (int32_t)x->attr[HEADS].i,
        .width = t->width / 3 / (int32_t)x->attr[HEADS].i,
        .scale = (float)scale_of(x),
        .precision = x->precision};
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    struct pnet_attend a = attend_of(x);
    return PNET_WORK(x->device, attend_work)(&a, backward);
}

static void forward(const struct pnet_exec *x)
{
    struct pnet_attend a = attend_of(x);
    PNET_KERNEL(x, attend)
    (&a, x->in[IN].data, x->out.data, x->saved[LOG_SUM].data, x->work);
}

static void backward(const struct pnet_exec *x)
{
    struct pnet_attend a = attend_of(x);
    if (x->gin[IN].data) PNET_KERNEL(x, attend_backward)
    (&a, x->in[IN].data, x->out.data, x->saved[LOG_SUM].data, x->gout.data, x->gin_add[IN],
        x->gin[IN].data, x->work);
}

/* The number of the scope of a place, by the words of kernels/attend.h. */
static int64_t scope_of(const struct pnet_attend *a, int64_t rows, int64_t place)
{
    const struct pnet_scopes *s = &a->scopes;
    int64_t buckets = pnet_bucket_count(rows, s->bucket), bucket = 0, chunk = s->scope * s->stride;
    if (buckets <= s->scope) return 0;
    while (pnet_bucket_begin(rows, buckets, bucket + 1) <= place) bucket++;
    if (s->wrap) {
        bucket = (bucket + buckets - s->shift % buckets) % buckets;
        return bucket / chunk * s->stride + bucket % chunk % s->stride;
    }
    int64_t first = s->shift % chunk;
    if (bucket < first) return bucket % s->stride;
    return (1 + (bucket - first) / chunk) * s->stride + (bucket - first) % chunk % s->stride;
}

static void reference_row(const struct pnet_exec *x, const struct pnet_attend *a, int64_t begin,
    int64_t rows, const int64_t *scope, int64_t at, int32_t head)
{
    int32_t width = a->width, all = width * a->heads;
    const double *in = x->in[IN].data;
    double *out = (double *)x->out.data, top = -INFINITY, sum = 0;
#define ROW(place) (a->order ? a->order[begin + (place)] : begin + (place))
#define PART(place, third) (in + ROW(place) * 3 * all + (third)*all + head * width)
    double *to = out + ROW(at) * all + head * width;
    for (int turn = 0; turn < 2; turn++)
        for (int64_t j = 0; j < rows; j++) {
            double s = 0;
            if (scope[j] != scope[at]) continue;
            for (int32_t c = 0; c < width; c++) s += PART(at, 0)[c] * PART(j, 1)[c];
            s *= scale_of(x);
            if (turn == 0) top = fmax(top, s);
            if (turn == 0) continue;
            sum += exp(s - top);
            for (int32_t c = 0; c < width; c++) to[c] += exp(s - top) * PART(j, 2)[c];
        }
    for (int32_t c = 0; c < width; c++) to[c] /= sum;
#undef PART
#undef ROW
}

static void reference(const struct pnet_exec *x)
{
    struct pnet_attend a = attend_of(x);
    double *out = x->out.data;
    for (int64_t i = 0; i < pnet_op_count_of(&x->out); i++) out[i] = 0;
    for (int32_t s = 0; s < a.samples; s++) {
        int64_t begin = a.splits[s], rows = a.splits[s + 1] - begin;
        int64_t *scope = malloc((size_t)(rows + 1) * sizeof *scope);
        if (!scope) abort();
        for (int64_t i = 0; i < rows; i++) scope[i] = scope_of(&a, rows, i);
        for (int64_t i = 0; i < rows; i++)
            for (int32_t h = 0; h < a.heads; h++) reference_row(x, &a, begin, rows, scope, i, h);
        free(scope);
    }
}

const struct pnet_op pnet_op_attend = {
    .name = "attend",
    .class_ = PNET_LAYER,
    .summary = "Attention of several heads among points that lie near each other in an order",
    .doc =
        "`x` has queries, keys and values side by side, each `C` channels by heads; the result has "
        "`C`. The points of a sample are put in an order and cut into buckets of equal size, at "
        "most "
        "`bucket` points each; `scope` buckets together are a scope, and each point attends to all "
        "points of its scope, with the softmax of `scale * q.k` as weights (default: `1 / sqrt(C / "
        "heads)`). Every point is in one scope of its sample.\n\n"
        "Orders: `z`, the order of the rows, which is a Morton curve; `hilbert`; both with x and y "
        "swapped (`z_trans`, `hilbert_trans`); and three hashes of the point's voxel, by which "
        "points are sorted: `xor_div`, `xor_mod`, `z_mod`. Voxels are the cells of the level, or "
        "those of the edge `cell=`, which a level without cells needs; `z` reads neither.\n\n"
        "`shift` moves the borders between scopes by so many buckets; with `stride` a scope takes "
        "every second, third .. bucket. At the ends of a sample scopes are smaller, unless `wrap` "
        "joins both ends of the order.\n\n"
        "Chen et al., Flash3D: Super-scaling Point Transformers through Joint Hardware-Geometry "
        "Locality, 2024; Wu et al., Point Transformer V3, 2024.",
    .args =
        {
            [IN] = {"x", PNET_ARG_VALUE, NULL, 0, 0, NULL, "queries, keys, values: 3 C channels"},
            [HEADS] = {"heads", PNET_ARG_INT, NULL, 1, 4096, NULL,
                "heads; each has 8, 16, 32, 64 or 128 of the C channels"},
            [ORDER] = {"order", PNET_ARG_CHOICE, "z", 0, 0,
                "z|z_trans|hilbert|hilbert_trans|xor_div|xor_mod|z_mod",
                "what buckets are cut from"},
            [BUCKET] = {"bucket", PNET_ARG_INT, "512", 16, 4096, NULL,
                "points of a bucket, at most; a multiple of 16"},
            [SCOPE] = {"scope", PNET_ARG_INT, "8", 1, 64, NULL, "buckets of a scope, at most"},
            [SHIFT] = {"shift", PNET_ARG_INT, "0", 0, 1000000, NULL,
                "buckets by which the borders of scopes move"},
            [STRIDE] = {"stride", PNET_ARG_INT, "1", 1, 8, NULL,
                "distance of the buckets of a scope"},
            [WRAP] = {"wrap", PNET_ARG_BOOL, "no", 0, 0, NULL,
                "join the ends of the order, instead of smaller scopes there"},
            [SCALE] = {"scale", PNET_ARG_REAL, "", 0, 0, NULL, "factor of the products"},
            [CELL] = {"cell", PNET_ARG_LENGTH, "", 1e-6, 1e5, NULL,
                "edge of the voxels of an order, instead of the cells of the level"},
        },
    .flags = PNET_OF_SAMPLE,
    .keep = PNET_KEEP_IN0 | PNET_KEEP_OUT,
    .rule = rule,
    .work = work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
    .cases =
        "x -> linear(24) -> attend(1, bucket=16, scope=2)\n"
        "x -> linear(48) -> attend(2, order=\"z_trans\", bucket=16, scope=2, shift=1)\n"
        "x -> linear(48) -> attend(1, order=\"hilbert\", bucket=16, scope=1, scale=0.5)\n"
        "x -> linear(96) -> attend(1, order=\"hilbert_trans\", bucket=16, scope=2, stride=2)\n"
        "x -> linear(24) -> attend(1, order=\"xor_div\", bucket=16, scope=2, stride=2, shift=1)\n"
        "x -> linear(24) -> attend(1, order=\"xor_mod\", bucket=16, scope=2, stride=2, shift=3, "
        "wrap=yes)\n"
        "x -> linear(24) -> attend(1, order=\"z_mod\", bucket=16, scope=2)\n"
        "x -> linear(192) -> attend(1, bucket=16, scope=3)\n"
        "x -> linear(384) -> attend(1, bucket=16, scope=1)\n"
        "p.xyz -> linear(24) -> attend(1, order=\"xor_div\", bucket=16, scope=2, cell=5cm)\n",
};
