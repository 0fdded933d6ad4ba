/* How consumers of VVOR multiply, and where their sums are stored. */
#ifndef PNET_KERNELS_CUDA_CONV_VVOR_PRODUCT_CUH
#define PNET_KERNELS_CUDA_CONV_VVOR_PRODUCT_CUH

#include "kernels/cuda/conv/vvor/conv_vvor_fast.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* The left operand of a warp: its 16 channels of 16 rows. */
static __device__ __forceinline__ void load_rows(
    uint32_t (&a)[4], const unsigned char *side, int pitch)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
    const unsigned char *p =
        side + (lane / 16 * 8 + lane % 8) * pitch + warp * 32 + lane / 8 % 2 * 16;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(shared_address(p)));
}

#define SUMS4(o) "+f"(d[o]), "+f"(d[o + 1]), "+f"(d[o + 2]), "+f"(d[o + 3])
#define SUMS16 SUMS4(0), SUMS4(4), SUMS4(8), SUMS4(12)
#define LIST16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define PRODUCT(COLUMNS, TYPE, LIST, ROWS, PANEL, FRESH, ...)                                      \
    asm volatile("{\n.reg .pred p;\nsetp.eq.b32 p, " FRESH ", 0;\n"                                \
                 "wgmma.mma_async.sync.aligned.m64n" COLUMNS "k16.f32." TYPE "." TYPE " {" LIST    \
                 "}, {" ROWS "}, " PANEL ", p, 1, 1, 1;\n}"                                        \
                 : __VA_ARGS__                                                                     \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(fresh))
#define PRODUCT32(TYPE) PRODUCT("32", TYPE, LIST16, "%16, %17, %18, %19", "%20", "%21", SUMS16)
#define PRODUCT40(TYPE)                                                                            \
    PRODUCT("40", TYPE, LIST16 ", %16, %17, %18, %19", "%20, %21, %22, %23", "%24", "%25", SUMS16, \
        SUMS4(16))

/* How the matrix unit finds a panel: 16 rows of 64 bytes each; its address counts units of 16 bytes. */
static __device__ __forceinline__ uint64_t panel32(const unsigned char *panel)
{
    return (uint64_t)(shared_address(panel) >> 4) | (uint64_t)1 << 16 | (uint64_t)(512 >> 4) << 32 |
           (uint64_t)2 << 62;
}

/* d (+)= a b: 64 channels of the rows times 32 gathered ones, 16 rows deep; b: a panel. */
template <class C>
static __device__ __forceinline__ void product32(
    float (&d)[16], const uint32_t (&a)[4], uint64_t b, int fresh)
{
    if constexpr (C::BFLOAT)
        PRODUCT32("bf16");
    else
        PRODUCT32("f16");
}

/* The same for 40 gathered channels, whose panel is not swizzled: 16 bytes a row, 8 channels, a UNIT apart from the next 8. */
template <class C> static __device__ __forceinline__ uint64_t panel_of(const unsigned char *panel)
{
    if constexpr (!C::MORE) return panel32(panel);
    return (uint64_t)(shared_address(panel) >> 4) | (uint64_t)(128 >> 4) << 16 |
           (uint64_t)(C::UNIT >> 4) << 32;
}

template <class C>
static __device__ __forceinline__ void product_of(
    float (&d)[C::SUMS], const uint32_t (&a)[4], uint64_t b, int fresh)
{
    if constexpr (!C::MORE)
        product32<C>(d, a, b, fresh);
    else if constexpr (C::BFLOAT)
        PRODUCT40("bf16");
    else
        PRODUCT40("f16");
}
#undef SUMS4
#undef SUMS16
#undef LIST16
#undef PRODUCT
#undef PRODUCT32
#undef PRODUCT40

template <class C, int N> static __device__ __forceinline__ void touch(float (&sum)[C::SHARE][N])
{
#pragma unroll
    for (int q = 0; q < C::SHARE; q++) product_touch(sum[q]);
}

/* Cells that some of 16 rows have. */
static __device__ __forceinline__ uint32_t cells_of(const uint32_t *mask, int group)
{
    uint4 m = *(const uint4 *)(mask + group * 4);
    return m.x | m.y | m.z | m.w;
}

/* A warpgroup's part in a step. */
template <class C> struct part_of_step {
    const unsigned char *panels, *side;
    const uint32_t *mask;
    int warpgroup;

    __device__ __forceinline__ int cell(int q) const
    {
        return C::BLOCKS == 2 ? q : 2 * q + warpgroup;
    }
    __device__ __forceinline__ const unsigned char *panel(int q, int g) const
    {
        return panels + cell(q) * C::CELL_BYTES + g * 16 * C::ROW_BYTES;
    }
    __device__ __forceinline__ void rows(uint32_t (&a)[4], int g, int plane) const
    {
        load_rows(a,
            side + (plane * C::ROWS + g * 16) * C::PITCH + (C::BLOCKS == 2 ? warpgroup * 128 : 0),
            C::PITCH);
    }
};

template <class C>
static __device__ __forceinline__ void multiply(
    float (&sum)[C::SHARE][C::SUMS], const part_of_step<C> &s)
{
    touch<C>(sum);
    product_fence();
#pragma unroll
    for (int g = 0; g < C::ROWS / 16; g++) {
        uint32_t cells = cells_of(s.mask, g), a[4];
        s.rows(a, g, 0);
#pragma unroll
        for (int q = 0; q < C::SHARE; q++) {
            if (!(cells >> s.cell(q) & 1)) continue;
            product_fence();
            product_of<C>(sum[q], a, panel_of<C>(s.panel(q, g)), 0);
        }
    }
    product_commit();
    product_wait();
    touch<C>(sum);
}

/* The same with operands in two parts, small products first; the sum of the products is rounded to nearest when it is
   added. */
template <class C>
static __device__ __forceinline__ void multiply_parts(
    float (&sum)[C::SHARE][C::SUMS], const part_of_step<C> &s)
{
    constexpr int GROUPS = C::ROWS / 16;
    uint32_t cells = 0, high[GROUPS][4], low[GROUPS][4];
#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
        cells |= cells_of(s.mask, g);
        s.rows(high[g], g, 0);
        s.rows(low[g], g, 1);
    }
#pragma unroll
    for (int q = 0; q < C::SHARE; q++) {
        if (!(cells >> s.cell(q) & 1)) continue;
        float part[C::SUMS];
        product_touch(part);
        product_fence();
#pragma unroll
        for (int g = 0; g < GROUPS; g++) {
            product_of<C>(part, low[g], panel_of<C>(s.panel(q, g)), g == 0);
            product_of<C>(part, high[g], panel_of<C>(s.panel(q, g) + C::PANEL), 0);
        }
#pragma unroll
        for (int g = 0; g < GROUPS; g++)
            product_of<C>(part, high[g], panel_of<C>(s.panel(q, g)), 0);
        product_commit();
        product_wait();
        product_touch(part);
#pragma unroll
        for (int i = 0; i < C::SUMS; i++) sum[q][i] += part[i];
    }
}

/* Adds the sums to the block's place in the workspace. */
template <class C, int N>
static __device__ __forceinline__ void flush(float (&sum)[C::SHARE][N], float *slot, bool fresh)
{
#pragma unroll
    for (int q = 0; q < C::SHARE; q++) {
        float *to = slot + q * N * CONSUMERS;
        if (!fresh) {
#pragma unroll
            for (int i = 0; i < N; i++) sum[q][i] += to[i * CONSUMERS];
        }
#pragma unroll
        for (int i = 0; i < N; i++) {
            to[i * CONSUMERS] = sum[q][i];
            sum[q][i] = 0;
        }
    }
}

#endif
#endif
