/* Tiles of attention, compiled for each instruction set. */
#ifndef PNET_KERNELS_CPU_ISA_ATTEND_H
#define PNET_KERNELS_CPU_ISA_ATTEND_H

#include "kernels/attend.h"

enum { PNET_ATTEND_LANES = 64, PNET_ATTEND_WIDEST = 128 };

/* Up to PNET_ATTEND_LANES places of a scope, for one head. */
struct pnet_attend_tile {
    const struct pnet_attend *a;
    struct pnet_scope scope;
    int64_t begin; /* first row of the sample */
    int64_t first; /* place in the scope */
    int32_t head;
};

struct pnet_attend_arrays {
    const float *qkv, *out, *log_sum, *gout; /* as in kernels/attend.h */
    float *to_out, *to_log_sum;              /* forward */
    float *gqkv;                             /* backward */
    bool add;
};

struct pnet_attend_isa {
    /* Results of the tile's rows as queries. */
    void (*forward)(const struct pnet_attend_tile *t, const struct pnet_attend_arrays *x);
    /* Gradients of the queries of the tile's rows; of their keys and values. */
    void (*queries)(const struct pnet_attend_tile *t, const struct pnet_attend_arrays *x);
    void (*keys)(const struct pnet_attend_tile *t, const struct pnet_attend_arrays *x);
};

#endif
