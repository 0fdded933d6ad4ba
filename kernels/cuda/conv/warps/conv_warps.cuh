/* MVMR by matrix instructions of a warp: what the kernel that reads tiles and the one that reads triplets share. C has the
   form of operands, what features are stored as, and which rows and columns of a block of threads a warp has. */
#ifndef PNET_KERNELS_CUDA_CONV_WARPS_CUH
#define PNET_KERNELS_CUDA_CONV_WARPS_CUH

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/conv_choice.h"
#include "kernels/cuda/conv/conv_fast.cuh"
#include "kernels/cuda/conv/conv_steps.cuh"

#include <type_traits>

/* FORM: how operands are multiplied. CONV_SPLIT, for fp32: as two numbers of tf32 each, three products; sums leave the
   matrix unit, which truncates them, after every few channels. CONV_SCALED: tf32. T: what features are stored as. UNIT:
   channels of 16 bytes; STEP: of a product of 16 rows. */
template <conv_form FORM_, class T_, int COLUMNS_> struct warp_operands {
    static constexpr conv_form FORM = FORM_;
    using T = T_;
    static constexpr int COLUMNS = COLUMNS_;
    static constexpr bool BFLOAT = FORM == CONV_BFLOAT, SPLIT = FORM == CONV_SPLIT,
                          FLOATS = SPLIT || FORM == CONV_SCALED;
    static constexpr int SIZE = FLOATS ? 4 : 2, UNIT = 16 / SIZE, STEP = 2 * UNIT,
                         B_STEP = COLUMNS * 32; /* bytes of the weights of a step */
    /* features are stored as they are multiplied */
    static constexpr bool STORED = sizeof(T) == SIZE;
    using short_t = typename std::conditional<BFLOAT, __nv_bfloat16, __half>::type;
};

struct warp_launch {
    conv_product p;
    conv_blocks b;
    const unsigned char *blocks; /* packed weights */
    int room;                    /* copies under way, or rows that can be staged */
    bool copies;                 /* rows can be copied 16 bytes at a time */
    bool units;                  /* rows can be written 8 channels at a time */
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800

/* Adds channels c, c + 1, .. of a row to x. */
template <class C>
static __device__ __forceinline__ void add_unit(
    float (&x)[C::UNIT], const warp_launch &l, const typename C::T *from, int width)
{
    using T = typename C::T;
    if (l.copies) {
        constexpr int AT_ONCE = C::UNIT < WIDEST<T> ? C::UNIT : WIDEST<T>;
        float y[C::UNIT];
#pragma unroll
        for (int i = 0; i < C::UNIT; i += AT_ONCE) load_wide<AT_ONCE>(from + i, y + i);
#pragma unroll
        for (int i = 0; i < C::UNIT; i++) x[i] += y[i];
    } else {
#pragma unroll
        for (int i = 0; i < C::UNIT; i++) x[i] += i < width ? widen(from[i]) : 0;
    }
}

/* A unit of channels as it is multiplied, rounded once. */
template <class C> static __device__ __forceinline__ uint4 unit_of(const float (&x)[C::UNIT])
{
    if constexpr (C::FLOATS) {
        return {__float_as_uint(x[0]), __float_as_uint(x[1]), __float_as_uint(x[2]),
            __float_as_uint(x[3])};
    } else {
        using H = typename C::short_t;
        return {narrow_pair<H>(x[0], x[1]), narrow_pair<H>(x[2], x[3]), narrow_pair<H>(x[4], x[5]),
            narrow_pair<H>(x[6], x[7])};
    }
}

/* Splits a float32 into two numbers of tf32. */
static __device__ __forceinline__ void split_float(uint32_t x, uint32_t &high, uint32_t &low)
{
    high = float_to_tf32(__uint_as_float(x));
    low = float_to_tf32(__uint_as_float(x) - __uint_as_float(high));
}

/* Writes the sums of a warp. `row_of`: the row at a place of the block of threads; -1: none. */
template <class C, class F>
static __device__ __forceinline__ void write_sums(
    const warp_launch &l, float (&sum)[C::OWN][C::EIGHTS][4], int group, int wide, F row_of)
{
    using T = typename C::T;
    const conv_end &e = l.p.end;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, cout = l.p.groups.cout;
#pragma unroll
    for (int s = 0; s < C::OWN; s++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int64_t row = row_of((warp % C::ROW_WARPS * C::OWN + s) * 16 + half * 8 + lane / 4);
            if (row < 0) continue;
#pragma unroll
            for (int n = 0; n < C::EIGHTS / 4; n++) {
                int c = wide * C::COLUMNS + warp / C::ROW_WARPS * C::WIDTH + n * 32 + lane % 4 * 8,
                    to = group * cout + c;
                float v[8];
#pragma unroll
                for (int i = 0; i < 8; i++) v[i] = sum[s][n * 4 + i / 2][half * 2 + i % 2];
                if (c >= cout) continue;
                if (!l.units) {
#pragma unroll
                    for (int i = 0; i < 8; i++)
                        if (c + i < cout) conv_finish<T>(e, row, l.p.cout, to + i, v[i]);
                    continue;
                }
                T *out = (T *)e.out + row * l.p.cout + to;
                if (e.bias)
#pragma unroll
                    for (int i = 0; i < 8; i++) v[i] += e.bias[to + i];
#pragma unroll
                for (int i = 0; i < 8; i += WIDEST<T>) {
                    float old[WIDEST<T>];
                    if (e.add) load_wide<WIDEST<T>>(out + i, old);
#pragma unroll
                    for (int j = 0; j < WIDEST<T>; j++)
                        v[i + j] =
                            e.add ? old[j] + v[i + j] : conv_activate(v[i + j], e.act, e.slope);
                    store_wide<WIDEST<T>>(out + i, v + i);
                }
            }
        }
}
#endif

/* The first of the 2 channels that weight word r of a lane has (1 in float32), in step `step`: as ldmatrix gives the lane
   its features, or, with LANES, where a lane has a unit of 16 bytes of each piece of 64. */
template <class C, bool LANES>
static __host__ __device__ __forceinline__ int warp_channel(int step, int lane, int r)
{
    constexpr int PER_WORD = 4 / C::SIZE;
    if (LANES) return step / 2 * 4 * C::UNIT + lane % 4 * C::UNIT + (step % 2 * 2 + r) * PER_WORD;
    return step * C::STEP + r * C::UNIT + lane % 4 * PER_WORD;
}

/* Weights in the order in which lanes read them: a step of channels of 16 columns a time, 16 bytes a lane. With LANES, those
   of CONV_SPLIT are two numbers of tf32: all of the first, then all of the second. */
template <class C, bool LANES>
static __global__ __launch_bounds__(256) void warp_pack(
    conv_blocks b, conv_product p, unsigned char *blocks)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    int64_t id = blockIdx.x, cell = id / b.wide / b.deep;
    int wide = b.first + (int)(id % b.wide), deep = (int)(id / b.wide % b.deep),
        group = (int)(cell % p.groups.count);
    int64_t k = cell / p.groups.count;
    uint4 *to = (uint4 *)(blocks + id * b.bytes);
    int steps = b.depth / C::STEP;
    for (int i = threadIdx.x; i < (int)(b.bytes / 16); i += 256) {
        int lane = i % 32, sixteen = i / 32 % (C::COLUMNS / 16), step = i / 32 / (C::COLUMNS / 16);
        uint32_t w[4];
#pragma unroll
        for (int r = 0; r < 4; r++) {
            int n = wide * C::COLUMNS + conv_column_at(sixteen * 16 + r / 2 * 8 + lane / 4);
            int c = deep * b.depth + warp_channel<C, LANES>(step % steps, lane, r % 2);
            auto weight = [&](int i) {
                return conv_weight(
                    p.weight, p.groups, p.cin, p.cout, p.transposed, k, group, c + i, n);
            };
            if constexpr (C::SPLIT && LANES) {
                uint32_t low;
                split_float(__float_as_uint(weight(0)), w[r], low);
                if (step >= steps) w[r] = low;
            } else if constexpr (C::SPLIT)
                w[r] = __float_as_uint(weight(0));
            else if constexpr (C::FLOATS)
                w[r] = float_to_tf32(weight(0));
            else
                w[r] = narrow_pair<typename C::short_t>(weight(0), weight(1));
        }
        to[i] = {w[0], w[1], w[2], w[3]};
    }
#else
    (void)b, (void)p, (void)blocks;
#endif
}

/* A launch but for its part of the columns and its room. */
template <class C>
static warp_launch warp_launch_of(const conv_product &p, const conv_blocks &b, void *work)
{
    using T = typename C::T;
    warp_launch l = {p, b, (const unsigned char *)work, 0, false, false};
    l.copies = fits<T, WIDEST<T>>(p.cin, p.in) && p.groups.cin % (16 / (int)sizeof(T)) == 0 &&
               p.groups.cin % C::UNIT == 0;
    l.units = fits<T, WIDEST<T>>(p.cout, p.end.out) && (p.cout | p.groups.cout) % 8 == 0;
    return l;
}

/* Shared memory of the GPU at hand, or of the one that it stands for. */
static conv_room warp_room(void)
{
    conv_room room = pnet_cuda_conv_room();
    int device = 0;
    if (room.block) return room;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&room.block, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    cudaDeviceGetAttribute(&room.processor, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
    return room;
}

/* Lets blocks of threads of a kernel have `bytes` of shared memory each, and a processor no more than it has of the other
   GPU. */
template <class K> static void warp_reserve(K *kernel, int bytes)
{
    int device = 0, most = 0, processor = pnet_cuda_conv_room().processor;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (!processor) return;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
    cudaFuncSetAttribute(
        kernel, cudaFuncAttributePreferredSharedMemoryCarveout, processor * 100 / most + 1);
}

/* Calls f(form of operands, storage of features) for the kernels of a product. */
template <conv_form FORM_, class T_> struct warp_types {
    static constexpr conv_form FORM = FORM_;
    using T = T_;
};

template <class F>
static void warp_with_types(const conv_product &p, enum pnet_precision precision, F f)
{
    bool stored = p.set.rows.storage != PNET_STORE_F32; /* as operands are */
    if (p.set.rows.most == 0) return;
    switch (pnet_cuda_conv_form_of(precision)) {
    case CONV_SPLIT: f(warp_types<CONV_SPLIT, float>()); break;
    case CONV_SCALED: f(warp_types<CONV_SCALED, float>()); break;
    case CONV_BFLOAT:
        stored ? f(warp_types<CONV_BFLOAT, __nv_bfloat16>()) : f(warp_types<CONV_BFLOAT, float>());
        break;
    case CONV_HALF:
        stored ? f(warp_types<CONV_HALF, __half>()) : f(warp_types<CONV_HALF, float>());
        break;
    case CONV_TILE_SCALED: break;
    }
}

#endif
