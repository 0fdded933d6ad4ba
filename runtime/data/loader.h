/* Batches of a data set, in order, made ahead by worker threads.

   The order of an epoch and everything random in a sample are functions of (seed, epoch, index):
   the batches are the same bits whatever the number of workers, and after pnet_loader_start() at
   any position. */
#ifndef PNET_RUNTIME_LOADER_H
#define PNET_RUNTIME_LOADER_H

#include "runtime/data/augment.h"
#include "runtime/data/dataset.h"
#include "runtime/base/error.h"
#include "runtime/data/input_map.h"

#include <stdbool.h>
#include <stdint.h>

struct pnet_loader_options {
    const struct pnet_dataset *data; /* what is pointed to must outlive the loader */
    enum pnet_split split;
    const struct pnet_input *inputs; /* of the model: [input_count] */
    int input_count;
    const struct pnet_input_map *map;
    int32_t batch_size;
    int workers;   /* threads; 0: pnet_loader_next() does the work */
    bool training; /* shuffled, augmented, capped; works ahead across the end of an epoch */
    const struct pnet_augment *augment; /* or NULL */
    int64_t max_points;                 /* 0: no cap */
    bool
        one_frame; /* the model takes features of one cloud to the points of the other (pnet_plan_one_frame) */
    bool drop_last;       /* training: leave out the last batch where it is not full */
    bool skip_empty;      /* leave out clouds without points instead of failing */
    uint64_t cache_bytes; /* for samples before augmentation; the first ones that fit are kept */
    uint64_t seed;
    /* of the clouds that the weights were trained on: clouds that lie elsewhere are told; or NULL */
    const struct pnet_frame *trained;
    /* Called by one thread at a time, once a cloud, with a warning of its reader or a doubt about its place; also once with the
       first cloud whose colours alone would be divided by another number than by map->ranges, and, without `training`, with the
       first one whose other features lie outside of them. May be NULL. */
    void (*warn)(void *context, const char *text);
    void *context;
};

struct pnet_loader;

/* Checks the data set and the map against the model's inputs, and starts the workers at epoch 0. The caller frees the
   loader. PNET_USAGE, PNET_BAD_DATA (the split has no entries), PNET_NO_MEMORY, PNET_FAILED. */
enum pnet_status pnet_loader_new(
    const struct pnet_loader_options *o, struct pnet_loader **l, struct pnet_error *e);
/* May be called at any time; waits until the workers have finished their samples. */
void pnet_loader_free(struct pnet_loader *l);

int64_t pnet_loader_samples(const struct pnet_loader *l); /* entries of the split */
int64_t pnet_loader_batches(const struct pnet_loader *l); /* an epoch */

/* Moves to a batch of an epoch, and drops the batches prepared ahead. From batch pnet_loader_batches() on the epoch is over.
   After a failure, loading starts again. */
void pnet_loader_start(struct pnet_loader *l, uint32_t epoch, int64_t batch);
/* Returns the next batch, which the caller frees; NULL at the end of the epoch, and the next call begins the next epoch. An
   error is returned in the place of its batch, and again until pnet_loader_start(). A batch whose clouds are all empty
   (skip_empty) is skipped. */
enum pnet_status pnet_loader_next(
    struct pnet_loader *l, struct pnet_batch **b, struct pnet_error *e);
/* Epoch and number of the batch that pnet_loader_next() returns next; a checkpoint keeps both. */
void pnet_loader_position(const struct pnet_loader *l, uint32_t *epoch, int64_t *batch);

/* Computes the order of the samples of an epoch: order[samples], Fisher-Yates for training, else 0, 1, 2 ... */
void pnet_loader_order(
    uint64_t seed, uint32_t epoch, bool training, int64_t samples, int64_t *order);

#endif
