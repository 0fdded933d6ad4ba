/* Keys of points, and the order of rows by key. */
#include "kernels/geometry_stage.h"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/geometry/geo_grid.h"
#include "kernels/cuda/geometry/geo_sorter.h"

enum { LOW_BITS = 32, HIGH_BITS = 31 }; /* bits of the two words of a key */

/* Sets partial[block] to the sum over the block. */
static __device__ void tell_outside(int64_t outside, int64_t *partial)
{
    __shared__ int64_t sum[GEO_THREADS / 32];
    for (int step = 16; step > 0; step /= 2) outside += __shfl_xor_sync(WARP_ALL, outside, step);
    if (threadIdx.x % 32 == 0) sum[threadIdx.x / 32] = outside;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int w = 1; w < GEO_THREADS / 32; w++) outside += sum[w];
    partial[blockIdx.x] = outside;
}

static __global__ void keys(
    int64_t n, const float *xyz, struct pnet_grid grid, uint64_t *key, int64_t *partial)
{
    int64_t outside = 0;
    for (int64_t i = thread_index(); i < n; i += thread_count()) {
        bool inside = true;
        key[i] = point_key(xyz + 3 * i, grid, inside);
        outside += !inside;
    }
    tell_outside(outside, partial);
}

extern "C" int64_t pnet_cuda_keys(int64_t n, const float *xyz, struct pnet_grid grid, uint64_t *key)
{
    int64_t *partial = pnet_cuda_geo_readback();
    if (n <= 0 || !partial) return 0;
    int blocks = geo_few_blocks(n);
    keys<<<(unsigned)blocks, GEO_THREADS, 0, pnet_cuda_stream()>>>(n, xyz, grid, key, partial);
    return pnet_cuda_geo_read_partials(blocks);
}

void pnet_cuda_geo_sort_items(int64_t n, int bits, int32_t *order, void *room, geo_purse *purse)
{
    sorter<uint64_t> s = sorter_of<uint64_t>(n, room, *purse);
    sort_pairs(n, &s, bits, order);
}

/* Sets the low words of keys, and the rows in their present order; counts points outside as `keys` does. */
static __global__ void begin_order(int64_t n, const float *xyz, struct pnet_grid grid,
    uint32_t *item, int32_t *order, int64_t *partial)
{
    int64_t outside = 0;
    for (int64_t i = thread_index(); i < n; i += thread_count()) {
        bool inside = true;
        item[i] = (uint32_t)point_key(xyz + 3 * i, grid, inside);
        order[i] = (int32_t)i;
        outside += !inside;
    }
    tell_outside(outside, partial);
}

static __global__ void take_high(
    int64_t n, const float *xyz, struct pnet_grid grid, const int32_t *order, uint32_t *item)
{
    bool inside = true;
    for (int64_t i = thread_index(); i < n; i += thread_count())
        item[i] = (uint32_t)(point_key(xyz + 3 * (int64_t)order[i], grid, inside) >> LOW_BITS);
}

static __global__ void take_samples(
    int64_t n, int32_t samples, const int64_t *row_splits, const int32_t *order, uint32_t *item)
{
    for (int64_t i = thread_index(); i < n; i += thread_count())
        item[i] = (uint32_t)sample_of(row_splits, samples, order[i]);
}

/* Sorts by the low word of the key, then by the high word, then by sample, each time stable: this takes half the memory of
   whole keys, and moves fewer bytes. */
extern "C" int64_t pnet_cuda_order_points(int64_t n, int32_t samples, const int64_t *row_splits,
    const float *xyz, struct pnet_grid grid, int32_t *order, void *room, void *work)
{
    int64_t *partial = pnet_cuda_geo_readback();
    if (n <= 0 || !partial) return 0;
    geo_purse purse(work);
    sorter<uint32_t> s = sorter_of<uint32_t>(n, room, purse);
    int blocks = geo_few_blocks(n);
    begin_order<<<(unsigned)blocks, GEO_THREADS, 0, pnet_cuda_stream()>>>(
        n, xyz, grid, s.item[0], order, partial);
    sort_pairs(n, &s, LOW_BITS, order);
    take_high<<<geo_blocks(n), GEO_THREADS, 0, pnet_cuda_stream()>>>(
        n, xyz, grid, order, s.item[0]);
    sort_pairs(n, &s, HIGH_BITS, order);
    if (samples > 1) {
        take_samples<<<geo_blocks(n), GEO_THREADS, 0, pnet_cuda_stream()>>>(
            n, samples, row_splits, order, s.item[0]);
        sort_pairs(n, &s, bits_of_samples(samples), order);
    }
    return pnet_cuda_geo_read_partials(blocks);
}

/* Computes the box of all points, as ranks: low[3], high[3]. */
static __global__ void box_of_points(int64_t n, const float *xyz, uint32_t *box)
{
    uint32_t low[3] = {UINT32_MAX, UINT32_MAX, UINT32_MAX}, high[3] = {0, 0, 0};
    for (int64_t i = thread_index(); i < n; i += thread_count())
        for (int a = 0; a < 3; a++) {
            uint32_t rank = float_rank(xyz[3 * i + a]);
            low[a] = min(low[a], rank);
            high[a] = max(high[a], rank);
        }
    for (int a = 0; a < 3; a++) {
        uint32_t least = __reduce_min_sync(WARP_ALL, low[a]);
        uint32_t most = __reduce_max_sync(WARP_ALL, high[a]);
        if (threadIdx.x % 32 == 0) {
            atomicMin(&box[a], least);
            atomicMax(&box[3 + a], most);
        }
    }
}

static __global__ void curve_items(int64_t n, const float *xyz, int32_t samples,
    const int64_t *row_splits, const uint32_t *box, int bits, uint64_t *item, int32_t *order)
{
    float low[3], edge = 0;
    for (int a = 0; a < 3; a++) {
        low[a] = rank_float(box[a]);
        edge = fmaxf(edge, rank_float(box[3 + a]) - low[a]);
    }
    for (int64_t i = thread_index(); i < n; i += thread_count()) {
        uint64_t sample = samples > 1 ? (uint64_t)sample_of(row_splits, samples, i) : 0;
        item[i] = (sample << (3 * bits)) | curve_place(xyz + 3 * i, low, edge, bits);
        order[i] = (int32_t)i;
    }
}

void pnet_cuda_geo_curve(const struct pnet_level *level, int32_t *order, void *work)
{
    geo_purse purse(work);
    uint32_t *box = purse.take<uint32_t>(6);
    void *room = purse.take<char>(CURVE_BYTES * (size_t)level->rows);
    int64_t n = level->rows;
    int sample_bits = bits_of_samples(level->samples), bits = (63 - sample_bits) / 3;
    if (n <= 0) return;
    if (bits > 16) bits = 16; /* finer steps would cost more than they help */
    cudaMemsetAsync(box, 0xff, 3 * sizeof *box, pnet_cuda_stream());
    cudaMemsetAsync(box + 3, 0, 3 * sizeof *box, pnet_cuda_stream());
    box_of_points<<<(unsigned)geo_few_blocks(n), GEO_THREADS, 0, pnet_cuda_stream()>>>(
        n, level->xyz, box);
    curve_items<<<geo_blocks(n), GEO_THREADS, 0, pnet_cuda_stream()>>>(
        n, level->xyz, level->samples, level->row_splits, box, bits, (uint64_t *)room, order);
    pnet_cuda_geo_sort_items(n, 3 * bits + sample_bits, order, room, &purse);
}
