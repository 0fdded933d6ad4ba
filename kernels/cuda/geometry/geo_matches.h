/* kernels/cpu/geometry/geo_matches.h on a GPU: all pointers lead to device memory, the poses' and the levels' as well. The
   matches are the same bits. `count` waits for the thread's stream, once. */
#ifndef PNET_KERNELS_CUDA_GEO_MATCHES_H
#define PNET_KERNELS_CUDA_GEO_MATCHES_H

#include "kernels/geometry.h"

#ifdef __cplusplus
extern "C" {
#endif

void pnet_cuda_move(const struct pnet_level *a, const float *pose, float *to);

size_t pnet_cuda_matches_work(
    const struct pnet_level *a, const struct pnet_level *b, float radius, int64_t number);
int64_t pnet_cuda_matches_count(const struct pnet_level *a, const struct pnet_level *b,
    const float *pose, float radius, int64_t *start, void *work);
void pnet_cuda_matches_write(const struct pnet_level *a, const struct pnet_level *b,
    const float *pose, float radius, int64_t number, const int64_t *start, int32_t *other,
    void *work);

#ifdef __cplusplus
}
#endif

#endif
