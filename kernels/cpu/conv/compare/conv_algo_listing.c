/* The listings of PointCNN++ on all threads. Each thread computes columns of its own, for all rows or all cells, so that
   no two add to the same number. A block of columns is a register wide. PointCNN++: Performant Convolution on Native
   Points, 2025, listings 1 and 2. */
#include "kernels/cpu/conv/compare/conv_algo_parts.h"

/* Blocks of columns of a group. */
static int blocks_of(const struct pnet_conv_isa *isa, int channels)
{
    return (channels + isa->vector - 1) / isa->vector;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

void pnet_conv_listing_mvmr(
    const struct pnet_mvmr *m, const struct pnet_conv_list *list, const float *weight)
{
    const struct pnet_conv_isa *isa = pnet_conv_isa();
    struct pnet_conv_shape s = m->shape;
    int cin = s.cin / s.groups, cout = s.cout / s.groups, wide = blocks_of(isa, cout);
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < s.groups * wide; i++) {
        int group = i / wide, column = i % wide * isa->vector, first = group * cout + column;
        isa->listing_mvmr(&(struct pnet_listing){.count = list->most,
            .row = list->row,
            .other = list->other,
            .cell = list->cell,
            .depth = cin,
            .columns = smaller(isa->vector, cout - column),
            .in = m->in + group * cin,
            .in_stride = (size_t)s.cin,
            .weight = weight + first,
            .weight_stride = (size_t)s.cout,
            .cell_stride = (size_t)cin * (size_t)s.cout,
            .out = m->out + first,
            .out_stride = (size_t)s.cout});
    }
}

void pnet_conv_listing_vvor(const struct pnet_vvor *v, const struct pnet_conv_list *list)
{
    const struct pnet_conv_isa *isa = pnet_conv_isa();
    struct pnet_conv_shape s = v->shape;
    int cin = s.cin / s.groups, cout = s.cout / s.groups, wide = blocks_of(isa, cout),
        deep = (cin + PNET_LISTING_DEPTH - 1) / PNET_LISTING_DEPTH;
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < s.groups * wide * deep; i++) {
        int group = i / wide / deep, column = i % wide * isa->vector,
            a = i / wide % deep * PNET_LISTING_DEPTH, first = group * cout + column;
        isa->listing_vvor(&(struct pnet_listing){.count = list->most,
            .row = v->swapped ? list->other : list->row,
            .other = v->swapped ? list->row : list->other,
            .cell = list->cell,
            .depth = smaller(PNET_LISTING_DEPTH, cin - a),
            .columns = smaller(isa->vector, cout - column),
            .in = v->in + group * cin + a,
            .in_stride = (size_t)s.cin,
            .gout = v->gout + first,
            .gout_stride = (size_t)s.cout,
            .cell_stride = (size_t)cin * (size_t)s.cout,
            .out = v->gweight + (size_t)a * (size_t)s.cout + first,
            .out_stride = (size_t)s.cout});
    }
}
