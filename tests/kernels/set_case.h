/* Batches of two point sets for the tests of losses between them. */
#ifndef PNET_TESTS_KERNELS_SET_CASE_H
#define PNET_TESTS_KERNELS_SET_CASE_H

#include "kernels/philox.h"
#include "kernels/sets.h"
#include "tests/check.h"

#include <omp.h>

enum { SETS_MOST = 8 };

struct set_case {
    struct pnet_set_pair pair;
    float *xyz[2];
    int64_t splits[2][SETS_MOST + 1];
};

static inline void *set_take(size_t bytes)
{
    void *p = malloc(bytes + 1);
    if (!p) abort();
    return p;
}

/* Coordinates are uniform in 0 .. 1. */
static inline struct set_case *set_case_new(
    int32_t samples, const int64_t *n, const int64_t *m, uint32_t seed)
{
    struct set_case *c = calloc(1, sizeof *c);
    if (!c || samples > SETS_MOST) abort();
    const int64_t *sizes[2] = {n, m};
    struct pnet_rand r = {.seed = seed, .purpose = PNET_DRAW_TEST};
    uint64_t draw = 0;
    struct pnet_point_set *set[2] = {&c->pair.x, &c->pair.y};
    for (int k = 0; k < 2; k++) {
        for (int32_t s = 0; s < samples; s++) c->splits[k][s + 1] = c->splits[k][s] + sizes[k][s];
        int64_t rows = c->splits[k][samples];
        c->xyz[k] = set_take((size_t)rows * 3 * sizeof(float));
        for (int64_t i = 0; i < 3 * rows; i++) c->xyz[k][i] = pnet_rand_unit(&r, draw++);
        *set[k] = (struct pnet_point_set){pnet_count(rows), samples, c->splits[k], c->xyz[k]};
    }
    return c;
}

/* One sample of n and m points. */
static inline struct set_case *set_case_of(int64_t n, int64_t m, uint32_t seed)
{
    return set_case_new(1, &n, &m, seed);
}

static inline void set_case_free(struct set_case *c)
{
    free(c->xyz[0]);
    free(c->xyz[1]);
    free(c);
}

static inline void set_case_move(struct set_case *c, int k, float dx, float dy, float dz)
{
    const float by[3] = {dx, dy, dz};
    int32_t samples = c->pair.x.samples;
    for (int64_t i = 0; i < 3 * c->splits[k][samples]; i++) c->xyz[k][i] += by[i % 3];
}

/* A workspace of exactly so many bytes, filled with NaN. */
static inline void *set_work(size_t bytes)
{
    void *work = aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (!work) abort();
    memset(work, 0xff, bytes + 64);
    return work;
}
/* Frees it; nothing may have been written behind its end. */
static inline void set_work_end(void *work, size_t bytes)
{
    const unsigned char *end = (unsigned char *)work + bytes;
    bool whole = true;
    for (int i = 0; i < 64; i++) whole &= end[i] == 0xff;
    CHECKF(whole, "written behind the workspace");
    free(work);
}

#endif
