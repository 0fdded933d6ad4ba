/* Launches the kernel that pnet_cuda_conv_choose names. */
#include "kernels/conv_compare.h"
#include "kernels/cuda/base/cuda.h"
#include "kernels/cuda/conv/conv_choice.h"
#include "kernels/cuda/conv/conv_fast.cuh"
#include "kernels/cuda/conv/conv_common.cuh"

enum conv_unit pnet_cuda_conv_unit(void)
{
    const char *why;
    if (!pnet_cuda_devices(&why) || pnet_cuda_conv_has_warpgroup()) return CONV_UNIT_WARPGROUP;
    return pnet_cuda_conv_has_warp() ? CONV_UNIT_WARP : CONV_UNIT_NONE;
}

static conv_set set_for(
    const struct pnet_triplets *t, enum pnet_storage storage, enum pnet_conv_algo algo)
{
    conv_set s = pnet_cuda_conv_set_of(t, storage);
    if (!pnet_conv_algo_reads_tiles(algo)) s.tiles = {};
    return s;
}

static enum pnet_conv_form form_of(const conv_set &s)
{
    return !s.start ? PNET_CONV_DENSE : s.tiles.tile ? PNET_CONV_TILES : PNET_CONV_TRIPLETS;
}

static bool is_aligned(const float *p)
{
    return (uintptr_t)p % 16 == 0;
}

static conv_product product_of(const struct pnet_mvmr *m)
{
    return {set_for(m->triplets, m->storage, m->algo),
        pnet_cuda_conv_merge(m->shape, CONV_MERGED_WIDTH), m->shape.cin, m->shape.cout, m->in,
        m->weight, m->transposed, false, {m->bias, m->out, m->add, m->act, m->slope}};
}

/* `few`: may the kernel for few rows be chosen? */
static conv_case case_of(const conv_product &p, struct pnet_conv_shape shape,
    enum pnet_precision precision, enum pnet_conv_algo algo, bool few)
{
    conv_case c = {};
    c.set = p.set;
    c.form = form_of(p.set);
    c.shape = shape;
    c.groups = p.groups;
    c.few = few;
    c.precision = precision;
    c.algo = algo;
    c.unit = pnet_cuda_conv_unit_of(0);
    c.aligned = is_aligned(p.in) && is_aligned(p.weight) && is_aligned(p.end.out);
    return c;
}

static void multiply(const conv_product &p, const conv_case &c, void *work)
{
    pnet_cuda_conv_choose(&c)->mvmr(&p, c.precision, work);
}

void pnet_cuda_mvmr(const struct pnet_mvmr *m, void *work)
{
    conv_product p = product_of(m);
    if (pnet_conv_algo_is_usual(m->algo))
        multiply(p, case_of(p, m->shape, m->precision, m->algo, true), work);
    else
        pnet_cuda_mvmr_algo(m, work);
}

void pnet_cuda_mvmr_whole(const struct pnet_mvmr *m, void *work)
{
    conv_product p = product_of(m);
    multiply(p, case_of(p, m->shape, m->precision, PNET_ALGO_DEFAULT, false), work);
}

static conv_case case_of(const conv_outer &o, struct pnet_conv_shape shape,
    enum pnet_precision precision, enum pnet_conv_algo algo)
{
    conv_case c = {};
    c.set = o.set;
    c.form = form_of(o.set);
    c.shape = shape;
    c.groups = o.groups;
    c.weights = true;
    c.swapped = o.swapped;
    c.precision = precision;
    c.algo = algo;
    c.aligned = is_aligned(o.in) && is_aligned(o.gout);
    c.unit = pnet_cuda_conv_unit_of(0);
    return c;
}

/* By kernels that keep the sums of all cells at once: in parts of the output channels, so that there are not too many. */
static void sum_in_parts(const conv_outer &outer, const conv_case &whole, void *work)
{
    conv_outer o = outer;
    int columns = pnet_cuda_conv_columns_at_once(o.set.cells, &o.groups), all = o.groups.cout;
    for (int first = 0; first < all; first += columns) {
        conv_case c = whole;
        o.groups.cout = min(columns, all - first);
        o.gout = skip(outer.gout, first, o.set.rows.storage);
        o.gweight = outer.gweight + first;
        c.groups = o.groups;
        c.part = true;
        pnet_cuda_conv_choose(&c)->vvor(&o, c.precision, work);
    }
}

static void sum_outer(const conv_outer &o, const conv_case &c, void *work)
{
    const conv_choice *row = pnet_cuda_conv_choose(&c);
    if (row->parts)
        sum_in_parts(o, c, work);
    else
        row->vvor(&o, c.precision, work);
}

void pnet_cuda_vvor(const struct pnet_vvor *v, void *work)
{
    conv_outer o = {set_for(v->triplets, v->storage, v->algo),
        pnet_cuda_conv_merge(v->shape, CONV_MERGED_WIDTH), v->shape.cin, v->shape.cout, v->in,
        v->gout, v->gout, v->gweight, v->swapped, false, v->add};
    if (pnet_conv_algo_is_usual(v->algo))
        sum_outer(o, case_of(o, v->shape, v->precision, v->algo), work);
    else
        pnet_cuda_vvor_algo(v, work);
}

static conv_product dense_product(const struct pnet_gemm *g)
{
    struct pnet_count n = g->n;
    n.storage = g->storage;
    return {pnet_cuda_conv_dense_set(n),
        pnet_cuda_conv_merge({g->cin, g->cout, 1}, CONV_MERGED_WIDTH), g->cin, g->cout, g->x, g->w,
        g->transposed, g->exact_x, {g->bias, g->y, g->add, g->act, g->slope}};
}

static void multiply_dense(const struct pnet_gemm *g, bool few, void *work)
{
    conv_product p = dense_product(g);
    conv_case c = case_of(p, {g->cin, g->cout, 1}, g->precision, PNET_ALGO_DEFAULT, few);
    c.exact = (g->exact_x || g->exact_y) && g->storage != PNET_STORE_F32;
    multiply(p, c, work);
}

void pnet_cuda_gemm(const struct pnet_gemm *g, void *work)
{
    multiply_dense(g, true, work);
}

void pnet_cuda_gemm_whole(const struct pnet_gemm *g, void *work)
{
    multiply_dense(g, false, work);
}

void pnet_cuda_outer(const struct pnet_outer *o, void *work)
{
    struct pnet_conv_shape shape = {o->cin, o->cout, 1};
    struct pnet_count n = o->n;
    n.storage = o->storage;
    conv_outer outer = {pnet_cuda_conv_dense_set(n), pnet_cuda_conv_merge(shape, CONV_MERGED_WIDTH),
        o->cin, o->cout, o->x, o->g, o->g, o->gw, false, o->transposed, o->add};
    conv_case c = case_of(outer, shape, o->precision, PNET_ALGO_DEFAULT);
    c.exact = o->exact_g && o->storage != PNET_STORE_F32;
    sum_outer(outer, c, work);
}
