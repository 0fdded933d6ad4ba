/* How the losses walk over the labels of a row of scores. */
#ifndef PNET_KERNELS_CPU_TARGETS_H
#define PNET_KERNELS_CPU_TARGETS_H

#include "kernels/cpu/loss.h"

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

#endif
