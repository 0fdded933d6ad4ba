/* VVOR from triplets: how producers sum runs of the gathered side into panels, and copy the side of rows. */
#ifndef PNET_KERNELS_CUDA_CONV_VVOR_GATHER_CUH
#define PNET_KERNELS_CUDA_CONV_VVOR_GATHER_CUH

#include "kernels/cuda/conv/vvor/conv_vvor_fast.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* The triplets of a row that belong to the block's cells. */
struct span {
    int64_t begin;
    int count;
};

/* One triplet a lane: its neighbour, and its cell's panel. */
struct entry {
    uint32_t other, panel;
};

template <typename T>
static __device__ __forceinline__ span load_span(const vvor_job<T> &j, int row, int live, int part)
{
    if (row >= live) return {0, 0};
    int64_t start = conv_start(j.set, j.first + row);
    uint32_t from = part > 0 ? j.bound[(part - 1) * j.window + row] : 0;
    uint32_t to = part + 1 < j.parts ? j.bound[part * j.window + row]
                                     : (uint32_t)(conv_start(j.set, j.first + row + 1) - start);
    return {start + from, (int)(to - from)};
}

/* The span of one of the rows of a batch that the lane's warp gathers. */
template <typename T>
static __device__ __forceinline__ span load_spans(
    const vvor_job<T> &j, int batch, int live, int part)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    return load_span(j, batch + lane / 4 * BAND_ROWS + warp * 4 + lane % 4, live, part);
}

static __device__ __forceinline__ span pick(const span &s, int band)
{
    int from = band * 4 + threadIdx.x % 32 / TEAM;
    return {__shfl_sync(~0u, s.begin, from), __shfl_sync(~0u, s.count, from)};
}

/* Loads an entry. Lanes without a triplet get row 0 and a cell that is not multiplied. */
template <class C, typename T>
static __device__ __forceinline__ entry load_entry(
    const vvor_job<T> &j, const span &s, int at, int cell0)
{
    entry e = {0, NO_CELL * C::CELL_BYTES};
    if (at < s.count)
        e = {(uint32_t)j.set.other[s.begin + at],
            (uint32_t)(j.set.cell[s.begin + at] - cell0) * C::CELL_BYTES};
    return e;
}

/* Two numbers as 16 bits each; what is left of them stays. */
template <class C> static __device__ __forceinline__ uint32_t take2(float &x, float &y)
{
    if constexpr (C::BFLOAT) {
        __nv_bfloat162 v = __floats2bfloat162_rn(x, y);
        return *(uint32_t *)&v;
    } else {
        __half2 v = __floats2half2_rn(x, y);
        if constexpr (C::PLANES > 1) {
            x -= __low2float(v);
            y -= __high2float(v);
        }
        return *(uint32_t *)&v;
    }
}

/* Puts four channels into all planes, `stride` bytes apart. */
template <class C>
static __device__ __forceinline__ void put4(unsigned char *to, int stride, float4 v, float scale)
{
    if constexpr (C::SCALED) v = {v.x * scale, v.y * scale, v.z * scale, v.w * scale};
#pragma unroll
    for (int p = 0; p < C::PLANES; p++) {
        uint2 w;
        w.x = take2<C>(v.x, v.y);
        w.y = take2<C>(v.z, v.w);
        *(uint2 *)(to + p * stride) = w;
    }
}

/* Four channels as they lie in memory. */
template <typename T> struct quad {
    uint2 bits;
};
template <> struct quad<float> {
    float4 value;
};

/* A lane's columns of the gathered side: four, and with MORE a fifth. Columns beyond the last hold anything; their sums
   are not used. */
struct columns {
    const char *first; /* in row 0 */
    uint32_t stride;   /* bytes of a row */
    int left;          /* columns behind the first */
    int fifth;         /* columns from the first to the fifth; 0: it is not there */
};

template <typename T> struct taken {
    quad<T> four;
    float fifth;
};

template <class C, typename T>
static __device__ __forceinline__ taken<T> load4(const columns &c, uint32_t row)
{
    const T *from = (const T *)(c.first + (uint64_t)row * c.stride);
    taken<T> v;
    if constexpr (C::ALIGNED) {
        v.four = *(const quad<T> *)from;
    } else {
        T *to = (T *)&v.four;
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (i <= c.left) to[i] = from[i];
    }
    if constexpr (C::MORE) v.fifth = widen(from[c.fifth]);
    return v;
}

static __device__ __forceinline__ float4 widen(const quad<float> &v)
{
    return v.value;
}

static __device__ __forceinline__ float4 widen(const quad<__nv_bfloat16> &v)
{
    return {__uint_as_float(v.bits.x << 16), __uint_as_float(v.bits.x & 0xFFFF0000),
        __uint_as_float(v.bits.y << 16), __uint_as_float(v.bits.y & 0xFFFF0000)};
}

static __device__ __forceinline__ float4 widen(const quad<__half> &v)
{
    float2 x = __half22float2(*(const __half2 *)&v.bits.x),
           y = __half22float2(*(const __half2 *)&v.bits.y);
    return {x.x, x.y, y.x, y.y};
}

/* The running sum of a row. */
struct running {
    float4 sum;
    float fifth;
    uint32_t panel; /* where it goes */
};

/* A lane's place in a panel: its four channels, and its fifth from there. */
template <class C> struct lane_slot {
    static __device__ __forceinline__ int four(int row)
    {
        int lane = threadIdx.x % TEAM;
        return C::MORE ? lane / 2 * C::UNIT + row * 16 + lane % 2 * 8
                       : row * 64 + (lane / 2 ^ row / 2 % 4) * 16 + lane % 2 * 8;
    }
    static __device__ __forceinline__ int fifth()
    {
        int lane = threadIdx.x % TEAM;
        return (4 - lane / 2) * C::UNIT + lane * 2 - lane % 2 * 8;
    }
};

/* Puts the fifth channel into all planes. */
template <class C>
static __device__ __forceinline__ void put_fifth(unsigned char *to, float x, float scale)
{
    float none = 0;
    if constexpr (C::SCALED) x *= scale;
#pragma unroll
    for (int p = 0; p < C::PLANES; p++)
        *(uint16_t *)(to + lane_slot<C>::fifth() + p * C::PANEL) = (uint16_t)take2<C>(x, none);
}

/* Adds HALF triplets. The sum is written after each one, so that the last of a run stays. */
template <class C, typename T>
static __device__ __forceinline__ void add_half(running &r, const taken<T> (&v)[HALF],
    uint32_t panels, int half, float scale, unsigned char *slot)
{
#pragma unroll
    for (int u = 0; u < HALF; u++) {
        uint32_t panel = __shfl_sync(~0u, panels, half + u, TEAM);
        float keep = panel == r.panel ? 1 : 0;
        float4 x = widen(v[u].four);
        r.panel = panel;
        r.sum.x = r.sum.x * keep + x.x;
        r.sum.y = r.sum.y * keep + x.y;
        r.sum.z = r.sum.z * keep + x.z;
        r.sum.w = r.sum.w * keep + x.w;
        put4<C>(slot + panel, C::PANEL, r.sum, scale);
        if constexpr (C::MORE) {
            r.fifth = r.fifth * keep + v[u].fifth;
            put_fifth<C>(slot + panel, r.fifth, scale);
        }
    }
}

/* Sums the runs of a row into its slots of the panels; returns the cells that it has. `slot`: the lane's place in the
   row's slot of the first panel. After a NaN all sums of the row are NaN. */
template <class C, typename T>
static __device__ __forceinline__ uint32_t gather(const vvor_job<T> &j, const span &s, entry next,
    int cell0, const columns &from, float scale, unsigned char *slot)
{
    int lane = threadIdx.x % TEAM;
    uint32_t cells = 0;
    running r = {{0, 0, 0, 0}, 0, ~0u};
    int most = __reduce_max_sync(~0u, s.count);
    for (int base = 0; base < most; base += TEAM) {
        entry e = next;
        bool more = base + HALF < most;
        cells |= 1u << e.panel / C::CELL_BYTES;
        if (base + TEAM < most) next = load_entry<C>(j, s, base + TEAM + lane, cell0);
        taken<T> v[HALF], w[HALF];
#pragma unroll
        for (int u = 0; u < HALF; u++) v[u] = load4<C, T>(from, __shfl_sync(~0u, e.other, u, TEAM));
        if (more) {
#pragma unroll
            for (int u = 0; u < HALF; u++)
                w[u] = load4<C, T>(from, __shfl_sync(~0u, e.other, HALF + u, TEAM));
        }
        add_half<C>(r, v, e.panel, 0, scale, slot);
        if (more) add_half<C>(r, w, e.panel, HALF, scale, slot);
    }
#pragma unroll
    for (int i = 1; i < TEAM; i *= 2) cells |= __shfl_xor_sync(~0u, cells, i);
    return cells & ((1u << CELLS) - 1);
}

/* Starts to copy `n` elements, at most BYTES; zeros behind them. */
template <int BYTES, typename T>
static __device__ __forceinline__ void copy_piece(void *to, const T *from, int n)
{
    constexpr int MOST = BYTES / (int)sizeof(T);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(to)),
                 "l"(from), "n"(BYTES),
                 "r"((n < 0         ? 0
                         : n < MOST ? n
                                    : MOST) *
                     (int)sizeof(T))
                 : "memory");
}

/* Starts to copy the side of rows, 16 bytes a piece. Where elements must be converted, `to` are rows of M floats, and
   every thread converts the pieces that it has copied. Else they are copied to the place from which they are multiplied.
   */
template <class C, typename T>
static __device__ __forceinline__ void copy_rows(
    const vvor_job<T> &j, const T *from, int row0, int live, int first, unsigned char *to)
{
    constexpr int EACH = 16 / sizeof(T), LANES = C::M / EACH,
                  PITCH = sizeof(T) == 4 ? C::M * 4 : C::PITCH;
    int lane = threadIdx.x % LANES;
#pragma unroll
    for (int i = 0; i < BAND_ROWS * LANES / PRODUCERS; i++) {
        int r = threadIdx.x / LANES + i * (PRODUCERS / LANES), c = first + lane * EACH;
        int left = row0 + r < live ? j.rows_width - c : 0;
        const T *p =
            from + (left > 0 ? conv_row(j.set, j.first + row0 + r) * j.rows_stride + c : 0);
        T *at = (T *)(to + r * PITCH) + lane * EACH;
        if constexpr (C::ALIGNED) {
            copy_piece<16>(at, p, left);
        } else if constexpr (sizeof(T) == 4) {
#pragma unroll
            for (int e = 0; e < EACH; e++) copy_piece<4>(at + e, left > e ? p + e : from, left - e);
        } else {
#pragma unroll
            for (int e = 0; e < EACH; e++) at[e] = left > e ? p[e] : (T)0.0f;
        }
    }
}

static __device__ __forceinline__ void copy_wait()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

template <class C>
static __device__ __forceinline__ void convert_rows(
    const unsigned char *raw, unsigned char *side, float scale)
{
    constexpr int LANES = C::M / 4;
    int lane = threadIdx.x % LANES;
#pragma unroll
    for (int i = 0; i < BAND_ROWS * LANES / PRODUCERS; i++) {
        int r = threadIdx.x / LANES + i * (PRODUCERS / LANES);
        put4<C>(side + r * C::PITCH + lane * 8, C::ROWS * C::PITCH,
            *(const float4 *)(raw + (r * C::M + lane * 4) * 4), scale);
    }
}

/* Empties what a row's slot still holds from before. */
template <class C>
static __device__ __forceinline__ void clear(unsigned char *panel, uint32_t cells)
{
    for (; cells; cells &= cells - 1)
#pragma unroll
        for (int p = 0; p < C::PLANES; p++) {
            unsigned char *to = panel + (__ffs(cells) - 1) * C::CELL_BYTES + p * C::PANEL;
            *(uint2 *)to = {0, 0};
            if constexpr (C::MORE) *(uint16_t *)(to + lane_slot<C>::fifth()) = 0;
        }
}

#endif
#endif
