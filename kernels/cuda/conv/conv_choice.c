#include "kernels/cuda/conv/conv_choice.h"
#include "kernels/conv_plan.h"

#include <stdatomic.h>
#include <string.h>

enum {
    WARPGROUP_ARCHITECTURE = 90, /* wgmma is an instruction of sm_90a alone */
    WARP_ARCHITECTURE = 80
};

static bool is_half(const struct conv_case *c)
{
    return pnet_storage_of(c->precision) != PNET_STORE_F32;
}

static bool is_stored_as_multiplied(const struct conv_case *c)
{
    return c->set.rows.storage == pnet_storage_of(c->precision);
}

/* Are the widths of rows, and of a group's part of them, multiples of `unit` channels? */
static bool is_even(const struct conv_case *c, int unit)
{
    return (c->shape.cin | c->shape.cout | c->groups.cin | c->groups.cout) % unit == 0;
}

static bool listing(const struct conv_case *c)
{
    return c->algo == PNET_ALGO_MVMR_K || c->algo == PNET_ALGO_MVMR_I ||
           c->algo == PNET_ALGO_MVMR_J;
}

static bool im2col(const struct conv_case *c)
{
    return c->algo == PNET_ALGO_IM2COL;
}

static bool gather(const struct conv_case *c)
{
    return c->algo == PNET_ALGO_GATHER;
}

static bool depthwise(const struct conv_case *c)
{
    return pnet_conv_is_depthwise(c->shape);
}

static bool slim(const struct conv_case *c)
{
    return c->exact;
}

static bool few(const struct conv_case *c)
{
    struct few_plan f = pnet_cuda_conv_few_plan(&c->set, &c->groups);
    return c->few && c->form != PNET_CONV_TRIPLETS && c->set.cells <= CONV_FEW_CELLS &&
           is_half(c) && (c->set.rows.storage == PNET_STORE_F32 || is_stored_as_multiplied(c)) &&
           f.blocks * c->groups.count * f.wide <= CONV_FEW_BLOCKS;
}

static bool fits_dense(int width)
{
    return width % 8 == 0 || width <= CONV_DENSE_UNEVEN;
}

static bool dense(const struct conv_case *c)
{
    return c->form == PNET_CONV_DENSE && is_half(c) && is_stored_as_multiplied(c) && c->aligned &&
           c->shape.cin <= CONV_DENSE_DEEP && fits_dense(c->shape.cin) && fits_dense(c->shape.cout);
}

/* Blocks of threads: of more of them, tiles make better use of the matrix unit. */
static bool deep(const struct conv_case *c)
{
    int64_t blocks = (c->set.rows.most + 127) / 128 * ((c->shape.cout + 63) / 64);
    return c->form == PNET_CONV_DENSE && is_half(c) && is_stored_as_multiplied(c) && c->aligned &&
           is_even(c, 8) && c->groups.count == 1 && blocks <= CONV_DEEP_BLOCKS;
}

/* Rows are read and written in units of 16 bytes, and leave in units of 8 channels. */
static bool wide(const struct conv_case *c)
{
    int unit = c->set.rows.storage == PNET_STORE_F32 ? 4 : 8;
    bool staged = is_stored_as_multiplied(c) ||
                  (c->set.rows.storage == PNET_STORE_F32 && c->groups.cin % CONV_WIDE_DEPTH == 0);
    return c->form == PNET_CONV_TILES && staged && c->aligned &&
           (c->shape.cin | c->groups.cin) % unit == 0 &&
           (c->shape.cout | c->groups.cout) % 8 == 0 &&
           pnet_cuda_conv_tiles_may_be_wide(
               pnet_cuda_conv_form_of(c->precision), c->set.cells, &c->groups);
}

static bool by_tile(const struct conv_case *c)
{
    return c->form == PNET_CONV_TILES &&
           pnet_cuda_conv_tile_form_of(c->precision, c->set.count, &c->groups) == CONV_TILE_SCALED;
}

static bool mvmr_tiles(const struct conv_case *c)
{
    return c->form != PNET_CONV_TRIPLETS;
}

static bool outer(const struct conv_case *c)
{
    return c->form == PNET_CONV_DENSE;
}

static bool narrow(const struct conv_case *c)
{
    return c->form == PNET_CONV_TILES && !c->part && !c->swapped &&
           (c->set.rows.storage == PNET_STORE_F32 || is_stored_as_multiplied(c)) &&
           pnet_cuda_conv_narrow_made_for(&c->set, &c->groups, c->precision);
}

static bool sorted(const struct conv_case *c)
{
    bool floats = c->set.rows.storage == PNET_STORE_F32;
    return c->form == PNET_CONV_TILES && !c->part && c->precision != PNET_FP32 &&
           floats == (c->precision == PNET_TF32) && is_even(c, 8) &&
           pnet_cuda_conv_sorted_plan(&c->set, &c->groups, c->swapped, floats, false).bytes > 0;
}

/* The output channels of the first part, or of the part that `c` is. */
static struct conv_groups part_of(const struct conv_case *c)
{
    struct conv_groups g = c->groups;
    int columns = pnet_cuda_conv_columns_at_once(c->set.cells, &g);
    if (columns < g.cout) g.cout = columns;
    return g;
}

static bool cells(const struct conv_case *c)
{
    struct conv_groups g = part_of(c);
    return c->form == PNET_CONV_TILES && c->precision == PNET_FP32 &&
           (c->shape.cin | c->shape.cout | g.cin | g.cout) % 4 == 0 &&
           pnet_cuda_cells_vvor_work(&c->set, &g) > 0;
}

static bool vvor_tiles(const struct conv_case *c)
{
    return c->form == PNET_CONV_TILES && c->precision != PNET_FP32 &&
           c->set.cells <= CONV_VVOR_TILES_CELLS;
}

static bool triplets(const struct conv_case *c)
{
    return c->form != PNET_CONV_DENSE && c->set.cells <= CONV_TRIPLETS_CELLS &&
           (c->set.rows.storage == PNET_STORE_F32 || is_stored_as_multiplied(c));
}

static bool warps(const struct conv_case *c)
{
    return c->set.rows.storage == PNET_STORE_F32 || is_stored_as_multiplied(c);
}

static bool warps_tiles(const struct conv_case *c)
{
    return c->form == PNET_CONV_TILES && warps(c);
}

static bool warps_outer(const struct conv_case *c)
{
    bool floats = c->set.rows.storage == PNET_STORE_F32;
    return c->form != PNET_CONV_DENSE && warps(c) &&
           pnet_cuda_conv_sorted_plan(&c->set, &c->groups, c->swapped, floats, true).bytes > 0;
}

static bool warps_outer_tiles(const struct conv_case *c)
{
    return c->form == PNET_CONV_TILES && warps_outer(c);
}

/* Steps of 64 rows times blocks of threads are counted in 32 bits. */
static bool warps_dense(const struct conv_case *c)
{
    enum { MOST_ROWS = 2000000000 };
    return c->form == PNET_CONV_DENSE && warps(c) && c->set.rows.most <= MOST_ROWS;
}

static bool anything(const struct conv_case *c)
{
    (void)c;
    return true;
}

#ifdef PNET_CUDA_BUILT
#define LAUNCH(name) pnet_cuda_conv_##name
#else
#define LAUNCH(name) NULL
#endif
#define WORK(name) pnet_cuda_conv_##name##_work
#define APART NULL, NULL, NULL, false
#define BOTH(name) WORK(name), LAUNCH(name##_mvmr), LAUNCH(name##_vvor), false
#define MVMR(work, name) work, LAUNCH(name), NULL, false
#define VVOR(work, name, parts) work, NULL, LAUNCH(name), parts
#define HALF "bf16, fp16"
#define ANY_STORAGE "any precision"
#define COMPARE "compare/conv_algo_"
const struct conv_choice pnet_cuda_conv_choices[] = {
    {CONV_LISTING, "both", "listing", COMPARE "listing.cu", "`--algo mvmr-k`, `mvmr-i`, `mvmr-j`",
        "fp32", "triplets", CONV_UNIT_NONE, false, listing, APART},
    {CONV_IM2COL, "both", "im2col", COMPARE "im2col.cu", "`--algo im2col`", "fp32", "triplets",
        CONV_UNIT_NONE, false, im2col, APART},
    {CONV_GATHER, "both", "gather", COMPARE "gather.cu", "`--algo gather-gemm-scatter`", "fp32",
        "triplets", CONV_UNIT_NONE, false, gather, APART},
    {CONV_DEPTHWISE, "both", "depthwise", "plain/conv_depthwise.cu", "as many groups as channels",
        ANY_STORAGE, "triplets", CONV_UNIT_NONE, false, depthwise, BOTH(depthwise)},
    {CONV_SLIM, "both", "slim", "dense/conv_slim.cu",
        "up to 8 channels on one side, which are float32 because they are coordinates",
        HALF ", features stored so, computed in fp32", "dense", CONV_UNIT_NONE, false, slim,
        BOTH(slim)},
    {MVMR_BY_FEW, "MVMR", "few", "tiles/conv_few.cu",
        "so few rows that tiles would leave most of the GPU idle; up to 343 cells", HALF,
        "tiles, dense", CONV_UNIT_WARPGROUP, true, few, MVMR(WORK(few), few_mvmr)},
    {MVMR_BY_DENSE, "MVMR", "dense", "dense/conv_dense.cu",
        "up to 256 input channels; widths are multiples of 8, or at most 128",
        HALF ", features stored so", "dense", CONV_UNIT_WARPGROUP, false, dense,
        MVMR(NULL, dense_mvmr)},
    {MVMR_BY_DEEP, "MVMR", "deep", "dense/conv_deep.cu",
        "more than 256 input channels, few rows; widths are multiples of 8",
        HALF ", features stored so", "dense", CONV_UNIT_WARPGROUP, false, deep,
        MVMR(NULL, deep_mvmr)},
    {MVMR_BY_WIDE, "MVMR", "wide", "tiles/conv_tiles_wide.cu",
        "more than 64 input channels; an even number of blocks of 128 output channels; packed "
        "weights of at most 56 MiB",
        HALF, "tiles", CONV_UNIT_WARPGROUP, true, wide, MVMR(WORK(wide), wide_mvmr)},
    {MVMR_BY_TILE, "MVMR", "by-tile", "tiles/conv_tiles_by_tile.cu",
        "at least 2^18 triplets of 64 to 64 channels, or as many products", "tf32", "tiles",
        CONV_UNIT_WARPGROUP, true, by_tile, MVMR(WORK(by_tile), by_tile_mvmr)},
    {MVMR_BY_TILES, "MVMR", "tiles", "tiles/conv_tiles_mvmr.cuh", "any", ANY_STORAGE,
        "tiles, dense", CONV_UNIT_WARPGROUP, true, mvmr_tiles, MVMR(WORK(tiles), tiles_mvmr)},
    {MVMR_BY_TRIPLETS, "MVMR", "triplets", "triplets/conv_mvmr_triplets.cu", "any", ANY_STORAGE,
        "triplets", CONV_UNIT_WARPGROUP, false, triplets, MVMR(WORK(triplets), triplets_mvmr)},
    {VVOR_BY_DENSE, "VVOR", "dense", "dense/conv_vvor_dense.cu", "any", ANY_STORAGE, "dense",
        CONV_UNIT_WARPGROUP, false, outer, VVOR(WORK(dense_vvor), dense_vvor, false)},
    {VVOR_BY_NARROW, "VVOR", "narrow", "vvor/conv_vvor_narrow.cu",
        "up to 8 input channels, more than 64 of all cells together; one group after merging", HALF,
        "tiles", CONV_UNIT_WARPGROUP, true, narrow, VVOR(WORK(narrow), narrow_vvor, false)},
    {VVOR_BY_SORTED, "VVOR", "sorted", "vvor/conv_vvor_sorted.cu",
        "more than 64 channels of either side, multiples of 8; up to 128 cells; enough triplets "
        "for sorting them to pay",
        "tf32; " HALF ", features stored so", "tiles", CONV_UNIT_WARPGROUP, true, sorted,
        VVOR(WORK(sorted), sorted_vvor, false)},
    {VVOR_BY_CELLS, "VVOR", "cells", "vvor/conv_tiles_vvor_cells.cu",
        "more than 64 channels of either side, multiples of 4; sums of at most 48 MiB", "fp32",
        "tiles", CONV_UNIT_WARPGROUP, false, cells, VVOR(WORK(cells), cells_vvor, true)},
    {VVOR_BY_TILES, "VVOR", "tiles", "vvor/conv_tiles_vvor.cu", "up to 512 cells", "tf32, " HALF,
        "tiles", CONV_UNIT_WARPGROUP, true, vvor_tiles, VVOR(WORK(tiles_vvor), tiles_vvor, true)},
    {VVOR_BY_TRIPLETS, "VVOR", "triplets", "vvor/conv_vvor_triplets.cu", "any", ANY_STORAGE,
        "triplets, tiles", CONV_UNIT_WARPGROUP, false, triplets,
        VVOR(WORK(triplets_vvor), triplets_vvor, true)},
    {MVMR_BY_WARPS, "MVMR", "warps", "warps/conv_warps_tiles.cu", "any", ANY_STORAGE, "tiles",
        CONV_UNIT_WARP, true, warps_tiles, MVMR(WORK(warps_tiles), warps_tiles_mvmr)},
    {MVMR_BY_WARPS, "MVMR", "warps", "warps/conv_warps.cu", "any", ANY_STORAGE, "triplets, dense",
        CONV_UNIT_WARP, false, warps, MVMR(WORK(warps), warps_mvmr)},
    {VVOR_BY_WARPS, "VVOR", "warps", "warps/conv_warps_vvor.cu", "fewer than 2^31 triplets",
        ANY_STORAGE, "tiles", CONV_UNIT_WARP, true, warps_outer_tiles,
        VVOR(WORK(warps_vvor), warps_vvor, false)},
    {VVOR_BY_WARPS, "VVOR", "warps", "warps/conv_warps_vvor.cu", "fewer than 2^31 triplets",
        ANY_STORAGE, "triplets", CONV_UNIT_WARP, false, warps_outer,
        VVOR(WORK(warps_vvor), warps_vvor, false)},
    {VVOR_BY_WARPS, "VVOR", "warps", "warps/conv_warps_vvor.cu", "any", ANY_STORAGE, "dense",
        CONV_UNIT_WARP, false, warps_dense, VVOR(WORK(warps_outer), warps_vvor, false)},
    {CONV_PLAIN, "both", "plain", "plain/conv_plain.cu, conv_vvor.cu", "any",
        ANY_STORAGE ", computed in fp32", "any", CONV_UNIT_NONE, false, anything, BOTH(plain)},
};
const int pnet_cuda_conv_choice_count =
    sizeof pnet_cuda_conv_choices / sizeof pnet_cuda_conv_choices[0];

const struct conv_choice *pnet_cuda_conv_choose(const struct conv_case *c)
{
    const char *other = c->weights ? "MVMR" : "VVOR";
    for (int i = 0;; i++) {
        const struct conv_choice *row = &pnet_cuda_conv_choices[i];
        bool runs = row->unit == CONV_UNIT_NONE || row->unit == c->unit;
        if (row->sums[0] != other[0] && runs && row->serves(c)) return row;
    }
}

/* The architecture whose kernels a GPU is kept to: 80, or 86, which has less shared memory; 0: its own. */
static atomic_int limited;

void pnet_cuda_conv_limit(const char *kernels)
{
    limited = !kernels ? 0 : strcmp(kernels, "80") == 0 ? 80 : strcmp(kernels, "86") == 0 ? 86 : 0;
}

struct conv_room pnet_cuda_conv_room(void)
{
    return limited == 86 ? (struct conv_room){99 << 10, 100 << 10} : (struct conv_room){0, 0};
}

enum conv_unit pnet_cuda_conv_unit_of(int architecture)
{
    if (architecture)
        return architecture == WARPGROUP_ARCHITECTURE ? CONV_UNIT_WARPGROUP
               : architecture >= WARP_ARCHITECTURE    ? CONV_UNIT_WARP
                                                      : CONV_UNIT_NONE;
    enum conv_unit unit = CONV_UNIT_WARPGROUP;
#ifdef PNET_CUDA_BUILT
    unit = pnet_cuda_conv_unit();
#endif
    return limited && unit > CONV_UNIT_WARP ? CONV_UNIT_WARP : unit;
}

struct conv_case pnet_cuda_conv_case_of(const struct pnet_conv_sum *s)
{
    struct pnet_count rows = {s->rows, NULL, 1, s->storage};
    bool tiles = s->form == PNET_CONV_TILES && pnet_conv_algo_reads_tiles(s->algo);
    return (struct conv_case){.set = {.rows = rows, .cells = s->cells, .count = s->count},
        .form = tiles || s->form == PNET_CONV_DENSE ? s->form : PNET_CONV_TRIPLETS,
        .shape = s->shape,
        .groups = pnet_cuda_conv_merge(s->shape, CONV_MERGED_WIDTH),
        .weights = s->weights,
        .exact = s->exact && s->storage != PNET_STORE_F32,
        .few = true,
        .precision = s->precision,
        .algo = s->algo,
        .unit = pnet_cuda_conv_unit_of(s->architecture),
        .aligned = true};
}

const char *pnet_cuda_conv_kernel(const struct pnet_conv_sum *s)
{
    struct conv_case c = pnet_cuda_conv_case_of(s);
    return pnet_cuda_conv_choose(&c)->name;
}

bool pnet_cuda_conv_reads_tiles(const struct pnet_conv_sum *s)
{
    struct conv_case c = pnet_cuda_conv_case_of(s);
    if (s->cells > PNET_TILE_CELLS || !pnet_conv_algo_reads_tiles(s->algo)) return false;
    c.form = PNET_CONV_TILES;
    return pnet_cuda_conv_choose(&c)->tiles;
}
