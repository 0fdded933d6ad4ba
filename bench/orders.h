/* Orders of points, ours and those of a racing hash, and how near points lie that attend to each other. */
#ifndef PNET_BENCH_ORDERS_H
#define PNET_BENCH_ORDERS_H

#include "bench/scene.h"
#include "kernels/order.h"

/* The hashes of Flash3D (Chen et al., 2024). */
enum race_hash { RACE_XOR_DIV, RACE_XOR_MOD, RACE_Z_DIV, RACE_Z_MOD, RACE_HASHES };

/* What became of the points of one sample. */
struct race {
    int64_t crowded;  /* points beyond the room of their bucket before any moves */
    int64_t recycled; /* without a place in any bucket that was tried */
    int64_t probes;   /* buckets that were tried, of all points */
    int64_t empty;    /* buckets without a point */
    int64_t buckets;
};

/* The hash of Flash3D as its code has it, its threads one after the other in a random order: points take places of the bucket
   of their hash while there is room for `room` of them; else they try up to 128 buckets of places nearby; what finds none goes
   to a bucket behind all others. order [n] := the points by bucket, then by arrival. */
struct race pnet_bench_race(
    enum race_hash hash, int64_t n, const float *xyz, int32_t room, uint64_t seed, int32_t *order);

/* The root of the mean squared distance of points to the middle of their group: groups are `size` places of an order, the
   last one what is left. order NULL: the points as they are. */
double pnet_bench_spread(int64_t n, const float *xyz, const int32_t *order, int64_t size);

#endif
