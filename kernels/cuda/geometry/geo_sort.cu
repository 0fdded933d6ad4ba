/* Sorts rows in place, whatever their length: bitonic networks in which every comparison puts the lower item first. So a row
   of any length behaves as if it were filled up to a power of two by items that stay at its end. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/geometry/geo_grid.h"
#include "kernels/cuda/geometry/geo_parts.h"

enum {
    CHUNK = 4096,
    SHORT = 24,          /* children that one thread sorts */
    LISTED_BLOCKS = 1024 /* that share the rows of a list, whose number the host does not know */
};

struct triplet_row {
    int32_t *other;
    uint16_t *cell;
    __device__ uint64_t get(int64_t i) const
    {
        return (uint64_t)cell[i] << 32 | (uint32_t)other[i];
    }
    __device__ void put(int64_t i, uint64_t item) const
    {
        other[i] = (int32_t)item;
        cell[i] = (uint16_t)(item >> 32);
    }
    __device__ void skip(int64_t n)
    {
        other += n;
        cell += n;
    }
};

struct child_row {
    int32_t *child;
    __device__ uint64_t get(int64_t i) const
    {
        return (uint32_t)child[i];
    }
    __device__ void put(int64_t i, uint64_t item) const
    {
        child[i] = (int32_t)item;
    }
    __device__ void skip(int64_t n)
    {
        child += n;
    }
};

/* Pairs of words, by the lower one: no two of a row are equal there. */
struct pair_row {
    uint64_t *pair;
    static __device__ uint64_t swap(uint64_t pair)
    {
        return pair << 32 | pair >> 32;
    }
    __device__ uint64_t get(int64_t i) const
    {
        return swap(pair[i]);
    }
    __device__ void put(int64_t i, uint64_t item) const
    {
        pair[i] = swap(item);
    }
};

/* Returns the lower place of pair `n` when items `stride` apart are compared, and sets its partner: the mirror image within
   2 * stride in the first step of a merge. */
static __device__ __forceinline__ int64_t low_of(int64_t n, int64_t stride)
{
    return 2 * n - (n & (stride - 1));
}
static __device__ __forceinline__ int64_t high_of(int64_t low, int64_t stride, bool mirror)
{
    return mirror ? low ^ (2 * stride - 1) : low + stride;
}

/* Merges runs of up to `limit` items within a chunk in shared memory: from single items on, or only the last steps of a
   larger merge. */
static __device__ void sort_chunk(uint64_t *item, int limit, bool last_steps)
{
    for (int size = last_steps ? limit : 2; size <= limit; size *= 2)
        for (int stride = size / 2; stride > 0; stride /= 2) {
            bool mirror = !last_steps && stride == size / 2;
            for (int n = threadIdx.x; n < limit / 2; n += GEO_THREADS) {
                int64_t low = low_of(n, stride), high = high_of(low, stride, mirror);
                uint64_t a = item[low], b = item[high];
                if (a > b) {
                    item[low] = b;
                    item[high] = a;
                }
            }
            __syncthreads();
        }
}

template <class Row>
static __device__ void pass_chunks(Row row, int64_t n, int limit, bool last_steps, uint64_t *item)
{
    for (int64_t begin = 0; begin < n; begin += limit) {
        for (int i = threadIdx.x; i < limit; i += GEO_THREADS)
            item[i] = begin + i < n ? row.get(begin + i) : UINT64_MAX;
        __syncthreads();
        sort_chunk(item, limit, last_steps);
        for (int i = threadIdx.x; i < limit; i += GEO_THREADS)
            if (begin + i < n) row.put(begin + i, item[i]);
        __syncthreads();
    }
}

/* Sorts one row with one block. */
template <class Row> static __device__ void sort_row(Row row, int64_t n, uint64_t *item)
{
    int limit = 2;
    while (limit < n && limit < CHUNK) limit *= 2;
    pass_chunks(row, n, limit, false, item);
    for (int64_t size = 2 * (int64_t)limit; size < 2 * n; size *= 2) {
        for (int64_t stride = size / 2; stride >= limit; stride /= 2) {
            for (int64_t pair = threadIdx.x; low_of(pair, stride) < n; pair += GEO_THREADS) {
                int64_t low = low_of(pair, stride), high = high_of(low, stride, stride == size / 2);
                if (high >= n) continue;
                uint64_t a = row.get(low), b = row.get(high);
                if (a > b) {
                    row.put(low, b);
                    row.put(high, a);
                }
            }
            __syncthreads();
        }
        pass_chunks(row, n, limit, true, item);
    }
}

/* Each block examines GEO_THREADS rows at a time and sorts those longer than `limit`. */
template <class Row>
static __device__ void sort_found(
    Row all, int64_t rows, const int64_t *start, int64_t limit, uint64_t *item)
{
    __shared__ int found[GEO_THREADS], count;
    for (int64_t first = (int64_t)blockIdx.x * GEO_THREADS; first < rows; first += thread_count()) {
        int64_t row = first + threadIdx.x;
        if (threadIdx.x == 0) count = 0;
        __syncthreads();
        if (row < rows && start[row + 1] - start[row] > limit)
            found[atomicAdd(&count, 1)] = threadIdx.x;
        __syncthreads();
        for (int f = 0; f < count; f++) {
            int64_t begin = start[first + found[f]], end = start[first + found[f] + 1];
            Row one = all;
            one.skip(begin);
            sort_row(one, end - begin, item);
        }
        __syncthreads();
    }
}

static __global__ void __launch_bounds__(GEO_THREADS)
    sort_long_triplets(struct triplet_row all, int64_t rows, const int64_t *start, int64_t limit)
{
    __shared__ uint64_t item[CHUNK];
    sort_found(all, rows, start, limit, item);
}

static __global__ void __launch_bounds__(GEO_THREADS)
    sort_long_children(struct child_row all, int64_t rows, const int64_t *start, int64_t limit)
{
    __shared__ uint64_t item[CHUNK];
    sort_found(all, rows, start, limit, item);
}

/* Each block sorts some of the rows that are listed. */
static __global__ void __launch_bounds__(GEO_THREADS) sort_listed_pairs(
    uint64_t *pair, const int64_t *start, const int32_t *count, const int32_t *list)
{
    __shared__ uint64_t item[CHUNK];
    for (int32_t n = (int32_t)blockIdx.x; n < *count; n += (int32_t)gridDim.x) {
        int64_t begin = start[list[n]], end = start[list[n] + 1];
        struct pair_row row = {pair + begin};
        sort_row(row, end - begin, item);
    }
}

static __global__ void sort_short_children(int64_t rows, const int64_t *start, int32_t *child)
{
    for (int64_t row = thread_index(); row < rows; row += thread_count()) {
        int64_t begin = start[row], n = start[row + 1] - begin;
        if (n > SHORT) continue;
        for (int64_t i = begin + 1; i < begin + n; i++) {
            int32_t own = child[i];
            int64_t place = i;
            for (; place > begin && child[place - 1] > own; place--)
                child[place] = child[place - 1];
            if (place < i) child[place] = own;
        }
    }
}

void pnet_cuda_geo_sort_long(
    int64_t rows, const int64_t *start, int64_t limit, int32_t *other, uint16_t *cell)
{
    struct triplet_row all;
    all.other = other;
    all.cell = cell;
    if (rows <= 0) return;
    sort_long_triplets<<<geo_blocks(rows), GEO_THREADS, 0, pnet_cuda_stream()>>>(
        all, rows, start, limit);
}

void pnet_cuda_geo_sort_children(int64_t rows, const int64_t *start, int32_t *child)
{
    struct child_row all;
    all.child = child;
    if (rows <= 0) return;
    sort_short_children<<<geo_blocks(rows), GEO_THREADS, 0, pnet_cuda_stream()>>>(
        rows, start, child);
    sort_long_children<<<geo_blocks(rows), GEO_THREADS, 0, pnet_cuda_stream()>>>(
        all, rows, start, SHORT);
}

void pnet_cuda_geo_sort_pairs(
    int64_t most, const int64_t *start, uint64_t *pair, const int32_t *count, const int32_t *list)
{
    unsigned blocks = LISTED_BLOCKS;
    if (most < LISTED_BLOCKS) blocks = (unsigned)most;
    if (most <= 0) return;
    sort_listed_pairs<<<blocks, GEO_THREADS, 0, pnet_cuda_stream()>>>(pair, start, count, list);
}
