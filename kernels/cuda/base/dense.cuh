/* Code that the kernels on dense matrices share: launches sized to the GPU, 16-byte accesses, sums in fixed order. */
#ifndef PNET_KERNELS_CUDA_DENSE_CUH
#define PNET_KERNELS_CUDA_DENSE_CUH

#include "kernels/cuda/base/storage.cuh"

#include <cstdint>
#include <cuda_runtime.h>

enum { THREADS = 256, WARP = 32 };

/* V numbers that are read and written at once; a matrix is a sequence of them. */
template <int V> struct pack {
    float at[V];
};

template <int V, class T> static __device__ __forceinline__ pack<V> load(const T *p, int64_t i)
{
    pack<V> v;
    load_wide<V>(p + i * V, v.at);
    return v;
}

template <int V, class T> static __device__ __forceinline__ void store(T *p, int64_t i, pack<V> v)
{
    store_wide<V>(p + i * V, v.at);
}

/* A load in two steps: `fetch` loads words, and `opened` widens them to floats. Loads that all precede the first widening are in
   flight at once; the compiler would keep each widening next to its load, with a register for each 16-bit number. */
template <class T, int V> struct alignas(sizeof(T) * V < 4 ? 4 : sizeof(T) * V) fetched {
    uint32_t word[sizeof(T) * V < 4 ? 1 : sizeof(T) * V / 4];
};

template <int V, class T>
static __device__ __forceinline__ fetched<T, V> fetch(const T *p, int64_t i)
{
    if constexpr (sizeof(T) * V >= 4) return *reinterpret_cast<const fetched<T, V> *>(p + i * V);
    return {*reinterpret_cast<const uint16_t *>(p + i)};
}

/* Zeros, unless it is there. */
template <int V, class T>
static __device__ __forceinline__ fetched<T, V> fetch_if(bool there, const T *p, int64_t i)
{
    fetched<T, V> v = {};
    if (there) v = fetch<V>(p, i);
    return v;
}

template <class T, int V> static __device__ __forceinline__ pack<V> opened(const fetched<T, V> &f)
{
    pack<V> v;
    if constexpr (sizeof(T) == 4) {
        for (int i = 0; i < V; i++) v.at[i] = __uint_as_float(f.word[i]);
    } else {
        for (int i = 0; i < V; i += 2) {
            float2 pair = widen_pair<T>(f.word[i / 2]);
            v.at[i] = pair.x;
            if (i + 1 < V) v.at[i + 1] = pair.y;
        }
    }
    return v;
}

/* The opposite of `opened`: rounds floats to the stored type, to nearest, ties to even. */
template <class T, int V> static __device__ __forceinline__ fetched<T, V> closed(const pack<V> &v)
{
    fetched<T, V> f;
    if constexpr (sizeof(T) == 4) {
        for (int i = 0; i < V; i++) f.word[i] = __float_as_uint(v.at[i]);
    } else {
        for (int i = 0; i < V; i += 2)
            f.word[i / 2] = narrow_pair<T>(v.at[i], i + 1 < V ? v.at[i + 1] : 0);
    }
    return f;
}

static inline bool is_aligned(const void *p)
{
    return ((uintptr_t)p & 15) == 0;
}

/* Blocks for work that `needed` of them share out in one go: no more than the machine runs at once. */
static inline unsigned blocks_for(int64_t needed)
{
    int device = 0, processors = 1, threads = 2048;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerMultiProcessor, device);
    int64_t most = (int64_t)processors * (threads / THREADS);
    return (unsigned)(needed < most ? needed : most);
}

static inline int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Sums and maxima over groups of `width` lanes, a power of 2; every lane gets the same bits. All lanes of the warp
   take part. */
static __device__ __forceinline__ double group_sum(double v, int width)
{
    for (int o = width >> 1; o > 0; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
    return v;
}

static __device__ __forceinline__ float group_max(float v, int width)
{
    for (int o = width >> 1; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(~0u, v, o));
    return v;
}

/* Rows worked on by groups of lanes: wide rows have a warp, narrow ones share it, and so do those that would leave many
   lanes of it idle. */
static inline int group_width(int64_t packs)
{
    int width = 1;
    while (width < packs && width < WARP) width *= 2;
    while (width > 8 && divide_up(packs, width / 2) < 2 * divide_up(packs, width)) width /= 2;
    return width;
}

static inline unsigned group_blocks(int64_t rows, int width)
{
    return blocks_for(divide_up(rows * width, THREADS));
}

/* A group's place. Loops over rows are the same for all lanes of a warp, so that groups can sum:
     for (group g(width); g.base < rows; g.next()) with g.row() < rows asked for apart. */
struct group {
    int width, lane, in_warp;
    int64_t base, step; /* first row of the warp */
    __device__ explicit group(int w)
        : width(w), lane(threadIdx.x % w), in_warp(threadIdx.x % WARP / w)
    {
        int64_t warps = (int64_t)gridDim.x * (THREADS / WARP);
        base = ((int64_t)blockIdx.x * (THREADS / WARP) + threadIdx.x / WARP) * (WARP / w);
        step = warps * (WARP / w);
    }
    __device__ int64_t row() const
    {
        return base + in_warp;
    }
    __device__ void next()
    {
        base += step;
    }
};

/* A block's threads over a stretch of rows: `columns` of them side by side, `lanes` rows at a time. Wide rows are cut
   into tiles, by blockIdx.y. */
struct tiling {
    int tiles, columns, lanes;
};

static inline tiling tile(int64_t packs)
{
    tiling t;
    t.tiles = (int)divide_up(packs, WARP);
    t.columns = (int)divide_up(packs, t.tiles);
    t.lanes = THREADS / t.columns;
    return t;
}

#endif
