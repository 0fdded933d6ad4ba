/* What is doubtful about a cloud that was read, in words. */
#ifndef PNET_RUNTIME_IO_CLOUD_DOUBTS_H
#define PNET_RUNTIME_IO_CLOUD_DOUBTS_H

#include "runtime/io/cloud.h"

#include <stdbool.h>
#include <stdint.h>

enum { PNET_DOUBT = 120 };

/* Doubts a cloud with more columns without names than points have: rows of a matrix of descriptors look like it. `names` is the
   number of columns that are named; nothing is written where there is no doubt. Points are not looked at. */
void pnet_doubt_width(const struct pnet_cloud *c, int names, char text[PNET_DOUBT]);

/* Doubts a cloud without names whose x numbers the samples of a batch, as in coordinates of sparse tensors: b x y z. */
void pnet_doubt_batch(const struct pnet_cloud *c, int names, char text[PNET_DOUBT]);
/* The same of a cloud whose points come in pieces, in order. `c` has its fields. */
struct pnet_batch_doubt {
    bool likely; /* so far: more pieces do not change that it is false */
    bool whole;
    double last;
};
void pnet_batch_doubt_begin(struct pnet_batch_doubt *d, const struct pnet_cloud *c, int names);
void pnet_batch_doubt_add(struct pnet_batch_doubt *d, const struct pnet_cloud *c);
void pnet_batch_doubt_end(const struct pnet_batch_doubt *d, int64_t rows, char text[PNET_DOUBT]);

/* pnet_cloud_doubts of a cloud whose points are not there, only their number; `lost` is its pnet_cloud_loss. */
void pnet_cloud_doubts_of(const struct pnet_cloud *c, double lost,
    const struct pnet_cloud_hints *hints, const char *path, const char *doubt, char warning[256]);

#endif
