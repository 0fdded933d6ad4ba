/* Workspaces of convolution. Each is the largest of all kernels that may be chosen for the layer on a GPU, with or without
   tiles, because a plan is made before that is known. */
#include "kernels/conv_compare.h"
#include "kernels/conv.h"
#include "kernels/conv_plan.h"
#include "kernels/cuda/conv/conv_choice.h"
#include "kernels/cuda/conv/conv_work.h"
#include "kernels/cuda/base/sort.h"

static _Thread_local int planned;

void pnet_cuda_conv_plan_for(int architecture)
{
    planned = architecture;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static bool is_dense(const struct conv_case *c)
{
    return c->form == PNET_CONV_DENSE;
}

size_t pnet_cuda_conv_few_work(const struct conv_case *c)
{
    bool never = c->set.cells > CONV_FEW_CELLS || pnet_storage_of(c->precision) == PNET_STORE_F32;
    return never ? 0 : pnet_cuda_conv_few_plan(&c->set, &c->groups).bytes;
}

/* Of MVMR from tiles, with 256 output channels at a time or as many as the layer's width calls for. */
static size_t tiles_form_work(const struct conv_case *c, enum conv_form form, bool wide)
{
    const struct conv_groups *g = &c->groups;
    int unit = form == CONV_SPLIT || form == CONV_SCALED ? 4 : 8;
    int columns = wide ? 256 : pnet_cuda_conv_tiles_columns(g->cout);
    struct conv_blocks b = pnet_cuda_conv_block_weights(form, c->set.cells, g,
        pnet_cuda_conv_tiles_pieces(form, g->cin) * 4 * unit, columns, unit, true);
    return form == CONV_TILE_SCALED
               ? pnet_cuda_conv_tile_scales_plan(&b, c->set.rows.most, c->others).bytes
               : pnet_cuda_conv_tiles_taken_at(&b) + sizeof(unsigned long long);
}

size_t pnet_cuda_conv_wide_work(const struct conv_case *c)
{
    enum conv_form form = pnet_cuda_conv_form_of(c->precision);
    bool serves = pnet_cuda_conv_tiles_may_be_wide(form, c->set.cells, &c->groups);
    return serves ? tiles_form_work(c, form, true) : 0;
}

size_t pnet_cuda_conv_tiles_work(const struct conv_case *c)
{
    return tiles_form_work(c, pnet_cuda_conv_form_of(c->precision), false);
}

size_t pnet_cuda_conv_by_tile_work(const struct conv_case *c)
{
    bool serves =
        pnet_cuda_conv_tile_form_of(c->precision, c->set.count, &c->groups) == CONV_TILE_SCALED;
    return serves ? tiles_form_work(c, CONV_TILE_SCALED, false) : 0;
}

size_t pnet_cuda_conv_triplets_work(const struct conv_case *c)
{
    const struct conv_groups *g = &c->groups;
    enum conv_form form = pnet_cuda_conv_form_of(c->precision);
    struct conv_blocks b = pnet_cuda_conv_block_weights(form, c->set.cells, g,
        pnet_cuda_conv_triplets_depth(form, g), pnet_cuda_conv_tiles_columns(g->cout), 4, false);
    return pnet_cuda_conv_blocks_bytes(&b);
}

size_t pnet_cuda_conv_warps_work(const struct conv_case *c)
{
    struct conv_blocks b =
        pnet_cuda_conv_warp_blocks(pnet_cuda_conv_form_of(c->precision), c->set.cells, &c->groups);
    return pnet_cuda_conv_blocks_bytes(&b);
}

size_t pnet_cuda_conv_warps_tiles_work(const struct conv_case *c)
{
    size_t most = 0;
    for (int pieces = 1; pieces <= 2; pieces++) { /* by the shared memory of the GPU */
        struct warp_tiles_plan p = pnet_cuda_conv_warp_tiles_plan(
            pnet_cuda_conv_form_of(c->precision), &c->set, &c->groups, pieces);
        most = larger(most, p.bytes);
    }
    return most;
}

size_t pnet_cuda_conv_depthwise_work(const struct conv_case *c)
{
    if (!c->weights || !pnet_conv_is_depthwise(c->shape)) return 0;
    return (size_t)pnet_cuda_conv_depthwise_split(&c->set, c->shape.cin).count *
           (size_t)c->set.cells * (size_t)c->shape.cin * sizeof(float);
}

size_t pnet_cuda_conv_slim_work(const struct conv_case *c)
{
    bool serves = c->weights && is_dense(c) && pnet_storage_of(c->precision) != PNET_STORE_F32 &&
                  c->shape.cout <= PNET_EXACT_CHANNELS;
    return serves ? pnet_cuda_conv_slim_plan(c->set.rows, c->shape.cin, c->shape.cout).bytes : 0;
}

size_t pnet_cuda_conv_dense_vvor_work(const struct conv_case *c)
{
    if (!is_dense(c)) return 0;
    return pnet_cuda_conv_dense_plan(c->set.rows, c->shape.cin, c->shape.cout).bytes;
}

size_t pnet_cuda_conv_narrow_work(const struct conv_case *c)
{
    bool serves = !is_dense(c) && pnet_cuda_conv_narrow_made_for(&c->set, &c->groups, c->precision);
    return serves ? pnet_cuda_conv_narrow_plan(&c->set, &c->groups).bytes : 0;
}

/* A plan is made before it is known on which side the set's rows are. */
static size_t sorted_work(const struct conv_case *c, bool floats, bool warps)
{
    if (is_dense(c)) return 0;
    return larger(pnet_cuda_conv_sorted_plan(&c->set, &c->groups, false, floats, warps).bytes,
        pnet_cuda_conv_sorted_plan(&c->set, &c->groups, true, floats, warps).bytes);
}

size_t pnet_cuda_conv_sorted_work(const struct conv_case *c)
{
    bool floats = pnet_storage_of(c->precision) == PNET_STORE_F32;
    return c->precision == PNET_FP32 ? 0 : sorted_work(c, floats, false);
}

size_t pnet_cuda_conv_warps_vvor_work(const struct conv_case *c)
{
    return larger(sorted_work(c, false, true), sorted_work(c, true, true));
}

size_t pnet_cuda_conv_warps_outer_work(const struct conv_case *c)
{
    if (!is_dense(c)) return 0;
    return pnet_cuda_conv_warps_outer_plan(c->set.rows, c->shape.cin, c->shape.cout, true).bytes;
}

/* The largest of the parts of a layer's output channels: all but the last have as many. */
static size_t parts_work(const struct conv_case *c,
    size_t (*work)(const struct conv_set *s, const struct conv_groups *g))
{
    if (is_dense(c)) return 0;
    int columns = pnet_cuda_conv_columns_at_once(c->set.cells, &c->groups), all = c->groups.cout,
        widths[] = {columns < all ? columns : all, all % columns};
    size_t most = 0;
    for (int i = 0; i < 2; i++) {
        struct conv_groups g = c->groups;
        g.cout = widths[i];
        if (g.cout > 0) most = larger(most, work(&c->set, &g));
    }
    return most;
}

size_t pnet_cuda_conv_cells_work(const struct conv_case *c)
{
    return c->precision == PNET_FP32 ? parts_work(c, pnet_cuda_cells_vvor_work) : 0;
}

/* Of either side, with 32 or 40 gathered channels of a block. */
static size_t tiles_columns_work(const struct conv_set *s, const struct conv_groups *g)
{
    size_t most = 0;
    for (int i = 0; i < 4; i++)
        most = larger(most, pnet_cuda_conv_tiles_plan(s, g, i % 2, i < 2 ? 32 : 40).bytes);
    return most;
}

static size_t triplets_columns_work(const struct conv_set *s, const struct conv_groups *g)
{
    size_t most = 0;
    for (int i = 0; i < 4; i++)
        most = larger(most, pnet_cuda_vvor_make_plan(s, g, i % 2, i < 2 ? 32 : 40).bytes);
    return most;
}

size_t pnet_cuda_conv_tiles_vvor_work(const struct conv_case *c)
{
    return parts_work(c, tiles_columns_work);
}

size_t pnet_cuda_conv_triplets_vvor_work(const struct conv_case *c)
{
    return parts_work(c, triplets_columns_work);
}

size_t pnet_cuda_conv_plain_work(const struct conv_case *c)
{
    if (!c->weights) return 0;
    struct plain_plan p = pnet_cuda_conv_plain_plan(&c->set, c->shape);
    return (size_t)p.splits.count * (size_t)p.bytes;
}

/* The largest of all rows of the table that may be chosen for the layer on the GPU that is planned for: a row that is
   chosen for fewer rows too, with tiles or without. */
static size_t most_work(const struct conv_case *c)
{
    if (!is_dense(c) && pnet_conv_is_depthwise(c->shape)) return pnet_cuda_conv_depthwise_work(c);
    size_t most = 0;
    for (int i = 0; i < pnet_cuda_conv_choice_count; i++) {
        const struct conv_choice *row = &pnet_cuda_conv_choices[i];
        bool runs = row->unit == CONV_UNIT_NONE || row->unit == c->unit,
             sums = row->sums[0] != (c->weights ? 'M' : 'V');
        if (runs && sums && row->work) most = larger(most, row->work(c));
    }
    return most;
}

static size_t work_of(struct conv_set set, enum pnet_conv_form form, int64_t others,
    struct pnet_conv_shape s, enum pnet_precision p, bool weights)
{
    if (set.cells > CONV_TRIPLETS_CELLS && !weights) return 0; /* for any but the plain kernel */
    const struct conv_case c = {.set = set,
        .others = others,
        .form = form,
        .shape = s,
        .groups = pnet_cuda_conv_merge(s, CONV_MERGED_WIDTH),
        .weights = weights,
        .precision = p,
        .unit = pnet_cuda_conv_unit_of(planned)};
    return most_work(&c);
}

size_t pnet_cuda_mvmr_work(
    const struct pnet_triplets *t, struct pnet_conv_shape s, enum pnet_precision precision)
{
    return work_of(pnet_cuda_conv_set_of(t, PNET_STORE_F32), PNET_CONV_TRIPLETS, t->others, s,
        precision, false);
}

size_t pnet_cuda_gemm_work(
    struct pnet_count n, int32_t cin, int32_t cout, enum pnet_precision precision)
{
    struct pnet_conv_shape s = {cin, cout, 1};
    return work_of(pnet_cuda_conv_dense_set(n), PNET_CONV_DENSE, n.most, s, precision, false);
}

size_t pnet_cuda_outer_work(
    struct pnet_count n, int32_t cin, int32_t cout, enum pnet_precision precision)
{
    struct pnet_conv_shape s = {cin, cout, 1};
    return work_of(pnet_cuda_conv_dense_set(n), PNET_CONV_DENSE, n.most, s, precision, true);
}

size_t pnet_cuda_vvor_work(
    const struct pnet_triplets *t, struct pnet_conv_shape s, enum pnet_precision precision)
{
    return work_of(pnet_cuda_conv_set_of(t, PNET_STORE_F32), PNET_CONV_TRIPLETS, t->others, s,
        precision, true);
}

size_t pnet_cuda_column_sum_work(struct pnet_count n, int32_t c)
{
    return (size_t)pnet_cuda_conv_sum_chunks(n) * (size_t)c * sizeof(double);
}

size_t pnet_cuda_conv_list_bytes(int64_t count)
{
    size_t n = (size_t)count;
    return pnet_cuda_conv_piece(sizeof(int64_t)) + 2 * pnet_cuda_conv_piece(n * sizeof(int32_t)) +
           pnet_cuda_conv_piece(n * sizeof(uint16_t));
}

size_t pnet_cuda_conv_list_work(int64_t count)
{
    return 2 * pnet_cuda_conv_piece((size_t)count * sizeof(uint64_t)) + pnet_cuda_sort_work(count);
}

static size_t lists_work(int64_t step)
{
    return pnet_cuda_conv_list_bytes(step) + pnet_cuda_conv_piece(pnet_cuda_conv_list_work(step));
}

/* Gathered rows of both sides. */
static size_t rows_bytes(int64_t step, struct pnet_conv_shape s)
{
    return pnet_cuda_conv_piece((size_t)step * (size_t)s.cin * sizeof(float)) +
           pnet_cuda_conv_piece((size_t)step * (size_t)s.cout * sizeof(float));
}

static size_t dense_bytes(const struct pnet_triplets *t, struct pnet_conv_shape s)
{
    return pnet_cuda_conv_piece((size_t)t->cells * (size_t)s.cin * (size_t)s.cout * sizeof(float));
}

static size_t columns_bytes(const struct pnet_triplets *t, int width)
{
    return pnet_cuda_conv_piece(sizeof(int64_t)) +
           pnet_cuda_conv_piece((size_t)pnet_cuda_conv_im2col_chunk(t, width) * (size_t)t->cells *
                                (size_t)width * sizeof(float));
}

static size_t im2col_mvmr_work(const struct pnet_triplets *t, struct pnet_conv_shape s)
{
    return columns_bytes(t, s.cin) + dense_bytes(t, s) +
           pnet_cuda_gemm_work(pnet_count(pnet_cuda_conv_im2col_chunk(t, s.cin)), t->cells * s.cin,
               s.cout, PNET_FP32);
}

static size_t im2col_vvor_work(const struct pnet_triplets *t, struct pnet_conv_shape s)
{
    int widest = s.cin > s.cout ? s.cin : s.cout, narrowest = s.cin + s.cout - widest;
    /* the wider side laid out, or the narrower one in longer chunks, whichever is larger */
    size_t columns = columns_bytes(t, widest), longer = columns_bytes(t, narrowest);
    struct pnet_count n = pnet_count(pnet_cuda_conv_im2col_chunk(t, narrowest));
    size_t along = pnet_cuda_outer_work(n, t->cells * s.cin, s.cout, PNET_FP32),
           across = pnet_cuda_outer_work(n, s.cin, t->cells * s.cout, PNET_FP32);
    return larger(columns, longer) + dense_bytes(t, s) + larger(along, across);
}

size_t pnet_cuda_mvmr_algo_work(enum pnet_conv_algo algo, const struct pnet_triplets *t,
    struct pnet_conv_shape s, enum pnet_precision precision)
{
    if (pnet_conv_algo_is_usual(algo)) return pnet_cuda_mvmr_work(t, s, precision);
    if (algo == PNET_ALGO_IM2COL) return im2col_mvmr_work(t, s);
    int64_t step = pnet_cuda_conv_list_chunk(algo, t, s);
    return lists_work(step) +
           (algo == PNET_ALGO_GATHER ? rows_bytes(step, s) : pnet_cuda_conv_turned_bytes(t, s));
}

size_t pnet_cuda_vvor_algo_work(enum pnet_conv_algo algo, const struct pnet_triplets *t,
    struct pnet_conv_shape s, enum pnet_precision precision)
{
    if (pnet_conv_algo_is_usual(algo)) return pnet_cuda_vvor_work(t, s, precision);
    if (algo == PNET_ALGO_IM2COL) return im2col_vvor_work(t, s);
    int64_t step = pnet_cuda_conv_list_chunk(algo, t, s);
    return lists_work(step) + (algo == PNET_ALGO_GATHER ? rows_bytes(step, s) : 0);
}
