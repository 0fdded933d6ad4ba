/* The loss APML and its gradients. Rounds set the factors of rows and columns: entries are read and not written. */
#include "kernels/cpu/sets/apml.h"

#include <math.h>
#include <omp.h>

/* Entries by rows of one set, each with a row of the other. */
struct list {
    const struct pnet_point_set *of, *other;
    int64_t *start; /* [rows + 1] */
    struct pnet_apml_entry *entry;
};

/* Takes the entries of rows first <= j < end of the other set, in the order of `from`: counts them in next[j] or, given `to`,
   moves them to next[j], which advances. */
static void take_range(
    const struct list *from, int64_t first, int64_t end, int64_t *next, struct pnet_apml_entry *to)
{
    const int64_t *rows = from->of->splits, *others = from->other->splits;
    for (int32_t s = 0; s < from->of->samples; s++) {
        if (others[s + 1] <= first || others[s] >= end) continue;
        for (int64_t i = rows[s]; i < rows[s + 1]; i++)
            for (int64_t n = from->start[i]; n < from->start[i + 1]; n++) {
                int32_t j = from->entry[n].other;
                if (j < first || j >= end) continue;
                if (to) to[next[j]] = (struct pnet_apml_entry){(int32_t)i, from->entry[n].p};
                next[j]++;
            }
    }
}

/* Sorts entries by the other set, stable. Each thread owns a range of the other set's rows, so threads write nothing in
   common. */
static void transpose(const struct list *from, struct list *to)
{
    int64_t rows = to->of->rows.most, place = 0, ranges = omp_get_max_threads();
    int64_t *next = to->start + 1; /* in the end the start of the row that follows */
    to->start[0] = 0;
#pragma omp parallel for schedule(static)
    for (int64_t r = 0; r < ranges; r++) {
        int64_t first = rows * r / ranges, end = rows * (r + 1) / ranges;
        for (int64_t j = first; j < end; j++) next[j] = 0;
        take_range(from, first, end, next, NULL);
    }
    for (int64_t j = 0; j < rows; j++) {
        int64_t count = next[j];
        next[j] = place;
        place += count;
    }
#pragma omp parallel for schedule(static)
    for (int64_t r = 0; r < ranges; r++)
        take_range(from, rows * r / ranges, rows * (r + 1) / ranges, next, to->entry);
}

/* The lists of a step: supports of rows and of columns, by rows of x and by rows of y. */
enum { ROWS_BY_X, COLUMNS_BY_X, ROWS_BY_Y, COLUMNS_BY_Y, LISTS };

struct room {
    struct pnet_apml_search search;
    struct list list[LISTS];
    struct pnet_apml_factor *u, *v;
    float *loss; /* [rows of x] */
};

static size_t lay_out(const struct pnet_apml *a, const struct pnet_apml_plan *plan, bool backward,
    void *work, struct room *r)
{
    struct pnet_geo_purse purse = pnet_geo_open(work);
    const struct pnet_point_set *x = &a->sets.x, *y = &a->sets.y;
    size_t rows = (size_t)x->rows.most, others = (size_t)y->rows.most,
           entries = (size_t)a->entries * sizeof(struct pnet_apml_entry);
    *r = (struct room){.u = NULL};
    for (int k = 0; k < LISTS; k++) {
        bool by_x = k == ROWS_BY_X || k == COLUMNS_BY_X;
        r->list[k].of = by_x ? x : y;
        r->list[k].other = by_x ? y : x;
        r->list[k].start =
            pnet_geo_take(&purse, ((by_x ? rows : others) + 1) * sizeof *r->list[k].start);
    }
    r->list[ROWS_BY_X].entry = plan ? plan->by_row : NULL;
    r->list[COLUMNS_BY_X].entry = plan ? plan->by_column : NULL;
    r->list[ROWS_BY_Y].entry = pnet_geo_take(&purse, rows * entries);
    r->list[COLUMNS_BY_Y].entry = pnet_geo_take(&purse, others * entries);
    if (backward) return purse.used;
    struct pnet_geo_purse shared = purse; /* what follows the search has its memory */
    pnet_apml_search_take(&r->search, a, &purse);
    r->u = pnet_geo_take(&shared, rows * sizeof *r->u);
    r->v = pnet_geo_take(&shared, others * sizeof *r->v);
    r->loss = pnet_geo_take(&shared, rows * sizeof *r->loss);
    return purse.used > shared.used ? purse.used : shared.used;
}

size_t pnet_cpu_apml_work(const struct pnet_apml *a, bool backward)
{
    struct room r;
    return lay_out(a, NULL, backward, NULL, &r);
}

/* Fills the four lists with P0. Of a list and its transpose the one is written second, so its memory holds the keys of the
   search until then. */
static void make_lists(struct room *r)
{
    struct pnet_apml_search *s = &r->search;
    struct list *l = r->list;
    uint64_t *slots[2] = {(void *)l[ROWS_BY_Y].entry, (void *)l[COLUMNS_BY_X].entry};
    pnet_apml_find(s, slots);
    pnet_apml_write(s, PNET_APML_X, slots[PNET_APML_X], l[ROWS_BY_X].start, l[ROWS_BY_X].entry);
    pnet_apml_write(
        s, PNET_APML_Y, slots[PNET_APML_Y], l[COLUMNS_BY_Y].start, l[COLUMNS_BY_Y].entry);
    transpose(&l[ROWS_BY_X], &l[ROWS_BY_Y]);
    transpose(&l[COLUMNS_BY_Y], &l[COLUMNS_BY_X]);
}

/* Terms of a row that are added up in float32. Sums of these are added in float64: a row may have an entry for each row of the
   other set, and its rounding errors all have one sign where terms are alike. */
enum { TOGETHER = 256 };

static int64_t together(int64_t first, int64_t end)
{
    return end - first < TOGETHER ? end : first + TOGETHER;
}

#define INLINE static inline __attribute__((always_inline))

/* Adds up entries first .. end - 1, each times its factor; `split`: and times 2^exponent. */
INLINE float weigh_together(const struct list *l, int64_t first, int64_t end,
    const struct pnet_apml_factor *factor, bool split, int32_t exponent)
{
    float sum = 0;
    if (split)
        for (int64_t n = first; n < end; n++)
            sum += l->entry[n].p * pnet_apml_scaled(factor[l->entry[n].other], exponent);
    else
        for (int64_t n = first; n < end; n++) sum += l->entry[n].p * factor[l->entry[n].other].part;
    return sum;
}

INLINE float weigh(const struct list *l, int64_t i, const struct pnet_apml_factor *factor,
    bool split, int32_t exponent)
{
    int64_t n = l->start[i], end = l->start[i + 1];
    double sum = 0;
    if (end - n <= TOGETHER) return weigh_together(l, n, end, factor, split, exponent);
    for (; n < end; n = together(n, end))
        sum += (double)weigh_together(l, n, together(n, end), factor, split, exponent);
    return (float)sum;
}

/* Below this many rows, waiting for threads at the end of half a round costs more than they gain. */
enum { SMALL = 1 << 15 };

/* Half a round: divides each row of one set in a sample by its sum. Returns whether all parts are far from the ends of
   float32. */
static bool normalise(const struct list *a, const struct list *b, int32_t sample,
    const struct pnet_apml_factor *factor, struct pnet_apml_factor *own, bool split)
{
    int64_t first = a->of->splits[sample], end = a->of->splits[sample + 1];
    bool far = true;
#pragma omp parallel for schedule(static) reduction(&& : far) if (end - first > SMALL)
    for (int64_t i = first; i < end; i++) {
        struct pnet_apml_factor f = split ? pnet_apml_split(own[i]) : own[i];
        float sum = weigh(a, i, factor, split, f.exponent) + weigh(b, i, factor, split, f.exponent);
        f.part = f.part / (f.part * sum + 1e-8f);
        far = far && pnet_apml_far_from_ends(f.part);
        own[i] = f;
    }
    return far;
}

/* All rounds of a sample. Exponents take time, so most samples do without. */
static void scale_sample(struct room *r, int32_t s, int32_t rounds)
{
    const struct list *l = r->list;
    const struct pnet_point_set *x = l[ROWS_BY_X].of, *y = l[ROWS_BY_Y].of;
    const struct pnet_apml_factor one = {1, 0};
    bool split = false;
    for (int64_t i = x->splits[s]; i < x->splits[s + 1]; i++) r->u[i] = one;
    for (int64_t j = y->splits[s]; j < y->splits[s + 1]; j++) r->v[j] = one;
    if (x->splits[s] == x->splits[s + 1] || y->splits[s] == y->splits[s + 1]) return;
    for (int32_t k = 0; k < rounds; k++) {
        split |= !normalise(&l[ROWS_BY_Y], &l[COLUMNS_BY_Y], s, r->u, r->v, split);
        split |= !normalise(&l[ROWS_BY_X], &l[COLUMNS_BY_X], s, r->v, r->u, split);
    }
}

/* Threads share the samples if there are enough of them, else the rows of each. */
static void scale(struct room *r, int32_t rounds)
{
    int32_t samples = r->list[ROWS_BY_X].of->samples;
#pragma omp parallel for schedule(dynamic) if (samples >= omp_get_max_threads())
    for (int32_t s = 0; s < samples; s++) scale_sample(r, s, rounds);
}

static float distance(const float *p, const float *q, float d[3])
{
    for (int a = 0; a < 3; a++) d[a] = p[a] - q[a];
    return sqrtf((d[0] * d[0] + d[1] * d[1]) + d[2] * d[2]);
}

/* Turns entries of row i from P0 into P; returns the distance they carry. */
static float finish_row(const struct room *r, const struct list *l, int64_t i)
{
    const struct pnet_apml_factor u = pnet_apml_split(r->u[i]);
    double sum = 0;
    for (int64_t n = l->start[i]; n < l->start[i + 1];) {
        float part = 0, d[3];
        for (int64_t end = together(n, l->start[i + 1]); n < end; n++) {
            int64_t j = l->entry[n].other;
            float p = u.part * l->entry[n].p * pnet_apml_scaled(r->v[j], u.exponent);
            l->entry[n].p = p;
            part += p * distance(l->of->xyz + 3 * i, l->other->xyz + 3 * j, d);
        }
        sum += (double)part;
    }
    return (float)sum;
}

static float mean_of(int32_t samples)
{
    return samples > 0 ? 1 / (float)samples : 0;
}

void pnet_cpu_apml(
    const struct pnet_apml *a, const struct pnet_apml_plan *plan, float *loss, void *work)
{
    struct room r;
    int64_t rows = a->sets.x.rows.most;
    double sum = 0;
    lay_out(a, plan, false, work, &r);
    if (!pnet_apml_finite(a)) {
        for (int64_t i = 0; i < 2 * rows; i++) plan->end[i] = 0;
        *loss = NAN;
        return;
    }
    make_lists(&r);
    scale(&r, a->rounds);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < rows; i++) {
        float by_row = finish_row(&r, &r.list[ROWS_BY_X], i);
        r.loss[i] = by_row + finish_row(&r, &r.list[COLUMNS_BY_X], i);
        plan->end[2 * i] = r.list[ROWS_BY_X].start[i + 1];
        plan->end[2 * i + 1] = r.list[COLUMNS_BY_X].start[i + 1];
    }
    for (int64_t i = 0; i < rows; i++) sum += (double)r.loss[i];
    *loss = (float)(sum / (a->sets.x.samples > 0 ? a->sets.x.samples : 1));
}

/* Adds the pull of row i's entries, P (p_i - q_j) / d_ij. */
static void pull(const struct list *l, int64_t i, double g[3])
{
    for (int64_t n = l->start[i]; n < l->start[i + 1];) {
        float part[3] = {0, 0, 0};
        for (int64_t end = together(n, l->start[i + 1]); n < end; n++) {
            float d[3];
            float length =
                distance(l->of->xyz + 3 * i, l->other->xyz + 3 * (int64_t)l->entry[n].other, d);
            float force = l->entry[n].p / fmaxf(length, 1e-6f);
            for (int a = 0; a < 3; a++) part[a] += force * d[a];
        }
        for (int a = 0; a < 3; a++) g[a] += (double)part[a];
    }
}

static void pull_all(const struct list *a, const struct list *b, float factor, bool add, float *to)
{
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < a->of->rows.most; i++) {
        double g[3] = {0, 0, 0};
        pull(a, i, g);
        pull(b, i, g);
        for (int k = 0; k < 3; k++) {
            float own = factor * (float)g[k];
            to[3 * i + k] = add ? to[3 * i + k] + own : own;
        }
    }
}

static void fill_nan(int64_t n, float *to)
{
    for (int64_t i = 0; i < n && to; i++) to[i] = NAN;
}

void pnet_cpu_apml_backward(const struct pnet_apml *a, const struct pnet_apml_plan *plan,
    const float *gloss, const struct pnet_apml_gradients *g, void *work)
{
    struct room r;
    struct list *l = r.list;
    int64_t rows = a->sets.x.rows.most;
    float factor = *gloss * mean_of(a->sets.x.samples);
    if (!pnet_apml_finite(a)) {
        fill_nan(3 * rows, g->x);
        fill_nan(3 * a->sets.y.rows.most, g->y);
        return;
    }
    lay_out(a, plan, true, work, &r);
    l[ROWS_BY_X].start[0] = l[COLUMNS_BY_X].start[0] = 0;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < rows; i++) {
        l[ROWS_BY_X].start[i + 1] = plan->end[2 * i];
        l[COLUMNS_BY_X].start[i + 1] = plan->end[2 * i + 1];
    }
    if (g->x) pull_all(&l[ROWS_BY_X], &l[COLUMNS_BY_X], factor, g->x_add, g->x);
    if (!g->y) return;
    transpose(&l[ROWS_BY_X], &l[ROWS_BY_Y]);
    transpose(&l[COLUMNS_BY_X], &l[COLUMNS_BY_Y]);
    pull_all(&l[ROWS_BY_Y], &l[COLUMNS_BY_Y], factor, g->y_add, g->y);
}
