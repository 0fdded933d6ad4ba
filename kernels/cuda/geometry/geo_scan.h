/* Sums over a block. For .cu files alone. */
#ifndef PNET_KERNELS_CUDA_GEO_SCAN_H
#define PNET_KERNELS_CUDA_GEO_SCAN_H

#include "kernels/cuda/geometry/geo_grid.h"
#include "kernels/cuda/geometry/geo_parts.h"

/* Returns inclusive sums over a block; `total` is the sum of the whole block. */
template <int THREADS> static __device__ int64_t block_scan(int64_t x, int64_t &total)
{
    __shared__ int64_t warp_sum[THREADS / 32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int step = 1; step < 32; step *= 2) {
        int64_t below = __shfl_up_sync(WARP_ALL, x, step);
        if (lane >= step) x += below;
    }
    if (lane == 31) warp_sum[warp] = x;
    __syncthreads();
    int64_t before = 0;
    total = 0;
    for (int w = 0; w < THREADS / 32; w++) {
        if (w == warp) before = total;
        total += warp_sum[w];
    }
    __syncthreads();
    return before + x;
}

#endif
