/* A line chart on logarithmic axes, written as SVG. */
#ifndef PNET_BENCH_CHART_H
#define PNET_BENCH_CHART_H

#include <stdio.h>

enum { CHART_POINTS = 16, CHART_LINES = 8 };

struct chart_line {
    const char *name;
    double y[CHART_POINTS]; /* above 0; others are left out */
};

struct chart {
    const char *title, *x_label, *y_label;
    int points, lines;
    double x[CHART_POINTS]; /* above 0, ascending */
    struct chart_line line[CHART_LINES];
};

void pnet_bench_chart_write(FILE *out, const struct chart *c);

#endif
