#include "kernels/pool.h"
#include "kernels/cpu/layer/segment.h"

#include <math.h>
#include <string.h>

enum {
    SLICES = 64,  /* stretches of result rows that share a scratch row */
    SMALL = 8192, /* elements below which threads cost more than they save */
};

static int64_t child_of(const struct pnet_cells *cells, int64_t at)
{
    return cells->child ? cells->child[at] : at;
}

/* The fine row of an entry of `parent`. */
static int64_t fine_row(const struct pnet_cells *cells, int64_t place)
{
    return cells->fine ? cells->fine[place] : place;
}

/* The coarse row of a cell. */
static int64_t row_of(const struct pnet_cells *cells, int64_t cell)
{
    return cells->row ? cells->row[cell] : cell;
}

void pnet_cpu_copy_elements(struct pnet_count n, const void *x, void *y)
{
    if (n.most) memcpy(y, x, (size_t)n.most * sizeof(float));
}

size_t pnet_cpu_cells_sum_work(int32_t c)
{
    return (size_t)SLICES * (size_t)c * sizeof(double);
}

static void sum_cell(const struct pnet_cells *cells, int64_t cell, int32_t c, const float *x,
    bool mean, bool add, float *y, double *restrict sum)
{
    int64_t begin = cells->start[cell], end = cells->start[cell + 1];
    for (int32_t i = 0; i < c; i++) sum[i] = 0;
    for (int64_t at = begin; at < end; at++) {
        const float *p = x + child_of(cells, at) * c;
        for (int32_t i = 0; i < c; i++) sum[i] += (double)p[i];
    }
    double factor = mean && end > begin ? 1 / (double)(end - begin) : 1;
    for (int32_t i = 0; i < c; i++) {
        float v = (float)(sum[i] * factor);
        y[i] = add ? y[i] + v : v;
    }
}

void pnet_cpu_cells_sum(const struct pnet_cells *cells, int32_t c, const float *x, bool mean,
    bool add, float *y, void *work)
{
    double *scratch = work;
    int64_t n = cells->coarse_rows.most;
#pragma omp parallel for schedule(dynamic) if (cells->fine_rows.most * c > SMALL)
    for (int32_t slice = 0; slice < SLICES; slice++)
        for (int64_t cell = n * slice / SLICES; cell < n * (slice + 1) / SLICES; cell++)
            sum_cell(cells, cell, c, x, mean, add, y + row_of(cells, cell) * c,
                scratch + (int64_t)slice * c);
}

void pnet_cpu_cells_spread(
    const struct pnet_cells *cells, int32_t c, const float *x, bool mean, bool add, float *y)
{
#pragma omp parallel for schedule(static) if (cells->fine_rows.most * c > SMALL)
    for (int64_t place = 0; place < cells->fine_rows.most; place++) {
        int64_t cell = cells->parent[place];
        const float *p = x + cell * c;
        float *q = y + fine_row(cells, place) * c;
        float factor = mean ? 1 / (float)(cells->start[cell + 1] - cells->start[cell]) : 1;
        if (add) {
#pragma omp simd
            for (int32_t i = 0; i < c; i++) q[i] += p[i] * factor;
            continue;
        }
#pragma omp simd
        for (int32_t i = 0; i < c; i++) q[i] = p[i] * factor;
    }
}

/* Keeps the larger of y and row x, and where it came from. Two loops, as one for both would branch.
 */
static void keep_larger(
    int32_t c, const float *restrict x, int64_t row, float *restrict y, int32_t *restrict argmax)
{
    int32_t from = (int32_t)row;
    if (argmax) {
#pragma omp simd
        for (int32_t i = 0; i < c; i++) {
            int32_t at = argmax[i];
            argmax[i] = x[i] > y[i] ? from : at;
        }
    }
#pragma omp simd
    for (int32_t i = 0; i < c; i++) {
        float v = x[i], top = y[i];
        y[i] = v > top ? v : top;
    }
}

static void start_with(int32_t c, const float *x, int64_t row, float *y, int32_t *argmax)
{
    for (int32_t i = 0; i < c; i++) y[i] = x ? x[i] : 0;
    if (!argmax) return;
    for (int32_t i = 0; i < c; i++) argmax[i] = (int32_t)row;
}

void pnet_cpu_cells_max(
    const struct pnet_cells *cells, int32_t c, const float *x, float *y, int32_t *argmax)
{
#pragma omp parallel for schedule(dynamic, 64) if (cells->fine_rows.most * c > SMALL)
    for (int64_t cell = 0; cell < cells->coarse_rows.most; cell++) {
        int64_t to = row_of(cells, cell) * c;
        float *q = y + to;
        int32_t *from = argmax ? argmax + to : NULL;
        int64_t at = cells->start[cell], end = cells->start[cell + 1];
        if (at == end) {
            start_with(c, NULL, -1, q, from);
            continue;
        }
        int64_t row = child_of(cells, at);
        start_with(c, x + row * c, row, q, from);
        while (++at < end) {
            row = child_of(cells, at);
            keep_larger(c, x + row * c, row, q, from);
        }
    }
}

/* The gradient of the elements that were the largest of their cell. */
static void take_own(int32_t c, const int32_t *restrict argmax, const float *restrict g,
    int64_t row, bool add, float *restrict gx)
{
    int32_t own = (int32_t)row;
    if (add) {
#pragma omp simd
        for (int32_t i = 0; i < c; i++) {
            float v = g[i]; /* read in any case: no branch */
            gx[i] += argmax[i] == own ? v : 0;
        }
        return;
    }
#pragma omp simd
    for (int32_t i = 0; i < c; i++) {
        float v = g[i];
        gx[i] = argmax[i] == own ? v : 0;
    }
}

void pnet_cpu_cells_max_backward(const struct pnet_cells *cells, int32_t c, const int32_t *argmax,
    const float *g, bool add, float *gx)
{
#pragma omp parallel for schedule(static) if (cells->fine_rows.most * c > SMALL)
    for (int64_t place = 0; place < cells->fine_rows.most; place++) {
        int64_t at = (int64_t)cells->parent[place] * c, row = fine_row(cells, place);
        take_own(c, argmax + at, g + at, row, add, gx + row * c);
    }
}

/* How often a label was seen in a cell. Each cell has room for as many as it has rows. */
struct tally {
    int32_t label;
    uint32_t count;
};

size_t pnet_cpu_cells_majority_work(const struct pnet_cells *cells)
{
    return (size_t)cells->fine_rows.most * sizeof(struct tally);
}

/* `tally` is sorted by label, so that the number of classes need not be known. */
static int32_t majority(
    const struct pnet_cells *cells, int64_t cell, const int32_t *label, struct tally *tally)
{
    int64_t count = 0;
    for (int64_t at = cells->start[cell]; at < cells->start[cell + 1]; at++) {
        int32_t l = label[child_of(cells, at)];
        int64_t low = 0, high = count;
        if (l < 0) continue;
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            if (tally[middle].label < l)
                low = middle + 1;
            else
                high = middle;
        }
        if (low == count || tally[low].label != l) {
            memmove(tally + low + 1, tally + low, (size_t)(count - low) * sizeof *tally);
            tally[low] = (struct tally){l, 0};
            count++;
        }
        tally[low].count++;
    }
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        if (tally[i].count > tally[best].count) best = i;
    return count ? tally[best].label : -1;
}

void pnet_cpu_cells_majority(
    const struct pnet_cells *cells, const int32_t *label, int32_t *y, void *work)
{
    struct tally *tally = work;
#pragma omp parallel for schedule(dynamic, 64) if (cells->fine_rows.most > SMALL)
    for (int64_t cell = 0; cell < cells->coarse_rows.most; cell++)
        y[cell] = majority(cells, cell, label, tally + cells->start[cell]);
}

/* Sums need two doubles for each segment and channel beside the blocks' sums; maxima one float and
   one row for each block and segment, which is less. */
size_t pnet_cpu_segments_pool_work(struct pnet_segments s, int32_t c)
{
    return (size_t)s.count * (size_t)c * sizeof(double) + pnet_cpu_segment_sums_work(s, c);
}

void pnet_cpu_segments_sum(
    struct pnet_segments s, int32_t c, const float *x, bool mean, bool add, float *y, void *work)
{
    double *sum = work;
    pnet_cpu_segment_sums(s, c, x, NULL, sum, NULL, sum + (int64_t)s.count * c);
    for (int32_t segment = 0; segment < s.count; segment++) {
        int64_t rows = s.splits[segment + 1] - s.splits[segment];
        double factor = mean && rows > 0 ? 1 / (double)rows : 1;
        for (int64_t i = (int64_t)segment * c; i < (int64_t)(segment + 1) * c; i++) {
            float v = (float)(sum[i] * factor);
            y[i] = add ? y[i] + v : v;
        }
    }
}

void pnet_cpu_segments_spread(
    struct pnet_segments s, int32_t c, const float *x, bool mean, bool add, float *y)
{
    int64_t blocks = pnet_segment_blocks(s.rows);
#pragma omp parallel for schedule(static) if (s.rows * c > SMALL)
    for (int64_t block = 0; block < blocks; block++) {
        struct pnet_piece p = pnet_piece_first(s, block);
        for (; p.begin < p.last; p = pnet_piece_next(s, p)) {
            const float *from = x + (int64_t)p.segment * c;
            int64_t rows = s.splits[p.segment + 1] - s.splits[p.segment];
            float factor = mean ? 1 / (float)rows : 1;
            for (int64_t row = p.begin; row < p.end; row++)
                for (int32_t i = 0; i < c; i++) {
                    float v = from[i] * factor;
                    y[row * c + i] = add ? y[row * c + i] + v : v;
                }
        }
    }
}

/* The maximum of each block's part of a segment, then of those in order. */
void pnet_cpu_segments_max(
    struct pnet_segments s, int32_t c, const float *x, float *y, int32_t *argmax, void *work)
{
    int64_t blocks = pnet_segment_blocks(s.rows);
    float *top = work;                                         /* [blocks + segments, c] */
    int32_t *from = (int32_t *)(top + (blocks + s.count) * c); /* likewise */
#pragma omp parallel for schedule(static) if (s.rows * c > SMALL)
    for (int64_t block = 0; block < blocks; block++) {
        struct pnet_piece p = pnet_piece_first(s, block);
        for (; p.begin < p.last; p = pnet_piece_next(s, p)) {
            if (p.begin == p.end) continue;
            int64_t at = (block + p.segment) * c;
            int32_t *own = argmax ? from + at : NULL;
            start_with(c, x + p.begin * c, p.begin, top + at, own);
            for (int64_t row = p.begin + 1; row < p.end; row++)
                keep_larger(c, x + row * c, row, top + at, own);
        }
    }
    for (int32_t segment = 0; segment < s.count; segment++) {
        int64_t begin = s.splits[segment], end = s.splits[segment + 1];
        float *q = y + (int64_t)segment * c;
        int32_t *own = argmax ? argmax + (int64_t)segment * c : NULL;
        start_with(c, begin < end ? x + begin * c : NULL, begin < end ? begin : -1, q, own);
        if (begin == end) continue;
        for (int64_t block = begin / PNET_SEGMENT_BLOCK; block <= (end - 1) / PNET_SEGMENT_BLOCK;
             block++)
            for (int64_t at = (block + segment) * c, i = 0; i < c; i++)
                if (top[at + i] > q[i]) {
                    q[i] = top[at + i];
                    if (own) own[i] = from[at + i];
                }
    }
}

void pnet_cpu_segments_max_backward(
    struct pnet_segments s, int32_t c, const int32_t *argmax, const float *g, bool add, float *gx)
{
    int64_t blocks = pnet_segment_blocks(s.rows);
#pragma omp parallel for schedule(static) if (s.rows * c > SMALL)
    for (int64_t block = 0; block < blocks; block++) {
        struct pnet_piece p = pnet_piece_first(s, block);
        for (; p.begin < p.last; p = pnet_piece_next(s, p))
            for (int64_t row = p.begin; row < p.end; row++)
                take_own(c, argmax + (int64_t)p.segment * c, g + (int64_t)p.segment * c, row, add,
                    gx + row * c);
    }
}
