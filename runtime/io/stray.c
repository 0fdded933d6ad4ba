#include "runtime/io/stray.h"

#include <math.h>
#include <stddef.h>
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

/* The points in the box are counted in bins along each axis. */
struct counting {
    const struct pnet_box *box;
    int64_t *counts, all; /* counts: [3, BINS] */
};

static bool count_point(void *to, int64_t file_row, const double v[3])
{
    struct counting *n = to;
    (void)file_row;
    if (!is_inside(n->box, v)) return true;
    n->all++;
    for (int a = 0; a < 3; a++) n->counts[a * BINS + bin_of(n->box, a, v[a])]++;
    return true;
}

/* Returns whether the core is less than the box. */
static bool find_bins(const struct counting *n, struct core_bins *bins)
{
    bool less = false;
    for (int a = 0; a < 3; a++) {
        const int64_t *counts = n->counts + (ptrdiff_t)a * BINS;
        double width = (n->box->high[a] - n->box->low[a]) / BINS;
        bins->first[a] = bins->last[a] = median_bin(counts, n->all);
        while (grow(counts, width, &bins->first[a], &bins->last[a])) {
        }
        int least = 0, most = BINS - 1;
        while (!counts[least]) least++;
        while (!counts[most]) most--;
        less |= bins->first[a] > least || bins->last[a] < most;
    }
    return less;
}

/* The box of the points whose bins are the core's on every axis. */
struct shrinking {
    const struct core_bins *bins;
    const struct pnet_box *box;
    struct pnet_box to;
};

static bool shrink_by_point(void *to, int64_t file_row, const double v[3])
{
    struct shrinking *s = to;
    (void)file_row;
    bool in = is_inside(s->box, v);
    for (int a = 0; a < 3 && in; a++) {
        int bin = bin_of(s->box, a, v[a]);
        in = bin >= s->bins->first[a] && bin <= s->bins->last[a];
    }
    for (int a = 0; a < 3 && in; a++) {
        s->to.low[a] = fmin(s->to.low[a], v[a]);
        s->to.high[a] = fmax(s->to.high[a], v[a]);
    }
    return true;
}

/* Shrinks the box; sets *done if there are no such points. */
static enum pnet_status shrink(pnet_walk *walk, void *points, const struct core_bins *bins,
    struct pnet_box *b, bool *done, struct pnet_error *e)
{
    struct shrinking s = {.bins = bins,
        .box = b,
        .to = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}}};
    enum pnet_status status = walk(points, shrink_by_point, &s, e);
    *done = !(s.to.low[0] <= s.to.high[0]);
    if (!status && !*done) *b = s.to;
    return status;
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

struct listing {
    const struct pnet_box *core;
    struct pnet_strays *strays;
    int64_t rows;
};

static bool list_stray(void *to, int64_t file_row, const double v[3])
{
    struct listing *l = to;
    l->rows++;
    if (!is_inside(l->core, v) && !l->strays->count++) {
        l->strays->row = file_row;
        l->strays->distance = distance_of(l->core, v);
    }
    return true;
}

enum pnet_status pnet_strays_find(pnet_walk *walk, void *points, struct pnet_box *core,
    struct pnet_strays *strays, struct pnet_error *e)
{
    struct core_bins bins = {.last = {BINS, BINS, BINS}};
    struct counting n = {.box = core, .counts = malloc(3 * (size_t)BINS * sizeof *n.counts)};
    struct listing l = {.core = core, .strays = strays};
    bool done, smaller = false;
    *strays = (struct pnet_strays){.count = 0};
    if (!n.counts) return pnet_error_memory(e);
    *core = (struct pnet_box){{-INFINITY, -INFINITY, -INFINITY}, {INFINITY, INFINITY, INFINITY}};
    enum pnet_status status =
        shrink(walk, points, &bins, core, &done, e); /* to the box of all points */
    for (int round = 0; round < ROUNDS && !status && !done; round++) {
        memset(n.counts, 0, 3 * (size_t)BINS * sizeof *n.counts);
        n.all = 0;
        status = walk(points, count_point, &n, e);
        if (status || !find_bins(&n, &bins)) break;
        smaller = true;
        status = shrink(walk, points, &bins, core, &done, e);
    }
    free(n.counts);
    if (!status && smaller) status = walk(points, list_stray, &l, e);
    if (status || 2 * strays->count >= l.rows) *strays = (struct pnet_strays){.count = 0};
    return status;
}

enum pnet_status pnet_cloud_walk(void *points, pnet_see_point *see, void *to, struct pnet_error *e)
{
    const struct pnet_cloud *c = points;
    double v[3];
    (void)e;
    for (int64_t i = 0; i < c->rows; i++) {
        for (int a = 0; a < 3; a++) v[a] = pnet_cloud_at(c, i, a);
        if (!see(to, c->file_row ? c->file_row[i] : i, v)) break;
    }
    return PNET_OK;
}
