/* Orders of points, ours and those of a racing hash, and how near points lie that attend to each other. */
#ifndef PNET_BENCH_ORDERS_H
#define PNET_BENCH_ORDERS_H

#include "bench/race.h"
#include "bench/scene.h"
#include "kernels/order.h"
#include "runtime/device/device.h"

/* What became of the points of one sample. */
struct race {
    int64_t crowded;  /* points beyond the room of their bucket before any moves */
    int64_t recycled; /* without a place in any bucket that was tried */
    int64_t probes;   /* buckets that were tried, of all points */
    int64_t empty;    /* buckets without a point */
    int64_t buckets;
};

/* For n points in buckets with room for `room`. */
struct race_table pnet_bench_race_table(
    enum race_hash hash, int64_t n, int32_t room, uint64_t seed);
/* The hash of Flash3D as its code has it, its threads one after the other in a random order: points take places of the bucket
   of their hash while there is room for `room` of them; else they try up to 128 buckets of places nearby; what finds none goes
   to a bucket behind all others. order [n] := the points by bucket, then by arrival. */
struct race pnet_bench_race(
    enum race_hash hash, int64_t n, const float *xyz, int32_t room, uint64_t seed, int32_t *order);

/* The root of the mean squared distance of points to the middle of their group: groups are `size` places of an order, the
   last one what is left. order NULL: the points as they are. */
double pnet_bench_spread(int64_t n, const float *xyz, const int32_t *order, int64_t size);

/* A scene on a device, for times. */
struct orders_there {
    struct pnet_device where;
    enum pnet_device_kind device; /* that of `where` */
    struct pnet_level level;
    int32_t *order, *bucket; /* [rows] */
    void *work;
    size_t bytes; /* of work */
};
enum { ORDERS_REPEAT_MAX = 101 };

/* Copies the scene, and takes memory for all orders in buckets of `bucket` points. To be closed. */
enum pnet_status pnet_bench_orders_open(struct orders_there *t, struct pnet_device where,
    const struct scene *s, int32_t bucket, struct pnet_error *e);
void pnet_bench_orders_close(struct orders_there *t);
/* *seconds: the median time of making an order. PNET_FAILED: it is not `want` [rows], the same order made on the host. */
enum pnet_status pnet_bench_orders_time(struct orders_there *t, enum pnet_order kind,
    int32_t bucket, int repeat, const int32_t *want, double *seconds, struct pnet_error *e);
/* What an order on a GPU takes step by step: extents, keys, then launches of the sort, in each way that there is. */
enum { ORDERS_WAYS = 3, ORDERS_STEPS_MAX = 16 };
struct orders_steps {
    const char *way;
    int count;
    double seconds
        [ORDERS_STEPS_MAX]; /* of each step: what the order takes up to there, less what it takes before */
};
enum pnet_status pnet_bench_orders_steps(struct orders_there *t, enum pnet_order kind,
    int32_t bucket, int repeat, const int32_t *want, struct orders_steps ways[ORDERS_WAYS],
    struct pnet_error *e);
/* The same of threads that race for places, on a GPU. PNET_FAILED: the order is no permutation, or a bucket has more points than
   room. */
enum pnet_status pnet_bench_race_time(struct orders_there *t, enum race_hash hash, int32_t room,
    uint64_t seed, int repeat, double *seconds, struct pnet_error *e);

#endif
