/* What the steps of APML's search share. */
#ifndef PNET_KERNELS_CUDA_APML_PARTS_H
#define PNET_KERNELS_CUDA_APML_PARTS_H

#include "kernels/cuda/sets/apml_search.h"
#include "kernels/cuda/sets/set_tree.h"
#include "kernels/cuda/sets/sets_work.h"

enum {
    APML_LIMITS = 8,   /* limits that are tried, at most */
    APML_CHUNK = 2048, /* rows that a block sums */
    APML_SHORT =
        16, /* points that a row keeps, up to which one lane writes it; a warp writes others */
};

/* The device memory of a search. 25.1 bytes a row of either set. */
struct apml_parts {
    struct set_tree tree;
    float *near;          /* [places, 2] a and b */
    float *slope, *kappa; /* [2 samples] of the rows of a sample, by the points of the other set */
    int32_t *limit;       /* [SIDES] */
    int64_t *sums
        [SIDES]; /* [APML_LIMITS, chunks] what rows keep at each limit; then [chunks] what rows before keep */
    int32_t *finite;       /* of the metric alone */
    int64_t *count[SIDES]; /* [rows]; of the metric alone */
    uint64_t *tally;       /* [PNET_APML_SUMS]; of the metric alone */
};

#ifdef __cplusplus
extern "C" {
#endif

int64_t pnet_cuda_apml_chunks(int64_t rows);
/* Returns the bytes of the search, or of the metric. */
size_t pnet_cuda_apml_take(
    const struct pnet_apml *a, bool metric, void *work, struct apml_parts *p);

/* Finds a, b and the number of points in the support of each row, which goes to count[side][row], and the limits. Without finite
   coordinates numbers are 0. */
void pnet_cuda_apml_count(const struct pnet_apml *a, const struct apml_parts *p,
    int64_t *const count[SIDES], int32_t *finite);

#ifdef __cplusplus
}
#endif

#endif
