/* pnet-bench ablate map: hashing on the CPU. Each thread fills slices of the table, in the order of rows; rows that run into
   the next slice are put there at the end, by one thread. So the table does not depend on the number of threads. */
#include <string.h>

#include "bench/map.h"

enum { SLICE_BITS = 8, SLICES = 1 << SLICE_BITS, ROWS = 64 /* that are counted at a time */ };

struct slices {
    int64_t start[SLICES + 1];
    int32_t *row;  /* [in.rows] by slice */
    int32_t *left; /* [in.rows] those of a slice that found no place in it, from its start on */
    int64_t left_count[SLICES];
};

static size_t work_bytes(const struct map_task *t)
{
    return sizeof(struct slices) + 2 * (size_t)t->in.rows * sizeof(int32_t);
}

/* The slot at which the search for a row's key begins. `sample` is the row's or an earlier one, and becomes its own. */
static uint32_t home_of(const struct map_task *t, int64_t row, int32_t *sample)
{
    while (t->in.row_splits[*sample + 1] <= row) ++*sample;
    return map_home(t->in.key[row], *sample, t->bits);
}

static uint32_t slice_of(const struct map_task *t, uint32_t home)
{
    return t->bits > SLICE_BITS ? home >> (t->bits - SLICE_BITS) : home;
}

/* Lists the rows of each slice, ascending. */
static void deal_out(const struct map_task *t, struct slices *s)
{
    int64_t at[SLICES];
    int32_t sample = 0;
    memset(s->start, 0, sizeof s->start);
    for (int64_t i = 0; i < t->in.rows; i++) s->start[slice_of(t, home_of(t, i, &sample)) + 1]++;
    for (int k = 0; k < SLICES; k++) s->start[k + 1] += s->start[k];
    memcpy(at, s->start, sizeof at);
    sample = 0;
    for (int64_t i = 0; i < t->in.rows; i++)
        s->row[at[slice_of(t, home_of(t, i, &sample))]++] = (int32_t)i;
}

static void fill_slice(const struct map_task *t, struct slices *s, int64_t slice)
{
    int64_t size = (int64_t)1 << t->bits, first = slice, end = slice + 1;
    int32_t sample = 0;
    if (t->bits > SLICE_BITS) {
        first = slice << (t->bits - SLICE_BITS);
        end = (slice + 1) << (t->bits - SLICE_BITS);
    }
    s->left_count[slice] = 0;
    if (first >= size) return;
    for (int64_t k = first; k < end; k++) t->table[k] = -1;
    for (int64_t n = s->start[slice]; n < s->start[slice + 1]; n++) {
        int64_t at = home_of(t, s->row[n], &sample);
        while (at < end && t->table[at] >= 0) at++;
        if (at < end)
            t->table[at] = s->row[n];
        else
            s->left[s->start[slice] + s->left_count[slice]++] = s->row[n];
    }
}

static void build(const struct map_task *t, void *work)
{
    struct slices *s = work;
    uint32_t last = (1u << t->bits) - 1;
    s->row = (int32_t *)(s + 1);
    s->left = s->row + t->in.rows;
    deal_out(t, s);
#pragma omp parallel for schedule(dynamic)
    for (int64_t slice = 0; slice < SLICES; slice++) fill_slice(t, s, slice);
    for (int64_t slice = 0; slice < SLICES; slice++) {
        int32_t sample = 0;
        for (int64_t n = 0; n < s->left_count[slice]; n++) {
            int32_t row = s->left[s->start[slice] + n];
            uint32_t at = home_of(t, row, &sample);
            while (t->table[at] >= 0) at = (at + 1) & last;
            t->table[at] = row;
        }
    }
}

/* All cells of a row, or the first half and the middle one. */
static void find_row(const struct map_task *t, int32_t sample, int64_t row)
{
    struct map_centre c = map_centre(t, sample, row);
    int32_t K = t->kernel, left = t->half ? map_cells(t) / 2 + 1 : map_cells(t);
    for (int32_t x = 0; x < K; x++)
        for (int32_t y = 0; y < K; y++)
            for (int32_t z = 0; z < K && left > 0; z++, left--) map_find(t, &c, x, y, z);
}

static void find(const struct map_task *t)
{
    int64_t n = (int64_t)map_cells(t) * t->out.rows;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < (t->half ? n : 0); i++) t->slot[i] = -1;
    for (int32_t s = 0; s < t->out.samples; s++)
#pragma omp parallel for schedule(dynamic, 256)
        for (int64_t i = t->out.row_splits[s]; i < t->out.row_splits[s + 1]; i++) find_row(t, s, i);
}

static int64_t count(const struct map_task *t, int64_t *start, void *work)
{
    int64_t rows = t->out.rows;
    (void)work;
    start[0] = 0;
#pragma omp parallel for schedule(static)
    for (int64_t first = 0; first < rows; first += ROWS) {
        int64_t end = first + ROWS < rows ? first + ROWS : rows;
        for (int64_t i = first; i < end; i++) start[i + 1] = 0;
        for (int32_t v = 0; v < map_cells(t); v++)
            for (int64_t i = first; i < end; i++) start[i + 1] += t->slot[v * rows + i] >= 0;
    }
    for (int64_t i = 0; i < rows; i++) start[i + 1] += start[i];
    return start[rows];
}

static void write_triplets(
    const struct map_task *t, const int64_t *start, int32_t *other, uint16_t *cell)
{
    int64_t rows = t->out.rows;
#pragma omp parallel for schedule(static)
    for (int64_t first = 0; first < rows; first += ROWS) {
        int64_t end = first + ROWS < rows ? first + ROWS : rows, at[ROWS];
        for (int64_t i = first; i < end; i++) at[i - first] = start[i];
        for (int32_t v = 0; v < map_cells(t); v++)
            for (int64_t i = first; i < end; i++) {
                int32_t row = t->slot[v * rows + i];
                if (row < 0) continue;
                other[at[i - first]] = row;
                cell[at[i - first]++] = (uint16_t)v;
            }
    }
}

const struct map_device pnet_bench_map_cpu = {work_bytes, build, find, count, write_triplets};
