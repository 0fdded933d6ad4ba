/* Draws for the synthetic clouds: one stream a cloud and purpose, so that a draw more in one place
   moves nothing elsewhere. Private to runtime/synth/synth*.c. */
#ifndef PNET_RUNTIME_SYNTH_RAND_H
#define PNET_RUNTIME_SYNTH_RAND_H

#include "kernels/philox.h"

#include <math.h>
#include <stdbool.h>

/* The low bits of pnet_rand.b; the room of a floor, or the view of a pair from 1 on, is above them.
   Data sets depend on the values. */
enum {
    SYNTH_LABEL = 1,
    SYNTH_LAYOUT = 2,
    SYNTH_FACES = 3,
    SYNTH_POINTS = 4,
    SYNTH_PILOT = 5,
    SYNTH_COUNT = 6,
    SYNTH_AIM = 7,
    SYNTH_FRAME = 8,
    SYNTH_PURPOSE_BITS = 4,
};

struct pnet_draw {
    struct pnet_rand key;
    uint64_t block; /* the next one */
    uint32_t left;  /* words of `word` not yet used */
    uint32_t word[4];
};

static inline struct pnet_draw draw_begin(
    uint64_t seed, uint32_t cloud, uint32_t purpose, uint64_t block)
{
    return (struct pnet_draw){
        .key = {.seed = seed, .purpose = PNET_DRAW_SYNTH, .a = cloud, .b = purpose},
        .block = block};
}

static inline uint32_t draw_bits(struct pnet_draw *d)
{
    if (!d->left) {
        pnet_philox(&d->key, d->block++, d->word);
        d->left = 4;
    }
    return d->word[--d->left];
}

/* Uniform in [0, 1). */
static inline float draw_unit(struct pnet_draw *d)
{
    return (float)(draw_bits(d) >> 8) * 0x1p-24f;
}

static inline float draw_between(struct pnet_draw *d, float low, float high)
{
    return low + (high - low) * draw_unit(d);
}

/* 0 .. n-1; n stays far below 2^24, so the bias is nothing. */
static inline int draw_below(struct pnet_draw *d, int n)
{
    return (int)(((uint64_t)draw_bits(d) * (uint64_t)n) >> 32);
}

static inline bool draw_chance(struct pnet_draw *d, float p)
{
    return draw_unit(d) < p;
}

/* -1 or 1. */
static inline float draw_sign(struct pnet_draw *d)
{
    return draw_bits(d) >> 31 ? -1.0f : 1.0f;
}

/* Near enough to a normal of variance 1: the sum of four uniforms, within 3.5, two draws of 16 bits
   each out of a word. Noise of a sensor has no far tails, and this needs no logarithm. */
static inline float draw_normal(struct pnet_draw *d)
{
    uint32_t x = draw_bits(d), y = draw_bits(d);
    float sum = (float)((x & 0xffff) + (x >> 16) + (y & 0xffff) + (y >> 16));
    return (sum * 0x1p-16f - 2.0f) * 1.7320508f;
}

#endif
