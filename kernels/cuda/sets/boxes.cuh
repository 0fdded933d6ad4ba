/* The box around both sets of each sample. */
#ifndef PNET_KERNELS_CUDA_SETS_BOXES_CUH
#define PNET_KERNELS_CUDA_SETS_BOXES_CUH

#include "kernels/cuda/sets/points.cuh"
#include "kernels/cuda/sets/transport_work.h"

enum { BOX_THREADS = 512, BOX_WARPS = BOX_THREADS / WARP };

/* The least number of a block, in its first thread. */
static __device__ __forceinline__ double block_least(double v)
{
    __shared__ double part[BOX_WARPS];
    for (int d = WARP / 2; d; d /= 2) v = fmin(v, __shfl_xor_sync(~0u, v, d));
    __syncthreads(); /* the last one has been read */
    if (threadIdx.x % WARP == 0) part[threadIdx.x / WARP] = v;
    __syncthreads();
    for (int w = 0; w < BOX_WARPS && threadIdx.x == 0; w++) v = fmin(v, part[w]);
    return v;
}

/* A block has a sample. Numbers are in double, and each is rounded as on the CPU: the same box on either device. */
__global__ static void __launch_bounds__(BOX_THREADS)
    find_boxes(const __grid_constant__ struct pnet_set_pair p, struct set_box *box)
{
    let_next_come();
    wait_for_earlier();
    for (int32_t sample = (int32_t)blockIdx.x; sample < p.x.samples; sample += (int32_t)gridDim.x) {
        double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {INFINITY, INFINITY, INFINITY};
        bool bad = false;
        for (int side = 0; side < SIDES; side++) {
            const struct pnet_point_set &s = side ? p.y : p.x;
            const int64_t end = s.splits[sample + 1];
            for (int64_t row = s.splits[sample] + threadIdx.x; row < end; row += BOX_THREADS)
                for (int c = 0; c < 3; c++) {
                    double v = (double)s.xyz[3 * row + c];
                    bad |= !isfinite(v);
                    low[c] = fmin(low[c], v);
                    high[c] = fmin(high[c], -v);
                }
        }
        struct set_box found = {{0, 0, 0}, 0};
        bad = __syncthreads_or(bad);
        for (int c = 0; c < 3; c++) {
            double a = block_least(low[c]), b = -block_least(high[c]);
            found.centre[c] = (a + b) / 2;
            found.diagonal += (b - a) * (b - a);
        }
        if (threadIdx.x != 0) continue;
        const bool there = rows_in(p.x, sample) > 0 && rows_in(p.y, sample) > 0;
        found.diagonal = there ? (bad ? nan("") : sqrt(found.diagonal)) : 0;
        box[sample] = found;
    }
}

static inline void launch_boxes(const struct pnet_set_pair *p, struct set_box *box)
{
    if (p->x.samples > 0)
        launch_early(
            find_boxes, dim3(blocks_for(p->x.samples, 1)), dim3(BOX_THREADS), 0, 1, *p, box);
}

#endif
