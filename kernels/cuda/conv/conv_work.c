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

/* Are the kernels by instructions of a warp the best of the GPU? An H100 or H200 never needs their memory. */
static bool by_warps(void)
{
    return pnet_cuda_conv_unit_of(planned) == CONV_UNIT_WARP;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t fast_work(
    const struct conv_set *s, const struct conv_groups *g, enum pnet_precision precision)
{
    enum conv_form form = pnet_cuda_conv_form_of(precision);
    if (s->cells > CONV_TRIPLETS_CELLS) return 0;
    struct conv_blocks b = pnet_cuda_conv_block_weights(form, s->cells, g,
        pnet_cuda_conv_triplets_depth(form, g), pnet_cuda_conv_tiles_columns(g->cout), 4, false);
    return pnet_cuda_conv_blocks_bytes(&b);
}

static size_t warps_work(
    const struct conv_set *s, const struct conv_groups *g, enum pnet_precision precision)
{
    struct conv_blocks b =
        pnet_cuda_conv_warp_blocks(pnet_cuda_conv_form_of(precision), s->cells, g);
    return pnet_cuda_conv_blocks_bytes(&b);
}

static size_t tiles_form_work(
    const struct conv_set *s, int64_t others, const struct conv_groups *g, enum conv_form form)
{
    int unit = form == CONV_SPLIT || form == CONV_SCALED ? 4 : 8;
    int columns[] = {pnet_cuda_conv_tiles_columns(g->cout),
        pnet_cuda_conv_tiles_may_be_wide(form, s->cells, g) ? 256 : 0};
    size_t most = 0;
    for (int i = 0; i < 2; i++) {
        if (columns[i] == 0) continue;
        struct conv_blocks b = pnet_cuda_conv_block_weights(form, s->cells, g,
            pnet_cuda_conv_tiles_pieces(form, g->cin) * 4 * unit, columns[i], unit, true);
        most = larger(most, form == CONV_TILE_SCALED
                                ? pnet_cuda_conv_tile_scales_plan(&b, s->rows.most, others).bytes
                                : pnet_cuda_conv_tiles_taken_at(&b) + sizeof(unsigned long long));
    }
    return most;
}

static size_t tiles_work(const struct conv_set *s, int64_t others, const struct conv_groups *g,
    enum pnet_precision precision)
{
    enum conv_form form = pnet_cuda_conv_form_of(precision),
                   large = pnet_cuda_conv_tile_form_of(precision, s->count, g);
    size_t most = tiles_form_work(s, others, g, form);
    return large == form ? most : larger(most, tiles_form_work(s, others, g, large));
}

static size_t few_work(
    const struct conv_set *s, const struct conv_groups *g, enum pnet_precision precision)
{
    bool never = s->cells > CONV_FEW_CELLS || pnet_storage_of(precision) == PNET_STORE_F32;
    return never ? 0 : pnet_cuda_conv_few_plan(s, g).bytes;
}

/* `others`: rows that are gathered from. */
static size_t product_work(const struct conv_set *s, int64_t others, const struct conv_groups *g,
    enum pnet_precision precision)
{
    size_t fast = fast_work(s, g, precision);
    size_t most = larger(tiles_work(s, others, g, precision), few_work(s, g, precision));
    if (by_warps()) most = larger(most, warps_work(s, g, precision));
    return fast > 0 ? larger(most, fast) : 0; /* 0: too many cells for any */
}

size_t pnet_cuda_mvmr_work(
    const struct pnet_triplets *t, struct pnet_conv_shape s, enum pnet_precision precision)
{
    struct conv_set set = pnet_cuda_conv_set_of(t, PNET_STORE_F32);
    struct conv_groups g = pnet_cuda_conv_merge(s, CONV_MERGED_WIDTH);
    return pnet_conv_is_depthwise(s) ? 0 : product_work(&set, t->others, &g, precision);
}

size_t pnet_cuda_gemm_work(
    struct pnet_count n, int32_t cin, int32_t cout, enum pnet_precision precision)
{
    struct conv_set set = pnet_cuda_conv_dense_set(n);
    struct conv_groups g =
        pnet_cuda_conv_merge((struct pnet_conv_shape){cin, cout, 1}, CONV_MERGED_WIDTH);
    return product_work(&set, n.most, &g, precision);
}

static size_t plain_work(const struct conv_set *s, struct pnet_conv_shape shape)
{
    struct plain_plan p = pnet_cuda_conv_plain_plan(s, shape);
    return (size_t)p.splits.count * (size_t)p.bytes;
}

size_t pnet_cuda_outer_work(
    struct pnet_count n, int32_t cin, int32_t cout, enum pnet_precision precision)
{
    struct conv_set set = pnet_cuda_conv_dense_set(n);
    bool slim = pnet_storage_of(precision) != PNET_STORE_F32 && cout <= PNET_EXACT_CHANNELS;
    size_t most = larger(slim ? pnet_cuda_conv_slim_plan(n, cin, cout).bytes : 0,
        larger(plain_work(&set, (struct pnet_conv_shape){cin, cout, 1}),
            pnet_cuda_conv_dense_plan(n, cin, cout).bytes));
    return by_warps() ? larger(most, pnet_cuda_conv_warps_outer_plan(n, cin, cout).bytes) : most;
}

/* Of either side, with 32 or 40 gathered channels of a block. */
static size_t columns_work(const struct conv_set *s, const struct conv_groups *g)
{
    size_t most = 0;
    for (int i = 0; i < 4; i++) {
        most = larger(most, pnet_cuda_vvor_make_plan(s, g, i % 2, i < 2 ? 32 : 40).bytes);
        most = larger(most, pnet_cuda_conv_tiles_plan(s, g, i % 2, i < 2 ? 32 : 40).bytes);
    }
    return most;
}

size_t pnet_cuda_vvor_work(
    const struct pnet_triplets *t, struct pnet_conv_shape s, enum pnet_precision precision)
{
    struct conv_set set = pnet_cuda_conv_set_of(t, PNET_STORE_F32);
    struct conv_groups g = pnet_cuda_conv_merge(s, CONV_MERGED_WIDTH);
    if (pnet_conv_is_depthwise(s))
        return (size_t)pnet_cuda_conv_depthwise_split(&set, s.cin).count * (size_t)set.cells *
               (size_t)s.cin * sizeof(float);
    int columns = pnet_cuda_conv_columns_at_once(t->cells, &g),
        widths[] = {columns < g.cout ? columns : g.cout, g.cout % columns};
    size_t most = plain_work(&set, s);
    if (pnet_cuda_conv_narrow_made_for(&set, &g, precision))
        most = larger(most, pnet_cuda_conv_narrow_plan(&set, &g).bytes);
    bool floats = pnet_storage_of(precision) == PNET_STORE_F32;
    bool warps = by_warps(), sorted = warps || precision != PNET_FP32;
    for (int swapped = 0; sorted && swapped < 2; swapped++)
        most = larger(most, pnet_cuda_conv_sorted_plan(&set, &g, swapped, floats, warps).bytes);
    for (int i = 0; i < 2; i++) {
        g.cout = widths[i];
        if (g.cout == 0) continue;
        most = larger(most, columns_work(&set, &g));
        if (precision == PNET_FP32) most = larger(most, pnet_cuda_cells_vvor_work(&set, &g));
    }
    return most;
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
