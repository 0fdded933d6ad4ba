/* Where clouds lie as a model reads them. */
#ifndef PNET_RUNTIME_FRAME_H
#define PNET_RUNTIME_FRAME_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: of no cloud. Of each entry of a data set the first cloud counts. */
struct pnet_frame {
    int64_t clouds;
    bool boxed;             /* the next two lines are known */
    double low[3], high[3]; /* box of all points, metres */
    double least,
        most; /* longest edge of the box of the smallest and of the largest cloud, metres */
    bool offset_known, offsets_differ;
    double offset[3]; /* what was taken from the file coordinates of the first cloud, metres */
    double other[3];  /* the first one that differs from it, if offsets_differ */
};

/* Adds a cloud of xyz[3 rows]. One without points changes nothing. */
void pnet_frame_add(struct pnet_frame *f, const float *xyz, int64_t rows, const double offset[3]);
/* Adds the clouds of another frame: what is known of both remains known. */
void pnet_frame_merge(struct pnet_frame *f, const struct pnet_frame *more);

#endif
