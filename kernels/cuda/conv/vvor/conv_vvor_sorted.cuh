/* VVOR of sorted triplets (conv_sort.cuh): how blocks of threads share the steps of kernel cells, and add their sums to the
   gradient. A kernel C has SUMS sums a block of threads, sum e of thread t for channels C::place(t, e) of the side of rows and
   of the gathered side, and FLOATS: features in float32, scaled to half. */
#ifndef PNET_KERNELS_CUDA_CONV_VVOR_SORTED_CUH
#define PNET_KERNELS_CUDA_CONV_VVOR_SORTED_CUH

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/vvor/conv_sort.cuh"
#include "kernels/cuda/conv/vvor/conv_vvor_fast.cuh"

#include <algorithm>

enum { SORTED_THREADS = 256 /* that have sums */ };

struct sorted_job {
    conv_outer outer;
    sorted_triplets sorted; /* none of a dense product: its one cell has the rows in order */
    const void *gathered, *rows;
    int gathered_stride, rows_stride, gathered_width, rows_width; /* widths of a group */
    int cells, columns, tiles_n, tiles_m, blocks, slots;
    bool first;                    /* of the chunks */
    float *to;                     /* [kinds][slots][sums of a block] */
    const vvor_measures *measures; /* FLOATS; else NULL */
};

static inline sorted_job sorted_job_of(
    const conv_outer &o, const sorted_plan &p, bool floats, void *work)
{
    const conv_groups &g = o.groups;
    return {o, {}, o.swapped ? o.gout : o.in, o.swapped ? o.in : o.gout, o.swapped ? o.cout : o.cin,
        o.swapped ? o.cin : o.cout, o.swapped ? g.cout : g.cin, o.swapped ? g.cin : g.cout,
        o.set.cells, p.columns, p.tiles_n, p.tiles_m, p.blocks, p.slots, true, (float *)work,
        floats ? (vvor_measures *)((char *)work + p.measures) : nullptr};
}

/* Scales that bring the numbers of each side near the top of half's range. */
static __device__ __forceinline__ vvor_scales scales_of(const sorted_job &j)
{
    return {conv_scale(__uint_as_float(j.measures->gathered), 15),
        conv_scale(__uint_as_float(j.measures->rows), 15)};
}

/* Where the channels of a kind of block begin. */
struct sorted_kind {
    int n0, m0, group;
};

static __device__ __forceinline__ sorted_kind kind_of(const sorted_job &j, int kind)
{
    return {kind % j.tiles_n * j.columns, kind / j.tiles_n % j.tiles_m * SORTED_SIDE,
        kind / j.tiles_n / j.tiles_m};
}

/* The step at which a cell begins, and, for the cell behind the last one, the number of steps. */
static __device__ __forceinline__ uint32_t step_of(const sorted_job &j, int cell)
{
    if (j.sorted.share) return j.sorted.share->step[cell];
    return cell == 0 ? 0 : (uint32_t)((pnet_live(j.outer.set.rows) + SORT_STEP - 1) / SORT_STEP);
}

/* Chunks are short enough for 32 bits. */
static __device__ __forceinline__ uint32_t block_edge(uint32_t steps, int blocks, int block)
{
    return steps * (unsigned)block / (unsigned)blocks;
}

/* The block that has a step. */
static __device__ __forceinline__ int block_of(uint32_t steps, int blocks, uint32_t step)
{
    int block = (int)(step * (unsigned)blocks / steps);
    while (block_edge(steps, blocks, block + 1) <= step) block++;
    return block;
}

/* The slot of a block's part of a cell. A block has parts of at most two cells, the first and the last of its own; block
   and cell both grow, so no two parts share a slot. */
static __device__ __forceinline__ int64_t slot_of(
    const sorted_job &j, int kind, int block, int cell, bool begun)
{
    int at = j.slots < 2 * j.blocks ? block + cell : 2 * block + !begun;
    return (int64_t)kind * j.slots + at;
}

/* Where sum e of thread t is in the gradient; NULL: nowhere. */
template <class C>
static __device__ __forceinline__ float *gradient_of(
    const sorted_job &j, const sorted_kind &k, int cell, int t, int e)
{
    const conv_outer &o = j.outer;
    int2 place = C::place(t, e);
    int row_side = k.m0 + place.x, gathered = k.n0 + place.y;
    if (row_side >= j.rows_width || gathered >= j.gathered_width) return nullptr;
    int a = o.swapped ? row_side : gathered, b = o.swapped ? gathered : row_side;
    const conv_groups &g = o.groups;
    if (g.cin1 != g.cin || g.cout1 != g.cout) { /* merged groups: their own matrices alone */
        if (a / g.cin1 != b / g.cout1) return nullptr;
        a %= g.cin1;
    }
    return o.transposed ? o.gweight + (int64_t)b * o.cin + a
                        : o.gweight + ((int64_t)cell * g.cin1 + a) * o.cout + k.group * g.cout + b;
}

/* A sum as it is added to the gradient. */
template <class C>
static __device__ __forceinline__ float gradient_sum(const sorted_job &j, float sum)
{
    if constexpr (C::FLOATS) { /* one after the other: their product may be out of range */
        vvor_scales scale = scales_of(j);
        sum = sum / scale.gathered / scale.rows;
    }
    return sum;
}

/* Adds sum e of thread t to the gradient. */
template <class C>
static __device__ __forceinline__ void put_gradient(
    const sorted_job &j, const sorted_kind &k, int cell, int t, int e, float sum)
{
    float *to = gradient_of<C>(j, k, cell, t, e);
    if (!to) return;
    sum = gradient_sum<C>(j, sum);
    *to = j.outer.add || !j.first ? *to + sum : sum;
}

/* The steps of a block in their order. The steps of a cell are dealt to m columns, m being the number of blocks that
   share the cell: step n is in column n % m. Blocks take columns one after the other. A block that begins inside a column
   takes its steps of later columns first, so that it, too, goes through the rows once. */
struct sorted_walk {
    const uint32_t *step; /* in shared memory */
    uint32_t low, high, each;
    int cell;
    uint32_t at, stride, left;

    __device__ __forceinline__ sorted_walk(const uint32_t *step_, int cells, int blocks, int block)
    {
        step = step_;
        uint32_t all = step[cells];
        low = block_edge(all, blocks, block);
        high = block_edge(all, blocks, block + 1);
        each = max((all + (unsigned)blocks - 1) / (unsigned)blocks, 1u);
        cell = cells - 1;
        at = stride = left = 0;
    }
    /* False at the end. */
    __device__ __forceinline__ bool next()
    {
        if (left > 1) {
            left--;
            at += stride;
            return true;
        }
        if (low >= high) {
            left = 0;
            return false;
        }
        while (step[cell] >= high) cell--;
        uint32_t begin = step[cell], count = step[cell + 1] - begin, v = high - 1 - begin;
        stride = max((count + each / 2) / each, 1u);
        uint32_t deep = count / stride, deeper = count % stride, edge = deeper * (deep + 1);
        uint32_t column = v < edge ? v / (deep + 1) : deeper + (v - edge) / deep;
        uint32_t first = column * deep + min(column, deeper);
        uint32_t from = max(low, begin + first);
        left = high - from;
        at = begin + column + (from - begin - first) * stride;
        high = from;
        return true;
    }
};

template <class C> constexpr int SUMS_OF_A_THREAD = C::SUMS / SORTED_THREADS;

/* Does the block have all steps of a cell? */
static __device__ __forceinline__ bool has_all(
    const uint32_t *step, uint32_t low, uint32_t high, int cell)
{
    return step[cell] >= low && step[cell + 1] <= high;
}

/* Writes the sums of a cell of which the block has some steps to a slot. */
template <class C>
static __device__ __forceinline__ void put_slot(const sorted_job &j, const uint32_t *step,
    uint32_t low, int cell, const float (&sum)[SUMS_OF_A_THREAD<C>])
{
    int kind = (int)blockIdx.x / j.blocks, block = (int)blockIdx.x % j.blocks;
    float *to = j.to + slot_of(j, kind, block, cell, step[cell] < low) * C::SUMS + threadIdx.x;
#pragma unroll
    for (int i = 0; i < SUMS_OF_A_THREAD<C>; i++) to[i * SORTED_THREADS] = sum[i];
}

/* Writes the sums of a cell: to the gradient if the block has all its steps, else to a slot. */
template <class C>
static __device__ __forceinline__ void put_sums(const sorted_job &j, const uint32_t *step,
    uint32_t low, uint32_t high, int cell, const float (&sum)[SUMS_OF_A_THREAD<C>])
{
    if (!has_all(step, low, high, cell)) {
        put_slot<C>(j, step, low, cell, sum);
        return;
    }
    sorted_kind k = kind_of(j, (int)blockIdx.x / j.blocks);
#pragma unroll
    for (int i = 0; i < SUMS_OF_A_THREAD<C>; i++)
        put_gradient<C>(j, k, cell, threadIdx.x, i, sum[i]);
}

/* Adds the slots of each cell to the gradient; writes zeros for cells without triplets. */
template <class C>
static __global__ __launch_bounds__(SORTED_THREADS) void reduce_sorted(
    const __grid_constant__ sorted_job j)
{
    enum { AT_ONCE = 8 };
    constexpr int PARTS = SUMS_OF_A_THREAD<C>; /* a sum of each thread */
    int type = blockIdx.x / PARTS, e = blockIdx.x % PARTS;
    int cell = type % j.cells, kind = type / j.cells;
    uint32_t all = step_of(j, j.cells), begin = step_of(j, cell), end = step_of(j, cell + 1);
    if (begin == end) {
        if (j.first && !j.outer.add) put_gradient<C>(j, kind_of(j, kind), cell, threadIdx.x, e, 0);
        return;
    }
    int first = block_of(all, j.blocks, begin), last = block_of(all, j.blocks, end - 1);
    if (first == last) return; /* it had all of the cell */
    const float *from = j.to + e * SORTED_THREADS + threadIdx.x;
    double sum = 0;
    for (int block = first; block <= last; block += AT_ONCE) {
        float part[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            uint32_t low = block_edge(all, j.blocks, block + i);
            bool has = block + i <= last && low < block_edge(all, j.blocks, block + i + 1);
            part[i] = has ? from[slot_of(j, kind, block + i, cell, begin < low) * C::SUMS] : 0;
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) sum += part[i];
    }
    put_gradient<C>(j, kind_of(j, kind), cell, threadIdx.x, e, (float)sum);
}

#endif
