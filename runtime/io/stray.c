#include "runtime/io/stray.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The points in the box are counted in bins along each axis. What lies beyond a gap is left out, and the smaller box is looked
   at more closely, up to ROUNDS times. */
enum { BINS = 4096, ROUNDS = 16 };

static const double widths = 10; /* of the core, that a gap has at least */

static bool is_inside(const struct pnet_box *b, const double v[3])
{
    for (int a = 0; a < 3; a++)
        if (!(v[a] >= b->low[a] && v[a] <= b->high[a])) return false;
    return true;
}

static void get(const struct pnet_cloud *c, int64_t row, double v[3])
{
    for (int a = 0; a < 3; a++) v[a] = pnet_cloud_at(c, row, a);
}

static int bin_of(const struct pnet_box *b, int axis, double v)
{
    double width = (b->high[axis] - b->low[axis]) / BINS, at = (v - b->low[axis]) / width;
    return at < BINS - 1 ? (int)at : BINS - 1; /* NaN, where the width is 0, is the last one */
}

static int median_bin(const int64_t *counts, int64_t all)
{
    int bin = 0;
    for (int64_t below = counts[0]; 2 * below < all; below += counts[bin]) bin++;
    return bin;
}

/* Grows first..last by the next bin with points that no gap separates from it. Returns false if there is none. */
static bool grow(const int64_t *counts, double width, int *first, int *last)
{
    int up = *last + 1, down = *first - 1;
    while (up < BINS && !counts[up]) up++;
    while (down >= 0 && !counts[down]) down--;
    double gap = fmax(PNET_STRAY_GAP_M, widths * width * (*last - *first + 1));
    bool higher = up < BINS && width * (up - *last - 1) <= gap;
    bool lower = down >= 0 && width * (*first - down - 1) <= gap;
    if (higher) *last = up;
    if (lower) *first = down;
    return higher || lower;
}

/* The bins of the core along each axis. */
struct core_bins {
    int first[3], last[3];
};

/* Returns whether the core is less than the box. counts: [3, BINS]. */
static bool find_bins(
    const struct pnet_cloud *c, const struct pnet_box *b, int64_t *counts, struct core_bins *bins)
{
    int64_t all = 0;
    double v[3];
    bool less = false;
    memset(counts, 0, 3 * (size_t)BINS * sizeof *counts);
    for (int64_t i = 0; i < c->rows; i++) {
        get(c, i, v);
        if (!is_inside(b, v)) continue;
        all++;
        for (int a = 0; a < 3; a++) counts[a * BINS + bin_of(b, a, v[a])]++;
    }
    for (int a = 0; a < 3; a++) {
        double width = (b->high[a] - b->low[a]) / BINS;
        bins->first[a] = bins->last[a] = median_bin(counts + a * BINS, all);
        while (grow(counts + a * BINS, width, &bins->first[a], &bins->last[a])) {
        }
        int least = 0, most = BINS - 1;
        while (!counts[a * BINS + least]) least++;
        while (!counts[a * BINS + most]) most--;
        less |= bins->first[a] > least || bins->last[a] < most;
    }
    return less;
}

/* Shrinks the box to that of the points whose bins are the core's on every axis. Returns false if there are none. */
static bool shrink(const struct pnet_cloud *c, const struct core_bins *bins, struct pnet_box *b)
{
    struct pnet_box to = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};
    double v[3];
    for (int64_t i = 0; i < c->rows; i++) {
        get(c, i, v);
        bool in = is_inside(b, v);
        for (int a = 0; a < 3 && in; a++) {
            int bin = bin_of(b, a, v[a]);
            in = bin >= bins->first[a] && bin <= bins->last[a];
        }
        for (int a = 0; a < 3 && in; a++) {
            to.low[a] = fmin(to.low[a], v[a]);
            to.high[a] = fmax(to.high[a], v[a]);
        }
    }
    if (!(to.low[0] <= to.high[0])) return false;
    *b = to;
    return true;
}

static double distance_of(const struct pnet_box *b, const double v[3])
{
    double sum = 0;
    for (int a = 0; a < 3; a++) {
        double out = fmax(0, fmax(b->low[a] - v[a], v[a] - b->high[a]));
        sum += out * out;
    }
    return sqrt(sum);
}

enum pnet_status pnet_strays_find(const struct pnet_cloud *c, struct pnet_box *core,
    struct pnet_strays *strays, struct pnet_error *e)
{
    int64_t *counts = malloc(3 * (size_t)BINS * sizeof *counts);
    struct core_bins bins;
    double v[3];
    *strays = (struct pnet_strays){.count = 0};
    if (!counts) return pnet_error_memory(e);
    *core = (struct pnet_box){{-INFINITY, -INFINITY, -INFINITY}, {INFINITY, INFINITY, INFINITY}};
    bins = (struct core_bins){.last = {BINS, BINS, BINS}};
    if (shrink(c, &bins, core)) /* to the box of all points */
        for (int round = 0; round < ROUNDS && find_bins(c, core, counts, &bins); round++)
            if (!shrink(c, &bins, core)) break;
    free(counts);
    for (int64_t i = 0; i < c->rows; i++) {
        get(c, i, v);
        if (is_inside(core, v)) continue;
        if (!strays->count++) {
            strays->row = c->file_row ? c->file_row[i] : i;
            strays->distance = distance_of(core, v);
        }
    }
    if (2 * strays->count >= c->rows) *strays = (struct pnet_strays){.count = 0};
    return PNET_OK;
}
