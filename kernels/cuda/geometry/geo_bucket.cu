/* Orders by hashes and curves. */
#include "kernels/cuda/geometry/geo_bucket.h"
#include "kernels/cuda/geometry/geo_radix.h"
#include "kernels/cuda/geometry/geo_sorter.h"

static_assert(sizeof(radix_head) == RADIX_HEAD_BYTES, "workspaces have room for it");

enum {
    KEY_BLOCKS = 528
}; /* blocks of RADIX_THREADS: four for each processor of the largest GPUs */

/* Voxels of a sample, with the bias of keys: all 0 before. */
struct extent {
    uint32_t unlow[3], high[3]; /* unlow: the complement of the least one */
};

/* What an order begins with, all 0 before; extents of the samples follow. */
struct order_head {
    uint32_t most; /* bits of the largest voxel of any sample, less the least one */
    uint32_t done; /* blocks that have found extents */
};

static __device__ __forceinline__ uint32_t biased(float p, struct pnet_grid grid)
{
    bool inside = true;
    return (uint32_t)(voxel_index(p, grid, inside) + PNET_KEY_BIAS);
}

static __device__ __forceinline__ int bits_of(const struct extent &e)
{
    uint32_t largest = 0;
    for (int a = 0; a < 3; a++) largest |= e.high[a] - ~e.unlow[a];
    return e.unlow[0] ? 32 - __clz((int)largest) : 0; /* 0: no point is there */
}

static __device__ __forceinline__ void join(
    struct extent *extent, const uint32_t low[3], const uint32_t high[3])
{
    for (int a = 0; a < 3; a++) {
        atomicMax(&extent->unlow[a], ~low[a]);
        atomicMax(&extent->high[a], high[a]);
    }
}

/* The block that ends last finds the bits of all samples. */
static __device__ void find_most(
    int32_t samples, const struct extent *extent, struct order_head *head)
{
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(&head->done, 1u) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    int most = 0;
    for (int32_t s = threadIdx.x; s < samples; s += RADIX_THREADS) {
        struct extent e;
        for (int a = 0; a < 3; a++) {
            e.unlow[a] = __ldcg(&extent[s].unlow[a]);
            e.high[a] = __ldcg(&extent[s].high[a]);
        }
        most = max(most, bits_of(e));
    }
    most = __reduce_max_sync(WARP_ALL, most);
    if (threadIdx.x % 32 == 0 && most > 0) atomicMax(&head->most, (uint32_t)most);
}

/* A block has consecutive rows: mostly of one sample, whose least and largest voxels it finds before it joins them. */
static __global__ void __launch_bounds__(RADIX_THREADS)
    find_extents(int64_t n, int64_t each, const float *xyz, struct pnet_grid grid, int32_t samples,
        const int64_t *row_splits, struct extent *extent, struct order_head *head)
{
    __shared__ uint32_t part[2][3][RADIX_WARPS];
    const int64_t begin = blockIdx.x * each, end = min(n, begin + each);
    const int32_t sample = sample_of(row_splits, samples, begin);
    const bool one = row_splits[sample + 1] >= end;
    uint32_t low[3] = {UINT32_MAX, UINT32_MAX, UINT32_MAX}, high[3] = {0, 0, 0};
    for (int64_t i = begin + threadIdx.x; i < end; i += RADIX_THREADS) {
        uint32_t v[3];
        for (int a = 0; a < 3; a++) {
            v[a] = biased(xyz[3 * i + a], grid);
            low[a] = min(low[a], v[a]);
            high[a] = max(high[a], v[a]);
        }
        if (!one) join(&extent[sample_of(row_splits, samples, i)], v, v);
    }
    for (int a = 0; a < 3 && one; a++) {
        uint32_t least = __reduce_min_sync(WARP_ALL, low[a]),
                 most = __reduce_max_sync(WARP_ALL, high[a]);
        if (threadIdx.x % 32 == 0) {
            part[0][a][threadIdx.x / 32] = ~least;
            part[1][a][threadIdx.x / 32] = most;
        }
    }
    __syncthreads();
    if (one && threadIdx.x < 32)
        for (int k = 0; k < 6; k++) {
            uint32_t own = threadIdx.x < RADIX_WARPS ? part[k / 3][k % 3][threadIdx.x] : 0;
            own = __reduce_max_sync(WARP_ALL, own);
            uint32_t *to = k < 3 ? &extent[sample].unlow[k] : &extent[sample].high[k - 3];
            if (threadIdx.x == 0) atomicMax(to, own);
        }
    find_most(samples, extent, head);
}

/* The orders of a batch. */
struct order_batch {
    struct radix_batch radix;
    const float *xyz;
    struct pnet_grid grid;
    const struct extent *extent;
    enum pnet_order order[RADIX_MOST];
    int32_t bucket[RADIX_MOST];
};

/* Keys of orders that hash are numbers of buckets, counted over all samples: those of a sample begin at row_splits / bucket +
   its number, which leaves room for the buckets of the samples before it. Those of curves have the sample in front, where there
   is room. */
static __device__ __forceinline__ uint64_t key_of(
    const order_batch &b, int which, const radix_plan &p, int64_t i, int32_t sample)
{
    const enum pnet_order order = b.order[which];
    const struct extent e = b.extent[sample];
    uint32_t u[3];
    for (int a = 0; a < 3; a++) u[a] = biased(b.xyz[3 * i + a], b.grid) - ~e.unlow[a];
    if (!pnet_order_hashes(order)) {
        uint64_t key = pnet_order_key(order, u, bits_of(e), 1);
        return p.far ? key : (uint64_t)sample << (3 * *b.radix.most) | key;
    }
    uint32_t bucket = (uint32_t)b.bucket[which], begin = (uint32_t)b.radix.row_splits[sample],
             rows = (uint32_t)b.radix.row_splits[sample + 1] - begin;
    uint32_t buckets = rows > bucket ? (rows - 1) / bucket + 1 : 1;
    return pnet_order_key(order, u, bits_of(e), buckets) + begin / bucket + (uint32_t)sample;
}

/* Sets the keys, and adds up their digits. */
static __global__ void __launch_bounds__(RADIX_THREADS)
    order_keys(const __grid_constant__ order_batch b)
{
    __shared__ uint32_t count[RADIX_PASSES * RADIX_DIGITS];
    const radix_sort &s = b.radix.sort[blockIdx.y];
    const radix_plan p = radix_plan_of(b.radix, s);
    const int lane = threadIdx.x % 32;
    for (int i = threadIdx.x; i < p.passes * RADIX_DIGITS; i += RADIX_THREADS) count[i] = 0;
    __syncthreads();
    for (int64_t first = thread_index() - lane; first < b.radix.n; first += thread_count()) {
        const int64_t i = first + lane;
        const int lanes = (int)min((int64_t)32, b.radix.n - first);
        uint64_t key = 0, sample = 0;
        if (lane < lanes) {
            sample = (uint64_t)sample_of(b.radix.row_splits, b.radix.samples, i);
            key = key_of(b, (int)blockIdx.y, p, i, (int32_t)sample);
            if (p.narrow)
                ((uint32_t *)s.item[0])[i] = (uint32_t)key;
            else
                ((uint64_t *)s.item[0])[i] = key;
        }
        for (int pass = 0; pass < p.passes; pass++) {
            if (p.far && pass == RADIX_WORD / RADIX_DIGIT) key = sample;
            radix_count(count + pass * RADIX_DIGITS, (uint32_t)key & ((1u << p.width) - 1), lanes);
            key >>= p.width;
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < p.passes * RADIX_DIGITS; i += RADIX_THREADS)
        if (count[i]) atomicAdd(&s.head->count[i], count[i]);
}

static int bits_up_to(int64_t most)
{
    int bits = 0;
    while (most >> bits) bits++;
    return bits;
}

/* The old way. */
struct old_extent {
    uint32_t low[3], high[3];
};

/* A warp has consecutive rows: mostly of one sample, whose least and largest voxels it finds before it joins them. */
static __global__ void old_extents(int64_t n, const float *xyz, struct pnet_grid grid,
    int32_t samples, const int64_t *row_splits, struct old_extent *extent)
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
    int32_t samples, const int64_t *row_splits, const struct old_extent *extent,
    enum pnet_order order, int32_t bucket, T *item, int32_t *row)
{
    for (int64_t i = thread_index(); i < n; i += thread_count()) {
        int32_t sample = sample_of(row_splits, samples, i);
        struct old_extent e = extent[sample];
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

static void sort_by_cub(const struct pnet_level *level, struct pnet_grid grid,
    enum pnet_order order, int32_t bucket, int32_t *row, void *work, int steps)
{
    const int64_t n = level->rows;
    const int32_t samples = level->samples;
    geo_purse purse(work);
    struct old_extent *extent = purse.take<struct old_extent>((size_t)samples);
    void *room = purse.take<char>(CURVE_BYTES * (size_t)n);
    cudaStream_t stream = pnet_cuda_stream();
    if (n <= 0 || steps < 1) return;
    cudaMemset2DAsync(extent, sizeof *extent, 0xff, sizeof extent->low, (size_t)samples, stream);
    cudaMemset2DAsync(
        extent->high, sizeof *extent, 0, sizeof extent->high, (size_t)samples, stream);
    old_extents<<<geo_blocks(n), GEO_THREADS, 0, stream>>>(
        n, level->xyz, grid, samples, level->row_splits, extent);
    if (steps < 2) return;
    if (pnet_order_hashes(order)) {
        sorter<uint32_t> s = sorter_of<uint32_t>(n, room, purse);
        bucket_keys<<<geo_blocks(n), GEO_THREADS, 0, stream>>>(
            n, level->xyz, grid, samples, level->row_splits, extent, order, bucket, s.item[0], row);
        if (steps > 2) sort_pairs(n, &s, bits_up_to(n / bucket + samples), row);
        return;
    }
    sorter<uint64_t> s = sorter_of<uint64_t>(n, room, purse);
    bucket_keys<<<geo_blocks(n), GEO_THREADS, 0, stream>>>(
        n, level->xyz, grid, samples, level->row_splits, extent, order, 1, s.item[0], row);
    if (steps > 2) sort_pairs(n, &s, 63, row);
    if (steps < 3 || samples < 2) return;
    sample_items<<<geo_blocks(n), GEO_THREADS, 0, stream>>>(
        n, samples, level->row_splits, row, s.item[0]);
    sort_pairs(n, &s, bits_of_samples(samples), row);
}

static int launches_of(enum pnet_bucket_way way, int passes)
{
    return way == PNET_BUCKET_APART ? passes : 1;
}

extern "C" int pnet_cuda_bucket_order_steps(const struct pnet_level *level, struct pnet_grid grid,
    enum pnet_order order, int32_t bucket, int32_t *row, void *work, enum pnet_bucket_way way,
    int steps)
{
    const int64_t n = level->rows, tiles = pnet_cuda_geo_radix_tiles(n);
    const int sample_bits = bits_of_samples(level->samples),
              hash_bits = pnet_order_hashes(order) ? bits_up_to(n / bucket + level->samples) : 0,
              most_bits = hash_bits ? hash_bits : 63 + sample_bits,
              passes = (most_bits + RADIX_DIGIT - 1) / RADIX_DIGIT;
    const int launches = launches_of(way, passes);
    cudaStream_t stream = pnet_cuda_stream();
    geo_purse purse(work);
    order_batch b;
    struct order_head *head = purse.take<struct order_head>(1);
    struct extent *extent = purse.take<struct extent>((size_t)level->samples);
    struct radix_sort *s = &b.radix.sort[0];
    s->head = purse.take<struct radix_head>(1);
    s->state = purse.take<uint64_t>((size_t)tiles * RADIX_DIGITS);
    const size_t zeros = purse.used;
    char *room = purse.take<char>(CURVE_BYTES * (size_t)n);
    if (n <= 0) return 2 + launches;
    if (way == PNET_BUCKET_CUB) {
        sort_by_cub(level, grid, order, bucket, row, work, steps);
        return 2 + launches;
    }
    s->item[0] = room;
    s->item[1] = room + 8 * n;
    s->row[0] = row;
    s->row[1] = (int32_t *)(room + 16 * n);
    s->bits = hash_bits ? hash_bits : -1 - sample_bits;
    b.radix.n = n;
    b.radix.samples = level->samples;
    b.radix.row_splits = level->row_splits;
    b.radix.most = &head->most;
    b.xyz = level->xyz;
    b.grid = grid;
    b.extent = extent;
    b.order[0] = order;
    b.bucket[0] = bucket;
    int64_t blocks = (n + RADIX_THREADS - 1) / RADIX_THREADS;
    if (blocks > KEY_BLOCKS) blocks = KEY_BLOCKS;
    int64_t each = (n + blocks - 1) / blocks, parts = (n + each - 1) / each;
    if (steps > 0) cudaMemsetAsync(work, 0, zeros, stream);
    if (steps > 0)
        find_extents<<<(unsigned)parts, RADIX_THREADS, 0, stream>>>(
            n, each, level->xyz, grid, level->samples, level->row_splits, extent, head);
    if (steps > 1) order_keys<<<dim3((unsigned)blocks, 1), RADIX_THREADS, 0, stream>>>(b);
    for (int k = 0; k < launches && steps > 2 + k; k++) {
        unsigned together = way == PNET_BUCKET_APART || tiles < 264 ? (unsigned)tiles : 264;
        radix_passes<<<dim3(together, 1), RADIX_THREADS, 0, stream>>>(
            b.radix, k, way == PNET_BUCKET_APART ? k + 1 : RADIX_PASSES);
    }
    return 2 + launches;
}

extern "C" void pnet_cuda_bucket_order(const struct pnet_level *level, struct pnet_grid grid,
    enum pnet_order order, int32_t bucket, int32_t *row, void *work)
{
    pnet_cuda_bucket_order_steps(
        level, grid, order, bucket, row, work, PNET_BUCKET_JOINED, INT32_MAX);
}
