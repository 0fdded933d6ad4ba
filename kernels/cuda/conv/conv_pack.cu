#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/conv_fast.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <type_traits>

enum { THREADS = 256, TOP = 15 /* half ends at 2^16 */, PACKED_BYTES = 32 << 10 };

/* The channel at position `at` of a packed block. The matrix unit reads positions 2t, 2t + 1, 2t + 8 and 2t + 9 of 16
   from lane t of four. That lane holds channels 4t to 4t + 3 of 16 (unit 4), or half of channels 8t to 8t + 7 of 32 (unit
   8). */
static __device__ int channel_at(int at, int unit)
{
    int p = at % 16, inside = p / 8 * 2 + p % 2, lane = p % 8 / 2;
    if (unit == 4) return at / 16 * 16 + lane * 4 + inside;
    return at / 32 * 32 + lane * 8 + at % 32 / 16 * 4 + inside;
}

/* Byte of position p of row n. */
static __device__ int place(int n, int p, int depth)
{
    int row = depth * 2, swizzle = row == 128 ? n % 8 : row == 64 ? n / 2 % 4 : n / 4 % 2;
    return n * row + ((p / 8 ^ swizzle) * 16) + p % 8 * 2;
}

/* The block of weights that a block of threads packs. */
struct block_place {
    int64_t k;
    int group, deep, wide;
};

static __device__ block_place place_of(const conv_blocks &b, int groups)
{
    int64_t id = blockIdx.x, cell = id / b.wide / b.deep;
    return {cell / groups, (int)(cell % groups), (int)(id / b.wide % b.deep),
        b.first + (int)(id % b.wide)};
}

static __global__ __launch_bounds__(THREADS) void pack(
    conv_blocks b, conv_product p, unsigned char *blocks, float *scales, const uint32_t *of_all)
{
    __shared__ float sizes[THREADS / 32];
    auto [k, group, deep, wide] = place_of(b, p.groups.count);
    int elements = b.depth * b.columns;
    float size = 0;
    for (int i = threadIdx.x; i < elements; i += THREADS)
        size = fmaxf(
            size, conv_finite_size(conv_weight(p.weight, p.groups, p.cin, p.cout, p.transposed, k,
                      group, deep * b.depth + i / b.columns, wide * b.columns + i % b.columns)));
    size = __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(size)));
    if (threadIdx.x % 32 == 0) sizes[threadIdx.x / 32] = size;
    __syncthreads();
    for (int w = 0; w < THREADS / 32; w++) size = fmaxf(size, sizes[w]);
    bool scaled = b.form == CONV_SPLIT || b.form == CONV_SCALED;
    float scale = of_all   ? conv_scale(__uint_as_float(*of_all), TOP)
                  : scaled ? conv_scale(size, TOP)
                           : 1;
    if (threadIdx.x == 0) scales[blockIdx.x] = 1 / scale;
    unsigned char *to = blocks + blockIdx.x * b.bytes;
    for (int i = threadIdx.x; i < elements; i += THREADS) {
        int n = i % b.columns, at = i / b.columns, c = channel_at(at, b.unit);
        float w =
            scale * conv_weight(p.weight, p.groups, p.cin, p.cout, p.transposed, k, group,
                        deep * b.depth + c, wide * b.columns + (b.units ? conv_column_at(n) : n));
        unsigned char *here = to + place(n, at, b.depth);
        if (b.form == CONV_BFLOAT) {
            *(__nv_bfloat16 *)here = __float2bfloat16_rn(w);
        } else {
            __half high = __float2half_rn(w);
            *(__half *)here = high;
            if (b.form == CONV_SPLIT)
                *(__half *)(here + 2 * elements) = __float2half_rn(w - __half2float(high));
        }
    }
}

/* Packs weights as bf16 or fp16, without a scale or with one for all (`of_all`: the size of the largest weight). A thread has
   32 channels of a column. They go through shared memory, so that warps read and write whole lines. */
template <bool BFLOAT>
static __global__ __launch_bounds__(THREADS, 4) void pack_units(
    conv_blocks b, conv_product p, unsigned char *blocks, const uint32_t *of_all)
{
    enum { CHANNELS = 32, UNITS = 4 };
    __shared__ alignas(16) unsigned char packed[PACKED_BYTES];
    auto [k, group, deep, wide] = place_of(b, p.groups.count);
    const conv_groups &g = p.groups;
    bool single = g.cin1 == g.cin && g.cout1 == g.cout;
    float scale = of_all ? conv_scale(__uint_as_float(*of_all), TOP) : 1;
    bool aligned = ((uintptr_t)p.weight % 16 | (unsigned)(p.cin | g.cin) % 4) == 0;
    for (int i = threadIdx.x; i < b.columns * (b.depth / CHANNELS); i += THREADS) {
        int n = i % b.columns, part = i / b.columns, a = deep * b.depth + part * CHANNELS,
            c = wide * b.columns + (b.units ? conv_column_at(n) : n);
        float v[CHANNELS];
        if (!single || a + CHANNELS > g.cin || c >= g.cout) {
            for (int j = 0; j < CHANNELS; j++)
                v[j] = conv_weight(p.weight, g, p.cin, p.cout, p.transposed, k, group, a + j, c);
        } else if (!p.transposed) {
            const float *from = p.weight + (k * g.cin + a) * p.cout + group * g.cout + c;
#pragma unroll
            for (int j = 0; j < CHANNELS; j++) v[j] = from[j * (int64_t)p.cout];
        } else {
            const float *from = p.weight + (k * g.cout + c) * p.cin + group * g.cin + a;
#pragma unroll
            for (int j = 0; j < CHANNELS; j += 4) {
                if (aligned) {
                    float4 w = *(const float4 *)(from + j);
                    v[j] = w.x, v[j + 1] = w.y, v[j + 2] = w.z, v[j + 3] = w.w;
                } else {
                    for (int m = 0; m < 4; m++) v[j + m] = from[j + m];
                }
            }
        }
        using T = typename std::conditional<BFLOAT, __nv_bfloat16, __half>::type;
#pragma unroll
        for (int u = 0; u < UNITS; u++) {
            uint32_t w[4];
#pragma unroll
            for (int j = 0; j < 4; j++)
                w[j] = narrow_pair<T>(scale * v[j * 8 + u * 2], scale * v[j * 8 + u * 2 + 1]);
            *(uint4 *)(packed + place(n, (part * UNITS + u) * 8, b.depth)) =
                uint4{w[0], w[1], w[2], w[3]};
        }
    }
    __syncthreads();
    uint4 *to = (uint4 *)(blocks + blockIdx.x * b.bytes);
    for (int i = threadIdx.x; i < (int)b.bytes / 16; i += THREADS) to[i] = ((uint4 *)packed)[i];
}

void pnet_cuda_conv_pack_weights(
    const conv_blocks &b, const conv_product &p, void *blocks, const uint32_t *of_all)
{
    if (b.count == 0) return;
    bool plain = b.form != CONV_SPLIT && b.form != CONV_SCALED;
    if (plain && b.unit == 8 && b.depth % 32 == 0 && b.bytes <= PACKED_BYTES) {
        auto kernel = b.form == CONV_BFLOAT ? pack_units<true> : pack_units<false>;
        kernel<<<(unsigned)b.count, THREADS, 0, pnet_cuda_stream()>>>(
            b, p, (unsigned char *)blocks, of_all);
        return;
    }
    pack<<<(unsigned)b.count, THREADS, 0, pnet_cuda_stream()>>>(b, p, (unsigned char *)blocks,
        (float *)((char *)blocks + (size_t)b.count * b.bytes), of_all);
}
