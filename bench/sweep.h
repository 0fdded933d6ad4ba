/* Cases of pnet-bench sweep, and what their times say of each other. */
#ifndef PNET_BENCH_SWEEP_H
#define PNET_BENCH_SWEEP_H

#include <math.h>
#include <stdio.h>

#include "bench/measure.h"

enum { SWEEP_MAX = 24 };

/* A row of the table. */
struct sweep_case {
    const char *scene; /* "sphere:64" where it has one of its own */
    int64_t rows;      /* of the scene; 0: all */
    int32_t kernel;    /* cells an axis; 0: those of --kernel */
    struct pnet_conv_shape shape;
    struct measure_options how;
    int series;      /* rows of one series lie on one line over x */
    double x;        /* above 0 */
    double rival[2]; /* seconds FlexGEMM took in fp16 on an H200, forward and dF + dW; 0: unknown */
    struct measured m;
    double trend[PRODUCTS]; /* seconds that the neighbours lead one to expect; 0: there are none */
};

/* A row is a cliff where it takes more than this many times what its neighbours' trend says. */
static inline double sweep_cliff(void)
{
    return 2;
}

/* Of the row's own series; NULL where there is none. */
static inline const struct sweep_case *sweep_neighbour(
    const struct sweep_case *c, int count, int i, int step)
{
    int n = i + step;
    return n >= 0 && n < count && c[n].series == c[i].series ? &c[n] : NULL;
}

static inline double sweep_expected(const struct sweep_case *c, const struct sweep_case *before,
    const struct sweep_case *after, int product)
{
    if (before && after) {
        double at = log(c->x / before->x) / log(after->x / before->x);
        return exp((1 - at) * log(before->m.time[product]) + at * log(after->m.time[product]));
    }
    const struct sweep_case *only = before ? before : after;
    if (!only) return 0;
    return only->m.time[product] * fmax(1, c->m.work / only->m.work);
}

/* For each row the time that its neighbours in its series lead one to expect: between two of them along the line in
   logarithmic axes of x and time; at an end the time of the only neighbour, times the ratio of work where that is less. */
static inline void sweep_trend(struct sweep_case *c, int count)
{
    for (int i = 0; i < count; i++)
        for (int p = 0; p < PRODUCTS; p++)
            c[i].trend[p] = sweep_expected(
                &c[i], sweep_neighbour(c, count, i, -1), sweep_neighbour(c, count, i, 1), p);
}

static inline double sweep_of_trend(const struct sweep_case *c, int product)
{
    return c->trend[product] > 0 ? c->m.time[product] / c->trend[product] : 0;
}

/* Rows and products beyond their trend. */
static inline int sweep_cliffs(const struct sweep_case *c, int count)
{
    int cliffs = 0;
    for (int i = 0; i < count; i++)
        for (int p = 0; p < PRODUCTS; p++) cliffs += sweep_of_trend(&c[i], p) > sweep_cliff();
    return cliffs;
}

/* The exponent of time over triplets: the slope of the line of least squares on logarithmic axes. */
static inline double sweep_slope(const struct sweep_case *c, int count, int product)
{
    double x = 0, y = 0, xx = 0, xy = 0;
    for (int i = 0; i < count; i++) {
        double a = log((double)c[i].m.triplets), b = log(c[i].m.time[product]);
        x += a;
        y += b;
        xx += a * a;
        xy += a * b;
    }
    return (count * xy - x * y) / (count * xx - x * x);
}

void pnet_bench_sweep_print(const struct sweep_case *c, int count);
void pnet_bench_sweep_print_json(FILE *out, const struct sweep_case *c, int count);

#endif
