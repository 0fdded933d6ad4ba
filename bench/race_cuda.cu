/* pnet-bench ablate orders: Flash3D's hash on a GPU, threads racing for places by atomics. Points are counted twice, as its
   paper has it: in shared memory, then once a block and bucket in device memory. Which points get a place depends on their
   arrival. */
#include "bench/race.h"
#include "kernels/cuda/geometry/geo_grid.h"
#include "kernels/cuda/geometry/geo_parts.h"

enum {
    THREADS = 512,
    EACH = 4, /* points of a thread */
    MOST_SHARED =
        12288, /* buckets whose counters lie in shared memory; of more in device memory alone */
    SCAN_THREADS = 1024,
};

/* Coordinates as numbers of the same order. */
struct race_box {
    uint32_t low[3], high[3];
};

static __device__ __forceinline__ uint32_t ordered(float x)
{
    uint32_t bits = __float_as_uint(x);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static __device__ __forceinline__ float coordinate(uint32_t bits)
{
    return __uint_as_float(bits & 0x80000000u ? bits & 0x7fffffffu : ~bits);
}

static __global__ void __launch_bounds__(GEO_THREADS)
    find_box(int64_t n, const float *xyz, struct race_box *box)
{
    for (int64_t first = thread_index() / 32 * 32; first < n; first += thread_count()) {
        int64_t i = first + threadIdx.x % 32;
        for (int a = 0; a < 3; a++) {
            uint32_t v = i < n ? ordered(xyz[3 * i + a]) : 0,
                     low = __reduce_min_sync(WARP_ALL, i < n ? v : UINT32_MAX),
                     high = __reduce_max_sync(WARP_ALL, v);
            if (threadIdx.x % 32 > 0) continue;
            atomicMin(&box->low[a], low);
            atomicMax(&box->high[a], high);
        }
    }
}

struct voxel {
    int32_t at[3];
};

static __device__ __forceinline__ voxel voxel_of(const float *p, const struct race_box &box)
{
    voxel v;
    for (int a = 0; a < 3; a++)
        v.at[a] = race_voxel(p[a], coordinate(box.low[a]), coordinate(box.high[a]));
    return v;
}

/* Finds a place in the bucket of a probe, else behind all others. A counter passes the room of its bucket and comes back, and
   gives each number below the room once. */
static __device__ void search(const struct race_table &t, const voxel &v, int64_t point,
    int32_t *filled, int32_t *bucket, int32_t *offset)
{
    for (int k = 0; k < RACE_PROBES; k++) {
        int32_t b = race_probe(&t, v.at, point, k);
        if (__ldcg(&filled[b]) >= t.room) continue;
        int32_t at = atomicAdd(&filled[b], 1);
        if (at < t.room) {
            *bucket = b;
            *offset = at;
            return;
        }
        atomicSub(&filled[b], 1);
    }
    *bucket = t.buckets;
    *offset = atomicAdd(&filled[t.buckets], 1);
}

/* staged: `counts` has a counter of each bucket. */
static __global__ void __launch_bounds__(THREADS) take_places(
    const __grid_constant__ struct race_table t, bool staged, int64_t n, const float *xyz,
    const struct race_box *box, int32_t *filled, int32_t *bucket, int32_t *offset)
{
    extern __shared__ int32_t counts[];
    struct race_box b = *box;
    int64_t first = (int64_t)blockIdx.x * (THREADS * EACH) + threadIdx.x;
    voxel v[EACH];
    int32_t own[EACH], at[EACH];
    for (int k = threadIdx.x; k < t.buckets && staged; k += THREADS) counts[k] = 0;
    __syncthreads();
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        int64_t i = first + e * THREADS;
        if (i >= n) continue;
        v[e] = voxel_of(xyz + 3 * i, b);
        own[e] = race_bucket(&t, v[e].at);
        at[e] = atomicAdd(staged ? &counts[own[e]] : &filled[own[e]], 1);
    }
    __syncthreads();
    for (int k = threadIdx.x; k < t.buckets && staged; k += THREADS)
        if (counts[k] > 0) counts[k] = atomicAdd(&filled[k], counts[k]);
    __syncthreads();
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        int64_t i = first + e * THREADS;
        if (i >= n) continue;
        if (staged) at[e] += counts[own[e]];
        if (at[e] >= t.room) search(t, v[e], i, filled, &own[e], &at[e]);
        bucket[i] = own[e];
        offset[i] = at[e];
    }
}

/* begin [buckets + 1] := the exclusive sum of the points in each bucket; one block. */
static __global__ void __launch_bounds__(SCAN_THREADS)
    scan(int32_t buckets, int32_t room, const int32_t *filled, int32_t *begin)
{
    __shared__ int32_t sums[SCAN_THREADS];
    int32_t each = (buckets + SCAN_THREADS) / SCAN_THREADS, from = (int32_t)threadIdx.x * each,
            sum = 0;
    for (int32_t k = from; k < from + each && k < buckets; k++) sum += min(filled[k], room);
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int step = 1; step < SCAN_THREADS; step *= 2) {
        int32_t before = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
        __syncthreads();
        sums[threadIdx.x] += before;
        __syncthreads();
    }
    int32_t at = sums[threadIdx.x] - sum;
    for (int32_t k = from; k < from + each && k <= buckets; k++) {
        begin[k] = at;
        if (k < buckets) at += min(filled[k], room);
    }
}

static __global__ void __launch_bounds__(GEO_THREADS) put_in_order(
    int64_t n, const int32_t *bucket, const int32_t *offset, const int32_t *begin, int32_t *order)
{
    for (int64_t i = thread_index(); i < n; i += thread_count())
        order[begin[bucket[i]] + offset[i]] = (int32_t)i;
}

/* The parts of the workspace. */
struct parts {
    struct race_box *box;
    int32_t *filled, *begin; /* [buckets + 1]: the last one of points without a place */
    int32_t *offset;         /* [n] */
};

static parts parts_of(const struct race_table *t, int64_t n, geo_purse &purse)
{
    parts p;
    p.box = purse.take<struct race_box>(1);
    p.filled = purse.take<int32_t>((size_t)t->buckets + 1);
    p.begin = purse.take<int32_t>((size_t)t->buckets + 1);
    p.offset = purse.take<int32_t>((size_t)n);
    return p;
}

extern "C" size_t pnet_bench_race_cuda_work(const struct race_table *t, int64_t n)
{
    geo_purse purse(NULL);
    parts_of(t, n, purse);
    return purse.used;
}

extern "C" void pnet_bench_race_cuda(const struct race_table *t, int64_t n, const float *xyz,
    int32_t *order, int32_t *bucket, void *work)
{
    geo_purse purse(work);
    parts p = parts_of(t, n, purse);
    cudaStream_t stream = cudaStreamPerThread;
    bool staged = t->buckets <= MOST_SHARED;
    size_t shared = staged ? (size_t)t->buckets * sizeof(int32_t) : 0;
    if (n <= 0) return;
    cudaMemsetAsync(p.box->low, 0xff, sizeof p.box->low, stream);
    cudaMemsetAsync(p.box->high, 0, sizeof p.box->high, stream);
    cudaMemsetAsync(p.filled, 0, ((size_t)t->buckets + 1) * sizeof *p.filled, stream);
    find_box<<<geo_blocks(n), GEO_THREADS, 0, stream>>>(n, xyz, p.box);
    take_places<<<(unsigned)((n + THREADS * EACH - 1) / (THREADS * EACH)), THREADS, shared,
        stream>>>(*t, staged, n, xyz, p.box, p.filled, bucket, p.offset);
    scan<<<1, SCAN_THREADS, 0, stream>>>(t->buckets, t->room, p.filled, p.begin);
    put_in_order<<<geo_blocks(n), GEO_THREADS, 0, stream>>>(n, bucket, p.offset, p.begin, order);
}
