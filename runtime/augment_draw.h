/* The random numbers of augmentation: one stream a sample and epoch, cut into parts by purpose. */
#ifndef PNET_RUNTIME_AUGMENT_DRAW_H
#define PNET_RUNTIME_AUGMENT_DRAW_H

#include "kernels/philox.h"
#include "runtime/augment.h"

#include <math.h>

/* Values are fixed: resumed runs depend on them. */
enum draw_part {
    DRAW_LIMIT = 1,
    DRAW_CROP = 2,
    DRAW_DROP = 3,
    DRAW_FLIP = 4,
    DRAW_ROTATE = 5,
    DRAW_SCALE = 6,
    DRAW_JITTER = 7,
    DRAW_COLOUR = 8,
    DRAW_COLOUR_JITTER = 16, /* + field: several colours differ */
    DRAW_ELASTIC = 4096,     /* + which one */
};

/* 32 bits; element < 2^44. */
static inline uint32_t draw_bits(const struct pnet_rand *r, int part, uint64_t element)
{
    return pnet_rand_bits(r, (uint64_t)part << 44 | element);
}

/* Uniform in [0, 1). */
static inline double draw_unit(const struct pnet_rand *r, int part, uint64_t element)
{
    return (double)draw_bits(r, part, element) * 0x1p-32;
}

/* Standard normal (Box and Muller, 1958), from the elements 2 i and 2 i + 1. */
static inline double draw_normal(const struct pnet_rand *r, int part, uint64_t i)
{
    double u = ((double)draw_bits(r, part, 2 * i) + 0.5) * 0x1p-32;
    return sqrt(-2 * log(u)) * cos(2 * M_PI * draw_unit(r, part, 2 * i + 1));
}

/* Displaces the points; in augment_elastic.c. */
enum pnet_status pnet_elastic_apply(const struct pnet_elastic *elastic, const struct pnet_rand *r,
    int which, struct pnet_sample *s, struct pnet_error *e);

#endif
