/* The vector registers of one instruction set, for the sources of this folder. Multiply-add is spelled out, so that
   results do not depend on what a compiler contracts. */
#ifndef PNET_KERNELS_CPU_ISA_VEC_H
#define PNET_KERNELS_CPU_ISA_VEC_H

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

#else
/* Four floats: SSE2 or NEON, through the compiler's own vectors. */
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
#endif

#endif
