/* The vector registers of one instruction set, for the sources of this folder. Multiply-add is spelled out, so that
   results do not depend on what a compiler contracts. */
#ifndef PNET_KERNELS_CPU_ISA_VEC_H
#define PNET_KERNELS_CPU_ISA_VEC_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define ISA_PASTE(a, b) a##_##b
#define ISA_EXPAND(a, b) ISA_PASTE(a, b)
/* ISA_NAME(x) is x_avx2 in the object compiled with -DPNET_ISA=avx2. */
#define ISA_NAME(name) ISA_EXPAND(name, PNET_ISA)
#define ISA_STRING(x) #x
#define ISA_STRING_OF(x) ISA_STRING(x)

#define ALWAYS_INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#if defined(__AVX512F__)
#include <immintrin.h>
enum { VECTOR = 16, BLOCK_ROWS = 12 };
typedef __m512 vec;
ALWAYS_INLINE vec vec_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
ALWAYS_INLINE void vec_store(float *p, vec v)
{
    _mm512_storeu_ps(p, v);
}
ALWAYS_INLINE vec vec_set(float x)
{
    return _mm512_set1_ps(x);
}
ALWAYS_INLINE vec vec_madd(vec a, vec b, vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}
/* The first n of VECTOR floats, 0 beyond; nothing beyond is touched. */
ALWAYS_INLINE vec vec_load_part(const float *p, int n)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}
ALWAYS_INLINE void vec_store_part(float *p, vec v, int n)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), v);
}
/* Where one of both is NaN: b. */
ALWAYS_INLINE vec vec_max(vec a, vec b)
{
    return _mm512_max_ps(a, b);
}
ALWAYS_INLINE vec vec_sqrt(vec a)
{
    return _mm512_sqrt_ps(a);
}
/* Bit i is set where a[i] <= b[i]. */
ALWAYS_INLINE unsigned vec_up_to(vec a, vec b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ);
}
/* The nearest whole number of each float of at most 2^21, ties to even. */
ALWAYS_INLINE vec vec_round(vec a)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored                                                                     \
    "-Wsign-conversion" /* without optimisation it is a macro with a signed mask */
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#pragma GCC diagnostic pop
}
/* a 2^n for whole n; both a and the result are normal numbers. */
ALWAYS_INLINE vec vec_scale(vec a, vec n)
{
    return _mm512_scalef_ps(a, n);
}

#elif defined(__AVX2__)
#include <immintrin.h>
enum { VECTOR = 8, BLOCK_ROWS = 6 };
typedef __m256 vec;
ALWAYS_INLINE vec vec_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
ALWAYS_INLINE void vec_store(float *p, vec v)
{
    _mm256_storeu_ps(p, v);
}
ALWAYS_INLINE vec vec_set(float x)
{
    return _mm256_set1_ps(x);
}
ALWAYS_INLINE vec vec_madd(vec a, vec b, vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}
ALWAYS_INLINE __m256i vec_mask(int n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
ALWAYS_INLINE vec vec_load_part(const float *p, int n)
{
    return _mm256_maskload_ps(p, vec_mask(n));
}
ALWAYS_INLINE void vec_store_part(float *p, vec v, int n)
{
    _mm256_maskstore_ps(p, vec_mask(n), v);
}
ALWAYS_INLINE vec vec_max(vec a, vec b)
{
    return _mm256_max_ps(a, b);
}
ALWAYS_INLINE vec vec_sqrt(vec a)
{
    return _mm256_sqrt_ps(a);
}
ALWAYS_INLINE unsigned vec_up_to(vec a, vec b)
{
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_LE_OQ));
}
ALWAYS_INLINE vec vec_round(vec a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
ALWAYS_INLINE vec vec_scale(vec a, vec n)
{
    __m256i exponent = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), exponent));
}

#elif defined(__aarch64__)
/* NEON, which every such processor has: its sums are in the set `base`. */
#include <arm_neon.h>
enum { VECTOR = 4, BLOCK_ROWS = 8 }; /* with more rows, sums leave the 32 registers */
typedef float32x4_t vec;
ALWAYS_INLINE vec vec_load(const float *p)
{
    return vld1q_f32(p);
}
ALWAYS_INLINE void vec_store(float *p, vec v)
{
    vst1q_f32(p, v);
}
ALWAYS_INLINE vec vec_set(float x)
{
    return vdupq_n_f32(x);
}
ALWAYS_INLINE vec vec_madd(vec a, vec b, vec c)
{
    return vfmaq_f32(c, a, b);
}
ALWAYS_INLINE vec vec_load_part(const float *p, int n)
{
    return (vec){n > 0 ? p[0] : 0, n > 1 ? p[1] : 0, n > 2 ? p[2] : 0, 0};
}
ALWAYS_INLINE void vec_store_part(float *p, vec v, int n)
{
    for (int i = 0; i < n; i++) p[i] = v[i];
}
ALWAYS_INLINE vec vec_max(vec a, vec b)
{
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}
ALWAYS_INLINE vec vec_sqrt(vec a)
{
    return vsqrtq_f32(a);
}
ALWAYS_INLINE unsigned vec_up_to(vec a, vec b)
{
    return vaddvq_u32(vandq_u32(vcleq_f32(a, b), (uint32x4_t){1, 2, 4, 8}));
}
ALWAYS_INLINE vec vec_round(vec a)
{
    return vrndnq_f32(a);
}
ALWAYS_INLINE vec vec_scale(vec a, vec n)
{
    int32x4_t exponent = vshlq_n_s32(vcvtq_s32_f32(n), 23);
    return vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(a), exponent));
}

#else
/* Four floats: SSE2, through the compiler's own vectors. */
enum { VECTOR = 4, BLOCK_ROWS = 6 };
typedef float vec __attribute__((vector_size(16)));
ALWAYS_INLINE vec vec_load(const float *p)
{
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}
ALWAYS_INLINE void vec_store(float *p, vec v)
{
    memcpy(p, &v, sizeof v);
}
ALWAYS_INLINE vec vec_set(float x)
{
    return (vec){x, x, x, x};
}
ALWAYS_INLINE vec vec_madd(vec a, vec b, vec c)
{
    return a * b + c;
}
ALWAYS_INLINE vec vec_load_part(const float *p, int n)
{
    return (vec){n > 0 ? p[0] : 0, n > 1 ? p[1] : 0, n > 2 ? p[2] : 0, 0};
}
ALWAYS_INLINE void vec_store_part(float *p, vec v, int n)
{
    for (int i = 0; i < n; i++) p[i] = v[i];
}
ALWAYS_INLINE vec vec_max(vec a, vec b)
{
    return (vec){a[0] > b[0] ? a[0] : b[0], a[1] > b[1] ? a[1] : b[1], a[2] > b[2] ? a[2] : b[2],
        a[3] > b[3] ? a[3] : b[3]};
}
ALWAYS_INLINE vec vec_sqrt(vec a)
{
    return (vec){sqrtf(a[0]), sqrtf(a[1]), sqrtf(a[2]), sqrtf(a[3])};
}
ALWAYS_INLINE unsigned vec_up_to(vec a, vec b)
{
    unsigned mask = 0;
    for (int i = 0; i < VECTOR; i++) mask |= (unsigned)(a[i] <= b[i]) << i;
    return mask;
}
/* Adding 1.5 * 2^23 leaves no bits for a fraction. */
ALWAYS_INLINE vec vec_round(vec a)
{
    return a + 12582912.0f - 12582912.0f;
}
ALWAYS_INLINE vec vec_scale(vec a, vec n)
{
    typedef int32_t whole __attribute__((vector_size(16)));
    whole bits, exponent = __builtin_convertvector(n, whole);
    memcpy(&bits, &a, sizeof bits);
    bits += exponent << 23;
    memcpy(&a, &bits, sizeof a);
    return a;
}
#endif

/* 2^t for t <= 100, within 6e-8 of it; numbers below 2^-125 become that, and NaN stays. A polynomial of degree 6 interpolates 2^r
   in the Chebyshev nodes of -1/2 .. 1/2; 2^0 is exactly 1. */
ALWAYS_INLINE vec vec_power2(vec t)
{
    t = vec_max(vec_set(-125), t);
    vec n = vec_round(t), r = t - n;
    vec p = vec_set(1.5453162941e-4f);
    p = vec_madd(p, r, vec_set(1.3390863364e-3f));
    p = vec_madd(p, r, vec_set(9.6180825573e-3f));
    p = vec_madd(p, r, vec_set(5.5503571142e-2f));
    p = vec_madd(p, r, vec_set(2.4022650761e-1f));
    p = vec_madd(p, r, vec_set(6.9314718803e-1f));
    p = vec_madd(p, r, vec_set(1));
    return vec_scale(p, n);
}

#endif
