/* The random numbers of augmentation: one stream a sample and epoch, cut into parts by purpose. */
#ifndef PNET_RUNTIME_AUGMENT_DRAW_H
#define PNET_RUNTIME_AUGMENT_DRAW_H

#include "kernels/philox.h"
#include "runtime/data/augment.h"
#include "runtime/data/dataset_pose.h"

#include <math.h>

/* Resumed runs depend on these values: they must not change. */
enum draw_part {
    DRAW_LIMIT = 1,
    DRAW_CROP = 2,
    DRAW_DROP = 3,
    DRAW_FLIP = 4,
    DRAW_ROTATE = 5,
    DRAW_SCALE = 6,
    DRAW_JITTER = 7,
    DRAW_COLOUR = 8,
    DRAW_COLOUR_JITTER = 16, /* + number of the field, because several fields may be colours */
    DRAW_ELASTIC = 4096,     /* + number of the distortion */
    DRAW_TARGET = 8192,      /* + any of the above, for the second cloud of a pair */
    DRAW_VIEW_TURN = 16384,  /* + DRAW_ROTATE */
    DRAW_VIEW_CUT = 16640,
    DRAW_VIEW_DEAL,
    DRAW_VIEW_SHARE, /* this one and those below: + DRAW_TARGET */
    DRAW_VIEW_POINTS,
    DRAW_VIEW_SHIFT,
    DRAW_VIEW_NOISE,
    DRAW_PAIR_TURN = 32768, /* + DRAW_ROTATE */
    DRAW_COUNT = 33024,     /* + DRAW_TARGET for the full cloud */
    DRAW_SURFACE = 33025,
    DRAW_CUT = 33026,
    DRAW_CAMERA = 36864, /* + 16 for each attempt, + DRAW_ROTATE */
};

/* Returns 32 random bits; element < 2^44. */
static inline uint32_t draw_bits(const struct pnet_rand *r, int part, uint64_t element)
{
    return pnet_rand_bits(r, (uint64_t)part << 44 | element);
}

/* Returns a uniform number in [0, 1). */
static inline double draw_unit(const struct pnet_rand *r, int part, uint64_t element)
{
    return (double)draw_bits(r, part, element) * 0x1p-32;
}

/* Returns a uniform index below n, from the 64 random bits of the elements 2 i and 2 i + 1. */
static inline int64_t draw_below(const struct pnet_rand *r, int part, uint64_t i, int64_t n)
{
    uint64_t bits = (uint64_t)draw_bits(r, part, 2 * i) << 32 | draw_bits(r, part, 2 * i + 1);
    return (int64_t)((unsigned __int128)bits * (uint64_t)n >> 64);
}

/* Returns a standard normal number (Box and Muller, 1958). */
static inline double normal_of(uint32_t length, uint32_t turn)
{
    double u = ((double)length + 0.5) * 0x1p-32;
    return sqrt(-2 * log(u)) * cos(2 * M_PI * ((double)turn * 0x1p-32));
}

/* Returns number i of the normals of a part, from the elements 2 i and 2 i + 1. */
static inline double draw_normal(const struct pnet_rand *r, int part, uint64_t i)
{
    return normal_of(draw_bits(r, part, 2 * i), draw_bits(r, part, 2 * i + 1));
}

/* Sets numbers 2 i and 2 i + 1 at once, which share a block of bits. */
static inline void draw_two_normals(const struct pnet_rand *r, int part, uint64_t i, double two[2])
{
    uint32_t bits[4];
    pnet_philox(r, (uint64_t)part << 42 | i, bits);
    two[0] = normal_of(bits[0], bits[1]);
    two[1] = normal_of(bits[2], bits[3]);
}

/* p -> centre + shift + m (p - centre); `turn` is m without the scale, for directions. */
struct pnet_motion {
    double m[3][3], turn[3][3], centre[3], shift[3];
};
/* Draws flips, then a rotation: an orthogonal matrix. The rotation comes from DRAW_ROTATE + `offset`. */
void pnet_turn_draw(
    const struct pnet_augment *a, const struct pnet_rand *r, int offset, double m[3][3]);
/* Draws flips, a rotation and a scale about the centroid of the sample. The rotation comes from its
   part + `offset`, the others from their own: they are common to both clouds of a pair. */
void pnet_motion_draw(const struct pnet_augment *a, const struct pnet_rand *r, int offset,
    const struct pnet_sample *s, struct pnet_motion *motion);
/* Moves the points and turns the normals. */
void pnet_motion_apply(const struct pnet_motion *motion, struct pnet_sample *s);
/* Turns the normals alone. */
void pnet_normals_turn(const double turn[3][3], struct pnet_sample *s);
/* Returns the motion as a matrix. It is not a pose if it scales or mirrors, but it can be multiplied like one. */
struct pnet_pose pnet_motion_pose(const struct pnet_motion *motion);

/* Adds normal noise, cut at three times sigma, so that the noise of a point has a known bound. */
void pnet_jitter(double sigma, const struct pnet_rand *r, int part, struct pnet_sample *s);
/* Runs all steps of an augmentation on one cloud; draws are numbered from their parts + `offset`. *motion gets the rotation
   and translation, with scale and mirroring. */
enum pnet_status pnet_augment_side(const struct pnet_augment *a, const struct pnet_rand *r,
    int offset, struct pnet_sample *s, struct pnet_motion *motion, struct pnet_error *e);
/* Keeps a random subset of `most` points if there are more, drawn from `part`; order stays. */
enum pnet_status pnet_limit_side(
    int64_t most, const struct pnet_rand *r, int part, struct pnet_sample *s, struct pnet_error *e);
static inline struct pnet_rand augment_stream(uint64_t seed, uint32_t epoch, uint32_t sample)
{
    return (struct pnet_rand){.seed = seed, .purpose = PNET_DRAW_AUGMENT, .a = epoch, .b = sample};
}

/* Displaces the points; in augment_elastic.c. */
enum pnet_status pnet_elastic_apply(const struct pnet_elastic *elastic, const struct pnet_rand *r,
    int which, struct pnet_sample *s, struct pnet_error *e);

#endif
