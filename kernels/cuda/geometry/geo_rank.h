/* Consecutive rows of triplets in shared memory, and their order by (cell, other), found by a warp. For .cu files alone. */
#ifndef PNET_KERNELS_CUDA_GEO_RANK_H
#define PNET_KERNELS_CUDA_GEO_RANK_H

#include "kernels/cuda/geometry/geo_set.h"

enum { RANK_LONGEST = 255, RANK_FEW = 32, RANK_MANY = 128 /* cells that are counted */ };

struct rank_rows {
    int32_t other[ROW_LIMIT];
    uint16_t cell[ROW_LIMIT];
    int32_t offset[33]; /* where each lane's row begins; the last one: where all rows end */
    int64_t start[32];  /* where each lane's row begins in the set */
};

/* Memory that is needed only after the search; four counters a word. */
template <int CELLS> struct rank_room {
    uint16_t sorted[ROW_LIMIT]; /* the item at each place */
    uint32_t counter[CELLS / 4][32];
};

/* Returns the lane whose row holds item `e` of lanes [from, to). */
static __device__ __forceinline__ int rank_lane(
    const struct rank_rows &rows, int from, int to, int e)
{
    while (to - from > 1) {
        int middle = (from + to) / 2;
        if (rows.offset[middle] <= e)
            from = middle;
        else
            to = middle;
    }
    return from;
}

/* Finds each item's place: the number of items of its row that precede it. Rows may have any order and any cells. */
static __device__ void rank_compare(
    const struct rank_rows &rows, int from, int to, uint16_t *sorted)
{
    int begin = rows.offset[from], end = rows.offset[to];
    for (int e = begin + (int)(threadIdx.x % 32); e < end; e += 32) {
        int lane = rank_lane(rows, from, to, e), first = rows.offset[lane], rank = 0;
        int cell = rows.cell[e], other = rows.other[e];
        for (int t = first; t < rows.offset[lane + 1]; t++) {
            int c = rows.cell[t];
            rank += c < cell || (c == cell && rows.other[t] < other);
        }
        sorted[first + rank] = (uint16_t)e;
    }
}

/* Memory of rank_pack: items, and what ends the last row. */
struct __align__(16) rank_items
{
    uint32_t item[ROW_LIMIT + 4];
};

static __device__ __forceinline__ int bit_length(uint32_t x)
{
    return 32 - __clz((int)x);
}

/* As rank_compare, with items of 32 bits, four at a time. An item has from the highest bit down: lane, cell, and `other`
   less the least `other` of its row. Calls rank_compare if items do not fit 32 bits. Items of other rows that are read as
   well compare lower if they stand before the row, and higher if after it. */
static __device__ void rank_pack(const struct rank_rows &rows, int from, int to, int cells,
    struct rank_items &packed, uint16_t *sorted)
{
    int lane = threadIdx.x % 32, begin = rows.offset[from], end = rows.offset[to];
    bool active = lane >= from && lane < to;
    int first = active ? rows.offset[lane] : 0, last = active ? rows.offset[lane + 1] : 0;
    int32_t least = INT32_MAX, most = 0;
    for (int e = first; e < last; e++) {
        least = min(least, rows.other[e]);
        most = max(most, rows.other[e]);
    }
    uint32_t span = first < last ? (uint32_t)(most - least) : 0;
    int bits = bit_length(__reduce_max_sync(WARP_ALL, span));
    if (5 + bit_length((uint32_t)cells - 1) + bits > 32) {
        rank_compare(rows, from, to, sorted);
        return;
    }
    for (int e = first; e < last; e++)
        packed.item[e] = (uint32_t)lane << 27 | (uint32_t)(rows.other[e] - least) |
                         (uint32_t)rows.cell[e] << bits;
    if (lane < 4) packed.item[end + lane] = UINT32_MAX;
    __syncwarp();
    for (int e = begin + lane; e < end; e += 32) {
        uint32_t own = packed.item[e];
        int row = (int)(own >> 27), start = rows.offset[row], stop = rows.offset[row + 1];
        int place = start & ~3;
        for (int t = start & ~3; t < stop; t += 4) {
            uint4 four = *(const uint4 *)&packed.item[t];
            place += (four.x < own) + (four.y < own) + (four.z < own) + (four.w < own);
        }
        sorted[place] = (uint16_t)e;
    }
}

/* Each lane counts the cells of its row, which is in the order of `other`, and assigns places to the items: for few cells,
   and rows of at most RANK_LONGEST items. Four counters share a word; all words of a lane lie in one bank. */
template <int CELLS>
static __device__ void rank_count(
    const struct rank_rows &rows, int from, int to, int cells, struct rank_room<CELLS> &room)
{
    int lane = threadIdx.x % 32, words = (cells + 3) / 4;
    bool active = lane >= from && lane < to;
    int begin = active ? rows.offset[lane] : 0, end = active ? rows.offset[lane + 1] : 0;
    uint8_t *counter = (uint8_t *)&room.counter[0][lane];
    for (int w = 0; w < words; w++) room.counter[w][lane] = 0;
    for (int e = begin; e < end; e++) {
        int cell = rows.cell[e];
        counter[cell / 4 * 128 + cell % 4]++;
    }
    uint32_t before = 0;
    for (int w = 0; w < words; w++) {
        uint32_t count = room.counter[w][lane], sums = count * 0x01010101u;
        room.counter[w][lane] = (sums << 8) + before * 0x01010101u;
        before += sums >> 24;
    }
    for (int e = begin; e < end; e++) {
        int cell = rows.cell[e];
        int place = counter[cell / 4 * 128 + cell % 4]++;
        room.sorted[begin + place] = (uint16_t)e;
    }
}

/* Writes lanes [from, to) in the order of sorted[place]. `together`: their rows are consecutive in the set. */
static __device__ void rank_write(const struct rank_rows &rows, int from, int to, bool together,
    const uint16_t *sorted, int32_t *other, uint16_t *cell)
{
    int begin = rows.offset[from], end = rows.offset[to];
    int64_t first = rows.start[from] - begin;
    for (int e = begin + (int)(threadIdx.x % 32); e < end; e += 32) {
        int64_t place = first + e;
        if (!together) {
            int lane = rank_lane(rows, from, to, e);
            place = rows.start[lane] + e - rows.offset[lane];
        }
        int item = sorted[e];
        other[place] = rows.other[item];
        cell[place] = rows.cell[item];
    }
}

/* Writes lanes [from, to) in their present order, one row after the other. */
static __device__ void rank_copy(
    const struct rank_rows &rows, int from, int to, int32_t *other, uint16_t *cell)
{
    int begin = rows.offset[from], end = rows.offset[to];
    int64_t first = rows.start[from] - begin;
    for (int e = begin + (int)(threadIdx.x % 32); e < end; e += 32) {
        other[first + e] = rows.other[e];
        cell[first + e] = rows.cell[e];
    }
}

/* Finds lanes [from, returned) whose rows fit the room together; at least one lane. `ends` are inclusive sums of the rows'
   lengths, `before` is the sum over the lanes before `from`. */
static __device__ __forceinline__ int rank_share(int from, int to, int ends, int before)
{
    int lane = threadIdx.x % 32;
    bool fits = lane >= from && lane < to && ends - before <= ROW_LIMIT;
    int many = __popc(__ballot_sync(WARP_ALL, fits));
    return from + (many ? many : 1);
}

/* Returns inclusive sums over the lanes of a warp. */
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
