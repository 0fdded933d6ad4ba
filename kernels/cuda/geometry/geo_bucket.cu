/* Orders by hashes and curves. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/geometry/geo_grid.h"
#include "kernels/cuda/geometry/geo_sorter.h"
#include "kernels/order.h"

/* Voxels of a sample, with the bias of keys: the least on each axis, then the complement of the largest, which is the least
   complement. */
enum { BOUNDS = 6 };
struct extent {
    uint32_t least[BOUNDS];
};

static __device__ __forceinline__ uint32_t biased(float p, struct pnet_grid grid)
{
    bool inside = true;
    return (uint32_t)(voxel_index(p, grid, inside) + PNET_KEY_BIAS);
}

/* A block has consecutive rows, mostly of one sample, and joins its least numbers with those of other blocks once. */
static __global__ void find_extents(int64_t n, const float *xyz, struct pnet_grid grid,
    int32_t samples, const int64_t *row_splits, struct extent *extent)
{
    __shared__ uint32_t part[BOUNDS][GEO_THREADS / 32];
    const int64_t each = (n + gridDim.x - 1) / gridDim.x, last = min(n, (blockIdx.x + 1) * each);
    for (int64_t first = blockIdx.x * each, end; first < last; first = end) {
        const int32_t sample = sample_of(row_splits, samples, first);
        uint32_t least[BOUNDS];
        end = min(last, row_splits[sample + 1]);
        for (int k = 0; k < BOUNDS; k++) least[k] = UINT32_MAX;
        for (int64_t i = first + threadIdx.x; i < end; i += GEO_THREADS)
            for (int a = 0; a < 3; a++) {
                uint32_t v = biased(xyz[3 * i + a], grid);
                least[a] = min(least[a], v);
                least[3 + a] = min(least[3 + a], ~v);
            }
        for (int k = 0; k < BOUNDS; k++) {
            least[k] = __reduce_min_sync(WARP_ALL, least[k]);
            if (threadIdx.x % 32 == 0) part[k][threadIdx.x / 32] = least[k];
        }
        __syncthreads();
        if (threadIdx.x < BOUNDS) {
            uint32_t all = UINT32_MAX;
            for (int w = 0; w < GEO_THREADS / 32; w++) all = min(all, part[threadIdx.x][w]);
            atomicMin(&extent[sample].least[threadIdx.x], all);
        }
        __syncthreads();
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
            u[a] = biased(xyz[3 * i + a], grid) - e.least[a];
            largest |= ~e.least[3 + a] - e.least[a];
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

/* So few that joining them costs little. */
static unsigned extent_blocks(int64_t n)
{
    const int64_t MOST = 256, ROWS_EACH = 4 * GEO_THREADS;
    int64_t blocks = (n + ROWS_EACH - 1) / ROWS_EACH;
    return (unsigned)(blocks < MOST ? blocks : MOST);
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
    cudaStream_t stream = pnet_cuda_stream();
    if (n <= 0) return;
    cudaMemsetAsync(extent, 0xff, (size_t)samples * sizeof *extent, stream);
    find_extents<<<extent_blocks(n), GEO_THREADS, 0, stream>>>(
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
