/* VVOR from tiles for rows whose size is not a multiple of 16 bytes. Such a row may begin inside a unit of 16 bytes: whole
   units are read, and 16 bytes are joined from two units. Bytes before and after the row go to columns whose sums are not
   used. No byte after the last row is read. */
#ifndef PNET_KERNELS_CUDA_CONV_TILES_VVOR_UNEVEN_CUH
#define PNET_KERNELS_CUDA_CONV_TILES_VVOR_UNEVEN_CUH

#include "kernels/cuda/base/hopper.cuh"

#include <cstring>

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* Returns the 16 bytes that begin `shift` bytes after the start of `low`. `shift` is a multiple of EACH below 16. */
template <int EACH>
static __device__ __forceinline__ uint4 join_units(uint4 low, uint4 high, uint32_t shift)
{
    uint32_t w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (int i = 0; i < 6; i++) w[i] = shift & 8 ? w[i + 2] : w[i];
#pragma unroll
    for (int i = 0; i < 5; i++) w[i] = shift & 4 ? w[i + 1] : w[i];
    if constexpr (EACH < 4)
#pragma unroll
        for (int i = 0; i < 4; i++) w[i] = __funnelshift_r(w[i], w[i + 1], shift % 4 * 8);
    return {w[0], w[1], w[2], w[3]};
}

/* Returns the first row that may not be read in units of 32 bytes, because a unit could reach past the end of the matrix. */
static __device__ __forceinline__ int rows_of_units(uint32_t rows, int64_t row_bytes)
{
    return (int)rows - (int)((32 + row_bytes - 1) / row_bytes);
}

static __device__ __forceinline__ uint32_t unit_shift(const void *from)
{
    return (uint32_t)(uintptr_t)from % 16;
}

/* Loads the two units that hold `bytes` bytes (up to 16) from `from` on; zeros for a unit that holds none. */
struct two_units {
    uint4 low, high;
};

static __device__ __forceinline__ two_units load_units(const char *from, int bytes)
{
    uint32_t shift = unit_shift(from);
    const uint4 *unit = (const uint4 *)(from - shift);
    two_units u = {};
    if (bytes > 0) u.low = __ldg(unit);
    if ((int)shift + bytes > 16) u.high = __ldg(unit + 1);
    return u;
}

/* Loads the units that hold `bytes` bytes, up to 16 for each unit but one, from `from` on; zeros for those that hold
   none. */
template <int UNITS>
static __device__ __forceinline__ void load_row(uint4 (&u)[UNITS], const char *from, int bytes)
{
    uint32_t shift = unit_shift(from);
    const uint4 *unit = (const uint4 *)(from - shift);
    int end = bytes > 0 ? (int)shift + bytes : 0;
#pragma unroll
    for (int i = 0; i < UNITS; i++) {
        u[i] = {};
        if (i * 16 < end) u[i] = __ldg(unit + i);
    }
}

/* Loads the first `left` elements of 16 bytes, one by one. */
template <typename T> static __device__ __forceinline__ uint4 load_elements(const T *from, int left)
{
    constexpr int COUNT = 16 / sizeof(T);
    T v[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; i++) v[i] = left > i ? from[i] : (T)0.0f;
    uint4 w;
    memcpy(&w, v, 16);
    return w;
}

/* Starts to copy unit `u` of a row. The `end` bytes from the first unit on are copied; bytes after them become zeros, and so
   does a row that is not `there`. A unit that reaches beyond `last`, the end of the matrix, is read number by number. */
static __device__ __forceinline__ void copy_unit(
    unsigned char *to, const char *units, int u, int end, bool there, const char *last)
{
    const char *from = units + u * 16;
    int bytes = end - u * 16;
    to += u * 16;
    if (bytes <= 0) return;
    if (!there || (bytes < 16 && from + 16 > last)) {
#pragma unroll 1
        for (int i = 0; i < 16; i += 2)
            *(uint16_t *)(to + i) = there && i < bytes ? *(const uint16_t *)(from + i) : 0;
    } else {
        copy16_part(shared_address(to), from, min(bytes, 16));
    }
}

#endif
#endif
