/* One layer by any algorithm, on any device: checked against double first, then timed. */
#ifndef PNET_BENCH_ALGO_H
#define PNET_BENCH_ALGO_H

#include "bench/conv_layer.h"
#include "runtime/device/device.h"

enum { ALGO_PRODUCTS = 3, ALGO_ALL = 7 }; /* forward, dF, dW */
extern const char *const pnet_bench_algo_product_names[ALGO_PRODUCTS];

struct algo_room;

struct algo_result {
    enum pnet_conv_algo algo;
    double time[ALGO_PRODUCTS], error[ALGO_PRODUCTS]; /* seconds; of products that were asked for */
    double sort;                                      /* seconds that the forward set's list took */
    size_t list_bytes;                                /* of one set */
    size_t work_bytes[ALGO_PRODUCTS];
};

/* Copies the inputs of the products to the device and allocates their results there; `l` keeps its own. Ends the program if
   memory is out. */
struct algo_room *pnet_bench_algo_room_new(struct pnet_device where, struct layer *l);
void pnet_bench_algo_room_free(struct algo_room *r);

/* The products whose bits are set, from bit 0 for forward on: checked, then medians of `repeat` runs, or the one that was
   checked where it took half a second and more. Lists are made outside of what is timed. */
struct algo_result pnet_bench_algo_measure(
    struct algo_room *r, enum pnet_conv_algo algo, unsigned products, int repeat);
/* The first of them whose error is too large, or NULL. The listings add to gradients float by float, so that their rounding
   grows with the root of the number of triplets a cell. */
const char *pnet_bench_algo_wrong(
    const struct algo_result *r, const struct pnet_triplets *t, unsigned products);

/* All of `count` results as a table, or as a member of a JSON object. */
void pnet_bench_algo_print(
    const struct algo_result *r, int count, unsigned products, const char *heading);
void pnet_bench_algo_print_json(
    FILE *out, const struct algo_result *r, int count, unsigned products);

#endif
