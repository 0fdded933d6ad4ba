/* MVMR from tiles: configuration of the kernel, how neighbours are stored in shared memory, and how summed runs become
   operands (kernels/geometry.h, struct pnet_tiles). */
#ifndef PNET_KERNELS_CUDA_CONV_TILES_GATHER_CUH
#define PNET_KERNELS_CUDA_CONV_TILES_GATHER_CUH

#include "kernels/cuda/conv/conv_fast.cuh"
#include "kernels/cuda/conv/tiles/conv_tiles_portion.cuh"
#include "kernels/cuda/base/hopper.cuh"
#include "kernels/cuda/base/storage.cuh"

/* Warps of a block of threads that do not multiply: one copies weights, three stage neighbours. */
enum { TILE_STAGERS = 96, TILE_OTHERS = 32 + TILE_STAGERS, LEAVING_ROW = 32 * 4 + 16 };

/* EVEN: rows are read and written in units of 16 bytes and 8 channels, which the rows of most layers allow. Uneven rows have
   kernels of their own, because the staging warps have hardly enough registers for one way of staging. Of each 64 bytes of a
   staged row, a lane of a quad has one unit of 16 bytes: 8 channels in 16 bits, or 4 floats where runs are summed before
   they are scaled to 16 bits. */
template <conv_form FORM_, int PIECES_, int COLUMNS_, bool EVEN_> struct tile_config {
    static constexpr conv_form FORM = FORM_;
    static constexpr int PIECES = PIECES_;   /* of 64 bytes, of a staged row */
    static constexpr int COLUMNS = COLUMNS_; /* output channels of an item */
    static constexpr bool EVEN = EVEN_;
    static constexpr bool SPLIT = FORM == CONV_SPLIT, SCALED = SPLIT || FORM == CONV_SCALED,
                          BFLOAT = FORM == CONV_BFLOAT;
    /* features are scaled before they are staged */
    static constexpr bool BY_TILE = FORM == CONV_TILE_SCALED;
    static constexpr bool WIDE = COLUMNS == 256;
    /* Blocks of 64 rows of an item, one a warpgroup. Where sums are added outside of the matrix unit, and with 256 columns,
       there are enough registers for two blocks, and for summing the next runs while a product is under way. */
    static constexpr bool AHEAD = SCALED || WIDE;
    static constexpr int BLOCKS = AHEAD ? 2 : 4, ROWS = 64 * BLOCKS;
    /* Blocks of threads of a cluster: each takes half of a tile and copies half of the weights for both. */
    static constexpr int CLUSTER = WIDE ? 2 : 1;
    static constexpr int CONSUMERS = 128 * BLOCKS, THREADS = CONSUMERS + TILE_OTHERS;
    /* Registers of a thread that multiplies, and of one that does not. All threads start with the same number; then some
       release registers, which others take. Staging uneven rows needs more registers, which kernels for 128 columns cannot
       spare. */
    static constexpr bool GIVES = WIDE || (!EVEN && (SCALED || COLUMNS < 128));
    static constexpr int MORE = (AHEAD ? 232 : 112) - (GIVES ? 8 : 0),
                         FEWER = AHEAD   ? (GIVES ? 56 : 40)
                                 : GIVES ? 64
                                         : 32;
    static constexpr int UNIT = SCALED ? 4 : 8;
    static constexpr int STAGED = PIECES * 64, UNITS = PIECES * 4; /* of a row */
    static constexpr int DEPTH = UNITS * UNIT, STEPS = DEPTH / 16; /* channels staged at a time */
    static constexpr int PLANES = SPLIT ? 2 : 1;
    static constexpr int PLANE = DEPTH * COLUMNS * 2, BLOCK = PLANE * PLANES; /* bytes */
    static constexpr int RING = BLOCK > 16384  ? 3
                                : BLOCK > 8192 ? 4
                                               : 8; /* blocks of weights in flight */
    /* Bytes in which a warp reorders sums before it writes them: eight rows of 32 floats. Each row begins one unit further,
       so that rows fall into different banks. */
    static constexpr int LEAVING = EVEN ? 0 : 8 * LEAVING_ROW;
    static constexpr enum pnet_storage STORED = SCALED   ? PNET_STORE_F32
                                                : BFLOAT ? PNET_STORE_BF16
                                                         : PNET_STORE_FP16; /* rows are staged so */
};

/* The rows to gather: channels [first, first + left) of each. DEPTH channels are staged at a time. */
struct tile_source {
    const void *in;
    enum pnet_storage storage;
    int stride, first, left;
    bool wide;   /* one load can read a unit */
    float scale; /* BY_TILE: scale of the tile */
};

enum { ROUND_BYTES = 32 };

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

static __device__ __forceinline__ int source_bytes(const tile_source &s)
{
    return s.storage == PNET_STORE_F32 ? 4 : 2;
}

static __device__ __forceinline__ float source_value(const tile_source &s, int64_t row, int channel)
{
    if (channel >= s.left) return 0;
    int64_t at = row * s.stride + s.first + channel;
    if (s.storage == PNET_STORE_BF16) return widen(((const __nv_bfloat16 *)s.in)[at]);
    if (s.storage == PNET_STORE_FP16) return widen(((const __half *)s.in)[at]);
    return ((const float *)s.in)[at];
}

/* Packs two numbers in the form in which they are staged. */
template <class C>
static __device__ __forceinline__ uint32_t stage_pair(float x, float y, float scale)
{
    return C::BY_TILE ? pack_pair<C::BFLOAT>(x * scale, y * scale) : pack_pair<C::BFLOAT>(x, y);
}

template <class C>
static __device__ __forceinline__ uint4 narrow_floats(const float4 &x, const float4 &y, float scale)
{
    return {stage_pair<C>(x.x, x.y, scale), stage_pair<C>(x.z, x.w, scale),
        stage_pair<C>(y.x, y.y, scale), stage_pair<C>(y.z, y.w, scale)};
}

/* Packs channels `channel` to `channel` + UNIT - 1 of a row in the form in which they are staged. */
template <class C>
static __device__ __forceinline__ uint4 source_unit(const tile_source &s, int64_t row, int channel)
{
    int64_t at = row * s.stride + s.first + channel;
    bool wide = s.wide && channel + C::UNIT <= s.left;
    if (wide && s.storage == PNET_STORE_F32) {
        const float4 *from = (const float4 *)((const float *)s.in + at);
        float4 x = from[0];
        if constexpr (C::SCALED)
            return {__float_as_uint(x.x), __float_as_uint(x.y), __float_as_uint(x.z),
                __float_as_uint(x.w)};
        return narrow_floats<C>(x, from[1], s.scale);
    }
    if (!C::SCALED && wide && s.storage == (C::BFLOAT ? PNET_STORE_BF16 : PNET_STORE_FP16))
        return *(const uint4 *)((const uint16_t *)s.in + at);
    uint32_t v[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if constexpr (C::SCALED)
            v[i] = __float_as_uint(source_value(s, row, channel + i));
        else
            v[i] = stage_pair<C>(source_value(s, row, channel + 2 * i),
                source_value(s, row, channel + 2 * i + 1), s.scale);
    }
    return {v[0], v[1], v[2], v[3]};
}

/* Converts the sums of two rows to operands: a[plane][step] as `product` takes them. */
template <class C>
static __device__ __forceinline__ void make_operands(
    uint32_t (&a)[C::PLANES][C::STEPS][4], const tile_portion<C> &sum, float scale)
{
    bool odd = threadIdx.x / 4 % 2;
#pragma unroll
    for (int r = 0; r < 2; r++) {
#pragma unroll
        for (int i = 0; i < C::PIECES; i++) {
            constexpr int LAST = C::PIECES - 1;
            int other = i ^ LAST;
#pragma unroll
            for (int j = 0; j < 4; j += C::SCALED ? 2 : 1) {
                uint32_t x = odd ? sum[r][other][j] : sum[r][i][j];
                if constexpr (!C::SCALED) {
                    a[0][2 * i + j / 2][r + j % 2 * 2] = x;
                } else {
                    uint32_t y = odd ? sum[r][other][j + 1] : sum[r][i][j + 1];
                    float u = __uint_as_float(x) * scale, v = __uint_as_float(y) * scale;
                    uint32_t high = pack_pair<false>(u, v);
                    a[0][i][r + j] = high;
                    if constexpr (C::SPLIT) {
                        float2 was = widen_pair<__half>(high);
                        a[1][i][r + j] = pack_pair<false>(u - was.x, v - was.y);
                    }
                }
            }
        }
    }
}

#endif
#endif
