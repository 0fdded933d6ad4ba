/* Rows of triplets sorted by a warp: every triplet counts those of its row that come before it.
   For .cu files alone. */
#ifndef PNET_KERNELS_CUDA_GEO_RANK_H
#define PNET_KERNELS_CUDA_GEO_RANK_H

#include "kernels/cuda/geo_set.h"

/* Some rows at a time, a lane each. */
struct rank_room {
    uint64_t item[ROW_LIMIT]; /* lane, cell and other, from the highest bit down */
    int32_t offset[33];       /* where each lane's row begins, and where the last one ends */
    int64_t start[32];        /* where it begins in the set */
};

static __device__ __forceinline__ uint64_t rank_item(int lane, int32_t cell, int32_t other)
{
    return (uint64_t)lane << 48 | (uint64_t)cell << 32 | (uint32_t)other;
}

/* Writes the items of lanes [from, to) to their places. */
static __device__ void rank_write(
    const struct rank_room &room, int from, int to, int32_t *other, uint16_t *cell)
{
    int begin = room.offset[from], end = room.offset[to];
    for (int e = begin + (int)(threadIdx.x % 32); e < end; e += 32) {
        uint64_t own = room.item[e];
        int lane = (int)(own >> 48), last = room.offset[lane + 1], rank = 0;
        for (int t = room.offset[lane]; t < last; t++) rank += room.item[t] < own;
        int64_t place = room.start[lane] + rank;
        other[place] = (int32_t)own;
        cell[place] = (uint16_t)(own >> 32);
    }
}

/* Lanes [from, returned) have rows that fit the room together; at least one lane. `ends` are
   inclusive sums of their lengths, `before` that of the lanes before `from`. */
static __device__ __forceinline__ int rank_share(int from, int to, int ends, int before)
{
    int lane = threadIdx.x % 32;
    bool fits = lane >= from && lane < to && ends - before <= ROW_LIMIT;
    int many = __popc(__ballot_sync(WARP_ALL, fits));
    return from + (many ? many : 1);
}

/* Inclusive sums over lanes. */
static __device__ __forceinline__ int lane_sums(int x)
{
    int lane = threadIdx.x % 32;
    for (int step = 1; step < 32; step *= 2) {
        int below = __shfl_up_sync(WARP_ALL, x, step);
        if (lane >= step) x += below;
    }
    return x;
}

#endif
