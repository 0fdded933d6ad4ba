/* VVOR by chunks of rows, each with a partial dW of its own. A chunk goes through its row blocks, and through the kernel
   cells of each: one panel takes the rows of the side that the set is sorted by, another the sums of the runs, and their
   product is added to the partial sum of the cell. The partial sums of all chunks are added in order. */
#include "kernels/conv.h"

#include <omp.h>
#include <string.h>
#include "kernels/conv_compare.h"
#include "kernels/cpu/conv/conv_row_block.h"

enum {
    CHUNKS = 32, /* at most */
    CHUNKS_WHOLE =
        8, /* fewer only where memory forces it; before that, dW is summed strip by strip */
    CHUNK_ROWS = 1024,        /* at least */
    PARTIAL_BYTES = 32 << 20, /* of all partial sums */
    TASKS = 16,               /* wanted, so that small inputs occupy several threads */
    TASK_CHANNELS = 32,       /* input channels of a task at least */
};

struct plan {
    const struct pnet_conv_isa *isa;
    struct pnet_conv_groups groups;
    int32_t cin, cout;
    int64_t cells, rows, count;
    size_t stride;      /* floats of a row of the partial sums: columns of a merged group, whole
                           registers */
    int tile;           /* rows */
    int64_t chunk_rows; /* whole tiles */
    int chunks;
    int strip; /* input channels of a strip */
    int parts; /* tasks that share the channels of one chunk */
    size_t partial_bytes, panel_bytes, tile_bytes, thread_bytes;
};

struct job {
    struct plan plan;
    const struct pnet_triplets *triplets; /* NULL: a dense product */
    const float *in, *gout;
    float *gweight, *partial;
    bool swapped, transposed, add;
    int first, end; /* input channels of the strip */
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* `columns` and `width`: of the partial sums, and of the narrowest strip. partial_bytes never shrinks when rows grow, so
   that the memory for more rows is enough. */
static void plan_chunks(struct plan *p, int32_t width)
{
    int64_t channel_bytes = p->cells * (int64_t)p->stride * (int64_t)sizeof(float);
    int64_t chunks = larger(1, smaller(CHUNKS, p->rows / CHUNK_ROWS)), strip = p->cin;
    p->partial_bytes = (size_t)smaller(
        chunks * strip * channel_bytes, larger(PARTIAL_BYTES, width * channel_bytes));
    if (chunks * strip * channel_bytes > PARTIAL_BYTES) {
        chunks = larger(smaller(chunks, CHUNKS_WHOLE), PARTIAL_BYTES / (strip * channel_bytes));
        strip = smaller(strip, PARTIAL_BYTES / (chunks * channel_bytes));
        if (strip < width) {
            strip = width;
            chunks = larger(1, smaller(chunks, PARTIAL_BYTES / (strip * channel_bytes)));
        }
    }
    int64_t tiles = larger(1, (p->rows + p->tile - 1) / p->tile);
    p->chunk_rows = (tiles + chunks - 1) / chunks * p->tile;
    p->chunks = (int)larger(1, (p->rows + p->chunk_rows - 1) / p->chunk_rows);
    p->strip = (int)strip;
    p->parts = (int)larger(1, smaller(strip / TASK_CHANNELS, TASKS / p->chunks));
}

static struct plan make_plan(int64_t rows, int64_t cells, int64_t count, struct pnet_conv_shape s)
{
    struct plan p = {.isa = pnet_conv_isa(),
        .groups = pnet_conv_groups(s),
        .cin = s.cin,
        .cout = s.cout,
        .cells = cells,
        .rows = rows,
        .count = count,
        .tile = pnet_row_block_rows(cells)};
    if (pnet_conv_is_depthwise(s)) {
        p.stride = 1;
        plan_chunks(&p, s.cin);
        return p;
    }
    size_t vector = (size_t)p.isa->vector;
    p.stride = ((size_t)p.groups.cout + vector - 1) / vector * vector;
    plan_chunks(&p, (int32_t)smaller(PNET_PANEL_WIDTH, p.groups.cin));
    p.panel_bytes = (size_t)PNET_PANEL_ROWS * PNET_PANEL_STRIDE * sizeof(float);
    p.tile_bytes = pnet_row_block_bytes(cells, count);
    p.thread_bytes = 2 * p.panel_bytes + p.tile_bytes;
    return p;
}

static size_t plan_bytes(const struct plan *p)
{
    return 64 + pnet_align64(p->partial_bytes) + (size_t)omp_get_max_threads() * p->thread_bytes;
}

/* Rows that do not follow each other. */
static void copy_listed(const struct job *j, const struct pnet_row_block *tile, const float *from,
    int32_t stride, int width, const struct pnet_run *runs, int count, float *panel)
{
    static const struct pnet_run one = {0, 0, 1};
    for (int i = 0; i < count; i++)
        j->plan.isa->copy_rows(panel + (size_t)i * PNET_PANEL_STRIDE,
            from + pnet_row_block_row(tile, runs[i].row) * stride, (size_t)stride, width, &one, 1);
}

/* Rows of the side that the set is sorted by, or sums of runs of the other side: columns [first,
 * first + width). */
static void fill_panel(const struct job *j, const struct pnet_row_block *tile, bool rows_side,
    const float *from, int32_t stride, int first, int width, const struct pnet_run *runs, int count,
    float *panel)
{
    const struct pnet_conv_isa *isa = j->plan.isa;
    if (rows_side && tile->row)
        copy_listed(j, tile, from + first, stride, width, runs, count, panel);
    else if (rows_side || !tile->other)
        isa->copy_rows(
            panel, from + tile->place * stride + first, (size_t)stride, width, runs, count);
    else
        isa->sum_runs(panel, from + first, (size_t)stride, width, tile->other, runs, count);
}

/* Adds the products of `count` runs of one kernel cell for input channels [first, end), which lie
   in one panel; their groups do too, or they are one group. `sum` is the row of `first`. */
static void add_products(const struct job *j, const struct pnet_row_block *tile,
    const struct pnet_run *runs, int count, int first, int end, float *sum, float *x, float *y)
{
    const struct plan *p = &j->plan;
    int cin = p->groups.cin, cout = p->groups.cout, group = first / cin,
        groups = (end - 1) / cin - group + 1;
    fill_panel(j, tile, j->swapped, j->in, p->cin, first, end - first, runs, count, x);
    for (int c = 0; c < groups * cout; c += PNET_PANEL_WIDTH) {
        int width = (int)smaller(PNET_PANEL_WIDTH, groups * cout - c);
        fill_panel(j, tile, !j->swapped, j->gout, p->cout, group * cout + c, width, runs, count, y);
        for (int from = first, to; from < end; from = to) {
            int g = from / cin;
            to = (int)smaller(end, (g + 1) * cin);
            /* Lanes beyond the group's last column add up to values that are never read. */
            p->isa->outer(x + from - first, y + (g - group) * cout, count, to - from,
                (int)smaller(width, cout), sum + (size_t)(from - first) * p->stride + c, p->stride);
        }
    }
}

/* Sums input channels [first, end) of one row block; `sum` are the partial sums of the chunk for the whole strip. */
static void run_tile(const struct job *j, const struct pnet_row_block *tile, int first, int end,
    float *sum, float *x, float *y)
{
    const struct plan *p = &j->plan;
    int width = j->end - j->first, cin = p->groups.cin, widest = (int)larger(cin, p->groups.cout);
    int some = widest < PNET_PANEL_WIDTH ? PNET_PANEL_WIDTH / widest : 1;
    for (int64_t k = 0; k < p->cells; k++) {
        for (int32_t r = tile->first[k]; r < tile->first[k + 1]; r += PNET_PANEL_ROWS) {
            int count = (int)smaller(PNET_PANEL_ROWS, tile->first[k + 1] - r);
            for (int c = first, next; c < end; c = next) {
                next = (int)smaller(smaller(end, c + PNET_PANEL_WIDTH), (c / cin + some) * cin);
                float *to = sum + (size_t)(k * width + c - j->first) * p->stride;
                add_products(j, tile, tile->run + r, count, c, next, to, x, y);
            }
        }
    }
}

static void run_task(const struct job *j, int chunk, int first, int end, char *memory)
{
    const struct plan *p = &j->plan;
    float *x = (float *)(void *)memory, *y = (float *)(void *)(memory + p->panel_bytes);
    struct pnet_row_block tile =
        pnet_row_block_place(p->cells, p->count, memory + 2 * p->panel_bytes);
    int width = j->end - j->first;
    float *sum = j->partial + (size_t)chunk * (size_t)p->cells * (size_t)width * p->stride;
    for (int64_t k = 0; k < p->cells; k++)
        memset(sum + (size_t)(k * width + first - j->first) * p->stride, 0,
            (size_t)(end - first) * p->stride * sizeof *sum);
    int64_t row = chunk * p->chunk_rows, last = smaller(p->rows, row + p->chunk_rows);
    for (; row < last; row += p->tile) {
        int rows = (int)smaller(p->tile, last - row);
        if (j->triplets)
            pnet_row_block_load(&tile, j->triplets, row, rows);
        else
            pnet_row_block_identity(&tile, row, rows);
        run_tile(j, &tile, first, end, sum, x, y);
    }
}

/* The sum over chunks of one row of the partial sums goes to its place in the weight; of a merged
   group only the columns of the channel's own group count. */
static void reduce_row(const struct job *j, int64_t k, int channel)
{
    const struct plan *p = &j->plan;
    const struct pnet_conv_groups *g = &p->groups;
    int width = j->end - j->first, single = channel / g->cin1,
        column = single % g->merged * g->cout1;
    size_t chunk_floats = (size_t)p->cells * (size_t)width * p->stride;
    const float *from = j->partial + (size_t)(k * width + channel - j->first) * p->stride + column;
    float *to =
        j->gweight + (k * g->cin1 + channel % g->cin1) * p->cout + (int64_t)single * g->cout1;
    int64_t step = 1;
    if (j->transposed) {
        to = j->gweight + channel;
        step = p->cin;
    }
    for (int c = 0; c < g->cout1; c++) {
        float sum = 0;
        for (int i = 0; i < p->chunks; i++) sum += from[(size_t)i * chunk_floats + (size_t)c];
        to[c * step] = j->add ? to[c * step] + sum : sum;
    }
}

static void run(struct job *j, void *work)
{
    const struct plan *p = &j->plan;
    char *memory = pnet_align64_pointer(work);
    char *threads = memory + pnet_align64(p->partial_bytes);
    j->partial = (float *)(void *)memory;
    for (j->first = 0; j->first < p->cin; j->first = j->end) {
        j->end = (int)smaller(p->cin, j->first + p->strip);
        int width = j->end - j->first, parts = (int)smaller(p->parts, width),
            tasks = p->chunks * parts;
#pragma omp parallel for schedule(dynamic) if (tasks > 1)
        for (int i = 0; i < tasks; i++) {
            int part = i % parts;
            run_task(j, i / parts, j->first + width * part / parts,
                j->first + width * (part + 1) / parts,
                threads + (size_t)omp_get_thread_num() * p->thread_bytes);
        }
        int64_t rows = p->cells * width;
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < rows; i++) reduce_row(j, i / width, j->first + (int)(i % width));
    }
}

/* -- depthwise -- */

static void depthwise(const struct pnet_vvor *v, void *work)
{
    const struct pnet_triplets *t = v->triplets;
    struct plan p = make_plan(t->rows, t->cells, t->count, v->shape);
    float *partial = pnet_align64_pointer(work);
    int channels = v->shape.cin;
    int64_t floats = p.cells * channels;
    const float *rows = v->swapped ? v->in : v->gout, *others = v->swapped ? v->gout : v->in;
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < p.chunks; i++) {
        float *sum = partial + i * floats;
        memset(sum, 0, (size_t)floats * sizeof *sum);
        int64_t end = smaller(p.rows, (i + 1) * p.chunk_rows);
        for (int64_t place = i * p.chunk_rows; place < end; place++) {
            int64_t row = pnet_triplets_row(t, place), begin = t->start[place];
            p.isa->depthwise_outer(channels, t->start[place + 1] - begin, t->cell + begin,
                t->other + begin, others, rows + row * channels, sum);
        }
    }
    for (int64_t c = 0; c < floats; c++) {
        float sum = 0;
        for (int i = 0; i < p.chunks; i++) sum += partial[i * floats + c];
        v->gweight[c] = v->add ? v->gweight[c] + sum : sum;
    }
}

size_t pnet_cpu_vvor_work(
    const struct pnet_triplets *t, struct pnet_conv_shape s, enum pnet_precision precision)
{
    (void)precision;
    struct plan p = make_plan(t->rows, t->cells, t->count, s);
    return plan_bytes(&p);
}

void pnet_cpu_vvor(const struct pnet_vvor *v, void *work)
{
    const struct pnet_triplets *t = v->triplets;
    if (!pnet_conv_algo_is_usual(v->algo)) {
        pnet_cpu_vvor_algo(v, work);
        return;
    }
    if (pnet_conv_is_depthwise(v->shape)) {
        depthwise(v, work);
        return;
    }
    struct job j = {.plan = make_plan(t->rows, t->cells, t->count, v->shape),
        .triplets = t,
        .in = v->in,
        .gout = v->gout,
        .gweight = v->gweight,
        .swapped = v->swapped,
        .add = v->add};
    run(&j, work);
}

/* -- dense -- */

static struct plan dense_plan(struct pnet_count n, int32_t cin, int32_t cout)
{
    return make_plan(n.most, 1, n.most, (struct pnet_conv_shape){cin, cout, 1});
}

size_t pnet_cpu_outer_work(
    struct pnet_count n, int32_t cin, int32_t cout, enum pnet_precision precision)
{
    (void)precision;
    struct plan p = dense_plan(n, cin, cout);
    return plan_bytes(&p);
}

void pnet_cpu_outer(const struct pnet_outer *o, void *work)
{
    struct job j = {.plan = dense_plan(o->n, o->cin, o->cout),
        .in = o->x,
        .gout = o->g,
        .gweight = o->gw,
        .transposed = o->transposed,
        .add = o->add};
    run(&j, work);
}
