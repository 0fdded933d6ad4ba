/* Rows of triplets sorted by a warp: every triplet counts those of its row that come before it.
   For .cu files alone. */
#ifndef PNET_KERNELS_CUDA_GEO_RANK_H
#define PNET_KERNELS_CUDA_GEO_RANK_H

#include "kernels/cuda/geo_set.h"

/* Some rows at a time, a lane each, one behind the other. Where the triplets of a row come in the
   order of `other`, their place in it stands for it and an item has 32 bits. */
struct rank_room {
    union {
        uint64_t wide[ROW_LIMIT]; /* lane, cell and other, from the highest bit down */
        struct {
            uint32_t
                item[ROW_LIMIT]; /* lane, cell and place in the row, from the highest bit down */
            int32_t other[ROW_LIMIT];
        };
    };
    int32_t offset[33]; /* where each lane's row begins, and where the last one ends */
    int64_t start[32];  /* where it begins in the set */
};

enum { PLACE_BITS = 10, CELL_BITS = 16, LANE_SHIFT = PLACE_BITS + CELL_BITS };
static_assert(ROW_LIMIT <= 1 << PLACE_BITS, "a place in a row fits its bits");

static __device__ __forceinline__ uint64_t wide_item(int lane, int32_t cell, int32_t other)
{
    return (uint64_t)lane << 48 | (uint64_t)cell << 32 | (uint32_t)other;
}

/* Puts a triplet of lane's row to place `at` of the room. */
static __device__ __forceinline__ void rank_put(
    struct rank_room &room, bool ascending, int at, int lane, int32_t cell, int32_t other)
{
    if (ascending) {
        uint32_t place = (uint32_t)(at - room.offset[lane]);
        room.item[at] = (uint32_t)lane << LANE_SHIFT | (uint32_t)cell << PLACE_BITS | place;
        room.other[at] = other;
    } else {
        room.wide[at] = wide_item(lane, cell, other);
    }
}

/* Writes the items of lanes [from, to) to their places. */
static __device__ void rank_write_wide(
    const struct rank_room &room, int from, int to, int32_t *other, uint16_t *cell)
{
    int begin = room.offset[from], end = room.offset[to];
    for (int e = begin + (int)(threadIdx.x % 32); e < end; e += 32) {
        uint64_t own = room.wide[e];
        int lane = (int)(own >> 48), last = room.offset[lane + 1], rank = 0;
        for (int t = room.offset[lane]; t < last; t++) rank += room.wide[t] < own;
        int64_t place = room.start[lane] + rank;
        other[place] = (int32_t)own;
        cell[place] = (uint16_t)(own >> 32);
    }
}

/* The same four items at a time. Those of other rows that come along are lower where they stand
   before the row, and higher behind it; behind the last row there are none. */
static __device__ void rank_write(
    struct rank_room &room, int from, int to, int32_t *other, uint16_t *cell)
{
    int lane = threadIdx.x % 32, begin = room.offset[from], end = room.offset[to];
    if (lane < 4 && end + lane < ROW_LIMIT) room.item[end + lane] = UINT32_MAX;
    __syncwarp();
    for (int e = begin + lane; e < end; e += 32) {
        uint32_t own = room.item[e];
        int row = (int)(own >> LANE_SHIFT), first = room.offset[row], last = room.offset[row + 1];
        int rank = -(first & 3);
        for (int t = first & ~3; t < last; t += 4) {
            uint4 four = *(const uint4 *)&room.item[t];
            rank += (four.x < own) + (four.y < own) + (four.z < own) + (four.w < own);
        }
        int64_t place = room.start[row] + rank;
        other[place] = room.other[e];
        cell[place] = (uint16_t)(own >> PLACE_BITS);
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
