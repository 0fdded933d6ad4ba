/* How many elements a kernel works on.

   On a GPU the schedule is recorded once for a capacity class and replayed for every batch of it: the launch is sized
   for `most`, and the true number is read from device memory when the kernel runs. On the CPU `most` is the number. */
#ifndef PNET_KERNELS_COUNT_H
#define PNET_KERNELS_COUNT_H

#include "kernels/precision.h"

#include <stddef.h>
#include <stdint.h>

struct pnet_count {
    int64_t most;
    /* device memory, or NULL: the true number is *live * each, at most `most` */
    const int64_t *live;
    int32_t each;
    enum pnet_storage storage; /* of the features counted */
};

/* A number known on the host. */
static inline struct pnet_count pnet_count(int64_t n)
{
    struct pnet_count c = {n, NULL, 1, PNET_STORE_F32};
    return c;
}

#ifdef __CUDACC__
static __device__ __forceinline__ int64_t pnet_live(struct pnet_count n)
{
    return n.live ? *n.live * n.each : n.most;
}
#endif

#endif
