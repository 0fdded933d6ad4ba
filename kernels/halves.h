/* Numbers of 16 bits on the host, as a GPU stores them (kernels/precision.h). */
#ifndef PNET_KERNELS_HALVES_H
#define PNET_KERNELS_HALVES_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float pnet_from_bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return x;
}

static inline float pnet_from_fp16(uint16_t bits)
{
    int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    float x = exponent == 31 ? (mantissa ? NAN : INFINITY)
              : exponent     ? ldexpf((float)(mantissa + 1024), exponent - 25)
                             : ldexpf((float)mantissa, -24);
    return bits >> 15 ? -x : x;
}

/* Both round to nearest, ties to even. NaN becomes the NaN that GPUs write. */
static inline uint16_t pnet_to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (isnan(x)) return 0x7fff;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline uint16_t pnet_to_fp16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    float size = fabsf(x);
    if (isnan(x)) return 0x7fff;
    if (size >= 65520) return (uint16_t)(sign | 0x7c00); /* beyond half a step above the largest */
    /* below the normal numbers steps are 2^-24; there and above the sum or the product is exact but for one rounding */
    if (size < 0x1p-14F) return (uint16_t)(sign | (uint16_t)rintf(size * 0x1p24F));
    uint32_t rounded = (bits & 0x7fffffff) + 0xfff + (bits >> 13 & 1);
    return (uint16_t)(sign | (uint16_t)((rounded >> 13) - (112 << 10)));
}

#endif
