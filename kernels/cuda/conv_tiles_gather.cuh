/* How a tile's neighbours are staged in shared memory, and how runs are summed from there into what the matrix unit
   reads (kernels/geometry.h, struct pnet_tiles). */
#ifndef PNET_KERNELS_CUDA_CONV_TILES_GATHER_CUH
#define PNET_KERNELS_CUDA_CONV_TILES_GATHER_CUH

#include "kernels/cuda/conv_fast.cuh"
#include "kernels/cuda/conv_mma.cuh"
#include "kernels/cuda/storage.cuh"

/* A lane of a quad has one unit of 16 bytes of each 64 of a staged row: 8 channels of 16 bits, or 4 floats where runs are
   summed before they are scaled to 16 bits. */
template <conv_form FORM_, int PIECES_, int COLUMNS_> struct tile_config {
    static constexpr conv_form FORM = FORM_;
    static constexpr int PIECES = PIECES_;   /* of 64 bytes, of a staged row */
    static constexpr int COLUMNS = COLUMNS_; /* output channels of a product */
    static constexpr bool SPLIT = FORM == CONV_SPLIT, SCALED = SPLIT || FORM == CONV_SCALED,
                          BFLOAT = FORM == CONV_BFLOAT;
    static constexpr int BLOCKS = SCALED ? 1 : 2; /* of 64 rows, of a warpgroup */
    static constexpr int ROWS = 2 * 64 * BLOCKS;  /* of a block of threads */
    static constexpr int UNIT = SCALED ? 4 : 8;
    static constexpr int STAGED = PIECES * 64, UNITS = PIECES * 4; /* of a row */
    static constexpr int DEPTH = UNITS * UNIT, STEPS = DEPTH / 16; /* channels at a time */
    static constexpr int PLANES = SPLIT ? 2 : 1;
    static constexpr int PLANE = DEPTH * COLUMNS * 2, BLOCK = PLANE * PLANES; /* bytes */
    static constexpr int RING = BLOCK > 8192 ? 4 : 8; /* blocks of weights in flight */
};

/* Where rows are gathered from: channels [first, first + left) of each, of which a tile has DEPTH at a time. */
struct tile_source {
    const void *in;
    enum pnet_storage storage;
    int stride, first, left;
    bool wide; /* units can be read at once */
};

/* A warp has a ring of rounds for each of its slabs, in four parts with a barrier each. */
enum { ROUND_BYTES = 32, ROUNDS_PART = 8, ROUNDS_RING = 32 };

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

template <bool BFLOAT> static __device__ __forceinline__ uint32_t pack_pair(float x, float y)
{
    return BFLOAT ? narrow_pair<__nv_bfloat16>(x, y) : narrow_pair<__half>(x, y);
}

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

/* Channels channel to channel + UNIT - 1 of a row as they are staged. */
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
        float4 y = from[1];
        return {pack_pair<C::BFLOAT>(x.x, x.y), pack_pair<C::BFLOAT>(x.z, x.w),
            pack_pair<C::BFLOAT>(y.x, y.y), pack_pair<C::BFLOAT>(y.z, y.w)};
    }
    if (!C::SCALED && wide && s.storage == (C::BFLOAT ? PNET_STORE_BF16 : PNET_STORE_FP16))
        return *(const uint4 *)((const uint16_t *)s.in + at);
    uint32_t v[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if constexpr (C::SCALED)
            v[i] = __float_as_uint(source_value(s, row, channel + i));
        else
            v[i] = pack_pair<C::BFLOAT>(
                source_value(s, row, channel + 2 * i), source_value(s, row, channel + 2 * i + 1));
    }
    return {v[0], v[1], v[2], v[3]};
}

/* What a warp gathers with. */
struct tile_gather {
    const uint32_t *words; /* of the tile's rounds */
    const int32_t *neighbour;
    int staged;     /* neighbours in shared memory */
    bool spilled;   /* there are more */
    uint32_t stage; /* the lane's first unit of slot 0, in shared memory */
    int second;     /* bytes from there to its second one */
};

/* The rounds of one slab on their way through the warp's ring. */
struct tile_rounds {
    uint32_t ring, barrier;     /* in shared memory; the barriers follow each other */
    uint32_t parity;            /* of the barriers' next phases, a bit each */
    uint32_t first, count;      /* round of the tile the slab begins with; rounds of the slab */
    uint32_t done, ready, sent; /* how many were taken, can be taken, were sent for */
};

/* Sends for what there is room for. */
static __device__ __forceinline__ void rounds_send(tile_rounds &r, const tile_gather &g)
{
    uint32_t room = (r.done + ROUNDS_RING) / ROUNDS_PART * ROUNDS_PART, end = min(r.count, room);
    __syncwarp(); /* nobody reads any more what is overwritten */
    if (threadIdx.x % 32 == 0) {
#pragma unroll 1
        for (uint32_t from = r.sent; from < end; from += ROUNDS_PART) {
            uint32_t bytes = min((uint32_t)ROUNDS_PART, r.count - from) * ROUND_BYTES,
                     at = from % ROUNDS_RING, barrier = r.barrier + at / ROUNDS_PART * 8;
            barrier_expect(barrier, bytes);
            copy_bulk(r.ring + at * ROUND_BYTES,
                g.words + (int64_t)(r.first + from) * (ROUND_BYTES / 4), bytes, barrier);
        }
    }
    __syncwarp();
    r.sent = max(r.sent, (end + ROUNDS_PART - 1) / ROUNDS_PART * ROUNDS_PART);
}

/* Goes to the slab's first round, once all of those before are taken. */
static __device__ __forceinline__ void rounds_begin(tile_rounds &r, const tile_gather &g)
{
    r.done = r.sent = 0;
    r.ready = r.count ? 0 : ROUNDS_PART; /* nothing to wait for */
    rounds_send(r, g);
}

/* Makes the next n rounds readable, n at most ROUNDS_RING - ROUNDS_PART. */
static __device__ __forceinline__ void rounds_reach(
    tile_rounds &r, const tile_gather &g, uint32_t n)
{
    if (r.done + n <= r.ready) return;
#pragma unroll 1
    do {
        uint32_t part = r.ready % ROUNDS_RING / ROUNDS_PART;
        barrier_wait(r.barrier + part * 8, r.parity >> part & 1);
        r.parity ^= 1u << part;
        r.ready += ROUNDS_PART;
    } while (r.ready < r.done + n);
    rounds_send(r, g);
}

/* What a lane has of two rows: those of odd quads have the pieces in swapped order, so that the rows of a quarter warp
   fall into different banks. */
template <class C> using tile_portion = uint32_t[2][C::PIECES][4];

template <class C>
static __device__ __forceinline__ void load_row(
    uint32_t (&v)[C::PIECES][4], const tile_gather &g, uint32_t slot)
{
    uint32_t from = g.stage + slot * C::STAGED;
#pragma unroll
    for (int i = 0; i < C::PIECES; i++) {
        uint4 x = shared_load(from + (i ? g.second : 0));
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

/* More triplets than this are not summed in 16 bits. */
enum { TILE_LONG = 8 };

/* The same sums for a piece at a time: in float, and from global memory where slots are not staged. */
template <class C>
static __device__ __forceinline__ uint4 gather_unit(
    const tile_gather &g, const tile_source &s, uint32_t round, int n, int row, int piece)
{
    constexpr int PAIR = C::SCALED ? 1 : 2; /* channels of a word */
    using T = typename std::conditional<C::BFLOAT, __nv_bfloat16, __half>::type;
    int lane = threadIdx.x % 32, odd = C::PIECES > 1 ? lane / 4 % 2 : 0;
    float sum[C::UNIT] = {};
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        uint32_t word = __ldg(g.words + (int64_t)(round + i) * 8 + lane / 4),
                 slot = row ? word >> 16 : word & 0xFFFF;
        uint4 x;
        if ((int)slot <= g.staged)
            x = shared_load(g.stage + slot * C::STAGED + (piece ? g.second : 0));
        else
            x = source_unit<C>(s, g.neighbour[slot - 1], ((piece ^ odd) * 4 + lane % 4) * C::UNIT);
        uint32_t v[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if constexpr (C::SCALED) {
                sum[j] += __uint_as_float(v[j]);
            } else {
                float2 pair = widen_pair<T>(v[j]);
                sum[PAIR * j] += pair.x;
                sum[PAIR * j + 1] += pair.y;
            }
        }
    }
    uint32_t v[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
        if constexpr (C::SCALED)
            v[j] = __float_as_uint(sum[j]);
        else
            v[j] = pack_pair<C::BFLOAT>(sum[PAIR * j], sum[PAIR * j + 1]);
    }
    return {v[0], v[1], v[2], v[3]};
}

/* Sums the next n rounds of a slab, one run of each of its rows; `sum` is zero before. */
template <class C>
static __device__ __forceinline__ void gather_runs(
    tile_portion<C> &sum, const tile_gather &g, const tile_source &s, tile_rounds &r, uint32_t n)
{
    if (n == 0) return;
    if (g.spilled || n > TILE_LONG) {
#pragma unroll 1
        for (int i = 0; i < 2 * C::PIECES; i++) {
            uint4 x = gather_unit<C>(g, s, r.first + r.done, (int)n, i % 2, i / 2);
            /* registers have no index */
#pragma unroll
            for (int j = 0; j < 2 * C::PIECES; j++) {
                uint32_t(&to)[4] = sum[j % 2][j / 2];
                to[0] = i == j ? x.x : to[0];
                to[1] = i == j ? x.y : to[1];
                to[2] = i == j ? x.z : to[2];
                to[3] = i == j ? x.w : to[3];
            }
        }
        for (uint32_t i = 0; i < n; i++, r.done++) rounds_reach(r, g, 1);
        return;
    }
    rounds_reach(r, g, n);
    uint32_t at = r.done * ROUND_BYTES, end = at + n * ROUND_BYTES;
    uint32_t ring = r.ring + threadIdx.x % 32 / 4 * 4;
    r.done += n;
    auto word_at = [&](uint32_t byte) {
        return shared_load_word(ring + byte % (ROUNDS_RING * ROUND_BYTES));
    };
    uint32_t word = word_at(at), next = word_at(min(at + ROUND_BYTES, end - ROUND_BYTES));
    load_row<C>(sum[0], g, word & 0xFFFF);
    load_row<C>(sum[1], g, word >> 16);
    if (n == 1) return;
    tile_portion<C> v;
    load_row<C>(v[0], g, next & 0xFFFF);
    load_row<C>(v[1], g, next >> 16);
    next = word_at(min(at + 2 * ROUND_BYTES, end - ROUND_BYTES));
#pragma unroll 1
    for (at += 2 * ROUND_BYTES; at < end; at += ROUND_BYTES) {
        word = next;
        next = word_at(min(at + ROUND_BYTES, end - ROUND_BYTES));
        add_row<C>(sum[0], v[0]);
        load_row<C>(v[0], g, word & 0xFFFF);
        add_row<C>(sum[1], v[1]);
        load_row<C>(v[1], g, word >> 16);
    }
    add_row<C>(sum[0], v[0]);
    add_row<C>(sum[1], v[1]);
}

/* Makes operands of two rows' sums: a[plane][step] as `product` takes them. */
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
