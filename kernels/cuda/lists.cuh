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
    FEW_WARPS = 1 << 14, /* below so many a block gets one list, lest long ones share a block */
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

template <class Op>
__global__ static void __launch_bounds__(THREADS)
    gather_lists(Op op, struct pnet_count lists, int32_t tiles, int columns, int tasks_of_block)
{
    __shared__ typename Op::sum parts[WARPS][WARP];
    const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    const int column = lane % columns, line = lane / columns, lines = WARP / columns;
    const int64_t tasks = pnet_live(lists) * tiles;
    for (int64_t base = (int64_t)blockIdx.x * tasks_of_block; base < tasks;
         base += (int64_t)gridDim.x * tasks_of_block) {
        int64_t task = base + warp;
        bool is_long = false;
        if (warp < tasks_of_block && task < tasks) {
            int64_t list = task / tiles, begin = op.begin(list), end = op.begin(list + 1);
            int32_t channel = ((int32_t)(task % tiles) * columns + column) * Op::V;
            is_long = end - begin > LONG;
            if (!is_long) {
                typename Op::sum sum =
                    warp_gather(op, begin + line, end, lines, list, channel, columns);
                if (line == 0 && channel < op.c) op.write(sum, list, channel, end - begin);
            }
        }
        if (!__syncthreads_or(is_long)) continue;
        for (int i = 0; i < tasks_of_block && base + i < tasks; i++) {
            int64_t list = (base + i) / tiles, begin = op.begin(list), end = op.begin(list + 1);
            int32_t channel = ((int32_t)((base + i) % tiles) * columns + column) * Op::V;
            if (end - begin <= LONG) continue; /* in all threads alike */
            block_gather(op, parts, list, begin, end, channel, columns);
        }
    }
}

template <class Op> static void launch_lists(const Op &op, struct pnet_count lists)
{
    int32_t vectors = op.c / Op::V;
    int columns = lanes_for(vectors, WARP);
    int32_t tiles = (vectors + columns - 1) / columns;
    int64_t tasks = lists.most * tiles;
    int tasks_of_block = tasks < FEW_WARPS ? 1 : WARPS;
    if (tasks <= 0) return;
    gather_lists<Op><<<blocks_for(tasks, tasks_of_block), THREADS, 0, cudaStreamPerThread>>>(
        op, lists, tiles, columns, tasks_of_block);
}

#endif
