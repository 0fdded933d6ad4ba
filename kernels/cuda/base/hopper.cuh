/* Hopper's matrix unit and copy engine as functions: barriers of a cluster, bulk copies, products of a warpgroup (PTX ISA,
   sections on mbarrier, cp.async.bulk and wgmma). */
#ifndef PNET_KERNELS_CUDA_BASE_HOPPER_CUH
#define PNET_KERNELS_CUDA_BASE_HOPPER_CUH

#include "kernels/cuda/base/shared.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* The same place in the shared memory of another block of the cluster. */
static __device__ __forceinline__ uint32_t shared_of(uint32_t at, uint32_t rank)
{
    uint32_t there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank));
    return there;
}

/* Arrives at that barrier of another block of the cluster, after reads. */
static __device__ __forceinline__ void barrier_arrive_at(uint32_t b, uint32_t rank)
{
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(shared_of(b, rank))
                 : "memory");
}

/* The same after writes, which it waits for. */
static __device__ __forceinline__ void barrier_tell(uint32_t b, uint32_t rank)
{
    asm volatile(
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(shared_of(b, rank))
        : "memory");
}

/* Stores a word to the shared memory of another block of the cluster. */
static __device__ __forceinline__ void shared_store_at(uint32_t to, uint32_t v, uint32_t rank)
{
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(shared_of(to, rank)), "r"(v) : "memory");
}

static __device__ __forceinline__ void barrier_expect(uint32_t b, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b), "r"(bytes)
                 : "memory");
}

static __device__ __forceinline__ void barrier_expect(uint64_t *b, uint32_t bytes)
{
    barrier_expect(shared_address(b), bytes);
}

/* The same for what another block of the cluster did. */
static __device__ __forceinline__ void barrier_wait_cluster(uint32_t b, uint32_t parity)
{
    asm volatile("{\n.reg .pred p;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n"
                 "@p bra done;\n"
                 "bra again;\n"
                 "done:\n}" ::"r"(b),
                 "r"(parity)
                 : "memory");
}

/* Is that phase over? */
static __device__ __forceinline__ bool barrier_test(uint64_t *b, uint32_t parity)
{
    uint32_t over;
    asm volatile("{\n.reg .pred p;\n"
                 "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(over)
                 : "r"(shared_address(b)), "r"(parity)
                 : "memory");
    return over;
}

/* Makes earlier ordinary writes visible to barriers and bulk copies. */
static __device__ __forceinline__ void fence_async()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* Copies global memory to shared memory (both aligned to 16, whole multiples of 16 bytes); `b` counts the bytes. */
static __device__ __forceinline__ void copy_bulk(
    uint32_t to, const void *from, uint32_t bytes, uint32_t b)
{
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(to),
        "l"(from), "r"(bytes), "r"(b)
        : "memory");
}

static __device__ __forceinline__ void copy_bulk(
    void *to, const void *from, uint32_t bytes, uint64_t *b)
{
    copy_bulk(shared_address(to), from, bytes, shared_address(b));
}

/* Copies to the same place in all blocks of the cluster that `blocks` names, a bit each; the barrier `b` of each counts
   the bytes. */
static __device__ __forceinline__ void copy_bulk_shared(
    uint32_t to, const void *from, uint32_t bytes, uint32_t b, uint16_t blocks)
{
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1], %2, [%3], %4;" ::"r"(to),
        "l"(from), "r"(bytes), "r"(b), "h"(blocks)
        : "memory");
}

/* Waits for all threads of the cluster, and makes the barriers that they have initialised visible. */
static __device__ __forceinline__ void cluster_wait()
{
    asm volatile("fence.mbarrier_init.release.cluster;\n"
                 "barrier.cluster.arrive.release;\n"
                 "barrier.cluster.wait.acquire;" ::
                     : "memory");
}

/* Call it before products that read registers written since the last product. */
static __device__ __forceinline__ void product_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void product_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits for all groups of products but the last PENDING. */
template <int PENDING = 0> static __device__ __forceinline__ void product_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

/* Tells the compiler that these registers change here: sums belong to the matrix unit until product_wait. */
template <int N> static __device__ __forceinline__ void product_touch(float (&d)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++) asm volatile("" : "+f"(d[i])::"memory");
}

/* The same for operands that the matrix unit reads. */
template <int M, int N> static __device__ __forceinline__ void product_touch(uint32_t (&a)[M][N][4])
{
#pragma unroll
    for (int i = 0; i < M * N * 4; i++)
        asm volatile("" : "+r"(a[i / 4 / N][i / 4 % N][i % 4])::"memory");
}

/* Sets the number of registers of the threads of a warpgroup. */
template <int N> static __device__ __forceinline__ void registers_more()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N> static __device__ __forceinline__ void registers_fewer()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

/* Prefetches global memory (aligned to 16, whole multiples of 16 bytes) into L2. */
static __device__ __forceinline__ void prefetch_bulk(const void *from, uint32_t bytes)
{
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
}

/* A matrix of `row_bytes` (32, 64 or 128: the width of the swizzle) times n rows, depth by depth, in shared memory. */
template <int ROW_BYTES> static __device__ __forceinline__ uint64_t product_matrix(uint32_t p)
{
    constexpr uint64_t swizzle = ROW_BYTES == 128 ? 1 : ROW_BYTES == 64 ? 2 : 3;
    return (uint64_t)(p >> 4) | (uint64_t)1 << 16 | (uint64_t)(8 * ROW_BYTES >> 4) << 32 |
           swizzle << 62;
}

template <int ROW_BYTES> static __device__ __forceinline__ uint64_t product_matrix(const void *p)
{
    return product_matrix<ROW_BYTES>(shared_address(p));
}

#define D4(o) "+f"(d[o]), "+f"(d[o + 1]), "+f"(d[o + 2]), "+f"(d[o + 3])
#define D16(o) D4(o), D4(o + 4), D4(o + 8), D4(o + 12)
#define D64(o) D16(o), D16(o + 16), D16(o + 32), D16(o + 48)
#define S16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define S32 S16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define S64                                                                                        \
    S32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"         \
        ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define S128                                                                                       \
    S64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"         \
        ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"         \
        ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, " \
        "%111"                                                                                     \
        ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, "   \
        "%126, %127"
#define PRODUCT(N, TYPE, SUMS, OPERANDS, A, B, FRESH, LAYOUT, ...)                                 \
    asm volatile("{\n.reg .pred p;\nsetp.eq.b32 p, " FRESH ", 0;\n"                                \
                 "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" SUMS "}, " A \
                 ", " B ", p, 1, 1" LAYOUT ";\n}"                                                  \
                 : OPERANDS                                                                        \
                 : __VA_ARGS__, "l"(b), "r"(fresh))
#define COMMA ,
#define PRODUCTS(TYPE, LAYOUT)                                                                     \
    if constexpr (N == 256)                                                                        \
        PRODUCT(256, TYPE, S128, D64(0) COMMA D64(64), "{%128, %129, %130, %131}", "%132", "%133", \
            LAYOUT, "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]));                                   \
    else if constexpr (N == 128)                                                                   \
        PRODUCT(128, TYPE, S64, D64(0), "{%64, %65, %66, %67}", "%68", "%69", LAYOUT, "r"(a[0]),   \
            "r"(a[1]), "r"(a[2]), "r"(a[3]));                                                      \
    else if constexpr (N == 64)                                                                    \
        PRODUCT(64, TYPE, S32, D16(0) COMMA D16(16), "{%32, %33, %34, %35}", "%36", "%37", LAYOUT, \
            "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]));                                           \
    else                                                                                           \
        PRODUCT(32, TYPE, S16, D16(0), "{%16, %17, %18, %19}", "%20", "%21", LAYOUT, "r"(a[0]),    \
            "r"(a[1]), "r"(a[2]), "r"(a[3]))

/* d (+)= a b for 64 rows, depth 16 and N columns; `fresh` (a constant) overwrites d. a: rows lane / 4 and lane / 4 + 8,
   depths 2 (lane % 4) and 8 more, as the matrix unit wants them. */
template <int N, bool BFLOAT>
static __device__ __forceinline__ void product(
    float (&d)[N / 2], const uint32_t (&a)[4], uint64_t b, int fresh)
{
    if constexpr (BFLOAT) {
        PRODUCTS("bf16", ", 0");
    } else {
        PRODUCTS("f16", ", 0");
    }
}

/* A matrix in shared memory whose depths are 64 columns of 128 bytes, one after the other. The next 64 columns lie `block`
   bytes further. */
static __device__ __forceinline__ uint64_t product_panel(uint32_t p, int block)
{
    return (uint64_t)(p >> 4) | (uint64_t)(block >> 4) << 16 | (uint64_t)(1024 >> 4) << 32 |
           (uint64_t)1 << 62;
}

static __device__ __forceinline__ uint64_t product_panel(const void *p, int block)
{
    return product_panel(shared_address(p), block);
}

/* d (+)= a b for depth 16: a in registers as for `product`, b a panel of N columns. */
template <int N, bool BFLOAT>
static __device__ __forceinline__ void product_turned(
    float (&d)[N / 2], const uint32_t (&a)[4], uint64_t b, int fresh)
{
    if constexpr (BFLOAT) {
        PRODUCTS("bf16", ", 1");
    } else {
        PRODUCTS("f16", ", 1");
    }
}

#undef PRODUCTS
#define PRODUCTS(TYPE, LAYOUT)                                                                     \
    if constexpr (N == 128)                                                                        \
        PRODUCT(128, TYPE, S64, D64(0), "%64", "%65", "%66", LAYOUT, "l"(a));                      \
    else if constexpr (N == 64)                                                                    \
        PRODUCT(64, TYPE, S32, D16(0) COMMA D16(16), "%32", "%33", "%34", LAYOUT, "l"(a));         \
    else                                                                                           \
        PRODUCT(32, TYPE, S16, D16(0), "%16", "%17", "%18", LAYOUT, "l"(a))

/* d (+)= a^T b for depth 16: a and b panels, a of 64 columns, b of N. */
template <int N, bool BFLOAT>
static __device__ __forceinline__ void product_outer(
    float (&d)[N / 2], uint64_t a, uint64_t b, int fresh)
{
    if constexpr (BFLOAT) {
        PRODUCTS("bf16", ", 1, 1");
    } else {
        PRODUCTS("f16", ", 1, 1");
    }
}

/* d (+)= a b for depth 16: a and b matrices (product_matrix) in shared memory, a of 64 rows, b of N. */
template <int N, bool BFLOAT>
static __device__ __forceinline__ void product_shared(
    float (&d)[N / 2], uint64_t a, uint64_t b, int fresh)
{
    if constexpr (BFLOAT) {
        PRODUCTS("bf16", ", 0, 0");
    } else {
        PRODUCTS("f16", ", 0, 0");
    }
}

#undef D4
#undef D16
#undef D64
#undef S16
#undef S32
#undef S64
#undef S128
#undef PRODUCT
#undef PRODUCTS
#undef COMMA

#endif
#endif
