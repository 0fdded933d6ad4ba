/* Sizes of the workspaces of norms, pools, losses and metrics on a GPU. Host arithmetic, compiled in every build, so that a
   plan for a GPU is the same on a machine without one. */
#ifndef PNET_KERNELS_CUDA_FEATURE_WORK_H
#define PNET_KERNELS_CUDA_FEATURE_WORK_H

#include "kernels/norm.h"
#include "kernels/philox.h"

#include <stddef.h>
#include <stdint.h>

enum {
    SLICES = 1024, /* ranges of rows summed separately; the bits of a loss depend on it */

    CHUNK_ROWS = 64,     /* least rows of a chunk of a sum over columns */
    SUM_CHUNKS = 1024,   /* most chunks of a sum of rows of at most WIDE_CHANNELS channels */
    WIDE_CHANNELS = 128, /* wider rows are cut into tiles of so many channels */
    LAYER_ROWS = 16,     /* least rows of a chunk of the gradient of layer norm */
    LAYER_CHUNKS = 512,  /* most of them */
    FEW_ROWS = 8192,
    FEW_CHUNKS = FEW_ROWS / CHUNK_ROWS,
    TILE_CHANNELS = 32,
    TILE_SUMS = 2 * TILE_CHANNELS,
};

/* Of one class, of the Dice loss. */
struct tally {
    double hits, mass, labels;
};

/* Sums of a slice of a loss that are joined two at a time. */
struct two {
    double a, b;
};

/* The terms that a positive pair of the hardest contrastive loss adds to the three sums; a negative term is not added. */
struct terms {
    double of[3];
};

static inline size_t round_up(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* How many chunks at most `rows` rows have, at most `most`. Does not fall where rows grow. */
static inline int64_t chunks_of(int64_t rows, int64_t most)
{
    int64_t chunks = (rows + CHUNK_ROWS - 1) / CHUNK_ROWS;
    return chunks < most ? chunks : most;
}

/* Most chunks of a sum of rows of c channels. Wide rows are cut into tiles, so fewer chunks fill the GPU. */
static inline int64_t sum_chunks_of(int32_t c)
{
    int64_t chunks = SUM_CHUNKS / ((c + WIDE_CHANNELS - 1) / WIDE_CHANNELS);
    return chunks > SUM_CHUNKS / 8 ? chunks : (int64_t)(SUM_CHUNKS / 8);
}

/* Doubles that the chunks' sums take. */
static inline size_t column_parts(int64_t rows, int32_t segments, int32_t c)
{
    return (size_t)(chunks_of(rows, sum_chunks_of(c)) + segments) * (size_t)c * 2;
}

/* How many chunks the gradient of layer norm has at most. Blocks of wide rows have fewer of them at once, and more sums. */
static inline int64_t layer_chunks(int64_t rows, int32_t c)
{
    int64_t chunks = (rows + LAYER_ROWS - 1) / LAYER_ROWS,
            most = c > WIDE_CHANNELS ? LAYER_CHUNKS / 2 : LAYER_CHUNKS;
    return chunks < most ? chunks : most;
}

PNET_HD int32_t norm_tiles(int32_t c)
{
    return (c + TILE_CHANNELS - 1) / TILE_CHANNELS;
}

/* Chunks that at most `rows` rows may have. */
static inline int64_t norm_chunks(int64_t rows)
{
    return rows > FEW_ROWS ? (int64_t)FEW_CHUNKS : (rows + CHUNK_ROWS - 1) / CHUNK_ROWS;
}

/* Doubles that the chunks' sums of a norm take. Groups of channels are summed by columns.cuh. */
static inline size_t norm_parts(const struct pnet_norm *n)
{
    const struct pnet_segments *s = &n->segments;
    if (n->groups != n->c) return column_parts(s->rows, s->count, n->c);
    return (size_t)(norm_chunks(s->rows) + s->count) * (size_t)norm_tiles(n->c) * TILE_SUMS;
}

#endif
