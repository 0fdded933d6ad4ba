/* Keys of points, and the order of rows by key. */
#include "kernels/cuda/geo.h"
#include "kernels/cuda/geo_grid.h"
#include "kernels/cuda/geo_parts.h"

#include <cstdio>
#include <cstdlib>
#include <cub/device/device_radix_sort.cuh>

enum { KEY_BITS = 63 };

static __global__ void keys(
    int64_t n, const float *xyz, struct pnet_grid grid, uint64_t *key, int64_t *partial)
{
    __shared__ int64_t sum[GEO_THREADS / 32];
    int64_t outside = 0;
    for (int64_t i = thread_index(); i < n; i += thread_count()) {
        bool inside = true;
        uint32_t v[3];
        for (int a = 0; a < 3; a++)
            v[a] = (uint32_t)(voxel_index(xyz[3 * i + a], grid, inside) + PNET_KEY_BIAS);
        key[i] = key_join(v[0], v[1], v[2]);
        outside += !inside;
    }
    if (!partial) return;
    for (int step = 16; step > 0; step /= 2) outside += __shfl_xor_sync(WARP_ALL, outside, step);
    if (threadIdx.x % 32 == 0) sum[threadIdx.x / 32] = outside;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int w = 1; w < GEO_THREADS / 32; w++) outside += sum[w];
    partial[blockIdx.x] = outside;
}

void geo_keys(
    int64_t n, const float *xyz, struct pnet_grid grid, uint64_t *key, int64_t *partial, int blocks)
{
    keys<<<(unsigned)blocks, GEO_THREADS, 0, cudaStreamPerThread>>>(n, xyz, grid, key, partial);
}

extern "C" int64_t pnet_cuda_keys(int64_t n, const float *xyz, struct pnet_grid grid, uint64_t *key)
{
    int64_t *partial = geo_readback();
    if (n <= 0 || !partial) return 0;
    int blocks = geo_few_blocks(n);
    geo_keys(n, xyz, grid, key, partial, blocks);
    return geo_read_partials(blocks);
}

/* Two buffers of items, and the memory CUB works in: for each digit that is sorted by and each
   2^28 items a histogram, and what its blocks of at least 2048 items tell each other. */
struct sorter {
    uint64_t *item[2];
    int32_t *spare;
    char *temporary;
    size_t temporary_bytes;
};

static size_t lay_out(int64_t n, void *work, struct sorter *s)
{
    geo_purse purse(work);
    size_t rows = (size_t)n;
    s->item[0] = purse.take<uint64_t>(rows);
    s->item[1] = purse.take<uint64_t>(rows);
    s->spare = purse.take<int32_t>(rows);
    s->temporary_bytes = rows / 2 + (1 + (rows >> 28)) * (256u << 10);
    s->temporary = purse.take<char>(s->temporary_bytes);
    return purse.used;
}

/* Sorts pairs (item, order) by the low bits of item[0], stable; the order stays where it is. */
static void sort_pairs(int64_t n, const struct sorter *s, int bits, int32_t *order)
{
    cub::DoubleBuffer<uint64_t> item(s->item[0], s->item[1]);
    cub::DoubleBuffer<int32_t> row(order, s->spare);
    size_t bytes = 0;
    cub::DeviceRadixSort::SortPairs(
        nullptr, bytes, item, row, (int)n, 0, bits, cudaStreamPerThread);
    if (bytes > s->temporary_bytes) {
        fprintf(stderr,
            "pnet: sorting %lld rows takes %zu bytes beside the rows, %zu are planned\n",
            (long long)n, bytes, s->temporary_bytes);
        abort();
    }
    cub::DeviceRadixSort::SortPairs(
        s->temporary, bytes, item, row, (int)n, 0, bits, cudaStreamPerThread);
    if (row.Current() != order)
        cudaMemcpyAsync(order, row.Current(), (size_t)n * sizeof *order, cudaMemcpyDeviceToDevice,
            cudaStreamPerThread);
}

static int bits_of_samples(int32_t samples)
{
    int bits = 0;
    while ((int64_t)1 << bits < samples) bits++;
    return bits;
}

static __global__ void begin_order(int64_t n, const uint64_t *key, uint64_t *item, int32_t *order)
{
    for (int64_t i = thread_index(); i < n; i += thread_count()) {
        item[i] = key[i];
        order[i] = (int32_t)i;
    }
}

static __global__ void take_samples(
    int64_t n, int32_t samples, const int64_t *row_splits, const int32_t *order, uint64_t *item)
{
    for (int64_t i = thread_index(); i < n; i += thread_count())
        item[i] = (uint64_t)sample_of(row_splits, samples, order[i]);
}

extern "C" size_t pnet_cuda_order_work(int64_t n)
{
    struct sorter s;
    return lay_out(n, nullptr, &s);
}

/* By key, then by sample, each stable. */
extern "C" void pnet_cuda_order(int64_t n, int32_t samples, const int64_t *row_splits,
    const uint64_t *key, int32_t *order, void *work)
{
    struct sorter s;
    if (n <= 0) return;
    lay_out(n, work, &s);
    begin_order<<<geo_blocks(n), GEO_THREADS, 0, cudaStreamPerThread>>>(n, key, s.item[0], order);
    sort_pairs(n, &s, KEY_BITS, order);
    if (samples <= 1) return;
    take_samples<<<geo_blocks(n), GEO_THREADS, 0, cudaStreamPerThread>>>(
        n, samples, row_splits, order, s.item[0]);
    sort_pairs(n, &s, bits_of_samples(samples), order);
}

/* The box of all points, as ranks: low[3], high[3]. */
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
    float low[3], edge = 0, last = (float)((1u << bits) - 1);
    for (int a = 0; a < 3; a++) {
        low[a] = rank_float(box[a]);
        edge = fmaxf(edge, rank_float(box[3 + a]) - low[a]);
    }
    for (int64_t i = thread_index(); i < n; i += thread_count()) {
        uint32_t index[3];
        for (int a = 0; a < 3; a++) {
            float x = edge > 0 ? (xyz[3 * i + a] - low[a]) / edge * last : 0;
            index[a] = (uint32_t)fminf(x, last);
        }
        uint64_t sample = samples > 1 ? (uint64_t)sample_of(row_splits, samples, i) : 0;
        item[i] = (sample << (3 * bits)) | key_join(index[0], index[1], index[2]);
        order[i] = (int32_t)i;
    }
}

size_t geo_curve_work(int64_t rows)
{
    struct sorter s;
    return 256 + lay_out(rows, nullptr, &s);
}

void geo_curve(const struct pnet_level *level, int32_t *order, void *work)
{
    struct sorter s;
    uint32_t *box = (uint32_t *)work;
    int64_t n = level->rows;
    int sample_bits = bits_of_samples(level->samples), bits = (63 - sample_bits) / 3;
    if (n <= 0) return;
    if (bits > 16) bits = 16; /* finer steps would cost more than they help */
    lay_out(n, (char *)work + 256, &s);
    cudaMemsetAsync(box, 0xff, 3 * sizeof *box, cudaStreamPerThread);
    cudaMemsetAsync(box + 3, 0, 3 * sizeof *box, cudaStreamPerThread);
    box_of_points<<<(unsigned)geo_few_blocks(n), GEO_THREADS, 0, cudaStreamPerThread>>>(
        n, level->xyz, box);
    curve_items<<<geo_blocks(n), GEO_THREADS, 0, cudaStreamPerThread>>>(
        n, level->xyz, level->samples, level->row_splits, box, bits, s.item[0], order);
    sort_pairs(n, &s, 3 * bits + sample_bits, order);
}
