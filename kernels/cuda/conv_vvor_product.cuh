/* How VVOR's consumers multiply what the producers brought, and where sums go. */
#ifndef PNET_KERNELS_CUDA_CONV_VVOR_PRODUCT_CUH
#define PNET_KERNELS_CUDA_CONV_VVOR_PRODUCT_CUH

#include "kernels/cuda/conv_vvor_fast.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* What a warp multiplies from the left: its 16 channels of 16 rows. */
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

#define SUMS                                                                                       \
    "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),            \
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),    \
        "+f"(d[14]), "+f"(d[15])
#define PRODUCT(TYPE)                                                                              \
    asm volatile("{\n.reg .pred p;\nsetp.eq.b32 p, %21, 0;\n"                                      \
                 "wgmma.mma_async.sync.aligned.m64n32k16.f32." TYPE "." TYPE                       \
                 " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "       \
                 "{%16, %17, %18, %19}, %20, p, 1, 1, 1;\n}"                                       \
                 : SUMS                                                                            \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(fresh))

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
        PRODUCT("bf16");
    else
        PRODUCT("f16");
}
#undef SUMS
#undef PRODUCT

template <class C> static __device__ __forceinline__ void touch(float (&sum)[C::SHARE][16])
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
        return panels + cell(q) * C::CELL_BYTES + g * 16 * 64;
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
    float (&sum)[C::SHARE][16], const part_of_step<C> &s)
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
            product32<C>(sum[q], a, panel32(s.panel(q, g)), 0);
        }
    }
    product_commit();
    product_wait();
    touch<C>(sum);
}

/* The same with operands in two parts, small products first; their sum is rounded to nearest when it is added. */
template <class C>
static __device__ __forceinline__ void multiply_parts(
    float (&sum)[C::SHARE][16], const part_of_step<C> &s)
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
        float part[16];
        product_touch(part);
        product_fence();
#pragma unroll
        for (int g = 0; g < GROUPS; g++) {
            product32<C>(part, low[g], panel32(s.panel(q, g)), g == 0);
            product32<C>(part, high[g], panel32(s.panel(q, g) + C::PANEL), 0);
        }
#pragma unroll
        for (int g = 0; g < GROUPS; g++) product32<C>(part, high[g], panel32(s.panel(q, g)), 0);
        product_commit();
        product_wait();
        product_touch(part);
#pragma unroll
        for (int i = 0; i < 16; i++) sum[q][i] += part[i];
    }
}

/* Adds the sums to the block's place in the workspace. */
template <class C>
static __device__ __forceinline__ void flush(float (&sum)[C::SHARE][16], float *slot, bool fresh)
{
#pragma unroll
    for (int q = 0; q < C::SHARE; q++) {
        float *to = slot + q * 16 * CONSUMERS;
        if (!fresh) {
#pragma unroll
            for (int i = 0; i < 16; i++) sum[q][i] += to[i * CONSUMERS];
        }
#pragma unroll
        for (int i = 0; i < 16; i++) {
            to[i * CONSUMERS] = sum[q][i];
            sum[q][i] = 0;
        }
    }
}

#endif
#endif
