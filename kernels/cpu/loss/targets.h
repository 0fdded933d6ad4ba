/* How the losses walk over the labels of a row of scores. */
#ifndef PNET_KERNELS_CPU_TARGETS_H
#define PNET_KERNELS_CPU_TARGETS_H

#include "kernels/loss.h"

#include <math.h>

static inline int64_t pnet_targets_begin(const struct pnet_targets *t, int64_t row)
{
    return t->start ? t->start[row] : row;
}

static inline int64_t pnet_targets_end(const struct pnet_targets *t, int64_t row)
{
    return t->start ? t->start[row + 1] : row + 1;
}

/* The label at a place between begin and end; -1 where it does not count. */
static inline int32_t pnet_targets_label(const struct pnet_targets *t, int64_t at)
{
    int32_t label = t->label[t->child ? t->child[at] : at];
    return label >= 0 && label < t->classes ? label : -1;
}

/* The parts of the softmax of a row of scores: e[c] = exp(x[c] - top), whose sum is 1 + rest.
   Where one class has nearly all of it, `rest` keeps the small share of the others, which 1 + rest would round off. */
struct pnet_soft_row {
    float top;    /* the largest score; NaN in class 0 stays */
    int32_t best; /* its class */
    double rest;  /* sum of e over the other classes */
};

static inline struct pnet_soft_row pnet_soft_row(int32_t classes, const float *x)
{
    struct pnet_soft_row s = {x[0], 0, 0};
    for (int32_t c = 1; c < classes; c++)
        if (x[c] > s.top) {
            s.top = x[c];
            s.best = c;
        }
    for (int32_t c = 0; c < classes; c++)
        if (c != s.best) s.rest += (double)expf(x[c] - s.top);
    return s;
}

#endif
