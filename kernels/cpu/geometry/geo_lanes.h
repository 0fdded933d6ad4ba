/* Vector registers for the searches: this file is included once for each instruction set, with

     ISA       suffix of all names: base, avx2, avx512
     LANES     floats in a register

   and leaves the types float_ISA and int_ISA and a few operations on them. Each gives the bits that
   plain float32 arithmetic gives: no contraction, no reciprocals, max(a, b) = a > b ? a : b. */
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#undef NAME
#undef JOIN
#undef JOIN_
#undef TARGET
#undef INLINE
#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(x) JOIN(x, ISA)
#if LANES == 16
#define TARGET __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,popcnt")))
#elif LANES == 8
#define TARGET __attribute__((target("avx2,popcnt")))
#else
#define TARGET
#endif
#define INLINE TARGET static inline __attribute__((always_inline))

typedef float NAME(float) __attribute__((vector_size(4 * LANES), may_alias));
typedef int32_t NAME(int) __attribute__((vector_size(4 * LANES), may_alias));

#undef VF
#undef VI
#define VF NAME(float)
#define VI NAME(int)

/* `p` is aligned to a register. */
INLINE VF NAME(load)(const float *p)
{
    return *(const VF *)p;
}

#if LANES == 16
/* Returns one bit a lane: a <= b; false if either is NaN. */
INLINE uint32_t NAME(not_above)(VF a, VF b)
{
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LE_OQ);
}
INLINE uint32_t NAME(equal)(const int32_t *a, int32_t b)
{
    return _mm512_cmpeq_epi32_mask(_mm512_load_si512(a), _mm512_set1_epi32(b));
}
INLINE VF NAME(larger)(VF a, VF b)
{
    return (VF)_mm512_max_ps((__m512)a, (__m512)b);
}
INLINE VF NAME(smaller)(VF a, VF b)
{
    return (VF)_mm512_min_ps((__m512)a, (__m512)b);
}
/* Writes the lanes of `mask` without gaps; may overwrite LANES elements of `to`. */
INLINE void NAME(pack)(void *to, VI a, uint32_t mask)
{
    _mm512_storeu_si512(to, _mm512_maskz_compress_epi32((__mmask16)mask, (__m512i)a));
}
#else
#if LANES == 8
INLINE uint32_t NAME(sign_bits)(VI a)
{
    return (uint32_t)_mm256_movemask_ps((__m256)a);
}
INLINE VF NAME(larger)(VF a, VF b)
{
    return (VF)_mm256_max_ps((__m256)a, (__m256)b);
}
INLINE VF NAME(smaller)(VF a, VF b)
{
    return (VF)_mm256_min_ps((__m256)a, (__m256)b);
}
#elif defined(__x86_64__)
INLINE uint32_t NAME(sign_bits)(VI a)
{
    return (uint32_t)_mm_movemask_ps((__m128)a);
}
INLINE VF NAME(larger)(VF a, VF b)
{
    return (VF)_mm_max_ps((__m128)a, (__m128)b);
}
INLINE VF NAME(smaller)(VF a, VF b)
{
    return (VF)_mm_min_ps((__m128)a, (__m128)b);
}
#elif defined(__aarch64__)
INLINE uint32_t NAME(sign_bits)(VI a)
{
    uint32x4_t negative = vcltzq_s32((int32x4_t)a);
    return vaddvq_u32(vandq_u32(negative, (uint32x4_t){1, 2, 4, 8}));
}
INLINE VF NAME(larger)(VF a, VF b)
{
    float32x4_t x = (float32x4_t)a, y = (float32x4_t)b;
    return (VF)vbslq_f32(vcgtq_f32(x, y), x, y);
}
INLINE VF NAME(smaller)(VF a, VF b)
{
    float32x4_t x = (float32x4_t)a, y = (float32x4_t)b;
    return (VF)vbslq_f32(vcltq_f32(x, y), x, y);
}
#else
INLINE uint32_t NAME(sign_bits)(VI a)
{
    uint32_t bits = 0;
    for (int l = 0; l < LANES; l++) bits |= ((uint32_t)a[l] >> 31) << l;
    return bits;
}
INLINE VF NAME(larger)(VF a, VF b)
{
    VI above = (VI)(a > b);
    return (VF)(((VI)a & above) | ((VI)b & ~above));
}
INLINE VF NAME(smaller)(VF a, VF b)
{
    VI below = (VI)(a < b);
    return (VF)(((VI)a & below) | ((VI)b & ~below));
}
#endif
INLINE uint32_t NAME(not_above)(VF a, VF b)
{
    return NAME(sign_bits)((VI)(a <= b));
}
INLINE uint32_t NAME(equal)(const int32_t *a, int32_t b)
{
    return NAME(sign_bits)((VI)(*(const VI *)a == b));
}
INLINE void NAME(pack)(void *to, VI a, uint32_t mask)
{
    int32_t *place = to, from[LANES];
    memcpy(from, &a, sizeof a);
    for (; mask; mask &= mask - 1) *place++ = from[__builtin_ctz(mask)];
}
#endif
