/* Clouds, poses and correspondences with known answers. */
#ifndef PNET_TESTS_REGISTER_CLOUDS_H
#define PNET_TESTS_REGISTER_CLOUDS_H

#include "runtime/register/register.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline struct pnet_rand test_rand(uint32_t stream)
{
    return (struct pnet_rand){.seed = 20, .purpose = PNET_DRAW_TEST, .b = stream};
}

/* Between -1 and 1. */
static inline double signed_unit(const struct pnet_rand *r, uint64_t i)
{
    return 2 * (double)pnet_rand_unit(r, i) - 1;
}

/* Points of a room's corner: three walls, and a bump on the floor that leaves no direction open. */
static inline float *corner(int64_t n, uint32_t stream)
{
    struct pnet_rand r = test_rand(stream);
    float *xyz = malloc((size_t)n * 3 * sizeof *xyz);
    for (int64_t i = 0; xyz && i < n; i++) {
        double u = 2 * (double)pnet_rand_unit(&r, (uint64_t)i * 4),
               v = 2 * (double)pnet_rand_unit(&r, (uint64_t)i * 4 + 1);
        double p[3] = {u, v, 0.4 * exp(-4 * ((u - 1) * (u - 1) + (v - 1.2) * (v - 1.2)))};
        int wall = (int)(i % 3);
        xyz[3 * i] = (float)(wall == 1 ? 0 : p[0]);
        xyz[3 * i + 1] = (float)(wall == 2 ? 0 : wall == 1 ? u : p[1]);
        xyz[3 * i + 2] = (float)(wall ? v : p[2]);
    }
    return xyz;
}

/* A workspace of exactly `bytes`, with a guard behind it. */
struct guarded {
    unsigned char *data;
    size_t bytes;
};

static inline struct guarded guarded_new(size_t bytes)
{
    struct guarded g = {aligned_alloc(64, (bytes + 127) / 64 * 64), bytes};
    if (g.data) memset(g.data, 0xa5, (bytes + 127) / 64 * 64);
    return g;
}

/* Frees; whether the guard still stands. */
static inline int guarded_end(struct guarded g)
{
    int whole = 1;
    for (size_t i = g.bytes; i < (g.bytes + 127) / 64 * 64; i++) whole &= g.data[i] == 0xa5;
    free(g.data);
    return whole;
}

/* The source moved by `truth`, of which every pair with i % 100 < outliers leads somewhere else. */
struct scene {
    int64_t count;
    float *source, *target;
    struct pnet_match *pairs;
    double truth[16];
};

static inline struct scene scene_new(int64_t n, int outliers, double noise)
{
    struct scene s = {.count = n};
    struct pnet_rand r = test_rand(7);
    double axis[3] = {1, -2, 0.5}, move[3] = {0.4, -1.3, 0.7};
    s.source = malloc((size_t)n * 3 * sizeof *s.source);
    s.target = malloc((size_t)n * 3 * sizeof *s.target);
    s.pairs = malloc((size_t)n * sizeof *s.pairs);
    if (!s.source || !s.target || !s.pairs) exit(1);
    for (int64_t i = 0; i < 3 * n; i++) s.source[i] = (float)(3 * signed_unit(&r, (uint64_t)i));
    pnet_rigid_make(axis, 67, move, s.truth);
    pnet_rigid_apply(s.truth, n, s.source, s.target);
    for (int64_t i = 0; i < 3 * n; i++)
        s.target[i] += (float)(noise * signed_unit(&r, (uint64_t)(3 * n + i)));
    for (int64_t i = 0; i < n; i++) {
        int64_t other = (int64_t)pnet_rand_bits(&r, (uint64_t)(6 * n + i)) % n;
        s.pairs[i] = (struct pnet_match){(int32_t)i, (int32_t)(i % 100 < outliers ? other : i)};
    }
    return s;
}

static inline void scene_free(struct scene *s)
{
    free(s->source);
    free(s->target);
    free(s->pairs);
}

#endif
