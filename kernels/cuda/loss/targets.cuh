/* How the losses walk over the labels of a row of scores: kernels/cpu/loss/targets.h on a GPU. Some
   neighbouring threads share a row, which depends on the number of classes alone. */
#ifndef PNET_KERNELS_CUDA_TARGETS_CUH
#define PNET_KERNELS_CUDA_TARGETS_CUH

#include "kernels/cuda/base/levels.cuh"
#include "kernels/loss.h"

static __device__ __forceinline__ int64_t labels_begin(const struct pnet_targets &t, int64_t row)
{
    return t.start ? t.start[row] : row;
}

static __device__ __forceinline__ int64_t labels_end(const struct pnet_targets &t, int64_t row)
{
    return t.start ? t.start[row + 1] : row + 1;
}

/* The label at a place between begin and end; -1 where it does not count. */
static __device__ __forceinline__ int32_t label_at(const struct pnet_targets &t, int64_t at)
{
    int32_t label = t.label[t.child ? t.child[at] : at];
    return label >= 0 && label < t.classes ? label : -1;
}

/* Threads that share a row of scores. */
static inline int row_lanes(int32_t classes)
{
    return lanes_for((classes + 7) / 8, WARP);
}

/* A block's threads over rows of scores; all threads of a block make the same number of turns, so
   that they can exchange:
     for (int64_t base = r.begin; base < r.end; base += r.step) { row = base + r.line; ... } */
struct row_walk {
    int lanes, lane, line;
    int64_t begin, end, step;
};

/* The rows of one slice in one block, or all rows in the blocks of a grid. */
static __device__ __forceinline__ struct row_walk walk_slice(int64_t rows, int lanes)
{
    int32_t slice = (int32_t)blockIdx.x;
    struct row_walk r = {lanes, (int)threadIdx.x % lanes, (int)threadIdx.x / lanes,
        slice_begin(rows, slice), slice_begin(rows, slice + 1), (int)blockDim.x / lanes};
    return r;
}

static __device__ __forceinline__ struct row_walk walk_rows(int64_t rows, int lanes)
{
    int of_block = (int)blockDim.x / lanes;
    struct row_walk r = {lanes, (int)threadIdx.x % lanes, (int)threadIdx.x / lanes,
        (int64_t)blockIdx.x * of_block, rows, (int64_t)gridDim.x * of_block};
    return r;
}

/* The largest of a row's scores in each of its threads. NaN in the first one stays, as on the CPU. */
template <class T>
static __device__ __forceinline__ float top_score(
    const T *x, int32_t classes, const struct row_walk &r)
{
    float top = widen(x[0]);
    for (int32_t c = r.lane; c < classes; c += r.lanes) {
        float v = widen(x[c]);
        top = v > top ? v : top;
    }
    return lanes_max(top, r.lanes);
}

/* The class with the largest score in each of the row's threads, the lowest one among equals; *top is
   that score. Threads start from class 0, so that a NaN there wins as it does on the CPU. */
template <class T>
static __device__ __forceinline__ int32_t best_class_of(
    const T *x, int32_t classes, const struct row_walk &r, float *top)
{
    float best = widen(x[0]);
    int32_t at = 0;
    for (int32_t c = r.lane; c < classes; c += r.lanes)
        if (widen(x[c]) > best) {
            best = widen(x[c]);
            at = c;
        }
    for (int d = r.lanes / 2; d; d /= 2) {
        float other = __shfl_xor_sync(0xffffffffu, best, d);
        int32_t from = __shfl_xor_sync(0xffffffffu, at, d);
        if (other > best || (other == best && from < at)) {
            best = other;
            at = from;
        }
    }
    *top = best;
    return at;
}

/* struct pnet_soft_row of kernels/cpu/loss/targets.h, in each thread of the row. */
struct soft_row {
    float top;
    int32_t best;
    double rest;
};

template <class T>
static __device__ __forceinline__ struct soft_row soft_row_of(
    const T *x, int32_t classes, const struct row_walk &r)
{
    struct soft_row s;
    s.best = best_class_of(x, classes, r, &s.top);
    double rest = 0;
    for (int32_t c = r.lane; c < classes; c += r.lanes)
        if (c != s.best) rest += (double)expf(widen(x[c]) - s.top);
    s.rest = lanes_sum(rest, r.lanes);
    return s;
}

/* Labels of each class of a tile, counted by the threads of a row into `count` [TILE at most]. */
static __device__ __forceinline__ void count_labels(const struct pnet_targets &t, int64_t begin,
    int64_t end, int32_t first, int32_t last, const struct row_walk &r, int32_t *count)
{
    for (int32_t c = first + r.lane; c < last; c += r.lanes) count[c - first] = 0;
    __syncwarp();
    for (int64_t at = begin + r.lane; at < end; at += r.lanes) {
        int32_t label = label_at(t, at);
        if (label >= first && label < last) atomicAdd(count + (label - first), 1);
    }
    __syncwarp();
}

#endif
