/* Which kernel makes which layer. */
#include "kernels/cuda/conv_algo.cuh"
#include "kernels/cuda/conv_fast.cuh"
#include "kernels/cuda/conv_vvor.cuh"

enum { MERGED_WIDTH = 64 };

static conv_set set_for(
    const struct pnet_triplets *t, enum pnet_storage storage, enum pnet_conv_algo algo)
{
    conv_set s = conv_set_of(t, storage);
    if (!pnet_conv_algo_reads_tiles(algo)) s.tiles = {};
    return s;
}

static conv_product product_of(const struct pnet_mvmr *m)
{
    return {set_for(m->triplets, m->storage, m->algo), conv_merge(m->shape, MERGED_WIDTH),
        m->shape.cin, m->shape.cout, m->in, m->weight, m->transposed,
        {m->bias, m->out, m->add, m->act, m->slope}};
}

/* A set that has tiles, as far as the choice of a kernel looks at it. */
static conv_set tiled_set(int32_t cells)
{
    static const struct pnet_tile there = {};
    static const int64_t start = 0;
    conv_set s = {};
    s.cells = cells;
    s.start = &start;
    s.tiles.tile = &there;
    return s;
}

static bool may_be_tiled(int32_t cells, struct pnet_conv_shape s, enum pnet_conv_algo algo)
{
    return cells <= PNET_TILE_CELLS && pnet_conv_algo_reads_tiles(algo) && !conv_depthwise(s);
}

bool pnet_cuda_mvmr_tiled(int32_t cells, struct pnet_conv_shape s, enum pnet_precision precision,
    enum pnet_conv_algo algo)
{
    (void)precision;
    return may_be_tiled(cells, s, algo) && conv_tiles_serves(tiled_set(cells));
}

bool pnet_cuda_vvor_tiled(int32_t cells, struct pnet_conv_shape s, enum pnet_precision precision,
    enum pnet_conv_algo algo)
{
    return may_be_tiled(cells, s, algo) && tiles_vvor_serves(tiled_set(cells), precision);
}

/* Whether a set has tiles or not: a plan is made before it is known. */
static size_t product_work(const conv_set &s, const conv_groups &g, enum pnet_precision precision)
{
    size_t fast = conv_fast_work(s, g, precision), tiles = conv_tiles_work(s, g, precision);
    size_t few = conv_few_work(s, g, precision), most = tiles > few ? tiles : few;
    return fast > 0 && most > fast ? most : fast; /* 0: too many cells for any */
}

size_t pnet_cuda_mvmr_work(
    const struct pnet_triplets *t, struct pnet_conv_shape s, enum pnet_precision precision)
{
    return conv_depthwise(s) ? 0
                             : product_work(conv_set_of(t, PNET_STORE_F32),
                                   conv_merge(s, MERGED_WIDTH), precision);
}

/* By a kernel that goes through all cells of a block of rows. */
static void multiply_whole(const conv_product &p, enum pnet_precision precision, void *work)
{
    if (conv_dense_serves(p, precision))
        conv_dense_mvmr(p, precision);
    else if (conv_tiles_serves(p.set))
        conv_tiles_mvmr(p, precision, work);
    else if (conv_fast_serves(p.set) && p.set.rows.storage == PNET_STORE_F32)
        conv_fast_mvmr(p, precision, work);
    else
        conv_plain_mvmr(p);
}

static void multiply(const conv_product &p, enum pnet_precision precision, void *work)
{
    if (conv_few_serves(p.set, p.groups, precision))
        conv_few_mvmr(p, precision, work);
    else
        multiply_whole(p, precision, work);
}

void pnet_cuda_mvmr(const struct pnet_mvmr *m, void *work)
{
    conv_product p = product_of(m);
    if (!pnet_conv_algo_is_usual(m->algo))
        pnet_cuda_mvmr_algo(m, work);
    else if (conv_depthwise(m->shape))
        conv_depthwise_mvmr(p);
    else if (m->algo == PNET_ALGO_DEFAULT)
        multiply(p, m->precision, work);
    else
        multiply_whole(p, m->precision, work);
}

void pnet_cuda_mvmr_whole(const struct pnet_mvmr *m, void *work)
{
    conv_product p = product_of(m);
    if (conv_depthwise(m->shape))
        conv_depthwise_mvmr(p);
    else
        multiply_whole(p, m->precision, work);
}

/* Sums of all kernel cells of a wide layer would take too much memory: columns that are summed together, then. */
static int columns_at_once(int cells, const conv_groups &g)
{
    enum { SIDE = 128, MOST_BYTES = 44 << 20 };
    if (g.count > 1) return g.cout;
    int64_t column = (int64_t)cells * ((g.cin + SIDE - 1) / SIDE * SIDE) * (int64_t)sizeof(float);
    int64_t columns = MOST_BYTES / column / SIDE * SIDE;
    return (int)max((int64_t)SIDE, min(columns, (int64_t)(g.cout + SIDE - 1) / SIDE * SIDE));
}

/* Whichever kernel runs: a plan is made where there is no GPU to ask. */
static size_t outer_work(const conv_set &s, struct pnet_conv_shape shape)
{
    return max(conv_plain_vvor_work(s, shape), dense_vvor_work(s.rows, shape.cin, shape.cout));
}

size_t pnet_cuda_vvor_work(
    const struct pnet_triplets *t, struct pnet_conv_shape s, enum pnet_precision precision)
{
    conv_set set = conv_set_of(t, PNET_STORE_F32);
    conv_groups g = conv_merge(s, MERGED_WIDTH);
    if (conv_depthwise(s)) return conv_depthwise_vvor_work(set, s.cin);
    int columns = columns_at_once(t->cells, g), widths[] = {min(columns, g.cout), g.cout % columns};
    size_t most = max(conv_plain_vvor_work(set, s), narrow_vvor_work(set, g, precision));
    if (precision == PNET_BF16 || precision == PNET_FP16) most = max(most, lists_vvor_work(set, g));
    for (int width : widths) {
        g.cout = width;
        if (width == 0) continue;
        most = max(most, max(vvor_fast_work(set, g), tiles_vvor_work(set, g)));
        if (precision == PNET_FP32) most = max(most, cells_vvor_work(set, g));
    }
    return most;
}

/* Columns of the outer products by kernels that keep all their sums. */
static void sum_columns(const conv_outer &o, enum pnet_precision precision, void *work)
{
    if (cells_vvor_serves(o, precision))
        cells_vvor(o, work);
    else if (tiles_vvor_serves(o.set, precision))
        tiles_vvor(o, precision, work);
    else
        vvor_fast(o, precision, work);
}

static void sum_in_parts(const conv_outer &outer, enum pnet_precision precision, void *work)
{
    conv_outer o = outer;
    int columns = columns_at_once(o.set.cells, o.groups), all = o.groups.cout;
    for (int first = 0; first < all; first += columns) {
        o.groups.cout = min(columns, all - first);
        o.gout = skip(outer.gout, first, o.set.rows.storage);
        o.gweight = outer.gweight + first;
        sum_columns(o, precision, work);
    }
}

void pnet_cuda_vvor(const struct pnet_vvor *v, void *work)
{
    conv_outer o = {set_for(v->triplets, v->storage, v->algo), conv_merge(v->shape, MERGED_WIDTH),
        v->shape.cin, v->shape.cout, v->in, v->gout, v->gout, v->gweight, v->swapped, false,
        v->add};
    if (!pnet_conv_algo_is_usual(v->algo))
        pnet_cuda_vvor_algo(v, work);
    else if (conv_depthwise(v->shape))
        conv_depthwise_vvor(o, work);
    else if (narrow_vvor_serves(o, v->precision))
        narrow_vvor(o, v->precision, work);
    else if (lists_vvor_serves(o, v->precision))
        lists_vvor(o, v->precision, work);
    else if (conv_fast_serves(o.set))
        sum_in_parts(o, v->precision, work);
    else
        conv_plain_vvor(o, v->shape, work);
}

size_t pnet_cuda_gemm_work(
    struct pnet_count n, int32_t cin, int32_t cout, enum pnet_precision precision)
{
    return product_work(conv_dense_set(n), conv_merge({cin, cout, 1}, MERGED_WIDTH), precision);
}

static conv_product dense_product(const struct pnet_gemm *g)
{
    struct pnet_count n = g->n;
    n.storage = g->storage;
    return {conv_dense_set(n), conv_merge({g->cin, g->cout, 1}, MERGED_WIDTH), g->cin, g->cout,
        g->x, g->w, g->transposed, {g->bias, g->y, g->add, g->act, g->slope}};
}

void pnet_cuda_gemm(const struct pnet_gemm *g, void *work)
{
    multiply(dense_product(g), g->precision, work);
}

void pnet_cuda_gemm_whole(const struct pnet_gemm *g, void *work)
{
    multiply_whole(dense_product(g), g->precision, work);
}

size_t pnet_cuda_outer_work(
    struct pnet_count n, int32_t cin, int32_t cout, enum pnet_precision precision)
{
    (void)precision;
    return outer_work(conv_dense_set(n), {cin, cout, 1});
}

void pnet_cuda_outer(const struct pnet_outer *o, void *work)
{
    struct pnet_conv_shape shape = {o->cin, o->cout, 1};
    struct pnet_count n = o->n;
    n.storage = o->storage;
    conv_outer outer = {conv_dense_set(n), conv_merge(shape, MERGED_WIDTH), o->cin, o->cout, o->x,
        o->g, o->g, o->gw, false, o->transposed, o->add};
    if (conv_fast_serves(outer.set))
        dense_vvor(outer, o->precision, work);
    else
        conv_plain_vvor(outer, shape, work);
}
