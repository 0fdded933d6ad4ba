/* Joining the rows of lists: the fine rows of each cell, the pairs of each coarse row. A warp's threads
   are laid over the channels of a list first, over its entries where few channels are left, unless the
   list is short: then one thread a vector of channels goes through its entries, and lists share a warp.
   A long list has a block of its own. Which thread takes which entry depends only on the number of channels
   and the list's length, so the bits are the same for any grid.

   An operation has a type `sum` for what a thread gathers, `entry` for what a list says of a row and
   `row` for numbers as they are read, with
     start()                           nothing gathered yet
     find(at)                          entry `at`
     where(entry, channel)             where its row is
     take(sum, entry, row, first)      adds it, those of a thread in ascending order; `first` of the list
     join(sum, other)                  what another thread has, of later entries where `sum` has the first
     write(sum, list, channel, count)  the result of a list of `count` entries, maybe none
   where `channel` is the first of V. */
#ifndef PNET_KERNELS_CUDA_LISTS_CUH
#define PNET_KERNELS_CUDA_LISTS_CUH

#include "kernels/cuda/base/early.cuh"
#include "kernels/cuda/base/levels.cuh"

enum {
    LONG = 2048,         /* entries beyond which a list is made by a block */
    SHORT = 16,          /* entries up to which lists share a warp */
    AHEAD = 4,           /* rows of a thread on their way at once */
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

/* Entries first, first + step ... of the `count` of a list. */
template <class Op>
static __device__ __forceinline__ typename Op::sum gather(
    const Op &op, int64_t begin, int64_t first, int64_t count, int step, int32_t channel)
{
    typename Op::sum sum = op.start();
#pragma unroll 1
    for (int64_t at = first; at < count && channel < op.c; at += (int64_t)AHEAD * step) {
        typename Op::entry entry[AHEAD] = {}; /* not what the last turn left */
        typename Op::row row[AHEAD] = {};
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            if (at + k * step < count) entry[k] = op.find(begin + at + k * step);
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            if (at + k * step < count) row[k] = load_raw<Op::V>(op.where(entry[k], channel));
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            if (at + k * step < count) op.take(sum, entry[k], row[k], at + k * step == 0);
    }
    return sum;
}

/* The same of all threads of a warp that have the channel, joined. */
template <class Op>
static __device__ __forceinline__ typename Op::sum warp_gather(const Op &op, int64_t begin,
    int64_t first, int64_t count, int step, int32_t channel, int columns)
{
    typename Op::sum sum = gather(op, begin, first, count, step, channel);
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
        warp_gather(op, begin, warp * lines + line, end - begin, lines * WARPS, channel, columns);
    __syncthreads();
    if (warp == 0 && line == 0 && channel < op.c) {
        typename Op::sum sum = parts[0][lane];
        for (int w = 1; w < WARPS; w++) op.join(sum, parts[w][lane]);
        op.write(sum, list, channel, end - begin);
    }
    __syncthreads();
}

/* The list of `count` entries from `begin` on by all threads of a warp. */
template <class Op>
static __device__ __forceinline__ void warp_list(
    const Op &op, int64_t list, int64_t begin, int64_t count, int32_t channel, int columns)
{
    const int line = (int)threadIdx.x % WARP / columns, lines = WARP / columns;
    typename Op::sum sum = warp_gather(op, begin, line, count, lines, channel, columns);
    if (line == 0 && channel < op.c) op.write(sum, list, channel, count);
}

/* Calls f(list, begin, count) in all threads of a warp for each of its lists that is `chosen`, in one thread a list. */
template <class F>
static __device__ __forceinline__ void for_chosen(
    bool chosen, int64_t list, int64_t begin, int64_t count, F f)
{
    for (unsigned rest = __ballot_sync(~0u, chosen); rest; rest &= rest - 1) {
        int of = __ffs((int)rest) - 1;
        f(__shfl_sync(~0u, list, of), __shfl_sync(~0u, begin, of), __shfl_sync(~0u, count, of));
    }
}

/* Those among the lists `base` .. `end` - 1 that are long. */
template <class Op>
static __device__ __forceinline__ void long_lists(const Op &op,
    typename Op::sum (&parts)[WARPS][WARP], int64_t base, int64_t end, int32_t channel, int columns)
{
    for (int64_t list = base; list < end; list++) {
        int64_t from = op.begin(list), to = op.begin(list + 1);
        if (to - from > LONG) /* in all threads alike */
            block_gather(op, parts, list, from, to, channel, columns);
    }
}

/* Block y makes the y-th stretch of channels of lists, of which `warps` of its warps have `each`: one, or one a line of
   its threads. */
template <class Op>
__global__ static void __launch_bounds__(THREADS)
    gather_lists(Op op, struct pnet_count lists, int columns, int each, int warps)
{
    __shared__ typename Op::sum parts[WARPS][WARP];
    const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    const int column = lane % columns, line = lane / columns, span = warps * each;
    const bool first = each > 1 || line == 0; /* of the threads that have the list */
    const int32_t channel = ((int32_t)blockIdx.y * columns + column) * Op::V;
    const int64_t n = pnet_live(lists);
    let_next_come();
    wait_for_earlier();
    for (int64_t base = (int64_t)blockIdx.x * span; base < n; base += (int64_t)gridDim.x * span) {
        int64_t list = base + warp * each + (each > 1 ? line : 0), begin = 0, count = -1;
        if (warp < warps && list < n) {
            begin = op.begin(list);
            count = op.begin(list + 1) - begin;
        }
        if (first && count >= 0 && count <= SHORT && channel < op.c)
            op.write(gather(op, begin, 0, count, 1, channel), list, channel, count);
        for_chosen(first && column == 0 && count > SHORT && count <= LONG, list, begin, count,
            [&](int64_t of, int64_t from, int64_t entries) {
                warp_list(op, of, from, entries, channel, columns);
            });
        if (__syncthreads_or(count > LONG))
            long_lists(op, parts, base, min(base + span, n), channel, columns);
    }
}

/* As few warps a block, and lists a warp, as fill the machine, lest long lists share a block. */
template <class Op> static void launch_lists(const Op &op, struct pnet_count lists)
{
    if (lists.most <= 0 || op.c <= 0) return;
    int32_t vectors = op.c / Op::V;
    int columns = lanes_for(vectors, WARP);
    unsigned tiles = (unsigned)((vectors + columns - 1) / columns);
    int each = lists.most * tiles > FULL ? WARP / columns : 1;
    int64_t tasks = (lists.most + each - 1) / each * tiles;
    int warps = tasks < (int64_t)FULL * WARPS ? (int)((tasks + FULL - 1) / FULL) : WARPS;
    dim3 grid(blocks_for(lists.most, warps * each), tiles);
    launch_early(gather_lists<Op>, grid, dim3(THREADS), 0, 1, op, lists, columns, each, warps);
}

#endif
