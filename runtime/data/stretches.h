/* Rows of tiles joined in their order. */
#ifndef PNET_RUNTIME_STRETCHES_H
#define PNET_RUNTIME_STRETCHES_H

#include <stdint.h>

/* A row of a cloud, and where it lies. */
struct pnet_placed_row {
    int64_t row, at;
};

/* Merges `count` stretches of rows, each ascending: end[i] is where stretch i ends in `rows`; `end` is overwritten. `room` has as
   many elements. Returns where all rows are then, in ascending order: `rows` or `room`. */
struct pnet_placed_row *pnet_merge_stretches(
    struct pnet_placed_row *rows, struct pnet_placed_row *room, int64_t *end, int64_t count);

#endif
