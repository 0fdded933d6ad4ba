/* MVMR from tiles: how a lane reads staged rows, and how it sums runs of them. C has PIECES, of 64 bytes, of a staged row
   (STAGED bytes); UNIT, channels of 16 bytes; and what numbers are staged as: SCALED, float32, else BFLOAT or half. */
#ifndef PNET_KERNELS_CUDA_CONV_TILES_PORTION_CUH
#define PNET_KERNELS_CUDA_CONV_TILES_PORTION_CUH

#include "kernels/cuda/base/shared.cuh"
#include "kernels/cuda/base/storage.cuh"

#include <type_traits>

/* Runs of more rounds are not summed in 16 bits. */
enum { TILE_LONG = 8 };

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800

template <bool BFLOAT> static __device__ __forceinline__ uint32_t pack_pair(float x, float y)
{
    return BFLOAT ? narrow_pair<__nv_bfloat16>(x, y) : narrow_pair<__half>(x, y);
}

/* A lane's channels of two rows. Lanes of odd quads have the pieces in swapped order, so that the rows of a quarter warp
   fall into different banks. */
template <class C> using tile_portion = uint32_t[2][C::PIECES][4];

template <class C>
static __device__ __forceinline__ void load_row(uint32_t (&v)[C::PIECES][4], uint32_t from)
{
#pragma unroll
    for (int i = 0; i < C::PIECES; i++) {
        uint4 x = shared_load(from ^ i * 64);
        v[i][0] = x.x;
        v[i][1] = x.y;
        v[i][2] = x.z;
        v[i][3] = x.w;
    }
}

template <class C> static __device__ __forceinline__ uint32_t add_word(uint32_t x, uint32_t y)
{
    if constexpr (C::SCALED) {
        return __float_as_uint(__uint_as_float(x) + __uint_as_float(y));
    } else if constexpr (C::BFLOAT) {
        __nv_bfloat162 v = __hadd2(*(__nv_bfloat162 *)&x, *(__nv_bfloat162 *)&y);
        return *(uint32_t *)&v;
    } else {
        __half2 v = __hadd2(*(__half2 *)&x, *(__half2 *)&y);
        return *(uint32_t *)&v;
    }
}

template <class C>
static __device__ __forceinline__ void add_row(
    uint32_t (&sum)[C::PIECES][4], const uint32_t (&v)[C::PIECES][4])
{
#pragma unroll
    for (int i = 0; i < 4 * C::PIECES; i++)
        sum[i / 4][i % 4] = add_word<C>(sum[i / 4][i % 4], v[i / 4][i % 4]);
}

/* Adds a unit of stored channels to sums in float. */
template <class C>
static __device__ __forceinline__ void widen_add(float (&sum)[C::UNIT], const uint4 &x)
{
    using T = typename std::conditional<C::BFLOAT, __nv_bfloat16, __half>::type;
    uint32_t v[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
    for (int j = 0; j < 4; j++) {
        if constexpr (C::SCALED) {
            sum[j] += __uint_as_float(v[j]);
        } else {
            float2 pair = widen_pair<T>(v[j]);
            sum[2 * j] += pair.x;
            sum[2 * j + 1] += pair.y;
        }
    }
}

template <class C> static __device__ __forceinline__ uint4 narrow_unit(const float (&sum)[C::UNIT])
{
    uint32_t v[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
        if constexpr (C::SCALED)
            v[j] = __float_as_uint(sum[j]);
        else
            v[j] = pack_pair<C::BFLOAT>(sum[2 * j], sum[2 * j + 1]);
    }
    return {v[0], v[1], v[2], v[3]};
}

#endif
#endif
