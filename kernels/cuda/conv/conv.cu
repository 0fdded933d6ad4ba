/* Which kernel makes which layer. */
#include "kernels/conv_compare.h"
#include "kernels/cuda/conv/conv_fast.cuh"
#include "kernels/cuda/conv/conv_vvor.cuh"

static conv_set set_for(
    const struct pnet_triplets *t, enum pnet_storage storage, enum pnet_conv_algo algo)
{
    conv_set s = conv_set_of(t, storage);
    if (!pnet_conv_algo_reads_tiles(algo)) s.tiles = {};
    return s;
}

static conv_product product_of(const struct pnet_mvmr *m)
{
    return {set_for(m->triplets, m->storage, m->algo), conv_merge(m->shape, CONV_MERGED_WIDTH),
        m->shape.cin, m->shape.cout, m->in, m->weight, m->transposed,
        {m->bias, m->out, m->add, m->act, m->slope}};
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
    else if (pnet_conv_is_depthwise(m->shape))
        conv_depthwise_mvmr(p);
    else if (m->algo == PNET_ALGO_DEFAULT)
        multiply(p, m->precision, work);
    else
        multiply_whole(p, m->precision, work);
}

void pnet_cuda_mvmr_whole(const struct pnet_mvmr *m, void *work)
{
    conv_product p = product_of(m);
    if (pnet_conv_is_depthwise(m->shape))
        conv_depthwise_mvmr(p);
    else
        multiply_whole(p, m->precision, work);
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
    int columns = conv_columns_at_once(o.set.cells, &o.groups), all = o.groups.cout;
    for (int first = 0; first < all; first += columns) {
        o.groups.cout = min(columns, all - first);
        o.gout = skip(outer.gout, first, o.set.rows.storage);
        o.gweight = outer.gweight + first;
        sum_columns(o, precision, work);
    }
}

void pnet_cuda_vvor(const struct pnet_vvor *v, void *work)
{
    conv_outer o = {set_for(v->triplets, v->storage, v->algo),
        conv_merge(v->shape, CONV_MERGED_WIDTH), v->shape.cin, v->shape.cout, v->in, v->gout,
        v->gout, v->gweight, v->swapped, false, v->add};
    if (!pnet_conv_algo_is_usual(v->algo))
        pnet_cuda_vvor_algo(v, work);
    else if (pnet_conv_is_depthwise(v->shape))
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

static conv_product dense_product(const struct pnet_gemm *g)
{
    struct pnet_count n = g->n;
    n.storage = g->storage;
    return {conv_dense_set(n), conv_merge({g->cin, g->cout, 1}, CONV_MERGED_WIDTH), g->cin, g->cout,
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

void pnet_cuda_outer(const struct pnet_outer *o, void *work)
{
    struct pnet_conv_shape shape = {o->cin, o->cout, 1};
    struct pnet_count n = o->n;
    n.storage = o->storage;
    conv_outer outer = {conv_dense_set(n), conv_merge(shape, CONV_MERGED_WIDTH), o->cin, o->cout,
        o->x, o->g, o->g, o->gw, false, o->transposed, o->add};
    if (conv_fast_serves(outer.set))
        dense_vvor(outer, o->precision, work);
    else
        conv_plain_vvor(outer, shape, work);
}
