/* The rows of a scope, from the number of a tile. Tiles are counted sample by sample, scope by scope; in a sample all scopes
   have room for as many tiles as the largest one, so some tiles have no rows. */
#ifndef PNET_KERNELS_CUDA_ATTEND_SCOPE_CUH
#define PNET_KERNELS_CUDA_ATTEND_SCOPE_CUH

#include "kernels/attend.h"

#include <cstdint>

enum { MOST_BUCKETS = 64 }; /* of a scope */

/* A launch over tiles first .. of those whose scope begins in [first, last). */
struct attend_launch {
    struct pnet_attend a;
    const int64_t *start; /* [samples + 1]: tiles of the samples before */
    int64_t first, last;
    int32_t head; /* of blockIdx.y = 0 */
};

/* In shared memory. Row j of the scope, in bucket i, stands at place j + shift[i]. */
struct scope_rows {
    int32_t rows, tile;              /* of the scope; which of its tiles the block has */
    int32_t below[MOST_BUCKETS + 1]; /* rows in buckets before */
    int32_t shift[MOST_BUCKETS];
};

static __device__ __forceinline__ int64_t tiles_of_scope(
    const struct pnet_attend &a, int64_t rows, int tile)
{
    int64_t most = (int64_t)a.scopes.bucket * a.scopes.scope;
    return ((rows < most ? rows : most) + tile - 1) / tile;
}

/* The first warp fills in the buckets of a scope: two of them a lane. */
static __device__ void fill_buckets(const struct pnet_scope &p, int64_t begin, struct scope_rows *s)
{
    int lane = threadIdx.x % 32, size[2];
    int64_t at[2];
    for (int k = 0; k < 2; k++) {
        int i = 2 * lane + k;
        size[k] = 0;
        at[k] = 0;
        if (i >= p.count) continue;
        int64_t bucket = pnet_scope_bucket(&p, i);
        at[k] = pnet_bucket_begin(p.rows, p.buckets, bucket);
        size[k] = (int)(pnet_bucket_begin(p.rows, p.buckets, bucket + 1) - at[k]);
    }
    int sum = size[0] + size[1];
    for (int o = 1; o < 32; o *= 2) {
        int before = __shfl_up_sync(~0u, sum, o);
        if (lane >= o) sum += before;
    }
    int below = sum - size[0] - size[1];
    for (int k = 0; k < 2; k++) {
        s->below[2 * lane + k] = below;
        s->shift[2 * lane + k] = (int)(begin + at[k]) - below;
        below += size[k];
    }
    if (lane == 31) s->below[MOST_BUCKETS] = s->rows = sum;
}

/* Finds the scope of a tile; all threads of the block take part. False: the tile has no rows, or another launch has it. */
static __device__ bool find_scope(
    const struct attend_launch &l, int rows_of_tile, struct scope_rows *s)
{
    const struct pnet_attend &a = l.a;
    int64_t task = l.first + blockIdx.x;
    if (task >= l.start[a.samples]) return false;
    int low = 0, high = a.samples;
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (l.start[middle] <= task)
            low = middle;
        else
            high = middle;
    }
    int64_t begin = a.splits[low], rows = a.splits[low + 1] - begin, within = task - l.start[low],
            tiles = tiles_of_scope(a, rows, rows_of_tile), tile = within % tiles;
    if (task - tile < l.first || task - tile >= l.last) return false;
    if (threadIdx.x < 32) {
        struct pnet_scope p = pnet_scope_of(&a.scopes, rows, within / tiles);
        fill_buckets(p, begin, s);
        if (threadIdx.x == 0) s->tile = (int)tile;
    }
    __syncthreads();
    return tile * rows_of_tile < s->rows;
}

/* Goes through rows of a scope upwards. */
struct row_walk {
    int bucket;

    /* The row at a place of the scope; -1: it ends before. */
    __device__ __forceinline__ int32_t row(const struct scope_rows &s, const int32_t *order, int at)
    {
        if (at >= s.rows) return -1;
        while (at >= s.below[bucket + 1]) bucket++;
        int32_t place = at + s.shift[bucket];
        return order ? order[place] : place;
    }
};

/* Where the channels of a head lie in a row of qkv. */
struct head_channels {
    int64_t in, out; /* numbers of a row of qkv, and of out */
    int64_t q, k, v; /* out has them at q */
};

static __device__ __forceinline__ struct head_channels channels_of(
    const struct attend_launch &l, int head)
{
    int64_t all = (int64_t)l.a.heads * l.a.width, at = (int64_t)head * l.a.width;
    return {3 * all, all, at, all + at, 2 * all + at};
}

static const double LOG2_E = 1.4426950408889634;

#endif
