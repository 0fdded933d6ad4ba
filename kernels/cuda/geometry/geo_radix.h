/* Sorting rows by keys whose number of bits is known on the GPU alone: a stable radix sort by the lowest digit first, as Onesweep
   (Adinets and Merrill, 2022) has it. A pass cuts rows into tiles; a tile counts its digits, publishes the counts, and adds those
   of the tiles before it up until it meets one that has done so itself. One launch can run several sorts of the same number of
   rows. For .cu files alone. */
#ifndef PNET_KERNELS_CUDA_GEO_RADIX_H
#define PNET_KERNELS_CUDA_GEO_RADIX_H

#include "kernels/cuda/geometry/geo_grid.h"
#include "kernels/cuda/geometry/geo_work.h"

enum {
    RADIX_THREADS = 512,
    RADIX_WARPS = RADIX_THREADS / 32,
    RADIX_EACH = RADIX_TILE / RADIX_THREADS, /* rows of a thread */
    RADIX_DIGIT = 8,                         /* bits of a digit, at most */
    RADIX_WORD = 64,                         /* bits of a key, without those of the sample */
    RADIX_AHEAD = 16,                        /* tiles before it that a thread reads at once */
    RADIX_MOST = 8                           /* sorts of one launch */
};

/* What a sort counts, all 0 before it. */
struct radix_head {
    uint32_t count[RADIX_PASSES * RADIX_DIGITS]; /* rows with each digit of each pass */
    uint32_t ticket[RADIX_PASSES]; /* tiles begun by the launch that begins with this pass */
    uint32_t done[RADIX_PASSES];   /* tiles finished */
};

/* One sort. Keys of at most 32 bits are stored in 32. */
struct radix_sort {
    struct radix_head *head;
    uint64_t *state; /* [tiles, RADIX_DIGITS]: counts, and above them what they are; 0 before */
    void *item[2];   /* [n] keys; item[0] has them first */
    int32_t *row[2]; /* [n]; row[0] has the result */
    int bits;        /* of the keys; < 0: -bits more than three times *most */
};

/* Sorts of rows by (sample, key). */
struct radix_batch {
    int64_t n;
    int32_t samples;
    const int64_t *row_splits;
    const uint32_t *most;
    struct radix_sort sort[RADIX_MOST];
};

/* How a sort goes: the same for all its blocks. */
struct radix_plan {
    int passes, width; /* bits of a digit */
    bool narrow;       /* keys are stored in 32 bits */
    bool
        far; /* samples do not fit beside keys: passes from RADIX_WORD / RADIX_DIGIT on are by sample */
};

static __device__ __forceinline__ radix_plan radix_plan_of(
    const radix_batch &b, const radix_sort &s)
{
    radix_plan p;
    int bits = s.bits < 0 ? 3 * (int)*b.most - s.bits - 1 : s.bits;
    p.far = bits > RADIX_WORD;
    p.narrow = bits <= 32;
    if (p.far) bits = RADIX_WORD + 32 - __clz(b.samples - 1);
    p.passes = max(1, (bits + RADIX_DIGIT - 1) / RADIX_DIGIT);
    p.width = p.far ? RADIX_DIGIT : (bits + p.passes - 1) / p.passes;
    return p;
}

/* Adds the digits of a warp's rows up, lanes < `lanes`: neighbours mostly have the same high digits, so equal ones that
   stand together are added at once. */
static __device__ __forceinline__ void radix_count(uint32_t *count, uint32_t digit, int lanes)
{
    int lane = threadIdx.x % 32;
    uint32_t before = __shfl_up_sync(WARP_ALL, digit, 1);
    bool begins = lane == 0 || digit != before || lane == lanes;
    uint32_t above = __ballot_sync(WARP_ALL, begins) & ~(uint32_t)((UINT64_C(2) << lane) - 1);
    int end = above ? __ffs((int)above) - 1 : 32;
    if (begins && lane < lanes) atomicAdd(&count[digit], (uint32_t)(min(end, lanes) - lane));
}

/* Returns the lanes with the same digit. */
static __device__ __forceinline__ uint32_t radix_peers(uint32_t digit)
{
    uint32_t peers = WARP_ALL;
#pragma unroll
    for (int bit = 0; bit < RADIX_DIGIT; bit++) {
        uint32_t set = __ballot_sync(WARP_ALL, digit >> bit & 1);
        peers &= digit >> bit & 1 ? set : ~set;
    }
    return peers;
}

/* Returns exclusive sums over the first RADIX_DIGITS threads, where threads give numbers; all threads call it. */
static __device__ __forceinline__ uint64_t radix_scan(uint64_t own, uint64_t *warp_sum)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint64_t x = own;
    for (int step = 1; step < 32; step *= 2) {
        uint64_t below = __shfl_up_sync(WARP_ALL, x, step);
        if (lane >= step) x += below;
    }
    if (lane == 31 && warp < RADIX_DIGITS / 32) warp_sum[warp] = x;
    __syncthreads();
    for (int w = 0; w < warp && w < RADIX_DIGITS / 32; w++) x += warp_sum[w];
    return x - own;
}

/* A word of the state says of which pass it is, and whether it counts the tile or all tiles up to it. */
static __device__ __forceinline__ uint64_t radix_word(int pass, bool all, uint32_t count)
{
    return (uint64_t)(2 * pass + 1 + all) << 32 | count;
}

/* Returns the rows with a digit in the tiles before `tile`. */
static __device__ __forceinline__ uint32_t radix_before(
    const uint64_t *state, int pass, int64_t tile, int digit)
{
    const volatile uint64_t *at = state + digit;
    uint32_t partial = 2 * (uint32_t)pass + 1, sum = 0;
    for (int64_t last = tile - 1; last >= 0; last -= RADIX_AHEAD) {
        uint64_t word[RADIX_AHEAD];
        bool all = false;
#pragma unroll
        for (int k = 0; k < RADIX_AHEAD; k++)
            word[k] = last >= k ? at[(last - k) * RADIX_DIGITS] : radix_word(pass, true, 0);
#pragma unroll
        for (int k = 0; k < RADIX_AHEAD; k++) {
            if (all) continue;
            while ((uint32_t)(word[k] >> 32) < partial) word[k] = at[(last - k) * RADIX_DIGITS];
            sum += (uint32_t)word[k];
            all = (uint32_t)(word[k] >> 32) > partial;
        }
        if (all) break;
    }
    return sum;
}

struct radix_room {
    union {
        uint32_t seen[RADIX_WARPS][RADIX_DIGITS];
        uint64_t item[RADIX_TILE];
        int32_t row[RADIX_TILE];
    };
    uint32_t place[RADIX_DIGITS]; /* where a digit's rows begin in the tile */
    uint32_t base[RADIX_DIGITS];  /* and in the result, less that */
    uint64_t warp_sum[RADIX_DIGITS / 32];
    uint32_t ticket;
};

/* The tile of a pass that a block has. */
struct radix_tile {
    int pass, count; /* rows that are there */
    int64_t index;
};

/* A thread's rows of a tile: lane l of a warp has the rows l, l + 32, .. of those of its warp. */
template <class T> struct radix_own {
    T key[RADIX_EACH];
    int32_t row[RADIX_EACH];
    uint32_t place[RADIX_EACH]; /* in the tile, by digit */
};

static __device__ __forceinline__ int radix_index(int k)
{
    return (int)threadIdx.x / 32 * 32 * RADIX_EACH + 32 * k + (int)threadIdx.x % 32;
}

/* Rows that are not there have the last digit, and come last. */
template <class T>
static __device__ __forceinline__ uint32_t radix_digit(
    const radix_own<T> &own, int k, int width, int count)
{
    return radix_index(k) < count ? (uint32_t)own.key[k] & ((1u << width) - 1) : RADIX_DIGITS - 1;
}

template <class T>
static __device__ __forceinline__ void radix_load(const radix_batch &b, const radix_sort &s,
    const radix_plan &p, const radix_tile &t, radix_own<T> &own)
{
    const T *key = (const T *)s.item[t.pass % 2];
    const int32_t *row = s.row[(p.passes - t.pass) % 2];
    bool samples = p.far && t.pass == RADIX_WORD / RADIX_DIGIT;
#pragma unroll
    for (int k = 0; k < RADIX_EACH; k++) {
        int i = radix_index(k);
        int64_t at = t.index * RADIX_TILE + i;
        own.key[k] = i < t.count ? __ldcg(key + at) : 0;
        own.row[k] = t.pass == 0 ? (int32_t)at : i < t.count ? __ldcg(row + at) : 0;
        if (samples && i < t.count) own.key[k] = (T)sample_of(b.row_splits, b.samples, own.row[k]);
    }
}

/* Sets places to those among the rows of the warp with the same digit, and room.seen to the warp's counts. */
template <class T>
static __device__ __forceinline__ void radix_rank(
    const radix_plan &p, const radix_tile &t, radix_own<T> &own, radix_room &room)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int i = lane; i < RADIX_DIGITS; i += 32) room.seen[warp][i] = 0;
    __syncwarp();
#pragma unroll
    for (int k = 0; k < RADIX_EACH; k++) {
        uint32_t digit = radix_digit(own, k, p.width, t.count), before = 0;
        uint32_t peers = radix_peers(digit);
        int first = __ffs((int)peers) - 1;
        if (lane == first) {
            before = room.seen[warp][digit];
            room.seen[warp][digit] = before + (uint32_t)__popc(peers);
        }
        own.place[k] =
            __shfl_sync(WARP_ALL, before, first) + (uint32_t)__popc(peers & ((1u << lane) - 1));
        __syncwarp();
    }
    __syncthreads();
}

/* Publishes the tile's counts, and makes places those in the tile. Thread d gets the rows of digit d in the tile, and in the
   upper half of `starts` where they begin in the result, in the lower one in the tile. */
template <class T>
static __device__ __forceinline__ uint32_t radix_places(const radix_sort &s, const radix_plan &p,
    const radix_tile &t, radix_own<T> &own, radix_room &room, uint64_t &starts)
{
    const int digit = threadIdx.x, warp = threadIdx.x / 32;
    uint32_t sum = 0, total = 0;
    if (digit < RADIX_DIGITS) {
        for (int w = 0; w < RADIX_WARPS; w++) {
            uint32_t seen = room.seen[w][digit];
            room.seen[w][digit] = sum;
            sum += seen;
        }
        *(volatile uint64_t *)&s.state[t.index * RADIX_DIGITS + digit] =
            radix_word(t.pass, t.index == 0, sum);
        total = __ldcg(&s.head->count[t.pass * RADIX_DIGITS + digit]);
    }
    starts = radix_scan((uint64_t)total << 32 | sum, room.warp_sum);
    if (digit < RADIX_DIGITS) room.place[digit] = (uint32_t)starts;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < RADIX_EACH; k++) {
        uint32_t d = radix_digit(own, k, p.width, t.count);
        own.place[k] += room.place[d] + room.seen[warp][d];
    }
    __syncthreads();
    return sum;
}

/* One tile of a pass: by the lowest digit of the keys, which get shorter by it. */
template <class T>
static __device__ __forceinline__ void radix_pass(const radix_batch &b, const radix_sort &s,
    const radix_plan &p, const radix_tile &t, radix_room &room)
{
    const int digit = threadIdx.x;
    T *to = (T *)s.item[1 - t.pass % 2], *item = (T *)room.item;
    int32_t *to_row = s.row[(p.passes - 1 - t.pass) % 2];
    radix_own<T> own;
    uint64_t starts;
    uint32_t at[RADIX_EACH];
    radix_load(b, s, p, t, own);
    radix_rank(p, t, own, room);
    uint32_t sum = radix_places(s, p, t, own, room, starts);
#pragma unroll
    for (int k = 0; k < RADIX_EACH; k++) item[own.place[k]] = own.key[k];
    if (digit < RADIX_DIGITS) {
        uint32_t before = radix_before(s.state, t.pass, t.index, digit);
        if (t.index > 0)
            *(volatile uint64_t *)&s.state[t.index * RADIX_DIGITS + digit] =
                radix_word(t.pass, true, before + sum);
        room.base[digit] = (uint32_t)(starts >> 32) + before - (uint32_t)starts;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < RADIX_EACH; k++) {
        int i = k * RADIX_THREADS + threadIdx.x;
        T key = item[i];
        at[k] = room.base[(uint32_t)key & ((1u << p.width) - 1)] + (uint32_t)i;
        if (i < t.count && t.pass < p.passes - 1) to[at[k]] = key >> p.width;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < RADIX_EACH; k++) room.row[own.place[k]] = own.row[k];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < RADIX_EACH; k++) {
        int i = k * RADIX_THREADS + threadIdx.x;
        if (i < t.count) to_row[at[k]] = room.row[i];
    }
    __syncthreads();
}

/* The passes from `begin` to before `end` of each sort; the blocks of a sort along x, as many as a pass has tiles or fewer. A
   block takes one tile after the other, those of the first pass first: so all that it waits for is with blocks that run. */
static __global__ void __launch_bounds__(RADIX_THREADS, 2)
    radix_passes(const __grid_constant__ radix_batch b, int begin, int end)
{
    __shared__ radix_room room;
    const radix_sort &s = b.sort[blockIdx.y];
    const radix_plan p = radix_plan_of(b, s);
    const uint32_t tiles = (uint32_t)((b.n + RADIX_TILE - 1) / RADIX_TILE);
    const uint32_t all = (uint32_t)max(0, min(end, p.passes) - begin) * tiles;
    while (all > 0) {
        if (threadIdx.x == 0) room.ticket = atomicAdd(&s.head->ticket[begin], 1u);
        __syncthreads();
        uint32_t ticket = room.ticket;
        radix_tile t;
        t.pass = begin + (int)(ticket / tiles);
        t.index = ticket % tiles;
        t.count = (int)min((int64_t)RADIX_TILE, b.n - t.index * RADIX_TILE);
        if (ticket >= all) return;
        if (t.pass > begin && threadIdx.x == 0) {
            while (*(volatile uint32_t *)&s.head->done[t.pass - 1] < tiles) {
            }
            __threadfence();
        }
        __syncthreads();
        if (p.narrow)
            radix_pass<uint32_t>(b, s, p, t, room);
        else
            radix_pass<uint64_t>(b, s, p, t, room);
        if (gridDim.x >= all) return; /* each block has one tile */
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(&s.head->done[t.pass], 1u);
        }
    }
}

#endif
