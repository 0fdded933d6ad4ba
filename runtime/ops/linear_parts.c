/* One matrix for every point whose input was joined from several values, the last of which lies on a coarser level: its part of
   the matrix is multiplied once for each coarse row, and the result is repeated. The compiler makes such nodes from linear, cat
   and expand; models cannot name it. */
#include "kernels/act.h"
#include "kernels/conv.h"
#include "kernels/rows.h"
#include "runtime/device/memory.h"
#include "runtime/ops/common.h"

enum { IN, CHANNELS, BIAS, AT };
enum { WEIGHT, BIAS_PARAM };

/* Sizes of a step, and what lies in its workspace. Columns of the matrix: those of the fine values before `at`, `coarse` of the
   coarse one, the other fine ones. */
struct parts {
    const struct pnet_exec *x;
    const struct pnet_tensor *last; /* the coarse value */
    struct pnet_count rows, coarse_rows;
    int32_t cout, fine, coarse, at;
    float *values; /* [rows, fine]: the fine values side by side; of a single one its own memory */
    float *fine_weight;   /* [cout, fine] */
    float *coarse_weight; /* [cout, coarse] */
    float *whole_weight;  /* [cout, fine + coarse], for gradients */
    float *sums;          /* [coarse rows, cout] */
    void *work;
    size_t bytes;
};

static void *take(struct parts *p, int64_t count)
{
    void *at = p->x->work ? (char *)p->x->work + p->bytes : NULL;
    p->bytes += pnet_round_bytes((size_t)count * sizeof(float));
    return at;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t kernels_work(const struct parts *p, bool backward)
{
    const struct pnet_exec *x = p->x;
    enum pnet_device_kind d = x->device;
    if (!backward)
        return larger(PNET_WORK(d, gemm_work)(p->rows, p->fine, p->cout, x->precision),
            PNET_WORK(d, gemm_work)(p->coarse_rows, p->coarse, p->cout, x->precision));
    size_t fine = larger(PNET_WORK(d, gemm_work)(p->rows, p->cout, p->fine, x->precision),
        PNET_WORK(d, outer_work)(p->rows, p->fine, p->cout, x->precision));
    size_t coarse =
        larger(PNET_WORK(d, gemm_work)(p->coarse_rows, p->cout, p->coarse, x->precision),
            PNET_WORK(d, outer_work)(p->coarse_rows, p->coarse, p->cout, x->precision));
    size_t sums = larger(PNET_WORK(d, column_sum_work)(p->rows, p->cout),
        x->geo[0] ? PNET_WORK(d, cells_sum_work)(p->cout)
                  : PNET_WORK(d, segments_pool_work)(pnet_op_samples(&x->out), p->cout));
    return larger(larger(fine, coarse), sums);
}

static struct parts parts_of(const struct pnet_exec *x, bool backward)
{
    int last = x->in_count - 1;
    struct parts p = {.x = x,
        .last = &x->in[last],
        .rows = pnet_op_rows(&x->out),
        .coarse_rows = pnet_op_rows(&x->in[last]),
        .cout = x->out.width,
        .coarse = x->in[last].width,
        .at = (int32_t)x->attr[AT].i};
    for (int i = 0; i < last; i++) p.fine += x->in[i].width;
    p.values = last > 1 ? take(&p, p.rows.most * p.fine) : x->in[0].data;
    p.fine_weight = take(&p, (int64_t)p.cout * p.fine);
    p.coarse_weight = take(&p, (int64_t)p.cout * p.coarse);
    p.sums = take(&p, p.coarse_rows.most * p.cout);
    if (backward) p.whole_weight = take(&p, (int64_t)p.cout * (p.fine + p.coarse));
    p.work = x->work ? (char *)x->work + p.bytes : NULL;
    p.bytes += kernels_work(&p, backward);
    return p;
}

static size_t work(const struct pnet_exec *x, bool backward)
{
    struct pnet_exec sizes = *x;
    sizes.work = NULL;
    return parts_of(&sizes, backward).bytes;
}

/* Calls `move` for the columns of the fine values: they lie before and behind those of the coarse one. */
static void each_fine(const struct parts *p,
    void (*move)(const struct parts *p, int32_t count, int32_t whole_at, int32_t fine_at))
{
    if (p->at > 0) move(p, p->at, 0, 0);
    if (p->at < p->fine) move(p, p->fine - p->at, p->at + p->coarse, p->at);
}

static void take_fine(const struct parts *p, int32_t count, int32_t whole_at, int32_t fine_at)
{
    PNET_KERNEL(p->x, columns_move)
    (pnet_count(p->cout), count, p->x->param[WEIGHT], p->fine + p->coarse, whole_at, false,
        p->fine_weight, p->fine, fine_at);
}

static void put_fine(const struct parts *p, int32_t count, int32_t whole_at, int32_t fine_at)
{
    PNET_KERNEL(p->x, columns_move)
    (pnet_count(p->cout), count, p->fine_weight, p->fine, fine_at, false, p->whole_weight,
        p->fine + p->coarse, whole_at);
}

/* Cuts the matrix into its parts. Weights are float32 in every precision. */
static void cut_weight(const struct parts *p)
{
    PNET_KERNEL(p->x, columns_take)
    (pnet_count(p->cout), p->coarse, p->x->param[WEIGHT], p->fine + p->coarse, p->at, false,
        p->coarse_weight);
    each_fine(p, take_fine);
}

static void join_values(const struct parts *p)
{
    int32_t at = 0;
    for (int i = 0; i < p->x->in_count - 1 && p->x->in_count > 2; i++) {
        PNET_KERNEL(p->x, columns_put)
        (p->rows, p->x->in[i].width, p->x->in[i].data, p->fine, at, p->values);
        at += p->x->in[i].width;
    }
}

static struct pnet_gemm gemm_of(const struct parts *p, struct pnet_count n)
{
    return (struct pnet_gemm){
        .n = n, .precision = p->x->precision, .storage = p->x->out.storage, .act = PNET_ACT_NONE};
}

static void forward(const struct pnet_exec *x)
{
    struct parts p = parts_of(x, false);
    cut_weight(&p);
    join_values(&p);
    struct pnet_gemm g = gemm_of(&p, p.coarse_rows);
    g.cin = p.coarse;
    g.cout = p.cout;
    g.x = p.last->data;
    g.w = p.coarse_weight;
    g.bias = x->param[BIAS_PARAM];
    g.y = p.sums;
    g.transposed = true;
    PNET_KERNEL(x, gemm)(&g, p.work);
    if (x->geo[0]) {
        struct pnet_cells cells = pnet_op_cells(x->geo[0], x->out.storage);
        PNET_KERNEL(x, cells_spread)(&cells, p.cout, p.sums, false, false, x->out.data);
    } else {
        PNET_KERNEL(x, segments_spread)
        (pnet_op_samples(&x->out), p.cout, p.sums, false, false, x->out.data);
    }
    g = gemm_of(&p, p.rows);
    g.cin = p.fine;
    g.cout = p.cout;
    g.x = p.values;
    g.w = p.fine_weight;
    g.y = x->out.data;
    g.transposed = g.add = true;
    PNET_KERNEL(x, gemm)(&g, p.work);
}

/* Gradients of the values: `values` has room for those of the fine ones side by side. */
static void to_inputs(const struct parts *p)
{
    const struct pnet_exec *x = p->x;
    int last = x->in_count - 1;
    bool fine = false, single = last == 1;
    for (int i = 0; i < last; i++) fine |= x->gin[i].data != NULL;
    struct pnet_gemm g = gemm_of(p, p->rows);
    g.cin = p->cout;
    g.cout = p->fine;
    g.x = x->gout.data;
    g.w = p->fine_weight;
    g.y = single ? x->gin[0].data : p->values;
    g.add = single && x->gin_add[0];
    if (fine) PNET_KERNEL(x, gemm)(&g, p->work);
    int32_t at = 0;
    for (int i = 0; i < last && !single; i++) {
        if (x->gin[i].data) PNET_KERNEL(x, columns_take)
        (p->rows, x->in[i].width, p->values, p->fine, at, x->gin_add[i], x->gin[i].data);
        at += x->in[i].width;
    }
    g = gemm_of(p, p->coarse_rows);
    g.cin = p->cout;
    g.cout = p->coarse;
    g.x = p->sums;
    g.w = p->coarse_weight;
    g.y = x->gin[last].data;
    g.add = x->gin_add[last];
    if (g.y) PNET_KERNEL(x, gemm)(&g, p->work);
}

static struct pnet_outer outer_of(const struct parts *p, struct pnet_count n)
{
    return (struct pnet_outer){.n = n,
        .cout = p->cout,
        .transposed = true,
        .precision = p->x->precision,
        .storage = p->x->out.storage};
}

/* The gradient of the matrix, made of its parts. */
static void to_weight(const struct parts *p)
{
    const struct pnet_exec *x = p->x;
    struct pnet_outer o = outer_of(p, p->rows);
    o.cin = p->fine;
    o.x = p->values;
    o.g = x->gout.data;
    o.gw = p->fine_weight;
    PNET_KERNEL(x, outer)(&o, p->work);
    o = outer_of(p, p->coarse_rows);
    o.cin = p->coarse;
    o.x = p->last->data;
    o.g = p->sums;
    o.gw = p->coarse_weight;
    PNET_KERNEL(x, outer)(&o, p->work);
    each_fine(p, put_fine);
    PNET_KERNEL(x, columns_put)
    (pnet_count(p->cout), p->coarse, p->coarse_weight, p->fine + p->coarse, p->at, p->whole_weight);
    PNET_KERNEL(x, scale)
    (pnet_count((int64_t)p->cout * (p->fine + p->coarse)), 1, p->whole_weight,
        x->gparam_add[WEIGHT], x->gparam[WEIGHT]);
}

static void backward(const struct pnet_exec *x)
{
    struct parts p = parts_of(x, true);
    cut_weight(&p);
    if (x->geo[0]) {
        struct pnet_cells cells = pnet_op_cells(x->geo[0], x->gout.storage);
        PNET_KERNEL(x, cells_sum)
        (&cells, p.cout, x->gout.data, false, false, p.sums, p.work);
    } else {
        PNET_KERNEL(x, segments_sum)
        (pnet_op_samples(&x->gout), p.cout, x->gout.data, false, false, p.sums, p.work);
    }
    to_inputs(&p);
    if (x->gparam[BIAS_PARAM]) PNET_KERNEL(x, column_sum)
    (p.rows, p.cout, x->gout.data, x->gparam_add[BIAS_PARAM], x->gparam[BIAS_PARAM], p.work);
    if (!x->gparam[WEIGHT]) return;
    join_values(&p);
    to_weight(&p);
}

static int64_t coarse_row(const struct pnet_exec *x, int64_t row)
{
    if (x->geo[0]) return x->geo[0]->parent[row];
    int32_t s = 0;
    while (x->out.row_splits[s + 1] <= row) s++;
    return s;
}

static double reference_sum(const struct pnet_exec *x, int64_t row, int32_t o)
{
    const double *w = x->param[WEIGHT], *bias = x->param[BIAS_PARAM];
    int last = x->in_count - 1;
    int32_t total = 0, at = (int32_t)x->attr[AT].i, column = 0;
    for (int i = 0; i <= last; i++) total += x->in[i].width;
    double sum = bias ? bias[o] : 0;
    for (int i = 0; i <= last; i++) {
        const double *in = x->in[i].data;
        int64_t from = i == last ? coarse_row(x, row) : row;
        for (int32_t c = 0; c < x->in[i].width; c++) {
            int32_t k = i == last ? at + c : column < at ? column : column + x->in[last].width;
            sum += in[from * x->in[i].width + c] * w[(int64_t)o * total + k];
            column += i != last;
        }
    }
    return sum;
}

static void reference(const struct pnet_exec *x)
{
    double *out = x->out.data;
    for (int64_t row = 0; row < x->out.rows; row++)
        for (int32_t o = 0; o < x->out.width; o++)
            out[row * x->out.width + o] = reference_sum(x, row, o);
}

const struct pnet_op pnet_op_linear_parts = {
    .name = "linear_parts",
    .class_ = PNET_LAYER,
    .args =
        {
            [IN] = {"values", PNET_ARG_VALUES, NULL, 0, 0, NULL, "fine values, then a coarse one"},
            [CHANNELS] = {"channels", PNET_ARG_INT, NULL, 1, 65536, NULL, "width of the result"},
            [BIAS] = {"bias", PNET_ARG_BOOL, "yes", 0, 0, NULL, "add a learned constant"},
            [AT] = {"at", PNET_ARG_INT, NULL, 0, 0, NULL, "first channel of the coarse value"},
        },
    .flags = PNET_LINEAR_OUT,
    .keep = PNET_KEEP_ALL_IN,
    .work = work,
    .forward = forward,
    .backward = backward,
    .reference = reference,
};
