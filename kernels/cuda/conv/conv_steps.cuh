/* Products of a warp on the matrix unit, and how their operands come out of shared memory (PTX ISA, mma.sync, ldmatrix). */
#ifndef PNET_KERNELS_CUDA_CONV_STEPS_CUH
#define PNET_KERNELS_CUDA_CONV_STEPS_CUH

#include "kernels/cuda/base/shared.cuh"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800

/* Loads four matrices of 8 rows of 16 bytes; lane l passes the address of row l % 8 of matrix l / 8. */
static __device__ __forceinline__ void load_matrices(uint32_t (&a)[4], uint32_t from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(from)
                 : "memory");
}

/* Loads four matrices of 8 rows of 16 bytes, transposed; addresses as above. */
static __device__ __forceinline__ void load_matrices_turned(uint32_t (&a)[4], uint32_t from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(from)
                 : "memory");
}

/* d += a b: 16 rows, 8 columns, 8 channels in tf32, whose operands are float32 without the last 13 bits. */
static __device__ __forceinline__ void step_float(
    float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* The float32 that is nearest in tf32. */
static __device__ __forceinline__ uint32_t float_to_tf32(float x)
{
    uint32_t y;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
    return y;
}

/* d += a b: 16 rows, 8 columns, 16 channels. */
template <bool BFLOAT>
static __device__ __forceinline__ void step_short(
    float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
    if constexpr (BFLOAT)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
                     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    else
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#endif
#endif
