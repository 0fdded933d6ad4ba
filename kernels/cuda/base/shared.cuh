/* Shared memory by its addresses, and copies to it that run beside the thread, and barriers in it (PTX ISA, ld.shared,
   cp.async, mbarrier): GPUs from architecture 80 on. */
#ifndef PNET_KERNELS_CUDA_BASE_SHARED_CUH
#define PNET_KERNELS_CUDA_BASE_SHARED_CUH

#include <cstdint>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800

static __device__ __forceinline__ uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* An address in shared memory that stays in a register: otherwise the compiler computes it anew at each use. */
static __device__ __forceinline__ uint32_t shared_base(const void *p)
{
    uint32_t a = shared_address(p);
    asm volatile("" : "+r"(a));
    return a;
}

static __device__ __forceinline__ uint32_t shared_load_word(uint32_t from)
{
    uint32_t v;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(from));
    return v;
}

static __device__ __forceinline__ uint4 shared_load(uint32_t from)
{
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(from));
    return v;
}

static __device__ __forceinline__ float shared_load_float(uint32_t from)
{
    float v;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(from));
    return v;
}

static __device__ __forceinline__ void shared_store(uint32_t to, uint32_t v)
{
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(v) : "memory");
}

static __device__ __forceinline__ void shared_store(uint32_t to, uint4 v)
{
    asm volatile(
        "st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
        : "memory");
}

static __device__ __forceinline__ float2 shared_load_pair(uint32_t from)
{
    float2 v;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(from));
    return v;
}

/* Starts to copy 16 bytes from global to shared memory; copies_wait waits for it. */
static __device__ __forceinline__ void copy16(uint32_t to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

static __device__ __forceinline__ void copy16(void *to, const void *from)
{
    copy16(shared_address(to), from);
}

/* The same for the first `bytes`, 0 to 16; the others become zeros. */
static __device__ __forceinline__ void copy16_part(uint32_t to, const void *from, int bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
                 : "memory");
}

/* All 16 bytes, or zeros unless `any`; `from` is not read then. */
static __device__ __forceinline__ void copy16_any(uint32_t to, const void *from, bool any)
{
    copy16_part(to, from, any ? 16 : 0);
}

/* The first `bytes` of a word, 0 to 4; the others become zeros. */
static __device__ __forceinline__ void copy4_part(uint32_t to, const void *from, int bytes)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes)
                 : "memory");
}

/* Zeros instead; `from` is not read. */
static __device__ __forceinline__ void copy16_zeros(uint32_t to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, 0;" ::"r"(to), "l"(from) : "memory");
}

static __device__ __forceinline__ void copies_wait()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* Ends a group of copies (copy16). */
static __device__ __forceinline__ void copies_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits for all groups of the thread's copies but the last PENDING. */
template <int PENDING> static __device__ __forceinline__ void copies_wait_but()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

/* Copies 16 bytes, or zeros where `there` is false: `from` is not read then, and `valid`, any valid address, takes its
   place. */
static __device__ __forceinline__ void copy16_or_zeros(
    uint32_t to, const void *from, const void *valid, bool there)
{
    copy16_any(to, there ? from : valid, there);
}

/* Barriers in shared memory (mbarrier). */
static __device__ __forceinline__ void barrier_init(uint64_t *b, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(arrivals));
}

/* A barrier is given by a pointer, or by its address in shared memory where the caller has that. */
static __device__ __forceinline__ void barrier_arrive(uint32_t b)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(b) : "memory");
}

static __device__ __forceinline__ void barrier_arrive(uint64_t *b)
{
    barrier_arrive(shared_address(b));
}

/* Arrives when the copies of 16 bytes (copy16) that the thread has started are complete. */
static __device__ __forceinline__ void barrier_arrive_copies(uint32_t b)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(b) : "memory");
}

/* Waits until the phase of that parity is over. try_wait, which lets the thread sleep, is an instruction of 90 and later. */
static __device__ __forceinline__ void barrier_wait(uint32_t b, uint32_t parity)
{
    asm volatile("{\n.reg .pred p;\n"
                 "again:\n"
#if __CUDA_ARCH__ >= 900
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
#else
                 "mbarrier.test_wait.parity.shared::cta.b64 p, [%0], %1;\n"
#endif
                 "@p bra done;\n"
                 "bra again;\n"
                 "done:\n}" ::"r"(b),
                 "r"(parity)
                 : "memory");
}

static __device__ __forceinline__ void barrier_wait(uint64_t *b, uint32_t parity)
{
    barrier_wait(shared_address(b), parity);
}

#endif
#endif
