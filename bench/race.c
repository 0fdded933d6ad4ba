#include "bench/orders.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

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

/* Directions of probes: all places within two steps, and four corners. */
static void make_probes(struct race_table *t, uint64_t seed)
{
    static const int32_t corner[4][3] = {{3, 3, 3}, {3, -3, 3}, {-3, 3, -3}, {-3, -3, -3}};
    int32_t all[RACE_PROBES][3], order[RACE_PROBES];
    int n = 0;
    for (int32_t i = 0; i < 125; i++)
        if (i != 62)
            memcpy(all[n++], (int32_t[]){i / 25 - 2, i / 5 % 5 - 2, i % 5 - 2}, sizeof all[0]);
    memcpy(all[n], corner, sizeof corner);
    shuffle(RACE_PROBES, seed, order);
    for (int k = 0; k < RACE_PROBES; k++) memcpy(t->probe[k], all[order[k]], sizeof all[0]);
}

static void find_voxels(int64_t n, const float *xyz, int32_t (*voxel)[3])
{
    for (int a = 0; a < 3; a++) {
        float low = INFINITY, high = -INFINITY;
        for (int64_t i = 0; i < n; i++) {
            low = fminf(low, xyz[3 * i + a]);
            high = fmaxf(high, xyz[3 * i + a]);
        }
        for (int64_t i = 0; i < n; i++) voxel[i][a] = race_voxel(xyz[3 * i + a], low, high);
    }
}

/* A bucket with room near a point; -1: none of those tried. */
static int32_t probe(const struct race_table *t, const int32_t voxel[3], int64_t point,
    const int32_t *filled, int64_t *probes)
{
    for (int k = 0; k < RACE_PROBES; k++) {
        int32_t bucket = race_probe(t, voxel, point, k);
        ++*probes;
        if (filled[bucket] < t->room) return bucket;
    }
    return -1;
}

struct race_table pnet_bench_race_table(enum race_hash hash, int64_t n, int32_t room, uint64_t seed)
{
    struct race_table t = {.hash = hash, .buckets = 1, .room = room, .seed = seed + 2};
    while ((int64_t)t.buckets * room < n) t.buckets *= 2;
    t.share = (RACE_AXIS + t.buckets - 1) / t.buckets;
    make_probes(&t, seed);
    return t;
}

struct race pnet_bench_race(
    enum race_hash hash, int64_t n, const float *xyz, int32_t room, uint64_t seed, int32_t *order)
{
    const struct race_table t = pnet_bench_race_table(hash, n, room, seed);
    struct race r = {0};
    int32_t(*voxel)[3] = bench_alloc((size_t)n * sizeof *voxel);
    int32_t *arrival = bench_alloc((size_t)n * sizeof *arrival),
            *bucket = bench_alloc((size_t)n * sizeof *bucket),
            *filled = bench_alloc(((size_t)t.buckets + 1) * sizeof *filled);
    int64_t *place = bench_alloc(((size_t)t.buckets + 2) * sizeof *place);
    find_voxels(n, xyz, voxel);
    shuffle(n, seed + 1, arrival);
    memset(filled, 0, ((size_t)t.buckets + 1) * sizeof *filled);
    for (int64_t k = 0; k < n; k++) filled[race_bucket(&t, voxel[k])]++;
    for (int32_t b = 0; b < t.buckets; b++) {
        r.crowded += filled[b] > room ? filled[b] - room : 0;
        r.empty += filled[b] == 0;
    }
    memset(filled, 0, ((size_t)t.buckets + 1) * sizeof *filled);
    for (int64_t k = 0; k < n; k++) {
        int32_t i = arrival[k], b = race_bucket(&t, voxel[i]);
        if (filled[b] >= room) b = probe(&t, voxel[i], i, filled, &r.probes);
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
