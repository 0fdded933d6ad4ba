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

/* Writes text with & < > and quotes escaped, without the bytes that HTML does not allow. */
void pnet_html_put(FILE *out, const char *text);

/* Writes a number with four digits; an en dash if it is not finite. */
void pnet_html_number(FILE *out, double value);

/* Writes a figure with a legend. Colours are the classes s0 .. s7 of the style of the page, used again for further series.
   Curves of many points are drawn as the mean of each column of pixels, with the range as a band behind it. The scale is
   logarithmic if all values are positive and span more than two decades. */
void pnet_plot_put(FILE *out, const char *title, const struct pnet_series *series, size_t count);

#endif
