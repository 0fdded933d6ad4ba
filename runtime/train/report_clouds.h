/* Pictures of clouds, for runtime/train/report.c. */
#ifndef PNET_RUNTIME_REPORT_CLOUDS_H
#define PNET_RUNTIME_REPORT_CLOUDS_H

#include <stdint.h>
#include <stdio.h>

/* A sample of completion: what the model reads, what it makes of that, and what is true. */
enum { PNET_REPORT_PARTIAL, PNET_REPORT_PREDICTION, PNET_REPORT_TRUTH, PNET_REPORT_CLOUDS };

struct pnet_report_sample {
    const char *name; /* the caption */
    struct pnet_report_cloud {
        const float *xyz; /* [rows, 3] */
        int64_t rows;
    } clouds[PNET_REPORT_CLOUDS];
};

/* The camera: without perspective, from an azimuth of -60 degrees (0: from +x, 90: from +y) and 25 degrees above the plane of x
   and y; z is up. The three clouds have the same scale and the same middle, those of the partial and the true one; predicted
   points that lie beyond the frame are left out and counted. Of more than PNET_REPORT_DOTS points each n-th is drawn; near ones
   are darker than far ones. */
enum { PNET_REPORT_DOTS = 2048 };

/* Writes a figure of three drawings side by side. */
void pnet_report_sample_put(FILE *out, const struct pnet_report_sample *s);

#endif
