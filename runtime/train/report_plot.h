/* Curves as inline SVG, for runtime/train/report.c. */
#ifndef PNET_RUNTIME_REPORT_PLOT_H
#define PNET_RUNTIME_REPORT_PLOT_H

#include <stddef.h>
#include <stdio.h>

struct pnet_series {
    char *name;
    double *x, *y; /* [count], x ascending; y may be NaN or beyond +-1e300: a hole in the curve */
    size_t count, capacity;
};

/* Text with & < > and quotes escaped, and bytes that HTML does not allow left out. */
void pnet_html_put(FILE *out, const char *text);

/* A number as people read it: four digits; an en dash where it is not finite. */
void pnet_html_number(FILE *out, double value);

/* A figure with a legend. Colours are the classes s0 .. s7 of the page's style; more series than
   that use them again. Curves of many points are drawn as the mean of each column of pixels, with
   the range as a band behind. The scale is logarithmic where all values are positive and span more
   than two decades. */
void pnet_plot_put(FILE *out, const char *title, const struct pnet_series *series, size_t count);

#endif
