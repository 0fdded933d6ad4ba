/* Sorts the triplets by the other side. Each thread owns a range of rows of the other side and takes the triplets of these
   rows from the set, in the order of the set's rows: threads write nothing in common, and the order is fixed. Rows follow a
   curve, so neighbours are close in the list as well: most parts of the set lie outside of a range and are skipped. */
#include <omp.h>

#include "kernels/geometry_stage.h"
#include "kernels/cpu/geometry/geo_isa.h"

enum { PART = 128 /* rows */ };

/* The range of other rows that some rows of the set have; none: low > high. */
struct reach {
    int32_t low, high;
};

static int64_t parts_of(const struct pnet_triplets *t)
{
    return (t->rows + PART - 1) / PART;
}

size_t pnet_cpu_transpose_work(const struct pnet_triplets *t)
{
    return (size_t)parts_of(t) * sizeof(struct reach);
}

static int64_t part_end(const struct pnet_triplets *t, int64_t part)
{
    return (part + 1) * PART < t->rows ? (part + 1) * PART : t->rows;
}

static void find_reach(const struct pnet_triplets *t, struct reach *reach)
{
#pragma omp parallel for schedule(static)
    for (int64_t p = 0; p < parts_of(t); p++) {
        int32_t low = INT32_MAX, high = -1;
        for (int64_t n = t->start[p * PART]; n < t->start[part_end(t, p)]; n++) {
            low = t->other[n] < low ? t->other[n] : low;
            high = t->other[n] > high ? t->other[n] : high;
        }
        reach[p] = (struct reach){low, high};
    }
}

/* Sets next[j] to the number of triplets of row j, for first <= j < end. */
static void count_range(const struct pnet_triplets *t, const struct reach *reach, int64_t first,
    int64_t end, int64_t *next)
{
    for (int64_t j = first; j < end; j++) next[j] = 0;
    for (int64_t p = 0; p < parts_of(t); p++) {
        if (reach[p].high < first || reach[p].low >= end) continue;
        for (int64_t n = t->start[p * PART]; n < t->start[part_end(t, p)]; n++)
            if (t->other[n] >= first && t->other[n] < end) next[t->other[n]]++;
    }
}

/* Writes the triplets of rows first <= j < end to the place next[j], which advances. */
static void move_range(const struct pnet_triplets *t, const struct reach *reach, int64_t first,
    int64_t end, int64_t *next, int32_t *other, uint16_t *cell)
{
    for (int64_t p = 0; p < parts_of(t); p++) {
        if (reach[p].high < first || reach[p].low >= end) continue;
        for (int64_t i = p * PART; i < part_end(t, p); i++)
            for (int64_t n = t->start[i]; n < t->start[i + 1]; n++) {
                int64_t j = t->other[n];
                if (j < first || j >= end) continue;
                int64_t to = next[j]++;
                other[to] = (int32_t)i;
                cell[to] = t->cell[n];
            }
    }
}

/* Rows are filled in the order of `other`; now they are sorted by cell. */
static void sort_rows(
    int64_t rows, int32_t cells, const int64_t *start, int32_t *other, uint16_t *cell)
{
#pragma omp parallel
    {
        int32_t from_other[LONG_ROW], from_cell[LONG_ROW], spare_other[LONG_ROW],
            spare_cell[LONG_ROW];
#pragma omp for schedule(dynamic, 1024)
        for (int64_t j = 0; j < rows; j++) {
            int64_t first = start[j], n = start[j + 1] - first;
            if (n > LONG_ROW) {
                pnet_geo_row_sort(n, other + first, cell + first);
                continue;
            }
            for (int64_t k = 0; k < n; k++) {
                from_other[k] = other[first + k];
                from_cell[k] = cell[first + k];
            }
            pnet_geo_row_by_cell((int)n, from_other, from_cell, cells, other + first, cell + first,
                spare_other, spare_cell);
        }
    }
}

void pnet_cpu_transpose(
    const struct pnet_triplets *t, int64_t *start, int32_t *other, uint16_t *cell, void *work)
{
    struct reach *reach = work;
    int64_t *next =
        start + 1; /* next[j]: place of row j's next triplet, in the end the start of row j + 1 */
    int64_t place = 0, ranges = omp_get_max_threads();
    find_reach(t, reach);
    start[0] = 0;
#pragma omp parallel for schedule(static)
    for (int64_t r = 0; r < ranges; r++)
        count_range(t, reach, t->others * r / ranges, t->others * (r + 1) / ranges, next);
    for (int64_t j = 0; j < t->others; j++) {
        int64_t count = next[j];
        next[j] = place;
        place += count;
    }
#pragma omp parallel for schedule(static)
    for (int64_t r = 0; r < ranges; r++)
        move_range(
            t, reach, t->others * r / ranges, t->others * (r + 1) / ranges, next, other, cell);
    sort_rows(t->others, t->cells, start, other, cell);
}

int64_t pnet_cpu_cell_runs(const struct pnet_triplets *t)
{
    int64_t runs = 0;
#pragma omp parallel for schedule(static) reduction(+ : runs)
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t n = t->start[i]; n < t->start[i + 1]; n++)
            runs += n == t->start[i] || t->cell[n] != t->cell[n - 1];
    return runs;
}
