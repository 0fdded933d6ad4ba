/* The launches of attention, by what features are stored in. `grid` has tiles along x, heads along y. */
#ifndef PNET_KERNELS_CUDA_ATTEND_KERNELS_H
#define PNET_KERNELS_CUDA_ATTEND_KERNELS_H

#include <cuda_runtime.h>

struct attend_launch;

/* pair [tiles of the launch * heads of the grid, 2, rows of a tile]: of each query log_sum, then -D; a place beyond the scope has
   infinity and 0. The half for queries writes them, the half for keys reads them. */
struct attend_gradient {
    const float *qkv, *out, *log_sum, *gout;
    float *gqkv;
    bool add;
    float *pair;
};

void pnet_cuda_attend_exact(
    const struct attend_launch *l, dim3 grid, const float *qkv, float *out, float *log_sum);
void pnet_cuda_attend_exact_queries(
    const struct attend_launch *l, dim3 grid, const struct attend_gradient *g);
void pnet_cuda_attend_exact_keys(
    const struct attend_launch *l, dim3 grid, const struct attend_gradient *g);
void pnet_cuda_attend_short(
    const struct attend_launch *l, dim3 grid, const float *qkv, float *out, float *log_sum);
void pnet_cuda_attend_short_queries(
    const struct attend_launch *l, dim3 grid, const struct attend_gradient *g);
void pnet_cuda_attend_short_keys(
    const struct attend_launch *l, dim3 grid, const struct attend_gradient *g);

#endif
