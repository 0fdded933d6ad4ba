/* Code that the kernels between levels and the kernels of losses share: the mapping of threads to rows and
   channels, and sums in fixed order. */
#ifndef PNET_KERNELS_CUDA_LEVELS_CUH
#define PNET_KERNELS_CUDA_LEVELS_CUH

#include "kernels/count.h"
#include "kernels/cuda/base/feature_work.h"
#include "kernels/cuda/base/storage.cuh"

#include <cstdint>
#include <cuda_runtime.h>

enum {
    THREADS = 256, /* of a block */
    WARP = 32,
    WARPS = THREADS / WARP,
};
static const int64_t MOST_BLOCKS = 1 << 20; /* of a grid; kernels stride over what is more */

static inline unsigned blocks_for(int64_t tasks, int64_t tasks_of_block)
{
    int64_t blocks = (tasks + tasks_of_block - 1) / tasks_of_block;
    return (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
}

/* For kernels that pass over elements one by one: threads that make several turns keep more loads in
   flight than one turn each. */
static inline unsigned element_blocks(int64_t n)
{
    const unsigned most = 1 << 12;
    unsigned blocks = blocks_for(n, THREADS);
    return blocks < most ? blocks : most;
}

/* The power of two from 1 to `most` that holds n, or `most`. */
static inline int lanes_for(int64_t n, int most)
{
    int lanes = 1;
    while (lanes < n && lanes < most) lanes *= 2;
    return lanes;
}

/* Consecutive parts of a workspace. */
struct carver {
    char *at;
    template <class T> T *take(int64_t n)
    {
        T *p = (T *)at;
        at += round_up((size_t)n * sizeof(T));
        return p;
    }
};

/* A block's threads over the rows and channels of a matrix: threadIdx.x runs over vectors of
   channels, threadIdx.y over rows. */
struct layout {
    dim3 block;
    unsigned grid;
};

static inline struct layout layout_for(int64_t rows, int32_t vectors)
{
    int x = lanes_for(vectors, WARP);
    struct layout l = {dim3((unsigned)x, (unsigned)(THREADS / x)), blocks_for(rows, THREADS / x)};
    return l;
}

/* for (int64_t row = ROW_BEGIN; row < rows; row += ROW_STEP) within a layout */
#define ROW_BEGIN ((int64_t)blockIdx.x * blockDim.y + threadIdx.y)
#define ROW_STEP ((int64_t)gridDim.x * blockDim.y)
/* the same with one thread a row */
#define FLAT_BEGIN ((int64_t)blockIdx.x * blockDim.x + threadIdx.x)
#define FLAT_STEP ((int64_t)gridDim.x * blockDim.x)

/* Vectors of V channels, and of rows, of which 16 bytes hold four. */
template <int V> struct vector {
    float v[V];
};
template <int V> struct rows_of {
    int32_t v[V];
};

template <int V, class T> static __device__ __forceinline__ vector<V> load(const T *p)
{
    vector<V> r;
    load_wide<V>(p, r.v);
    return r;
}

/* V numbers of T as they lie in memory, in whole words where they fill some, until they are needed. */
template <int BYTES> struct alignas(BYTES) words {
    uint32_t at[BYTES / 4];
};
template <> struct alignas(2) words<2> {
    uint16_t at[1];
};
template <class T, int V> using raw = words<(int)sizeof(T) * V>;

template <int V, class T> static __device__ __forceinline__ raw<T, V> load_raw(const T *p)
{
    raw<T, V> r;
    if constexpr (sizeof r == 16)
        *reinterpret_cast<uint4 *>(&r) = *reinterpret_cast<const uint4 *>(p);
    else if constexpr (sizeof r == 8)
        *reinterpret_cast<uint2 *>(&r) = *reinterpret_cast<const uint2 *>(p);
    else
        r = *reinterpret_cast<const raw<T, V> *>(p);
    return r;
}

template <class T, int V> static __device__ __forceinline__ vector<V> widen_raw(const raw<T, V> &r)
{
    return load<V>(reinterpret_cast<const T *>(&r));
}

/* To global memory, at once. The compiler takes an assignment apart into a store a number, now and then, which takes four
   times as long. */
template <int V, class T> static __device__ __forceinline__ void store(T *p, const vector<V> &r)
{
    raw<T, V> w;
    store_wide<V>(reinterpret_cast<T *>(&w), r.v);
    if constexpr (sizeof w == 16)
        asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(p)),
                     "r"(w.at[0]), "r"(w.at[1]), "r"(w.at[2]), "r"(w.at[3])
                     : "memory");
    else if constexpr (sizeof w == 8)
        asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(p)),
                     "r"(w.at[0]), "r"(w.at[1])
                     : "memory");
    else
        *reinterpret_cast<raw<T, V> *>(p) = w;
}

template <int V> static __device__ __forceinline__ rows_of<V> load_rows(const int32_t *p)
{
    rows_of<V> r;
    if constexpr (V % 4 == 0)
        for (int i = 0; i < V; i += 4) *(int4 *)(r.v + i) = *(const int4 *)(p + i);
    else
        r.v[0] = *p;
    return r;
}

template <int V> static __device__ __forceinline__ void store_rows(int32_t *p, const rows_of<V> &r)
{
    if constexpr (V % 4 == 0)
        for (int i = 0; i < V; i += 4) *(int4 *)(p + i) = *(const int4 *)(r.v + i);
    else
        *p = r.v[0];
}

template <int V, class T>
static __device__ __forceinline__ void store_or_add(T *p, bool add, vector<V> r)
{
    if (add) {
        vector<V> old = load<V>(p);
        for (int i = 0; i < V; i++) r.v[i] += old.v[i];
    }
    store<V>(p, r);
}

/* by_form where as many rows are read, which have to be aligned to 16 bytes then; NULL is. */
template <class F, class... P>
static inline void by_form_with_rows(
    enum pnet_storage storage, int32_t c, const int32_t *rows, F f, const P *...p)
{
    int32_t all = (uintptr_t)rows % 16 ? 1 : c;
    by_form(storage, all, f, p...);
}

/* The sum over groups of `lanes` neighbouring threads, in each of them. */
template <class T> static __device__ __forceinline__ T lanes_sum(T v, int lanes)
{
    for (int d = lanes / 2; d; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
    return v;
}

static __device__ __forceinline__ float lanes_max(float v, int lanes)
{
    for (int d = lanes / 2; d; d /= 2) {
        float w = __shfl_xor_sync(0xffffffffu, v, d);
        v = w > v ? w : v;
    }
    return v;
}

/* The sum over a block of up to 1024 threads (a multiple of 32), in its first thread. */
template <class T> static __device__ __forceinline__ T block_sum(T v)
{
    __shared__ T part[WARP];
    unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    v = lanes_sum(v, WARP);
    __syncthreads(); /* the last sum has been read */
    if (lane == 0) part[warp] = v;
    __syncthreads();
    if (warp == 0) {
        v = lane < blockDim.x / WARP ? part[lane] : T(0);
        v = lanes_sum(v, WARP);
    }
    return v;
}

/* Where a slice of n rows begins. */
static __device__ __forceinline__ int64_t slice_begin(int64_t n, int32_t slice)
{
    return n * slice / SLICES;
}

#endif
