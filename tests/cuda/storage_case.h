/* Features as they lie in memory on a GPU (enum pnet_storage), for tests: what becomes of float32 numbers. */
#ifndef PNET_TESTS_CUDA_STORAGE_CASE_H
#define PNET_TESTS_CUDA_STORAGE_CASE_H

#include "kernels/precision.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static const char *const storage_names[] = {
    [PNET_STORE_F32] = "fp32", [PNET_STORE_BF16] = "bf16", [PNET_STORE_FP16] = "fp16"};

/* By how much one rounding is off at most: of the number, and beside that where it is tiny. */
static const double storage_relative[] = {0, 0x1p-8, 0x1p-11};
static const double storage_absolute[] = {0, 0, 0x1p-25};

/* To nearest, ties to even. */
static inline uint16_t bf16_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (isnan(x)) return 0x7FFF;
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static inline uint16_t fp16_of(float x)
{
    int exponent, sign = signbit(x) ? 1 << 15 : 0;
    float a = fabsf(x);
    if (isnan(x)) return 0x7FFF;
    if (a >= 65520) return (uint16_t)(sign | 31 << 10);
    if (a < 0x1p-14f) return (uint16_t)(sign | (int)lrintf(a * 0x1p24f));
    float digits =
        ldexpf(frexpf(a, &exponent), 11); /* 1024 .. 2048: the last is the next exponent */
    return (uint16_t)(sign | (((exponent + 14) << 10) + (int)lrintf(digits) - 1024));
}

static inline float of_bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return x;
}

static inline float of_fp16(uint16_t bits)
{
    int exponent = bits >> 10 & 31, digits = bits & 1023;
    float x = exponent == 31 ? (digits ? NAN : INFINITY)
              : exponent     ? ldexpf((float)(digits + 1024), exponent - 25)
                             : ldexpf((float)digits, -24);
    return bits >> 15 ? -x : x;
}

/* n numbers to and from memory. */
static inline void to_storage(enum pnet_storage s, const float *from, int64_t n, void *to)
{
    uint16_t *bits = to;
    if (s == PNET_STORE_F32) {
        if (n) memcpy(to, from, (size_t)n * sizeof *from);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        bits[i] = s == PNET_STORE_BF16 ? bf16_of(from[i]) : fp16_of(from[i]);
}

static inline void from_storage(enum pnet_storage s, const void *from, int64_t n, float *to)
{
    const uint16_t *bits = from;
    if (s == PNET_STORE_F32) {
        if (n) memcpy(to, from, (size_t)n * sizeof *to);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        to[i] = s == PNET_STORE_BF16 ? of_bf16(bits[i]) : of_fp16(bits[i]);
}

/* What is left of numbers that have been stored. */
static inline void round_to_storage(enum pnet_storage s, float *x, int64_t n)
{
    if (s == PNET_STORE_F32) return;
    for (int64_t i = 0; i < n; i++)
        x[i] = s == PNET_STORE_BF16 ? of_bf16(bf16_of(x[i])) : of_fp16(fp16_of(x[i]));
}

static inline size_t storage_bytes(enum pnet_storage s, int64_t n)
{
    return (size_t)n * (size_t)pnet_storage_bytes(s);
}

#endif
