/* Grid sampling: selects one original point a voxel, and finds the children of each selected point. */
#include <omp.h>
#include <string.h>

#include "kernels/geometry_stage.h"
#include "kernels/cpu/geometry/geo_grid.h"

enum { CHUNK = 1 << 14 }; /* sorted places that one thread takes at a time */

static int64_t chunks_of(int64_t n)
{
    return (n + CHUNK - 1) / CHUNK;
}

size_t pnet_cpu_sample_work(int64_t n, bool ordered)
{
    size_t rows = (size_t)n;
    return rows * sizeof(uint64_t) + (ordered ? 0 : pnet_cpu_order_work(n)) +
           ((size_t)chunks_of(n) + 1) * sizeof(int64_t) + (rows + 1) / 2 * sizeof(uint64_t);
}

/* The rows of a level sorted by sample and voxel. */
struct sorted_rows {
    const struct pnet_level *level;
    struct pnet_grid grid;
    const uint64_t *key;  /* [rows] on `grid` */
    const int32_t *order; /* [rows] */
};

static int32_t sample_of(const struct pnet_level *level, int64_t row)
{
    int32_t low = 0, high = level->samples - 1;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (level->row_splits[middle + 1] > row)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Finds where voxels begin, for places in ascending order: at the start of a sample (empty samples are skipped), and where
   the key changes. */
struct heads {
    const struct sorted_rows *rows;
    int32_t sample;
    int64_t sample_end;
};

static struct heads heads_from(const struct sorted_rows *rows, int64_t begin)
{
    int32_t sample = sample_of(rows->level, begin);
    return (struct heads){rows, sample, rows->level->row_splits[sample + 1]};
}

static inline bool is_head(struct heads *h, int64_t place)
{
    const int64_t *splits = h->rows->level->row_splits;
    while (place >= h->sample_end) h->sample_end = splits[++h->sample + 1];
    if (place == splits[h->sample]) return true;
    const int32_t *order = h->rows->order;
    return h->rows->key[order[place]] != h->rows->key[order[place - 1]];
}

static float distance2_to_centre(const struct sorted_rows *rows, int32_t row)
{
    const float *p = rows->level->xyz + 3 * (int64_t)row;
    float cell = pnet_grid_cell(rows->grid), d[3];
    bool inside = true;
    struct pnet_voxel v = pnet_voxel_of(p, rows->grid, &inside);
    for (int a = 0; a < 3; a++) d[a] = p[a] - ((float)v.at[a] + 0.5f) * cell;
    return (d[0] * d[0] + d[1] * d[1]) + d[2] * d[2];
}

/* Numbers the voxels that begin in [begin, end), from `coarse` on. A voxel belongs to the chunk in which it begins, up to
   its end. The rows of a voxel ascend, so the first of equally near rows is the lowest. */
static void sample_chunk(const struct sorted_rows *rows, int64_t begin, int64_t end, int64_t coarse,
    int32_t *keep, int32_t *parent)
{
    struct heads h = heads_from(rows, begin);
    int64_t place = begin, n = rows->level->rows;
    while (place < end && !is_head(&h, place)) place++;
    while (place < end) {
        int32_t best = rows->order[place];
        float best_distance2 = distance2_to_centre(rows, best);
        parent[best] = (int32_t)coarse;
        for (place++; place < n && !is_head(&h, place); place++) {
            int32_t row = rows->order[place];
            float distance2 = distance2_to_centre(rows, row);
            parent[row] = (int32_t)coarse;
            if (distance2 < best_distance2) {
                best = row;
                best_distance2 = distance2;
            }
        }
        keep[coarse++] = best;
    }
}

static void order_as_it_is(int64_t n, int32_t *order)
{
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++) order[i] = (int32_t)i;
}

int64_t pnet_cpu_sample(const struct pnet_level *fine, struct pnet_grid grid, bool ordered,
    int32_t *keep, int32_t *parent, int64_t *row_splits, void *work)
{
    int64_t n = fine->rows, chunks = chunks_of(n);
    uint64_t *key = work;
    int64_t *first = (int64_t *)(key + n);
    int32_t *order = (int32_t *)(first + chunks + 1);
    pnet_cpu_keys(n, fine->xyz, grid, key);
    if (ordered)
        order_as_it_is(n, order);
    else
        pnet_cpu_order(n, fine->samples, fine->row_splits, key, order,
            (uint64_t *)(first + chunks + 1) + (n + 1) / 2);

    struct sorted_rows rows = {fine, grid, key, order};
    first[0] = 0;
#pragma omp parallel for schedule(static)
    for (int64_t c = 0; c < chunks; c++) {
        int64_t begin = c * CHUNK, end = begin + CHUNK < n ? begin + CHUNK : n, count = 0;
        struct heads h = heads_from(&rows, begin);
        for (int64_t place = begin; place < end; place++) count += is_head(&h, place);
        first[c + 1] = count;
    }
    for (int64_t c = 0; c < chunks; c++) first[c + 1] += first[c];
#pragma omp parallel for schedule(static)
    for (int64_t c = 0; c < chunks; c++) {
        int64_t begin = c * CHUNK, end = begin + CHUNK < n ? begin + CHUNK : n;
        sample_chunk(&rows, begin, end, first[c], keep, parent);
    }
    for (int32_t s = 0; s <= fine->samples; s++) {
        int64_t place = s < fine->samples ? fine->row_splits[s] : n;
        row_splits[s] = place < n ? parent[order[place]] : first[chunks];
    }
    return first[chunks];
}

/* Tells whether parents ascend: the children of a row are then consecutive, and no sort is needed. */
static bool parents_ascend(int64_t n, const int32_t *parent)
{
    int64_t falls = 0;
#pragma omp parallel for schedule(static) reduction(+ : falls)
    for (int64_t j = 1; j < n; j++) falls += parent[j] < parent[j - 1];
    return falls == 0;
}

static void children_in_order(
    int64_t fine_rows, int64_t coarse_rows, const int32_t *parent, int64_t *start, int32_t *child)
{
#pragma omp parallel for schedule(static)
    for (int64_t j = 0; j < fine_rows; j++) {
        if (child) child[j] = (int32_t)j;
        int64_t before = j ? parent[j - 1] : -1;
        for (int64_t i = before + 1; i <= parent[j]; i++) start[i] = j;
    }
    int64_t last = fine_rows ? parent[fine_rows - 1] : -1;
    for (int64_t i = last + 1; i <= coarse_rows; i++) start[i] = fine_rows;
}

/* Counting sort: start[i + 1] is the place of the next child of row i, and ends as the start of row i + 1. */
static void children_counted(
    int64_t fine_rows, int64_t coarse_rows, const int32_t *parent, int64_t *start, int32_t *child)
{
    memset(start, 0, (size_t)(coarse_rows + 1) * sizeof *start);
    for (int64_t j = 0; j < fine_rows; j++) start[parent[j] + 1]++;
    int64_t place = 0;
    for (int64_t i = 1; i <= coarse_rows; i++) {
        int64_t count = start[i];
        start[i] = place;
        place += count;
    }
    for (int64_t j = 0; j < fine_rows; j++) child[start[parent[j] + 1]++] = (int32_t)j;
}

void pnet_cpu_children(
    int64_t fine_rows, int64_t coarse_rows, const int32_t *parent, int64_t *start, int32_t *child)
{
    if (!child || parents_ascend(fine_rows, parent))
        children_in_order(fine_rows, coarse_rows, parent, start, child);
    else
        children_counted(fine_rows, coarse_rows, parent, start, child);
}
