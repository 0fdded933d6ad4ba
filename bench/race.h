/* What a thread of Flash3D's hash does (Chen et al., 2024, in the form of its code), for either device. */
#ifndef PNET_BENCH_RACE_H
#define PNET_BENCH_RACE_H

#include "kernels/morton.h"
#include "kernels/philox.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

enum race_hash { RACE_XOR_DIV, RACE_XOR_MOD, RACE_Z_DIV, RACE_Z_MOD, RACE_HASHES };

enum { RACE_AXIS = 65535, RACE_PROBES = 128 };

struct race_table {
    enum race_hash hash;
    int32_t buckets, room; /* points of a bucket */
    int32_t share;         /* hashes of one bucket, where they are divided */
    int32_t probe[RACE_PROBES][3];
    uint64_t seed; /* of what probes are moved by */
};

PNET_HD int32_t race_clamp(float v)
{
    return v < 0 ? 0 : v > RACE_AXIS - 1 ? RACE_AXIS - 1 : (int32_t)v;
}

/* Each axis is scaled by itself, from the least to the largest coordinate of the sample. */
PNET_HD int32_t race_voxel(float p, float low, float high)
{
    return high > low ? race_clamp((p - low) * (float)RACE_AXIS / (high - low)) : 0;
}

PNET_HD int32_t race_bucket(const struct race_table *t, const int32_t v[3])
{
    uint32_t mixed = (uint32_t)(v[0] ^ v[1] ^ v[2]);
    uint64_t code = pnet_key_join((uint32_t)v[2], (uint32_t)v[1], (uint32_t)v[0]) >> 32;
    uint32_t number = t->hash <= RACE_XOR_MOD ? mixed : (uint32_t)code;
    bool divides = t->hash == RACE_XOR_DIV || t->hash == RACE_Z_DIV;
    return (int32_t)(divides ? number / (uint32_t)t->share : number % (uint32_t)t->buckets);
}

PNET_HD float race_unit(uint32_t bits)
{
    return (float)(bits >> 8) * 0x1p-24f;
}

/* The bucket of a point's probe `k`. */
PNET_HD int32_t race_probe(const struct race_table *t, const int32_t voxel[3], int64_t point, int k)
{
    struct pnet_rand r = {t->seed, PNET_DRAW_TEST, 0, 0, NULL};
    uint32_t bits[4];
    int32_t at[3];
    pnet_philox(&r, (uint64_t)point * RACE_PROBES + (uint64_t)k, bits);
    float step = rintf((float)RACE_AXIS * (2.56f + 2.56f * race_unit(bits[0])) / (float)t->share);
    for (int a = 0; a < 3; a++) {
        float jitter = step * (race_unit(bits[1 + a]) - 0.5f);
        at[a] = race_clamp((float)voxel[a] + (float)t->probe[k][a] * step + jitter);
    }
    return race_bucket(t, at);
}

#ifdef __cplusplus
extern "C" {
#endif
/* For `n` points of one sample, in device memory: order [n] := the points by bucket, then by arrival, and bucket [n], where
   t->buckets is the one of points without a place. */
size_t pnet_bench_race_cuda_work(const struct race_table *t, int64_t n);
void pnet_bench_race_cuda(const struct race_table *t, int64_t n, const float *xyz, int32_t *order,
    int32_t *bucket, void *work);
#ifdef __cplusplus
}
#endif

#endif
