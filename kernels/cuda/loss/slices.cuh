/* Sums of losses: in double over SLICES stretches, one a block, joined in order by one block. */
#ifndef PNET_KERNELS_CUDA_SLICES_CUH
#define PNET_KERNELS_CUDA_SLICES_CUH

#include "kernels/cuda/base/levels.cuh"

static __device__ __forceinline__ void keep_slice(double a, double b, struct two *part)
{
    a = block_sum(a);
    b = block_sum(b);
    if (threadIdx.x == 0) part[blockIdx.x] = {a, b};
}

/* One thread a slice; the sums are in the first one. */
static __device__ __forceinline__ struct two join_slices(const struct two *part)
{
    static_assert(SLICES == 1024, "one block joins them");
    double a = block_sum(part[threadIdx.x].a);
    double b = block_sum(part[threadIdx.x].b);
    return {a, b};
}

#endif
