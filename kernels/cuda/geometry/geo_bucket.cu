/* Orders by hashes and curves. */
#include "kernels/cuda/geometry/geo_grid.h"
#include "kernels/cuda/geometry/geo_sorter.h"
#include "kernels/order.h"

/* Voxels of a sample, with the bias of keys. */
struct extent {
    uint32_t low[3], high[3];
};

static __device__ __forceinline__ uint32_t biased(float p, struct pnet_grid grid)
{
    bool inside = true;
    return (uint32_t)(voxel_index(p, grid, inside) + PNET_KEY_BIAS);
}

/* A warp has consecutive rows: mostly of one sample, whose least and largest voxels it finds before it joins them. */
static __global__ void find_extents(int64_t n, const float *xyz, struct pnet_grid grid,
    int32_t samples, const int64_t *row_splits, struct extent *extent)
{
    for (int64_t first = thread_index() / 32 * 32; first < n; first += thread_count()) {
        int64_t i = first + threadIdx.x % 32;
        bool there = i < n;
        int32_t sample = there ? sample_of(row_splits, samples, i) : -1;
        int32_t shared = __shfl_sync(WARP_ALL, sample, 0);
        bool one = __all_sync(WARP_ALL, sample == shared || !there);
        for (int a = 0; a < 3; a++) {
            uint32_t v = there ? biased(xyz[3 * i + a], grid) : 0;
            uint32_t low = __reduce_min_sync(WARP_ALL, there ? v : UINT32_MAX),
                     high = __reduce_max_sync(WARP_ALL, v);
            if (one && threadIdx.x % 32 == 0) {
                atomicMin(&extent[shared].low[a], low);
                atomicMax(&extent[shared].high[a], high);
            } else if (!one && there) {
                atomicMin(&extent[sample].low[a], v);
                atomicMax(&extent[sample].high[a], v);
            }
        }
    }
}

/* Items of orders that hash are numbers of buckets, counted over all samples: those of a sample begin at
   row_splits / bucket + its number, which leaves room for the buckets of the samples before it. */
template <class T>
static __global__ void bucket_keys(int64_t n, const float *xyz, struct pnet_grid grid,
    int32_t samples, const int64_t *row_splits, const struct extent *extent, enum pnet_order order,
    int32_t bucket, T *item, int32_t *row)
{
    for (int64_t i = thread_index(); i < n; i += thread_count()) {
        int32_t sample = sample_of(row_splits, samples, i);
        struct extent e = extent[sample];
        uint32_t u[3], largest = 0;
        for (int a = 0; a < 3; a++) {
            u[a] = biased(xyz[3 * i + a], grid) - e.low[a];
            largest |= e.high[a] - e.low[a];
        }
        int64_t begin = row_splits[sample], rows = row_splits[sample + 1] - begin;
        uint64_t key =
            pnet_order_key(order, u, pnet_order_bits(largest), pnet_bucket_count(rows, bucket));
        if (sizeof(T) == 4) key += (uint64_t)(begin / bucket + sample);
        item[i] = (T)key;
        row[i] = (int32_t)i;
    }
}

static __global__ void sample_items(
    int64_t n, int32_t samples, const int64_t *row_splits, const int32_t *row, uint64_t *item)
{
    for (int64_t i = thread_index(); i < n; i += thread_count())
        item[i] = (uint64_t)sample_of(row_splits, samples, row[i]);
}

static int bits_up_to(int64_t most)
{
    int bits = 0;
    while (most >> bits) bits++;
    return bits;
}

extern "C" void pnet_cuda_bucket_order(const struct pnet_level *level, struct pnet_grid grid,
    enum pnet_order order, int32_t bucket, int32_t *row, void *work)
{
    const int64_t n = level->rows;
    const int32_t samples = level->samples;
    geo_purse purse(work);
    struct extent *extent = purse.take<struct extent>((size_t)samples);
    void *room = purse.take<char>(CURVE_BYTES * (size_t)n);
    cudaStream_t stream = cudaStreamPerThread;
    if (n <= 0) return;
    cudaMemset2DAsync(extent, sizeof *extent, 0xff, sizeof extent->low, (size_t)samples, stream);
    cudaMemset2DAsync(
        extent->high, sizeof *extent, 0, sizeof extent->high, (size_t)samples, stream);
    find_extents<<<geo_blocks(n), GEO_THREADS, 0, stream>>>(
        n, level->xyz, grid, samples, level->row_splits, extent);
    if (pnet_order_hashes(order)) {
        sorter<uint32_t> s = sorter_of<uint32_t>(n, room, purse);
        bucket_keys<<<geo_blocks(n), GEO_THREADS, 0, stream>>>(
            n, level->xyz, grid, samples, level->row_splits, extent, order, bucket, s.item[0], row);
        sort_pairs(n, &s, bits_up_to(n / bucket + samples), row);
        return;
    }
    sorter<uint64_t> s = sorter_of<uint64_t>(n, room, purse);
    bucket_keys<<<geo_blocks(n), GEO_THREADS, 0, stream>>>(
        n, level->xyz, grid, samples, level->row_splits, extent, order, 1, s.item[0], row);
    sort_pairs(n, &s, 63, row);
    if (samples < 2) return;
    sample_items<<<geo_blocks(n), GEO_THREADS, 0, stream>>>(
        n, samples, level->row_splits, row, s.item[0]);
    sort_pairs(n, &s, bits_of_samples(samples), row);
}
