/* Joining the rows of lists: the fine rows of each cell, the pairs of each coarse row. A warp makes
   some channels of one list, its threads being laid over channels first, over entries of the list
   where few channels are left; a block makes those of a long list. Which thread takes which entry
   depends on the number of channels and the list's length alone: the same bits for any grid.

   An operation has a type `sum` for what a thread gathers, with
     start(list, channel)            nothing gathered yet; the list has entries
     take(sum, at, channel)          entry `at`, those of a thread in ascending order
     join(sum, other)                what another thread has; in either order
     write(sum, list, channel, count)  the result of a list of `count` entries, maybe none
   where `channel` is the first of V. */
#ifndef PNET_KERNELS_CUDA_LISTS_CUH
#define PNET_KERNELS_CUDA_LISTS_CUH

#include "kernels/cuda/levels.cuh"

enum {
    LONG = 2048,         /* entries beyond which a list is made by a block */
    FEW_WARPS = 1 << 14, /* lists below which 32 a warp leave the machine idle */
    FULL = 1 << 10,      /* blocks that a large machine runs at once */
};

template <class T> static __device__ __forceinline__ T shuffle_xor(const T &v, int lane)
{
    static_assert(sizeof(T) % 4 == 0, "shuffled by words");
    T r;
    const uint32_t *from = (const uint32_t *)&v;
    uint32_t *to = (uint32_t *)&r;
#pragma unroll
    for (unsigned i = 0; i < sizeof(T) / 4; i++)
        to[i] = __shfl_xor_sync(0xffffffffu, from[i], lane);
    return r;
}

/* One list's entries first, first + step ... and, joined, those of the warp's other threads. */
template <class Op>
static __device__ __forceinline__ typename Op::sum warp_gather(
    const Op &op, int64_t first, int64_t end, int step, int64_t list, int32_t channel, int columns)
{
    typename Op::sum sum = op.start(list, channel);
    if (channel < op.c)
#pragma unroll 4
        for (int64_t at = first; at < end; at += step) op.take(sum, at, channel);
    for (int d = columns; d < WARP; d *= 2) op.join(sum, shuffle_xor(sum, d));
    return sum;
}

/* The same by all threads of a block, which share `parts`. */
template <class Op>
static __device__ __forceinline__ void block_gather(const Op &op,
    typename Op::sum (&parts)[WARPS][WARP], int64_t list, int64_t begin, int64_t end,
    int32_t channel, int columns)
{
    const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    const int line = lane / columns, lines = WARP / columns;
    parts[warp][lane] =
        warp_gather(op, begin + warp * lines + line, end, lines * WARPS, list, channel, columns);
    __syncthreads();
    if (warp == 0 && line == 0 && channel < op.c) {
        typename Op::sum sum = parts[0][lane];
        for (int w = 1; w < WARPS; w++) op.join(sum, parts[w][lane]);
        op.write(sum, list, channel, end - begin);
    }
    __syncthreads();
}

/* Block y makes the y-th stretch of channels of `lists_of_block` lists, a warp each. */
template <class Op>
__global__ static void __launch_bounds__(THREADS)
    gather_lists(Op op, struct pnet_count lists, int columns, int lists_of_block)
{
    __shared__ typename Op::sum parts[WARPS][WARP];
    const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    const int column = lane % columns, line = lane / columns, lines = WARP / columns;
    const int32_t channel = ((int32_t)blockIdx.y * columns + column) * Op::V;
    const int64_t n = pnet_live(lists);
    for (int64_t base = (int64_t)blockIdx.x * lists_of_block; base < n;
         base += (int64_t)gridDim.x * lists_of_block) {
        int64_t list = base + warp;
        bool is_long = false;
        if (warp < lists_of_block && list < n) {
            int64_t begin = op.begin(list), end = op.begin(list + 1);
            is_long = end - begin > LONG;
            if (!is_long) {
                typename Op::sum sum =
                    warp_gather(op, begin + line, end, lines, list, channel, columns);
                if (line == 0 && channel < op.c) op.write(sum, list, channel, end - begin);
            }
        }
        if (!__syncthreads_or(is_long)) continue;
        for (list = base; list < base + lists_of_block && list < n; list++) {
            int64_t begin = op.begin(list), end = op.begin(list + 1);
            if (end - begin <= LONG) continue; /* in all threads alike */
            block_gather(op, parts, list, begin, end, channel, columns);
        }
    }
}

/* As few lists a block as fill the machine, lest long ones share a block; a warp each at most. */
template <class Op> static void launch_lists(const Op &op, struct pnet_count lists)
{
    if (lists.most <= 0 || op.c <= 0) return;
    int32_t vectors = op.c / Op::V;
    int columns = lanes_for(vectors, WARP);
    unsigned tiles = (unsigned)((vectors + columns - 1) / columns);
    int64_t each = (lists.most * tiles + FULL - 1) / FULL;
    int lists_of_block = each < WARPS ? (int)each : WARPS;
    dim3 grid(blocks_for(lists.most, lists_of_block), tiles);
    gather_lists<Op><<<grid, THREADS, 0, cudaStreamPerThread>>>(op, lists, columns, lists_of_block);
}

#endif
