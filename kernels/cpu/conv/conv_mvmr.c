/* MVMR by row blocks. The triplets of a block of output rows are ordered by kernel cell. For each cell the runs are
   summed into a panel, so that weights are applied once a run and not once a triplet; the panel is multiplied, and the
   products are added to the rows of the block, which stay in cache until they are written once. */
#include "kernels/conv.h"

#include <omp.h>
#include <string.h>
#include "kernels/conv_compare.h"
#include "kernels/cpu/conv/conv_row_block.h"

enum {
    STRIP_COLUMNS = 256, /* of a row block's sums: 256 rows of them are a quarter of a usual L2 */
    STRIP_BYTES = 32 << 20, /* of packed weights */
    TASKS = 16,             /* wanted, so that small inputs occupy several threads */
};

/* Column blocks (2 registers wide) are numbered group by group; a strip is a range of them. */
struct plan {
    const struct pnet_conv_isa *isa;
    struct pnet_conv_groups groups;
    int32_t cin, cout;
    int64_t cells, rows, count;
    int block;           /* columns of a block */
    int group_blocks;    /* blocks of a merged group */
    int blocks, strip;   /* in all; at most in a strip */
    int tile;            /* rows */
    int parts;           /* tasks that share the blocks of one tile */
    size_t weight_bytes; /* of one strip */
    size_t sums_bytes, panel_bytes, tile_bytes, thread_bytes;
};

/* What every task needs to know. */
struct job {
    struct plan plan;
    const struct pnet_triplets *triplets; /* NULL: a dense product */
    const float *in, *weight, *bias;
    float *out, *packed;
    bool transposed, add;
    enum pnet_activation act;
    float slope;
    int first, end; /* column blocks of the strip */
};

static int smaller(int64_t a, int64_t b)
{
    return (int)(a < b ? a : b);
}

static struct plan make_plan(int64_t rows, int64_t cells, int64_t count, struct pnet_conv_shape s)
{
    struct plan p = {.isa = pnet_conv_isa(),
        .groups = pnet_conv_groups(s),
        .cin = s.cin,
        .cout = s.cout,
        .cells = cells,
        .rows = rows,
        .count = count};
    p.block = 2 * p.isa->vector;
    p.group_blocks = (p.groups.cout + p.block - 1) / p.block;
    p.blocks = p.group_blocks * p.groups.count;
    int64_t block_bytes = cells * p.groups.cin * p.block * (int64_t)sizeof(float);
    p.strip = smaller(p.blocks, smaller(STRIP_COLUMNS / p.block, STRIP_BYTES / block_bytes));
    if (p.strip < 1) p.strip = 1;
    p.tile = pnet_row_block_rows(cells);
    int64_t tiles = (rows + p.tile - 1) / p.tile;
    p.parts = tiles > 0 && tiles < TASKS ? smaller(p.strip, (TASKS + tiles - 1) / tiles) : 1;
    p.weight_bytes = (size_t)p.strip * (size_t)block_bytes;
    p.sums_bytes = (size_t)p.tile * (size_t)p.strip * (size_t)p.block * sizeof(float);
    p.panel_bytes = (size_t)PNET_PANEL_ROWS * PNET_PANEL_STRIDE * sizeof(float);
    p.tile_bytes = pnet_row_block_bytes(cells, count);
    p.thread_bytes = p.sums_bytes + p.panel_bytes + p.tile_bytes;
    return p;
}

static size_t plan_bytes(const struct plan *p)
{
    return 64 + p->weight_bytes + (size_t)omp_get_max_threads() * p->thread_bytes;
}

/* packed[a][lane] = W[a][lane] of kernel cell k and column block b; zero between merged groups, and in lanes beyond the
   last column. */
static void pack_block(const struct job *j, int64_t k, int b, float *packed)
{
    const struct pnet_conv_groups *g = &j->plan.groups;
    int block = j->plan.block, group = b / j->plan.group_blocks,
        column = b % j->plan.group_blocks * block;
    int lanes = smaller(block, g->cout - column);
    if (g->merged > 1 || lanes < block)
        memset(packed, 0, (size_t)g->cin * (size_t)block * sizeof *packed);
    for (int lane = 0, n; lane < lanes; lane += n) {
        int part = (column + lane) / g->cout1, from = (column + lane) % g->cout1;
        int64_t single = (int64_t)group * g->merged + part;
        float *to = packed + (size_t)part * (size_t)g->cin1 * (size_t)block + lane;
        n = smaller(g->cout1 - from, lanes - lane);
        if (j->transposed) {
            for (int c = 0; c < n; c++) {
                const float *w =
                    j->weight + (k * g->cout1 + from + c) * j->plan.cin + single * g->cin1;
                for (int a = 0; a < g->cin1; a++) to[a * block + c] = w[a];
            }
        } else {
            const float *w = j->weight + k * g->cin1 * j->plan.cout + single * g->cout1 + from;
            for (int a = 0; a < g->cin1; a++)
                memcpy(to + a * block, w + (int64_t)a * j->plan.cout, (size_t)n * sizeof *to);
        }
    }
}

static void pack_strip(const struct job *j)
{
    int width = j->end - j->first;
    int64_t panels = j->plan.cells * width;
    size_t panel = (size_t)j->plan.groups.cin * (size_t)j->plan.block;
#pragma omp parallel for schedule(static) if (panels > 1)
    for (int64_t i = 0; i < panels; i++)
        pack_block(j, i / width, j->first + (int)(i % width), j->packed + (size_t)i * panel);
}

/* Channels [first, first + width) of `count` rows: sums of runs, or rows of a dense product. */
static void fill_panel(const struct job *j, const struct pnet_row_block *tile, int first, int width,
    const struct pnet_run *runs, int count, float *panel)
{
    const struct pnet_conv_isa *isa = j->plan.isa;
    size_t stride = (size_t)j->plan.cin;
    const float *in = j->in + first;
    if (tile->other)
        isa->sum_runs(panel, in, stride, width, tile->other, runs, count);
    else
        isa->copy_rows(panel, in + (size_t)tile->place * stride, stride, width, runs, count);
}

/* Adds the products of `count` runs of cell k to the sums of column blocks [first, end). A panel
   holds a part of a wide group, or several narrow groups. */
static void add_products(const struct job *j, const struct pnet_row_block *tile, int64_t k,
    const struct pnet_run *runs, int count, int first, int end, float *sums, float *panel)
{
    const struct plan *p = &j->plan;
    int cin = p->groups.cin, some = cin < PNET_PANEL_WIDTH ? PNET_PANEL_WIDTH / cin : 1;
    size_t block_weights = (size_t)cin * (size_t)p->block,
           block_sums = (size_t)p->tile * (size_t)p->block;
    const float *weight = j->packed + (size_t)k * (size_t)(j->end - j->first) * block_weights;
    bool half = (p->groups.cout - 1) % p->block < p->isa->vector;
    for (int b = first, next; b < end; b = next) {
        int group = b / p->group_blocks,
            groups = smaller(some, (end - 1) / p->group_blocks - group + 1);
        next = smaller(end, (group + groups) * p->group_blocks);
        for (int c = 0; c < groups * cin; c += PNET_PANEL_WIDTH) {
            fill_panel(j, tile, group * cin + c, smaller(PNET_PANEL_WIDTH, groups * cin - c), runs,
                count, panel);
            for (int from = b, to; from < next; from = to) {
                int g = from / p->group_blocks;
                to = smaller(next, (g + 1) * p->group_blocks);
                p->isa->multiply(panel + (g - group) * cin, count,
                    smaller(PNET_PANEL_WIDTH, cin - c),
                    weight + (size_t)(from - j->first) * block_weights +
                        (size_t)c * (size_t)p->block,
                    block_weights, to - from, half && to % p->group_blocks == 0,
                    sums + (size_t)(from - first) * block_sums, block_sums, runs);
            }
        }
    }
}

static float activate(float x, enum pnet_activation act, float slope)
{
    /* Comparing this way lets NaN through. */
    if (act == PNET_ACT_RELU) return x < 0 ? 0 : x;
    if (act == PNET_ACT_LEAKY) return x < 0 ? slope * x : x;
    return x;
}

/* out (+)= act(sums), n floats. */
static void finish(
    float *out, const float *sums, int n, bool add, enum pnet_activation act, float slope)
{
    if (add) {
        for (int c = 0; c < n; c++) out[c] += sums[c];
    } else if (act == PNET_ACT_NONE) {
        memcpy(out, sums, (size_t)n * sizeof *out);
    } else {
        for (int c = 0; c < n; c++) out[c] = activate(sums[c], act, slope);
    }
}

static void write_rows(const struct job *j, const struct pnet_row_block *tile, int b, float *sums)
{
    const struct plan *p = &j->plan;
    int column = b % p->group_blocks * p->block, n = smaller(p->block, p->groups.cout - column);
    int64_t first = (int64_t)(b / p->group_blocks) * p->groups.cout + column;
    for (int r = 0; r < tile->rows; r++, sums += p->block) {
        if (j->bias) {
            for (int c = 0; c < n; c++) sums[c] += j->bias[first + c];
        }
        finish(j->out + pnet_row_block_row(tile, r) * p->cout + first, sums, n, j->add, j->act,
            j->slope);
    }
}

/* Column blocks [first, end) of one tile. */
static void run_task(const struct job *j, int64_t number, int first, int end, char *memory)
{
    const struct plan *p = &j->plan;
    float *sums = (float *)(void *)memory, *panel = (float *)(void *)(memory + p->sums_bytes);
    struct pnet_row_block tile =
        pnet_row_block_place(p->cells, p->count, memory + p->sums_bytes + p->panel_bytes);
    int64_t row = number * p->tile;
    int rows = smaller(p->tile, p->rows - row);
    size_t block_floats = (size_t)p->tile * (size_t)p->block;
    if (j->triplets)
        pnet_row_block_load(&tile, j->triplets, row, rows);
    else
        pnet_row_block_identity(&tile, row, rows);
    memset(sums, 0, (size_t)(end - first) * block_floats * sizeof *sums);
    for (int64_t k = 0; k < p->cells; k++) {
        for (int32_t r = tile.first[k]; r < tile.first[k + 1]; r += PNET_PANEL_ROWS) {
            int count = smaller(PNET_PANEL_ROWS, tile.first[k + 1] - r);
            add_products(j, &tile, k, tile.run + r, count, first, end, sums, panel);
        }
    }
    for (int b = first; b < end; b++)
        write_rows(j, &tile, b, sums + (size_t)(b - first) * block_floats);
}

static void run(struct job *j, void *work)
{
    const struct plan *p = &j->plan;
    char *memory = pnet_align64_pointer(work);
    int64_t tiles = (p->rows + p->tile - 1) / p->tile;
    j->packed = (float *)(void *)memory;
    for (j->first = 0; j->first < p->blocks; j->first = j->end) {
        j->end = smaller(p->blocks, j->first + p->strip);
        int width = j->end - j->first, parts = smaller(p->parts, width);
        pack_strip(j);
#pragma omp parallel for schedule(dynamic) if (tiles * parts > 1)
        for (int64_t i = 0; i < tiles * parts; i++) {
            int part = (int)(i % parts);
            run_task(j, i / parts, j->first + width * part / parts,
                j->first + width * (part + 1) / parts,
                memory + p->weight_bytes + (size_t)omp_get_thread_num() * p->thread_bytes);
        }
    }
}

/* -- depthwise -- */

static size_t depthwise_thread_bytes(int32_t channels)
{
    return pnet_align64((size_t)channels * sizeof(float));
}

static void depthwise(const struct pnet_mvmr *m, void *work)
{
    const struct pnet_conv_isa *isa = pnet_conv_isa();
    const struct pnet_triplets *t = m->triplets;
    int channels = m->shape.cout;
    char *memory = pnet_align64_pointer(work);
#pragma omp parallel for schedule(dynamic, 256)
    for (int64_t place = 0; place < t->rows; place++) {
        int64_t i = pnet_triplets_row(t, place);
        float *sums = (float *)(void *)(memory + (size_t)omp_get_thread_num() *
                                                     depthwise_thread_bytes(channels));
        float *out = m->out + i * channels;
        int64_t begin = t->start[place];
        isa->depthwise(channels, t->start[place + 1] - begin, t->cell + begin, t->other + begin,
            m->in, m->weight, sums);
        if (m->bias) {
            for (int c = 0; c < channels; c++) sums[c] += m->bias[c];
        }
        finish(out, sums, channels, m->add, m->act, m->slope);
    }
}

size_t pnet_cpu_mvmr_work(
    const struct pnet_triplets *t, struct pnet_conv_shape s, enum pnet_precision precision)
{
    (void)precision;
    if (pnet_conv_is_depthwise(s))
        return 64 + (size_t)omp_get_max_threads() * depthwise_thread_bytes(s.cout);
    struct plan p = make_plan(t->rows, t->cells, t->count, s);
    return plan_bytes(&p);
}

void pnet_cpu_mvmr(const struct pnet_mvmr *m, void *work)
{
    const struct pnet_triplets *t = m->triplets;
    if (!pnet_conv_algo_is_usual(m->algo)) {
        pnet_cpu_mvmr_algo(m, work);
        return;
    }
    if (pnet_conv_is_depthwise(m->shape)) {
        depthwise(m, work);
        return;
    }
    struct job j = {.plan = make_plan(t->rows, t->cells, t->count, m->shape),
        .triplets = t,
        .in = m->in,
        .weight = m->weight,
        .bias = m->bias,
        .out = m->out,
        .transposed = m->transposed,
        .add = m->add,
        .act = m->act,
        .slope = m->slope};
    run(&j, work);
}

/* -- dense -- */

size_t pnet_cpu_gemm_work(
    struct pnet_count n, int32_t cin, int32_t cout, enum pnet_precision precision)
{
    (void)precision;
    struct plan p = make_plan(n.most, 1, n.most, (struct pnet_conv_shape){cin, cout, 1});
    return plan_bytes(&p);
}

void pnet_cpu_gemm(const struct pnet_gemm *g, void *work)
{
    struct pnet_conv_shape s = {g->cin, g->cout, 1};
    struct job j = {.plan = make_plan(g->n.most, 1, g->n.most, s),
        .in = g->x,
        .weight = g->w,
        .bias = g->bias,
        .out = g->y,
        .transposed = g->transposed,
        .add = g->add,
        .act = g->act,
        .slope = g->slope};
    run(&j, work);
}
