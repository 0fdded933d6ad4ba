/* What points in buckets hold. */
#ifndef PNET_LIBRARY_ATTEND_H
#define PNET_LIBRARY_ATTEND_H

#include "library/points.h"

#include "kernels/attend.h"

/* Nothing changes it. */
struct pnet_buckets {
    struct pnet_handle handle;
    int64_t rows;
    int32_t samples;
    int64_t *splits; /* [samples + 1] */
    int32_t *order;  /* [rows]: the caller's row at each place; NULL: places are rows */
    struct pnet_scopes scopes;
    struct pnet_home home;
    struct pnet_rooms rooms; /* GPU: all memory of it */
};

static inline bool pnet_buckets_on_gpu(const struct pnet_buckets *b)
{
    return pnet_home_on_gpu(&b->home);
}

/* The error of so many points that an order with these voxels does not reach. */
enum pnet_status pnet_buckets_beyond(int64_t count, double cell, struct pnet_error *e);

/* GPU. Finds the order; what it takes belongs to the buckets, also after a failure. */
enum pnet_status pnet_buckets_find_on_gpu(struct pnet_buckets *b, const struct pnet_points *p,
    const struct pnet_buckets_options *o, struct pnet_error *e);

/* A call with arrays that were checked; `out` and `gradient` are of the backward alone. */
struct pnet_attend_call {
    struct pnet_attend a;
    bool backward;
    struct pnet_attend_options o;
    const void *qkv, *out, *gradient;
    void *result;
    size_t bytes; /* of workspace */
};
/* GPU. */
enum pnet_status pnet_attend_on_gpu(
    const struct pnet_buckets *b, const struct pnet_attend_call *c, struct pnet_error *e);

#endif
