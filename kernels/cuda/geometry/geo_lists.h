/* The least of many candidates: lists that a warp keeps together, and lists of its lanes. A candidate is a number of 64 bits; the
   kernels say which (geo_near.h). For .cu files alone. */
#ifndef PNET_KERNELS_CUDA_GEO_LISTS_H
#define PNET_KERNELS_CUDA_GEO_LISTS_H

#include "kernels/cuda/geometry/geo_near.h"

/* A warp's candidates: `room` of them; the first `sorted` ones are the nearest so far, ascending. */
struct nearest {
    uint64_t *item;
    struct geo_gaps *gaps;
    int room, limit, count, sorted;
    uint64_t bound; /* a candidate that is not below this cannot be among the nearest */
};

/* Returns how many candidates to hold; a power of two, for sorting. */
static inline int room_for(int32_t limit)
{
    int room = 64;
    while (room < limit + 32) room *= 2;
    return room;
}

static inline size_t nearest_bytes(int warps, int room)
{
    return (size_t)warps * ((size_t)room * sizeof(uint64_t) + sizeof(struct geo_gaps));
}

static __device__ inline struct nearest nearest_in(char *shared, int warps, int room, int limit)
{
    int warp = threadIdx.x / 32;
    struct nearest n = {};
    n.item = (uint64_t *)shared + (size_t)warp * room;
    n.gaps = (struct geo_gaps *)((uint64_t *)shared + (size_t)warps * room) + warp;
    n.room = room;
    n.limit = limit;
    n.bound = UINT64_MAX;
    return n;
}

/* Sorts the first `size` items, a power of two, by a bitonic network. */
static __device__ inline void sort_items(uint64_t *item, int size)
{
    int lane = threadIdx.x % 32;
    for (int merged = 2; merged <= size; merged *= 2)
        for (int stride = merged / 2; stride > 0; stride /= 2) {
            for (int n = lane; n < size / 2; n += 32) {
                int low = 2 * n - (n & (stride - 1));
                int high = stride == merged / 2 ? low ^ (merged - 1) : low + stride;
                uint64_t a = item[low], b = item[high];
                if (a > b) {
                    item[low] = b;
                    item[high] = a;
                }
            }
            __syncwarp();
        }
}

static __device__ inline void sort_all(uint64_t *item, int count, int room)
{
    int size = 2;
    while (size < count) size *= 2;
    for (int i = count + (int)(threadIdx.x % 32); i < size && i < room; i += 32)
        item[i] = UINT64_MAX;
    __syncwarp();
    sort_items(item, size);
}

static __device__ inline void keep_nearest(struct nearest &n)
{
    sort_all(n.item, n.count, n.room);
    n.count = n.sorted = n.count < n.limit ? n.count : n.limit;
    n.bound = n.count == n.limit ? n.item[n.limit - 1] : UINT64_MAX;
    __syncwarp();
}

static __device__ inline void offer(struct nearest &n, bool there, uint64_t item)
{
    int lane = threadIdx.x % 32;
    bool take = there && item < n.bound;
    uint32_t mask = __ballot_sync(WARP_ALL, take);
    if (!mask) return;
    if (take) n.item[n.count + __popc(mask & ((1u << lane) - 1))] = item;
    n.count += __popc(mask);
    __syncwarp();
    bool first = n.bound == UINT64_MAX && n.count >= n.limit;
    if (first || n.count > n.room - 32 || n.count - n.sorted >= n.room / 4) keep_nearest(n);
}

/* A lane's candidates, ascending. */
struct few {
    uint64_t *list; /* [limit][32], this lane's column */
    int limit, count;
    uint64_t bound; /* a candidate that is not below this cannot be among the nearest */
};

static __device__ __forceinline__ void insert(struct few &f, uint64_t item)
{
    int place = f.count < f.limit ? f.count++ : f.limit - 1;
    for (; place > 0 && f.list[(place - 1) * 32] > item; place--)
        f.list[place * 32] = f.list[(place - 1) * 32];
    f.list[place * 32] = item;
    if (f.count == f.limit) f.bound = f.list[(f.limit - 1) * 32];
}

#endif
