#include "kernels/cuda/conv/conv_work.h"
#include "kernels/conv_compare.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* a / b, rounded up. */
static int64_t over(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

struct conv_set pnet_cuda_conv_set_of(const struct pnet_triplets *t, enum pnet_storage storage)
{
    return (struct conv_set){.rows = {t->rows, t->live, 1, storage},
        .cells = t->cells,
        .start = t->start,
        .other = t->other,
        .cell = t->cell,
        .row = t->row,
        .tiles = t->tiles,
        .count = t->count};
}

struct conv_set pnet_cuda_conv_dense_set(struct pnet_count n)
{
    return (struct conv_set){.rows = n, .cells = 1, .count = n.most};
}

struct conv_groups pnet_cuda_conv_merge(struct pnet_conv_shape s, int width)
{
    int cin1 = s.cin / s.groups, cout1 = s.cout / s.groups, merged = 1;
    for (int p = 2; p <= s.groups && p * cout1 <= width && p * cin1 <= width; p++)
        if (s.groups % p == 0) merged = p;
    return (struct conv_groups){s.groups / merged, merged * cin1, merged * cout1, cin1, cout1};
}

enum conv_form pnet_cuda_conv_form_of(enum pnet_precision p)
{
    return p == PNET_FP32   ? CONV_SPLIT
           : p == PNET_TF32 ? CONV_SCALED
           : p == PNET_BF16 ? CONV_BFLOAT
                            : CONV_HALF;
}

enum conv_form pnet_cuda_conv_tile_form_of(
    enum pnet_precision p, int64_t count, const struct conv_groups *g)
{
    /* triplets of 64 x 64 channels: a choice that was not measured */
    enum { ENOUGH = 1 << 18 };
    bool large = count / 64 * g->cin / 64 * g->cout * g->count >= ENOUGH;
    return p == PNET_TF32 && large ? CONV_TILE_SCALED : pnet_cuda_conv_form_of(p);
}

/* How many of `whole` blocks of columns, of `bytes` each, a part has. Parts are equally large. */
static int part_of(int whole, size_t bytes)
{
    enum { PART_BYTES = 60 << 20 };
    int most = bytes < PART_BYTES ? (int)(PART_BYTES / (bytes > 0 ? bytes : 1)) : 1,
        parts = (whole + most - 1) / most;
    return parts > 0 ? (whole + parts - 1) / parts : 0;
}

/* Blocks of weights of `size` bytes each. */
static struct conv_blocks cut_weights(
    struct conv_blocks b, int64_t cells, const struct conv_groups *g, int size)
{
    b.deep = (g->cin + b.depth - 1) / b.depth;
    b.whole = (g->cout + b.columns - 1) / b.columns;
    b.wide = 1;
    b.count = cells * g->count * b.deep;
    b.bytes = (size_t)b.depth * (size_t)b.columns * (size_t)size;
    b.wide = part_of(b.whole, pnet_cuda_conv_blocks_bytes(&b));
    b.count *= b.wide;
    return b;
}

struct conv_blocks pnet_cuda_conv_block_weights(enum conv_form form, int64_t cells,
    const struct conv_groups *g, int depth, int columns, int unit, bool units)
{
    struct conv_blocks b = {
        .form = form, .depth = depth, .columns = columns, .unit = unit, .units = units};
    return cut_weights(b, cells, g, form == CONV_SPLIT ? 4 : 2);
}

struct conv_blocks pnet_cuda_conv_warp_blocks(
    enum conv_form form, int64_t cells, const struct conv_groups *g)
{
    bool floats = form == CONV_SPLIT || form == CONV_SCALED;
    int step = floats ? 8 : 16, steps = g->cin <= step       ? 1
                                        : g->cin <= 4 * step ? (g->cin + step - 1) / step
                                                             : 4;
    struct conv_blocks b = {.form = form,
        .depth = step * steps,
        .columns = pnet_cuda_conv_tiles_columns(g->cout),
        .units = true};
    return cut_weights(b, cells, g, floats ? 4 : 2);
}

struct warp_tiles_plan pnet_cuda_conv_warp_tiles_plan(
    enum conv_form form, const struct conv_set *s, const struct conv_groups *g, int pieces)
{
    /* cells of a split, at least: each stages the neighbours anew; packed weights beside sums */
    enum { LEAST_CELLS = 4, WEIGHT_BYTES = 40 << 20 };
    bool floats = form == CONV_SPLIT || form == CONV_SCALED;
    int size = floats ? 4 : 2;
    struct warp_tiles_plan p = {.blocks = {.form = form,
                                    .depth = 64 * pieces / size,
                                    .columns = pnet_cuda_conv_tiles_columns(g->cout),
                                    .units = true}};
    p.blocks = cut_weights(p.blocks, s->cells, g, form == CONV_SPLIT ? 8 : size);
    p.partial = (pnet_cuda_conv_blocks_bytes(&p.blocks) + 255) / 256 * 256;
    p.splits = 1;
    p.bytes = p.partial;
    if (p.blocks.wide < p.blocks.whole || p.partial > WEIGHT_BYTES) return p;
    /* a block of threads has a processor, or half of one */
    int64_t tiles = over(s->rows.most, PNET_TILE_ROWS), ways = (int64_t)g->count * p.blocks.whole,
            items = CONV_PROCESSORS * (p.blocks.columns >= 64 ? 1 : 2),
            most = (int64_t)s->cells * p.blocks.deep / LEAST_CELLS,
            splits = tiles > 0 ? items / (tiles * ways) : 1;
    p.splits = (int)most_of(1, least(splits, most));
    /* never less for more rows */
    int64_t sums = least(tiles * ways * most_of(1, most), items);
    p.bytes += (size_t)sums * PNET_TILE_ROWS * (size_t)p.blocks.columns * sizeof(float);
    return p;
}

struct conv_blocks pnet_cuda_conv_blocks_part(struct conv_blocks b, int first)
{
    int wide = b.whole - first < b.wide ? b.whole - first : b.wide;
    b.count = b.count / b.wide * wide;
    b.first = first;
    b.wide = wide;
    return b;
}

size_t pnet_cuda_conv_blocks_bytes(const struct conv_blocks *b)
{
    return (size_t)b->count * (b->bytes + sizeof(float));
}

int pnet_cuda_conv_triplets_depth(enum conv_form form, const struct conv_groups *g)
{
    return g->cin <= 16 ? 16 : g->cin <= 32 || form == CONV_SPLIT ? 32 : 64;
}

int pnet_cuda_conv_tiles_pieces(enum conv_form form, int channels)
{
    bool scaled = form == CONV_SPLIT || form == CONV_SCALED;
    int piece = scaled ? 16 : 32, pieces = (channels + piece - 1) / piece;
    return pieces % 2 && (!scaled || pieces < 5) ? 1 : 2;
}

int pnet_cuda_conv_tiles_columns(int channels)
{
    return channels > 64 ? 128 : channels > 32 ? 64 : 32;
}

bool pnet_cuda_conv_tiles_may_be_wide(
    enum conv_form form, int64_t cells, const struct conv_groups *g)
{
    enum { MOST_BYTES = 56 << 20 };
    bool plain = form == CONV_BFLOAT || form == CONV_HALF;
    return plain && g->cin > 64 && pnet_cuda_conv_tiles_pieces(form, g->cin) == 2 &&
           (g->cout + 127) / 128 % 2 == 0 &&
           cells * g->count * ((g->cin + 63) / 64 * 64) * 256 * 2 <= MOST_BYTES;
}

size_t pnet_cuda_conv_tiles_taken_at(const struct conv_blocks *b)
{
    return (pnet_cuda_conv_blocks_bytes(b) + 15) / 16 * 16;
}

struct tile_scales_plan pnet_cuda_conv_tile_scales_plan(
    const struct conv_blocks *b, int64_t rows, int64_t others)
{
    struct tile_scales_plan p = {.measures = pnet_cuda_conv_tiles_taken_at(b) + 16};
    p.weight = p.measures + 16;
    p.tile = p.weight + 16;
    p.exponent = p.tile + (size_t)over(rows, PNET_TILE_ROWS) * sizeof(float);
    p.bytes = p.exponent + (size_t)others;
    return p;
}

struct few_plan pnet_cuda_conv_few_plan(const struct conv_set *s, const struct conv_groups *g)
{
    struct few_plan f = {.rows = s->rows.most > 64 ? 128 : 64, .columns = g->cout > 64 ? 128 : 64};
    f.deep = (g->cin + CONV_FEW_DEPTH - 1) / CONV_FEW_DEPTH;
    f.wide = (g->cout + f.columns - 1) / f.columns;
    f.blocks = (s->rows.most + f.rows - 1) / f.rows;
    int64_t ways = (int64_t)g->count * f.wide, units = (int64_t)s->cells * f.deep,
            items = 2 * CONV_PROCESSORS, most = f.blocks * ways * units,
            splits = f.blocks * ways > 0 ? items / (f.blocks * ways) : 1;
    f.splits = (int)(splits < 1 ? 1 : splits < units ? splits : units);
    f.bytes =
        (size_t)(most < items ? most : items) * (size_t)f.rows * (size_t)f.columns * sizeof(float);
    return f;
}

/* `tiles`: blocks of threads that a split takes; `bytes`: of one partial sum. */
static struct conv_splits split_rows(
    int64_t rows, int64_t tiles, int64_t bytes, int64_t partial_bytes)
{
    enum { LEAST_ROWS = 1024, BLOCKS = 4096 };
    int64_t count = rows / LEAST_ROWS, most = partial_bytes / bytes, wanted = BLOCKS / tiles;
    if (count > most) count = most;
    if (count > wanted) count = wanted;
    if (count < 1) count = 1;
    int64_t chunk = (rows + count - 1) / count;
    return (struct conv_splits){
        (int)count, (chunk + CONV_PAIR_ROWS - 1) / CONV_PAIR_ROWS * CONV_PAIR_ROWS};
}

/* As many cells at once as sums of PARTIAL_BYTES allow. */
struct plain_plan pnet_cuda_conv_plain_plan(const struct conv_set *s, struct pnet_conv_shape shape)
{
    enum { PARTIAL_BYTES = 48 << 20 };
    struct plain_plan p = {.groups = pnet_cuda_conv_merge(shape, CONV_PLAIN_SIDE)};
    p.tiles_a = (p.groups.cin + CONV_PLAIN_SIDE - 1) / CONV_PLAIN_SIDE;
    p.tiles_b = (p.groups.cout + CONV_PLAIN_SIDE - 1) / CONV_PLAIN_SIDE;
    int64_t matrix = (int64_t)p.groups.cin1 * shape.cout * (int64_t)sizeof(float);
    p.cells_at_once = (int)most_of(1, least(s->cells, PARTIAL_BYTES / matrix));
    p.blocks = (int64_t)p.cells_at_once * p.groups.count * p.tiles_a * p.tiles_b;
    p.bytes = p.cells_at_once * matrix;
    p.splits = split_rows(s->rows.most, p.blocks, p.bytes, PARTIAL_BYTES);
    return p;
}

/* Four blocks of threads a processor: two run at once, so that all are done in two turns. A block sums all cells. */
struct conv_splits pnet_cuda_conv_depthwise_split(const struct conv_set *s, int channels)
{
    enum { LEAST_ROWS = 64, BLOCKS = 4 * CONV_PROCESSORS, BYTES = 48 << 20 };
    int64_t count = s->rows.most / LEAST_ROWS,
            most = BYTES / ((int64_t)s->cells * channels * (int64_t)sizeof(float));
    if (count > most) count = most;
    if (count > BLOCKS) count = BLOCKS;
    if (count < 1) count = 1;
    return (struct conv_splits){(int)count, (s->rows.most + count - 1) / count};
}

struct dense_plan pnet_cuda_conv_dense_plan(struct pnet_count rows, int cin, int cout)
{
    struct dense_plan p = {
        .tiles_a = cin > 64 ? (cin + 127) / 128 : 1, .tiles_b = cout > 64 ? (cout + 127) / 128 : 1};
    p.most = (int)most_of(1, CONV_PROCESSORS / (p.tiles_a * p.tiles_b));
    p.shares = (int)least(over(rows.most, DENSE_SHARE_ROWS), p.most);
    p.bytes = (size_t)p.shares * (size_t)cin * (size_t)cout * sizeof(float);
    return p;
}

struct slim_plan pnet_cuda_conv_slim_plan(struct pnet_count rows, int cin, int cout)
{
    struct slim_plan p = {.most = (int)least(SLIM_SUMS / cin, SLIM_SHARES)};
    if (p.most < SLIM_SHARES_LEAST) p.most = SLIM_SHARES_LEAST;
    p.shares = (int)least(over(rows.most, SLIM_SHARE_ROWS), p.most);
    p.bytes = (size_t)p.shares * (size_t)cin * (size_t)cout * sizeof(float);
    return p;
}

struct vvor_plan pnet_cuda_vvor_make_plan(
    const struct conv_set *s, const struct conv_groups *g, bool swapped, int columns)
{
    enum { BOUND_BYTES = 16 << 20, BATCHES = 3 };
    struct vvor_plan p = {0};
    int n = swapped ? g->cout : g->cin, m = swapped ? g->cin : g->cout;
    p.parts = (s->cells + VVOR_CELLS - 1) / VVOR_CELLS;
    p.blocks = m > 64 ? 2 : 1;
    p.tiles_n = (n + 31) / 32;
    bool more = p.blocks == 1 && (n + columns - 1) / columns < p.tiles_n; /* else they cost more */
    p.columns = more ? columns : 32;
    p.tiles_n = (n + p.columns - 1) / p.columns;
    p.tiles_m = (m + p.blocks * 64 - 1) / (p.blocks * 64);
    p.types = p.parts * p.tiles_n * p.tiles_m * g->count;
    int64_t batches = over(s->rows.most, VVOR_BATCH * VVOR_BAND_ROWS),
            streams = CONV_PROCESSORS / p.types;
    if (streams > batches) streams = batches;
    if (streams < 1) streams = 1;
    p.streams = (int)streams;
    batches /= 4 * streams;
    p.batches = (int)(batches < 1 ? 1 : batches > BATCHES ? (int64_t)BATCHES : batches);
    p.slot = (p.blocks == 2 ? VVOR_CELLS : (VVOR_CELLS + 1) / 2) * (p.columns / 2) * VVOR_CONSUMERS;
    p.window = s->rows.most > 1 ? s->rows.most : 1;
    if (p.parts > 1 && p.window > BOUND_BYTES / 4 / (p.parts - 1))
        p.window = BOUND_BYTES / 4 / (p.parts - 1);
    p.measures = (size_t)p.types * (size_t)p.streams * (size_t)p.slot * 4;
    p.bound = p.measures + 256;
    p.bytes = p.bound + (size_t)(p.parts - 1) * (size_t)p.window * 4;
    return p;
}

struct tiles_plan pnet_cuda_conv_tiles_plan(
    const struct conv_set *s, const struct conv_groups *g, bool swapped, int columns)
{
    struct tiles_plan p = {0};
    int n = swapped ? g->cout : g->cin, m = swapped ? g->cin : g->cout;
    p.parts = (s->cells + VVOR_CELLS - 1) / VVOR_CELLS;
    p.halves = m > 64 ? 2 : 1;
    p.tiles_n = (n + 31) / 32;
    bool more = p.halves == 1 && (n + columns - 1) / columns < p.tiles_n; /* else they cost more */
    p.columns = more ? columns : 32;
    p.tiles_n = (n + p.columns - 1) / p.columns;
    p.tiles_m = (m + p.halves * 64 - 1) / (p.halves * 64);
    p.kinds = p.tiles_n * p.tiles_m * g->count;
    int64_t tiles = over(s->rows.most, PNET_TILE_ROWS);
    p.blocks = CONV_PROCESSORS / p.kinds;
    if (p.blocks > tiles * p.parts) p.blocks = (int)tiles * p.parts;
    if (p.blocks < p.parts) p.blocks = p.parts;
    p.slot = (p.halves == 2 ? VVOR_CELLS : (VVOR_CELLS + 1) / 2) * (p.columns / 2) * VVOR_CONSUMERS;
    p.measures = (size_t)p.kinds * (size_t)p.blocks * (size_t)p.slot * 4;
    p.weight = p.measures + 256;
    p.first = p.weight + (size_t)p.parts * 8;
    p.bytes = p.first + ((size_t)p.parts + 1) * 4;
    return p;
}

struct cell_plan pnet_cuda_conv_cell_plan(
    const struct conv_set *s, const struct conv_groups *g, bool swapped)
{
    enum { SIDE = VVOR_CELL_SIDE };
    struct cell_plan p = {0};
    int n = swapped ? g->cout : g->cin, m = swapped ? g->cin : g->cout;
    p.tiles_n = (n + SIDE - 1) / SIDE;
    p.tiles_m = (m + SIDE - 1) / SIDE;
    p.kinds = p.tiles_n * p.tiles_m * g->count;
    p.blocks = (int)most_of(CONV_PROCESSORS / p.kinds, 1);
    p.measures = (size_t)p.kinds * (size_t)(p.blocks + s->cells - 1) * SIDE * SIDE * sizeof(float);
    p.weight = p.measures + 256;
    p.bytes = p.weight + ((size_t)s->cells + 1) * 8;
    return p;
}

size_t pnet_cuda_cells_vvor_work(const struct conv_set *s, const struct conv_groups *g)
{
    enum { MOST_BYTES = 48 << 20 };
    size_t p = pnet_cuda_conv_cell_plan(s, g, false).bytes,
           q = pnet_cuda_conv_cell_plan(s, g, true).bytes, most = p > q ? p : q;
    bool fits = g->cin > 64 && g->cout > 64 && s->cells <= VVOR_MOST_CELLS && most <= MOST_BYTES;
    return fits ? most : 0;
}

static size_t place(struct sort_plan *p, size_t bytes)
{
    enum { ALIGN = 256 };
    size_t at = p->bytes;
    p->bytes = (at + bytes + ALIGN - 1) / ALIGN * ALIGN;
    return at;
}

/* A plan of at most `most_bytes`; its bytes are 0 where sorting does not serve. `windows`: cells may be sorted in several. */
static struct sort_plan sort_plan_of(const struct conv_set *s, size_t most_bytes, bool windows)
{
    enum { MOST_COUNTS = 10 << 20, ALIGN = 256, PAIR_BYTES = 8, COUNT_BYTES = 4 };
    struct sort_plan p = {.tiles = over(s->rows.most, PNET_TILE_ROWS), .cells = s->cells};
    int64_t most = least(s->cells, SORT_CELLS),
            fit_cells = MOST_COUNTS / COUNT_BYTES / (p.tiles + 1) - 1;
    if (s->count >= INT32_MAX || fit_cells < 1) return p;
    if (windows)
        p.cells = (int)over(s->cells, over(s->cells, least(most, fit_cells)));
    else if (s->cells > least(most, fit_cells))
        return p;
    /* as large for a set of fewer tiles, which has larger windows */
    size_t counts = (size_t)least(MOST_COUNTS, (p.tiles + 1) * (most + 1) * COUNT_BYTES);
    counts = (counts + ALIGN - 1) / ALIGN * ALIGN;
    int64_t filled = most * (SORT_STEP - 1), fit = (int64_t)(most_bytes - 2 * counts) / PAIR_BYTES;
    p.chunks = (int)most_of((s->count + fit - filled - 1) / (fit - filled), 1);
    p.chunk = most_of(over(s->count, p.chunks), 1);
    int64_t capacity = least(s->count + filled, fit);
    p.within = place(&p, counts);
    p.before = place(&p, counts);
    p.share = place(&p, (size_t)p.chunks * sizeof(struct sort_chunk));
    p.pair = place(&p, (size_t)capacity * PAIR_BYTES);
    return p;
}

struct sorted_plan pnet_cuda_conv_sorted_plan(
    const struct conv_set *s, const struct conv_groups *g, bool swapped, bool floats, bool warps)
{
    enum { MOST_BYTES = 60 << 20, ENOUGH = 1 << 17, WIDE = 16 };
    struct sorted_plan p = {.columns = 0};
    size_t measures = floats ? 256 : 0;
    int n = swapped ? g->cout : g->cin, m = swapped ? g->cin : g->cout;
    bool narrow = warps && n <= SORTED_NARROW && m <= SORTED_NARROW;
    p.columns = narrow ? SORTED_NARROW : (n + 127) / 128 % 2 == 0 && !floats && !warps ? 256 : 128;
    p.tiles_n = (n + p.columns - 1) / p.columns;
    p.tiles_m = (m + SORTED_SIDE - 1) / SORTED_SIDE;
    p.kinds = p.tiles_n * p.tiles_m * g->count;
    p.blocks = (int)most_of(CONV_PROCESSORS * (narrow ? 2 : 1) / p.kinds, 1);
    p.slots = (int)least(p.blocks + least(s->cells, SORT_CELLS) - 1, 2 * p.blocks);
    if (p.blocks > 1)
        p.slot_bytes =
            (size_t)p.kinds * (size_t)p.slots * SORTED_SIDE * (size_t)p.columns * sizeof(float);
    p.sort = sort_plan_of(s, MOST_BYTES - p.slot_bytes - measures, warps);
    bool wide = g->cin1 > 64 && g->cout1 > 64;
    /* squares of 128 by 128 channels: with fewer of them sorting takes longer than what it saves */
    int squares = (n + 127) / 128 * p.tiles_m * g->count;
    bool pays = squares >= WIDE || s->count * squares >= ENOUGH;
    p.measures = p.slot_bytes + p.sort.bytes;
    if ((warps || (wide && pays)) && p.sort.bytes > 0) p.bytes = p.measures + measures;
    return p;
}

struct sorted_plan pnet_cuda_conv_warps_outer_plan(
    struct pnet_count rows, int cin, int cout, bool floats)
{
    enum { SQUARE_BYTES = SORTED_SIDE * SORTED_SIDE * (int)sizeof(float), LEAST_STEPS = 4 };
    bool narrow = cin <= SORTED_NARROW && cout <= SORTED_NARROW;
    struct sorted_plan p = {.columns = narrow ? SORTED_NARROW : SORTED_SIDE,
        .tiles_n = (cin + SORTED_SIDE - 1) / SORTED_SIDE,
        .tiles_m = (cout + SORTED_SIDE - 1) / SORTED_SIDE,
        .sort = {.chunks = 1, .cells = 1}};
    p.kinds = p.tiles_n * p.tiles_m;
    int64_t steps = over(rows.most, SORT_STEP),
            most = most_of(CONV_PROCESSORS * (narrow ? 2 : 1) / p.kinds, 1);
    p.blocks = (int)most_of(least(steps / LEAST_STEPS, most), 1);
    p.slots = p.blocks;
    if (p.blocks > 1) p.slot_bytes = (size_t)p.kinds * (size_t)p.slots * SQUARE_BYTES;
    p.measures = (p.slot_bytes + 255) / 256 * 256;
    p.bytes = floats ? p.measures + 256 : p.slot_bytes;
    return p;
}

struct narrow_plan pnet_cuda_conv_narrow_plan(const struct conv_set *s, const struct conv_groups *g)
{
    enum { ROWS = PNET_TILE_ROWS / PNET_TILE_BLOCKS };
    struct narrow_plan p = {0};
    int fit = NARROW_COLUMNS / g->cin;
    p.windows = (s->cells + fit - 1) / fit;
    p.cells = (s->cells + p.windows - 1) / p.windows;
    p.windows = (s->cells + p.cells - 1) / p.cells;
    p.wide = (g->cout + NARROW_OUT - 1) / NARROW_OUT;
    int64_t sums = (int64_t)s->cells * g->cin * g->cout * (int64_t)sizeof(float),
            most = least(2 * CONV_PROCESSORS / (p.windows * p.wide), NARROW_PARTIAL_BYTES / sums);
    p.splits = (int)most_of(1, least(most, over(s->rows.most, ROWS)));
    p.bytes = (size_t)p.splits * (size_t)sums;
    return p;
}

bool pnet_cuda_conv_narrow_made_for(
    const struct conv_set *s, const struct conv_groups *g, enum pnet_precision precision)
{
    if (pnet_storage_of(precision) == PNET_STORE_F32) return false;
    if (g->count > 1 || g->cin > NARROW_WIDTH || g->cin != g->cin1 || s->cells > PNET_TILE_CELLS)
        return false;
    if (s->cells * g->cin <= 64 || (int64_t)s->cells * g->cin * g->cout > NARROW_PARTIAL_BYTES / 8)
        return false;
    struct narrow_plan p = pnet_cuda_conv_narrow_plan(s, g);
    return p.windows * p.wide <= 2 * ((s->cells + 8) / 9) * ((g->cout + 127) / 128);
}

int pnet_cuda_conv_columns_at_once(int cells, const struct conv_groups *g)
{
    enum { SIDE = 128, MOST_BYTES = 44 << 20 };
    if (g->count > 1) return g->cout;
    int64_t column = (int64_t)cells * ((g->cin + SIDE - 1) / SIDE * SIDE) * (int64_t)sizeof(float);
    int64_t columns = MOST_BYTES / column / SIDE * SIDE;
    return (int)most_of(SIDE, least(columns, (int64_t)(g->cout + SIDE - 1) / SIDE * SIDE));
}

int pnet_cuda_conv_sum_chunks(struct pnet_count n)
{
    return (int)least(over(n.most, COLUMN_SUM_ROWS), COLUMN_SUM_CHUNKS);
}

size_t pnet_cuda_conv_piece(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

size_t pnet_cuda_conv_turned_bytes(const struct pnet_triplets *t, struct pnet_conv_shape s)
{
    return pnet_cuda_conv_piece(
        (size_t)t->cells * (size_t)(s.cin / s.groups) * (size_t)s.cout * sizeof(float));
}

int64_t pnet_cuda_conv_list_chunk(
    enum pnet_conv_algo algo, const struct pnet_triplets *t, struct pnet_conv_shape s)
{
    int64_t bytes = 2 * (int64_t)sizeof(uint64_t) + 10;
    if (algo == PNET_ALGO_GATHER) bytes += ((int64_t)s.cin + s.cout) * (int64_t)sizeof(float);
    return pnet_conv_chunk(t->count, bytes);
}

int64_t pnet_cuda_conv_im2col_chunk(const struct pnet_triplets *t, int width)
{
    return pnet_conv_chunk(t->rows, (int64_t)t->cells * width * (int64_t)sizeof(float));
}
