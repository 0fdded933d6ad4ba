/* Counter-based random numbers: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random
   numbers: as easy as 1, 2, 3", SC 2011). The same on every device. */
#ifndef PNET_KERNELS_PHILOX_H
#define PNET_KERNELS_PHILOX_H

#include <stdint.h>

#ifdef __CUDACC__
#define PNET_HD static __host__ __device__ inline
#else
#define PNET_HD static inline
#endif

/* What a draw is for; part of the key, so that no two purposes share a stream. Values are fixed:
   checkpoints depend on them. */
enum pnet_rand_purpose {
    PNET_DRAW_INIT = 1,
    PNET_DRAW_SHUFFLE = 2,
    PNET_DRAW_AUGMENT = 3,
    PNET_DRAW_DROPOUT = 4,
    PNET_DRAW_SYNTH = 5,
    PNET_DRAW_TEST = 6,
    PNET_DRAW_METRIC = 7,
    PNET_DRAW_LOSS = 8,
};

/* seed and purpose make the key; (a, b, c) the counter, c counting 128-bit blocks. */
struct pnet_rand {
    uint64_t seed;
    uint32_t purpose;
    uint32_t a;           /* epoch or step */
    uint32_t b;           /* sample, op or parameter */
    const uint32_t *live; /* GPU: where `a` stands, in device memory; NULL: in a */
};

PNET_HD void pnet_philox(const struct pnet_rand *r, uint64_t c, uint32_t out[4])
{
    uint32_t x0 = (uint32_t)c, x1 = (uint32_t)(c >> 32), x2 = r->a, x3 = r->b;
    uint32_t k0 = (uint32_t)r->seed, k1 = (uint32_t)(r->seed >> 32) ^ (r->purpose * 0x632BE5ABu);
    for (int i = 0; i < 10; i++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * x0, p1 = (uint64_t)0xCD9E8D57u * x2;
        uint32_t y0 = (uint32_t)(p1 >> 32) ^ x1 ^ k0, y2 = (uint32_t)(p0 >> 32) ^ x3 ^ k1;
        x1 = (uint32_t)p1;
        x3 = (uint32_t)p0;
        x0 = y0;
        x2 = y2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = x0;
    out[1] = x1;
    out[2] = x2;
    out[3] = x3;
}

/* The 32 random bits of element `i`: four elements share a block. */
PNET_HD uint32_t pnet_rand_bits(const struct pnet_rand *r, uint64_t i)
{
    uint32_t out[4];
    pnet_philox(r, i >> 2, out);
    return out[i & 3];
}

/* Uniform in [0, 1), 24 bits, exact in float32. */
PNET_HD float pnet_rand_unit(const struct pnet_rand *r, uint64_t i)
{
    return (float)(pnet_rand_bits(r, i) >> 8) * 0x1p-24f;
}

#endif
