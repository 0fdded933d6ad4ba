#include "bench/orders.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "kernels/philox.h"

enum { AXIS = 65535, PROBES = 128 };

static double draw(uint64_t seed, uint64_t number)
{
    struct pnet_rand r = {.seed = seed, .purpose = PNET_DRAW_TEST};
    return (double)pnet_rand_unit(&r, number);
}

/* Numbers 0 .. n - 1 in a random order. */
static void shuffle(int64_t n, uint64_t seed, int32_t *order)
{
    for (int64_t i = 0; i < n; i++) order[i] = (int32_t)i;
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t k = (int64_t)(draw(seed, (uint64_t)i) * (double)(i + 1));
        int32_t swap = order[i];
        if (k > i) k = i;
        order[i] = order[k];
        order[k] = swap;
    }
}

struct table {
    enum race_hash hash;
    int32_t buckets, share; /* share: hashes of one bucket, where they are divided */
    int32_t probe[PROBES][3];
};

/* Directions of probes: all places within two steps, and four corners. */
static void make_probes(struct table *t, uint64_t seed)
{
    static const int32_t corner[4][3] = {{3, 3, 3}, {3, -3, 3}, {-3, 3, -3}, {-3, -3, -3}};
    int32_t all[PROBES][3], order[PROBES];
    int n = 0;
    for (int32_t i = 0; i < 125; i++)
        if (i != 62)
            memcpy(all[n++], (int32_t[]){i / 25 - 2, i / 5 % 5 - 2, i % 5 - 2}, sizeof all[0]);
    memcpy(all[n], corner, sizeof corner);
    shuffle(PROBES, seed, order);
    for (int k = 0; k < PROBES; k++) memcpy(t->probe[k], all[order[k]], sizeof all[0]);
}

static int32_t clamp(double v)
{
    return v < 0 ? 0 : v > AXIS - 1 ? AXIS - 1 : (int32_t)v;
}

static int32_t hash_of(const struct table *t, const int32_t v[3])
{
    uint32_t mixed = (uint32_t)(v[0] ^ v[1] ^ v[2]);
    uint64_t code = pnet_key_join((uint32_t)v[2], (uint32_t)v[1], (uint32_t)v[0]) >> 32;
    uint32_t number = t->hash <= RACE_XOR_MOD ? mixed : (uint32_t)code;
    bool divides = t->hash == RACE_XOR_DIV || t->hash == RACE_Z_DIV;
    return (int32_t)(divides ? number / (uint32_t)t->share : number % (uint32_t)t->buckets);
}

/* Each axis is scaled by itself. */
static void find_voxels(int64_t n, const float *xyz, int32_t (*voxel)[3])
{
    for (int a = 0; a < 3; a++) {
        double low = INFINITY, high = -INFINITY;
        for (int64_t i = 0; i < n; i++) {
            low = fmin(low, (double)xyz[3 * i + a]);
            high = fmax(high, (double)xyz[3 * i + a]);
        }
        for (int64_t i = 0; i < n; i++)
            voxel[i][a] =
                high > low ? clamp(((double)xyz[3 * i + a] - low) * AXIS / (high - low)) : 0;
    }
}

/* A bucket with room near a point; -1: none of those tried. */
static int32_t probe(const struct table *t, const int32_t voxel[3], int64_t point, int32_t room,
    const int32_t *filled, uint64_t seed, int64_t *probes)
{
    for (int k = 0; k < PROBES; k++) {
        int32_t at[3];
        uint64_t number = (uint64_t)point * 4 * PROBES + 4 * (uint64_t)k;
        double step = round(AXIS * (2.56 + 2.56 * draw(seed, number)) / t->share);
        for (int a = 0; a < 3; a++) {
            double jitter = step * (draw(seed, number + 1 + (uint64_t)a) - 0.5);
            at[a] = clamp(voxel[a] + t->probe[k][a] * step + jitter);
        }
        int32_t bucket = hash_of(t, at);
        ++*probes;
        if (filled[bucket] < room) return bucket;
    }
    return -1;
}

struct race pnet_bench_race(
    enum race_hash hash, int64_t n, const float *xyz, int32_t room, uint64_t seed, int32_t *order)
{
    struct table t = {.hash = hash, .buckets = 1};
    struct race r = {0};
    while ((int64_t)t.buckets * room < n) t.buckets *= 2;
    t.share = (AXIS + t.buckets - 1) / t.buckets;
    make_probes(&t, seed);
    int32_t(*voxel)[3] = bench_alloc((size_t)n * sizeof *voxel);
    int32_t *arrival = bench_alloc((size_t)n * sizeof *arrival),
            *bucket = bench_alloc((size_t)n * sizeof *bucket),
            *filled = bench_alloc(((size_t)t.buckets + 1) * sizeof *filled);
    int64_t *place = bench_alloc(((size_t)t.buckets + 2) * sizeof *place);
    find_voxels(n, xyz, voxel);
    shuffle(n, seed + 1, arrival);
    memset(filled, 0, ((size_t)t.buckets + 1) * sizeof *filled);
    for (int64_t k = 0; k < n; k++) filled[hash_of(&t, voxel[k])]++;
    for (int32_t b = 0; b < t.buckets; b++) {
        r.crowded += filled[b] > room ? filled[b] - room : 0;
        r.empty += filled[b] == 0;
    }
    memset(filled, 0, ((size_t)t.buckets + 1) * sizeof *filled);
    for (int64_t k = 0; k < n; k++) {
        int32_t i = arrival[k], b = hash_of(&t, voxel[i]);
        if (filled[b] >= room) b = probe(&t, voxel[i], i, room, filled, seed + 2, &r.probes);
        if (b < 0) {
            b = t.buckets;
            r.recycled++;
        }
        filled[b]++;
        bucket[i] = b;
    }
    place[0] = 0;
    for (int32_t b = 0; b <= t.buckets; b++) place[b + 1] = place[b] + filled[b];
    for (int64_t k = 0; k < n; k++) order[place[bucket[arrival[k]]]++] = arrival[k];
    r.buckets = t.buckets;
    free(voxel);
    free(arrival);
    free(bucket);
    free(filled);
    free(place);
    return r;
}

double pnet_bench_spread(int64_t n, const float *xyz, const int32_t *order, int64_t size)
{
    double sum = 0;
    for (int64_t first = 0; first < n; first += size) {
        int64_t end = first + size < n ? first + size : n;
        double mean[3] = {0, 0, 0};
        for (int64_t k = first; k < end; k++)
            for (int a = 0; a < 3; a++)
                mean[a] += (double)xyz[3 * (order ? order[k] : k) + a] / (double)(end - first);
        for (int64_t k = first; k < end; k++)
            for (int a = 0; a < 3; a++)
                sum += pow((double)xyz[3 * (order ? order[k] : k) + a] - mean[a], 2);
    }
    return n ? sqrt(sum / (double)n) : 0;
}
