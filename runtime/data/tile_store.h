/* The points of one cloud in files, by tile, with the values that a network finds for them: the memory is that of one tile with
   its margin, and of a piece of the cloud. The work can be taken up again: values that were given before stay. */
#ifndef PNET_RUNTIME_TILE_STORE_H
#define PNET_RUNTIME_TILE_STORE_H

#include "runtime/data/cloud_tiles.h"
#include "runtime/data/sample.h"
#include "runtime/plan/input.h"

struct pnet_tile_store_options {
    const char *folder; /* made where it is not there */
    struct pnet_tiling tiling;
    const struct pnet_input *inputs; /* of the model: [input_count] */
    int input_count, input;          /* the input that the points feed */
    size_t value_bytes;              /* of a point */
};

struct pnet_tile_store;

/* Begins a store; what is pointed to must outlive it. PNET_USAGE: the folder has files that no store made. PNET_FAILED: it cannot
   be written. PNET_NO_MEMORY. */
enum pnet_status pnet_tile_store_open(
    const struct pnet_tile_store_options *o, struct pnet_tile_store **s, struct pnet_error *e);
/* Frees the store. `keep`: its files stay, for one that takes the work up again; else they are removed, and the folder. */
void pnet_tile_store_close(struct pnet_tile_store *s, bool keep);

/* First all points of the cloud are counted, in any pieces. PNET_NO_MEMORY. */
enum pnet_status pnet_tile_store_count(
    struct pnet_tile_store *s, int64_t rows, const float *xyz, struct pnet_error *e);
/* Then places for them are made. PNET_NO_MEMORY. */
enum pnet_status pnet_tile_store_turn(struct pnet_tile_store *s, struct pnet_error *e);
/* Then the same points are put, again in any pieces, in the order of the file. row[i]: the row of the file of point i; these
   ascend. PNET_FAILED: the disk is full, or the like. */
enum pnet_status pnet_tile_store_put(struct pnet_tile_store *s, const struct pnet_sample *points,
    const int64_t *row, struct pnet_error *e);
/* Ends the points. `key` is a number of all that decides the values besides the points: values in the folder stay if they were
   made with the same key and the same points. */
enum pnet_status pnet_tile_store_begin(
    struct pnet_tile_store *s, uint64_t key, struct pnet_error *e);

int64_t pnet_tile_store_tiles(const struct pnet_tile_store *s);
int64_t pnet_tile_store_points(const struct pnet_tile_store *s);
/* Returns the bytes of its files. */
uint64_t pnet_tile_store_bytes(const struct pnet_tile_store *s);
/* Returns the points of a tile, without its margin. */
int64_t pnet_tile_store_own(const struct pnet_tile_store *s, int64_t tile);
/* Has the tile its values? */
bool pnet_tile_store_has(const struct pnet_tile_store *s, int64_t tile);
/* Has any tile its values, from this work or from one that it may take up again? */
bool pnet_tile_store_has_any(const struct pnet_tile_store *s);

/* Reads a tile with its margin as a batch of one sample, and for each of its rows whether it is the tile's own; the caller frees
   both. */
enum pnet_status pnet_tile_store_take(const struct pnet_tile_store *s, int64_t tile,
    struct pnet_batch **b, bool **is_own, struct pnet_error *e);
/* Writes the values of a tile's own points, [own] of value_bytes in the order of their rows. */
enum pnet_status pnet_tile_store_give(
    struct pnet_tile_store *s, int64_t tile, const void *values, struct pnet_error *e);

/* Reads the values of the points of rows from `first` on, `count` of them, of the file: values[count] of value_bytes, and whether
   the row has a point. Calls follow each other in the order of rows. */
enum pnet_status pnet_tile_store_values(struct pnet_tile_store *s, int64_t first, int64_t count,
    void *values, bool *there, struct pnet_error *e);

#endif
