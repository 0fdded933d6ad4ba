/* How kernels read and write features: they lie in memory as enum pnet_storage says, and are float32 in registers.
   Stores round to nearest, ties to even. Kernels are templates over the type that lies in memory; functions that launch
   them get `float *`, whatever it is in truth. */
#ifndef PNET_KERNELS_CUDA_STORAGE_CUH
#define PNET_KERNELS_CUDA_STORAGE_CUH

#include "kernels/precision.h"

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

/* Numbers of a type that 16 bytes hold. */
template <class T> constexpr int WIDEST = 16 / (int)sizeof(T);

/* V numbers that are read and written at once. */
template <class T, int V> struct alignas(sizeof(T) * V) stored {
    T at[V];
};

static __device__ __forceinline__ float widen(float v)
{
    return v;
}
static __device__ __forceinline__ float widen(__nv_bfloat16 v)
{
    return __bfloat162float(v);
}
static __device__ __forceinline__ float widen(__half v)
{
    return __half2float(v);
}

/* One number, then two neighbours, which take one instruction. */
static __device__ __forceinline__ void narrow(float v, float *to)
{
    *to = v;
}
static __device__ __forceinline__ void narrow(float v, __nv_bfloat16 *to)
{
    *to = __float2bfloat16_rn(v);
}
static __device__ __forceinline__ void narrow(float v, __half *to)
{
    *to = __float2half_rn(v);
}
static __device__ __forceinline__ void narrow(float v, float w, float *to)
{
    to[0] = v;
    to[1] = w;
}
static __device__ __forceinline__ void narrow(float v, float w, __nv_bfloat16 *to)
{
    __nv_bfloat162 pair = __floats2bfloat162_rn(v, w);
    to[0] = pair.x;
    to[1] = pair.y;
}
static __device__ __forceinline__ void narrow(float v, float w, __half *to)
{
    __half2 pair = __floats2half2_rn(v, w);
    to[0] = pair.x;
    to[1] = pair.y;
}

/* Two numbers of 16 bits in a word, the first one in its lower half. */
template <class T> static __device__ __forceinline__ uint32_t narrow_pair(float v, float w)
{
    stored<T, 2> pair;
    narrow(v, w, pair.at);
    return *reinterpret_cast<uint32_t *>(&pair);
}
template <class T> static __device__ __forceinline__ float2 widen_pair(uint32_t word)
{
    stored<T, 2> pair = *reinterpret_cast<stored<T, 2> *>(&word);
    return {widen(pair.at[0]), widen(pair.at[1])};
}

/* V numbers from p, which is aligned for them, and back. */
template <int V, class T> static __device__ __forceinline__ void load_wide(const T *p, float *to)
{
    stored<T, V> s = *reinterpret_cast<const stored<T, V> *>(p);
    for (int i = 0; i < V; i++) to[i] = widen(s.at[i]);
}

template <int V, class T> static __device__ __forceinline__ void store_wide(T *p, const float *from)
{
    stored<T, V> s;
    if constexpr (V % 2 == 0)
        for (int i = 0; i < V; i += 2) narrow(from[i], from[i + 1], s.at + i);
    else
        for (int i = 0; i < V; i++) narrow(from[i], s.at + i);
    *reinterpret_cast<stored<T, V> *>(p) = s;
}

/* Features as pointers to their stored type. */
template <class T> static inline const T *as(const float *p)
{
    return reinterpret_cast<const T *>(p);
}
template <class T> static inline T *as(float *p)
{
    return reinterpret_cast<T *>(p);
}

/* n numbers further. */
template <class P> static inline P *skip(P *p, int64_t n, enum pnet_storage storage)
{
    return (P *)((uintptr_t)p + (uintptr_t)(n * pnet_storage_bytes(storage)));
}

/* How a launch goes about its features: their type, and how many it reads at once. */
template <class T_, int V_> struct form {
    using T = T_;
    static constexpr int V = V_;
};

/* Calls f(form) for the storage, one by one. */
template <class F> static inline void by_storage(enum pnet_storage storage, F f)
{
    if (storage == PNET_STORE_BF16)
        f(form<__nv_bfloat16, 1>());
    else if (storage == PNET_STORE_FP16)
        f(form<__half, 1>());
    else
        f(form<float, 1>());
}

/* Can rows of c numbers of T at these places be read V at a time? */
template <class T, int V, class... P> static inline bool fits(int64_t c, const P *...p)
{
    return c % V == 0 && (((uintptr_t)p % (sizeof(T) * V) == 0) && ...);
}

/* Calls f(form) with the widest reads that the alignment of p allows, for memory read as one row; f reads the end of it number by
   number. */
template <class F, class... P>
static inline void by_form_flat(enum pnet_storage storage, F f, const P *...p)
{
    by_storage(storage, [&](auto one) {
        using T = typename decltype(one)::T;
        if (fits<T, WIDEST<T>>(0, p...))
            f(form<T, WIDEST<T>>());
        else
            f(one);
    });
}

/* The same for rows of c numbers each. */
template <class F, class... P>
static inline void by_form(enum pnet_storage storage, int64_t c, F f, const P *...p)
{
    by_storage(storage, [&](auto one) {
        using T = typename decltype(one)::T;
        if (fits<T, WIDEST<T>>(c, p...))
            f(form<T, WIDEST<T>>());
        else if (sizeof(T) == 2 && fits<T, 4>(c, p...))
            f(form < T, sizeof(T) == 2 ? 4 : 1 > ());
        else
            f(one);
    });
}

#endif
