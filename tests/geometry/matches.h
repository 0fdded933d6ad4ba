/* Two clouds of several samples, and poses between them. */
#ifndef PNET_TESTS_GEOMETRY_MATCHES_H
#define PNET_TESTS_GEOMETRY_MATCHES_H

#include "kernels/matches.h"
#include "kernels/philox.h"
#include "tests/check.h"

enum { SAMPLES = 4, MOST = 40000 };

struct side {
    struct pnet_level level;
    float xyz[3 * MOST];
    int64_t splits[SAMPLES + 1];
};

/* Points of a box, one sample behind the other. */
static inline void fill(struct side *s, const int64_t sizes[SAMPLES], uint64_t seed)
{
    struct pnet_rand r = {.seed = seed, .purpose = PNET_DRAW_TEST};
    s->splits[0] = 0;
    for (int i = 0; i < SAMPLES; i++) s->splits[i + 1] = s->splits[i] + sizes[i];
    for (int64_t i = 0; i < 3 * s->splits[SAMPLES]; i++)
        s->xyz[i] = 2 * pnet_rand_unit(&r, (uint64_t)i) - 1;
    s->level = (struct pnet_level){
        .rows = s->splits[SAMPLES], .samples = SAMPLES, .row_splits = s->splits, .xyz = s->xyz};
}

/* A turn about an axis through the corners, a little more in each sample. */
static inline void poses(float pose[16 * SAMPLES])
{
    for (int s = 0; s < SAMPLES; s++) {
        double a = 0.4 * s, u = cos(a), v = (1 - u) / 3, w = sin(a) / sqrt(3);
        double rows[16] = {u + v, v - w, v + w, 0.1 * s, v + w, u + v, v - w, -0.05, v - w, v + w,
            u + v, 0.02, 0, 0, 0, 1};
        for (int i = 0; i < 16; i++) pose[16 * s + i] = (float)rows[i];
    }
}

#endif
