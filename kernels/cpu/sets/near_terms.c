#include "kernels/cpu/sets/near_terms.h"

#include <math.h>

enum {
    CHUNK = 1024, /* rows added up in sequence; part of the result's bits */
    SMALL = 8192, /* rows below which threads cost more than they save */
};

static int64_t chunks_of(int64_t rows)
{
    return (rows + CHUNK - 1) / CHUNK;
}

size_t pnet_near_terms_work(int64_t rows)
{
    return (size_t)chunks_of(rows) * sizeof(double);
}

static int32_t sample_of(const struct pnet_point_set *s, int64_t row)
{
    int32_t low = 0, high = s->samples;
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (s->splits[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

double pnet_near_terms(const struct pnet_point_set *a, const struct pnet_point_set *b,
    const int32_t *near, pnet_near_function *function, const void *args, float *pull, void *work)
{
    double *part = work, mean = a->samples ? 1 / (double)a->samples : 0;
    int64_t rows = a->rows.most, chunks = chunks_of(rows);
#pragma omp parallel for schedule(static) if (rows > SMALL)
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        int64_t begin = chunk * CHUNK, end = begin + CHUNK < rows ? begin + CHUNK : rows;
        struct pnet_near_point p = {.sample = sample_of(a, begin)};
        double sum = 0;
        for (p.row = begin; p.row < end; p.row++) {
            while (a->splits[p.sample + 1] <= p.row) p.sample++;
            p.rows = a->splits[p.sample + 1] - a->splits[p.sample];
            p.others = b->splits[p.sample + 1] - b->splits[p.sample];
            p.near = near[p.row];
            struct pnet_near_term t = {0, 0};
            if (p.others) {
                p.square = p.near < 0 ? (double)NAN
                                      : pnet_near_square(a->xyz + 3 * p.row, b->xyz + 3 * p.near);
                t = isfinite(p.square) ? function(args, &p)
                                       : (struct pnet_near_term){(double)NAN, (double)NAN};
            }
            sum += t.value;
            if (pull) pull[p.row] = (float)(t.pull * mean);
        }
        part[chunk] = sum;
    }
    double total = 0;
    for (int64_t chunk = 0; chunk < chunks; chunk++) total += part[chunk];
    return total * mean;
}

size_t pnet_near_pair_work(const struct pnet_set_pair *p)
{
    size_t x = pnet_near_terms_work(p->x.rows.most), y = pnet_near_terms_work(p->y.rows.most);
    return x > y ? x : y;
}

void pnet_near_pair(const struct pnet_set_pair *p, pnet_near_function *function, const void *x_args,
    const void *y_args, float *loss, float *x_pull, float *y_pull, void *work)
{
    double x = pnet_near_terms(&p->x, &p->y, p->x_near, function, x_args, x_pull, work),
           y = pnet_near_terms(&p->y, &p->x, p->y_near, function, y_args, y_pull, work);
    *loss = (float)(x + y);
}

/* Lists of the rows of b by the row of a that is nearest to them, ascending. */
struct lists {
    int64_t *start; /* [rows of a + 1] */
    int32_t *row;   /* [rows of b] */
};

static struct lists lists_in(const struct pnet_set_pull *p, void *work)
{
    int64_t *start = work;
    return (struct lists){start, (int32_t *)(start + p->a.rows.most + 1)};
}

size_t pnet_cpu_set_pull_work(const struct pnet_set_pull *p)
{
    return (size_t)(p->a.rows.most + 1) * sizeof(int64_t) +
           (size_t)p->b.rows.most * sizeof(int32_t);
}

static void make_lists(const struct pnet_set_pull *p, struct lists l)
{
    int64_t n = p->a.rows.most, m = p->b.rows.most, at = 0;
    for (int64_t i = 0; i <= n; i++) l.start[i] = 0;
    for (int64_t j = 0; j < m; j++)
        if (p->b_near[j] >= 0) l.start[p->b_near[j]]++;
    for (int64_t i = 0; i <= n;
         i++) { /* where lists end; the next loop moves that to where they begin */
        at += l.start[i];
        l.start[i] = at;
    }
    for (int64_t j = m - 1; j >= 0; j--)
        if (p->b_near[j] >= 0) l.row[--l.start[p->b_near[j]]] = (int32_t)j;
}

static void add_pull(double pull, const float *from, const float *to, double sum[3])
{
    for (int c = 0; c < 3; c++) sum[c] += pull * ((double)from[c] - (double)to[c]);
}

void pnet_cpu_set_pull(
    const struct pnet_set_pull *p, const float *gloss, bool add, float *ga, void *work)
{
    struct lists l = lists_in(p, work);
    int64_t n = p->a.rows.most;
    make_lists(p, l);
#pragma omp parallel for schedule(static) if (n > SMALL)
    for (int64_t i = 0; i < n; i++) {
        const float *at = p->a.xyz + 3 * i;
        double sum[3] = {0, 0, 0};
        if (p->a_near[i] >= 0)
            add_pull((double)p->a_pull[i], at, p->b.xyz + 3 * (int64_t)p->a_near[i], sum);
        else if (isnan(p->a_pull[i]))
            sum[0] = sum[1] = sum[2] = (double)NAN;
        for (int64_t k = l.start[i]; k < l.start[i + 1]; k++)
            add_pull((double)p->b_pull[l.row[k]], at, p->b.xyz + 3 * (int64_t)l.row[k], sum);
        for (int c = 0; c < 3; c++) {
            float g = (float)(sum[c] * (double)gloss[0]);
            ga[3 * i + c] = add ? ga[3 * i + c] + g : g;
        }
    }
}
