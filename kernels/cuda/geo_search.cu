/* Pairs within a radius or a window. A warp takes 32 places of the centres, or fewer where they lie
   apart: the points near the box around them are gathered from the tree into shared memory, then
   each lane tests its centre against all of them. The first kernel counts; the second does it again,
   keeps what it finds in shared memory, as many rows at a time as fit, and writes each row sorted. */
#include "kernels/cuda/geo_gather.h"
#include "kernels/cuda/geo_rank.h"

enum {
    FEW = 3,         /* centres that are searched for one by one, points side by side */
    COUNT_WARPS = 4, /* of a block */
    WRITE_WARPS = 2,
};

/* The lanes of a warp's centres, and the part of them that is in hand. */
struct tile {
    int64_t first; /* place of lane 0 */
    int lanes;
    int32_t sample;
};

static __device__ struct tile tile_of(const struct geo_points &p)
{
    struct tile t;
    t.first = thread_index() - threadIdx.x % 32;
    int64_t left = p.rows - t.first;
    t.lanes = left <= 0 ? 0 : left < 32 ? (int)left : 32;
    t.sample = left > 0 ? sample_of(p.row_splits, p.samples, t.first) : 0;
    return t;
}

/* Makes `sample` that of lane `from`; the lane behind the last one of it. */
static __device__ int tile_sample_end(const struct geo_points &p, struct tile &t, int from)
{
    while (p.row_splits[t.sample + 1] <= t.first + from) t.sample++;
    int64_t left = p.row_splits[t.sample + 1] - t.first;
    return left < t.lanes ? (int)left : t.lanes;
}

template <bool BALL, bool PARENT>
static __device__ void count_gathered(const struct geo_set &s, const struct query &q, int from,
    int to, const struct gathered<PARENT> &room, int points, int &found)
{
    int lane = threadIdx.x % 32;
    if (to - from > FEW) {
        for (int begin = 0; begin < points; begin += 32)
#pragma unroll 8
            for (int c = 0; c < 32; c++) found += is_pair<BALL, PARENT>(s, q, room, begin + c);
        return;
    }
    for (int l = from; l < to; l++) {
        struct query one = query_of(q, l);
        int sum = 0;
        for (int slot = lane; slot < points; slot += 32)
            sum += __popc(__ballot_sync(WARP_ALL, is_pair<BALL, PARENT>(s, one, room, slot)));
        if (lane == l) found += sum;
    }
}

template <bool BALL, bool PARENT>
static __global__ void __launch_bounds__(32 * COUNT_WARPS)
    count_pairs(const __grid_constant__ struct geo_set s, int64_t *count)
{
    __shared__ struct gathered<PARENT> rooms[COUNT_WARPS];
    struct gathered<PARENT> &room = rooms[threadIdx.x / 32];
    int lane = threadIdx.x % 32, found = 0;
    struct tile t = tile_of(s.out);
    if (!t.lanes) return;
    struct query own = query_at(s, lane < t.lanes, t.first + lane);
    for (int from = 0, to; from < t.lanes; from = to) {
        struct reach r;
        to = split_lanes(s, own, from, tile_sample_end(s.out, t, from), r);
        bool active = lane >= from && lane < to;
        struct query q = query_if(own, active);
        if (PARENT) reach_children(s, q, active, r);
        struct geo_walk w = walk_begin<BALL, PARENT>(s, r, t.sample);
        while (w.level < s.tree.depth) {
            int points = gather<BALL, PARENT>(s, r, w, room);
            count_gathered<BALL, PARENT>(s, q, from, to, room, points, found);
            __syncwarp();
        }
    }
    if (lane < t.lanes) count[own.row + 1] = found;
}

/* What a writing warp holds. */
template <bool PARENT> struct write_room {
    struct gathered<PARENT> points;
    uint32_t hits[GATHER / 32][32]; /* of each group of points, for each lane's centre */
    struct rank_room rows;
};

/* Where a lane's centre lies in the space of cells. */
struct cell_centre {
    float at[3];
};

static __device__ __forceinline__ int32_t pair_cell(
    const struct geo_set &s, const struct cell_centre &centre, float4 p)
{
    float at[3] = {p.x, p.y, p.z};
    if (s.pair_in_voxels != s.cell_in_voxels)
        place_of(s.in, __float_as_int(p.w), s.cell_in_voxels, at);
    for (int a = 0; a < 3; a++) at[a] -= centre.at[a];
    return cell_of(s, at);
}

/* Tests the gathered points, a centre a lane; `found` moves on. */
template <bool BALL, bool PARENT>
static __device__ void take_by_centre(const struct geo_set &s, const struct query &q,
    const struct cell_centre &centre, int points, struct write_room<PARENT> &room, int &found)
{
    int lane = threadIdx.x % 32, g = 0;
    bool ascending = !s.in.order;
    for (int begin = 0; begin < points; begin += 32) {
        uint32_t hits = 0;
#pragma unroll 8
        for (int c = 0; c < 32; c++)
            hits |= (uint32_t)is_pair<BALL, PARENT>(s, q, room.points, begin + c) << c;
        room.hits[begin / 32][lane] = hits;
    }
    for (uint32_t hits = 0;;) { /* lanes run through their hits side by side */
        while (!hits && 32 * g < points) hits = room.hits[g++][lane];
        if (!hits) break;
        float4 p = room.points.point[32 * (g - 1) + __ffs((int)hits) - 1];
        hits &= hits - 1;
        rank_put(room.rows, ascending, found++, lane, pair_cell(s, centre, p), __float_as_int(p.w));
    }
}

/* The same a point a lane, for the centres of lanes [from, to): there are few of them. A single row
   that is too long for the room goes where it belongs, unsorted. */
template <bool BALL, bool PARENT>
static __device__ void take_by_point(const struct geo_set &s, const struct query &q,
    const struct cell_centre &centre, int from, int to, int points, bool is_long,
    const struct geo_results &set, struct write_room<PARENT> &room, int &found)
{
    int lane = threadIdx.x % 32;
    bool ascending = !s.in.order;
    for (int l = from; l < to; l++) {
        struct query one = query_of(q, l);
        struct cell_centre one_centre;
        for (int a = 0; a < 3; a++) one_centre.at[a] = __shfl_sync(WARP_ALL, centre.at[a], l);
        int at = __shfl_sync(WARP_ALL, found, l);
        for (int slot = lane; slot < points; slot += 32) {
            bool pair = is_pair<BALL, PARENT>(s, one, room.points, slot);
            uint32_t mask = __ballot_sync(WARP_ALL, pair);
            int place = at + __popc(mask & ((1u << lane) - 1));
            at += __popc(mask);
            if (!pair) continue;
            float4 p = room.points.point[slot];
            int32_t cell = pair_cell(s, one_centre, p);
            if (is_long) {
                set.other[room.rows.start[l] + place] = __float_as_int(p.w);
                set.cell[room.rows.start[l] + place] = (uint16_t)cell;
            } else {
                rank_put(room.rows, ascending, place, l, cell, __float_as_int(p.w));
            }
        }
        if (lane == l) found = at;
    }
}

/* Searches and writes the rows of lanes [from, to), of one sample. */
template <bool BALL, bool PARENT>
static __device__ void write_rows(const struct geo_set &s, const struct geo_results &set,
    int32_t sample, const struct query &own, struct reach &r, int from, int to, bool is_long,
    struct write_room<PARENT> &room)
{
    int lane = threadIdx.x % 32, found = room.rows.offset[lane];
    bool active = lane >= from && lane < to;
    struct query q = query_if(own, active);
    struct cell_centre centre = {};
    if (active) centre_of(s, q.row, s.cell_in_voxels, centre.at);
    if (PARENT) reach_children(s, q, active, r);
    struct geo_walk w = walk_begin<BALL, PARENT>(s, r, sample);
    while (w.level < s.tree.depth) {
        int points = gather<BALL, PARENT>(s, r, w, room.points);
        if (to - from <= FEW)
            take_by_point<BALL, PARENT>(s, q, centre, from, to, points, is_long, set, room, found);
        else
            take_by_centre<BALL, PARENT>(s, q, centre, points, room, found);
        __syncwarp();
    }
    if (is_long) return;
    if (s.in.order)
        rank_write_wide(room.rows, from, to, set.other, set.cell);
    else
        rank_write(room.rows, from, to, set.other, set.cell);
    __syncwarp();
}

template <bool BALL, bool PARENT>
static __global__ void __launch_bounds__(32 * WRITE_WARPS)
    write_pairs(const __grid_constant__ struct geo_set s, const struct geo_results set)
{
    __shared__ __align__(16) struct write_room<PARENT> rooms[WRITE_WARPS];
    struct write_room<PARENT> &room = rooms[threadIdx.x / 32];
    int lane = threadIdx.x % 32;
    struct tile t = tile_of(s.out);
    if (!t.lanes) return;
    bool there = lane < t.lanes;
    struct query own = query_at(s, there, t.first + lane);
    int64_t start = there ? set.start[own.row] : 0;
    int64_t length = there ? set.start[own.row + 1] - start : 0;
    int ends = lane_sums(length <= ROW_LIMIT ? (int)length : ROW_LIMIT + 1);
    room.rows.start[lane] = start;
    if (lane == 0) room.rows.offset[0] = 0;
    for (int from = 0, to; from < t.lanes; from = to) {
        struct reach r;
        int before = from ? __shfl_sync(WARP_ALL, ends, from - 1) : 0;
        to = rank_share(from, tile_sample_end(s.out, t, from), ends, before);
        to = split_lanes(s, own, from, to, r);
        room.rows.offset[lane + 1] = ends - before;
        __syncwarp();
        bool is_long = __shfl_sync(WARP_ALL, length, from) > ROW_LIMIT;
        write_rows<BALL, PARENT>(s, set, t.sample, own, r, from, to, is_long, room);
    }
}

static unsigned blocks_of(int64_t rows, int warps)
{
    int64_t tiles = (rows + 31) / 32;
    return (unsigned)((tiles + warps - 1) / warps);
}

void geo_window_count(const struct geo_set *s, int64_t *count)
{
    unsigned blocks = blocks_of(s->out.rows, COUNT_WARPS), threads = 32 * COUNT_WARPS;
    cudaStream_t stream = cudaStreamPerThread;
    if (s->ball && s->parent)
        count_pairs<true, true><<<blocks, threads, 0, stream>>>(*s, count);
    else if (s->ball)
        count_pairs<true, false><<<blocks, threads, 0, stream>>>(*s, count);
    else if (s->parent)
        count_pairs<false, true><<<blocks, threads, 0, stream>>>(*s, count);
    else
        count_pairs<false, false><<<blocks, threads, 0, stream>>>(*s, count);
}

void geo_window_write(const struct geo_set *s, const struct geo_results *to)
{
    unsigned blocks = blocks_of(s->out.rows, WRITE_WARPS), threads = 32 * WRITE_WARPS;
    cudaStream_t stream = cudaStreamPerThread;
    if (s->ball && s->parent)
        write_pairs<true, true><<<blocks, threads, 0, stream>>>(*s, *to);
    else if (s->ball)
        write_pairs<true, false><<<blocks, threads, 0, stream>>>(*s, *to);
    else if (s->parent)
        write_pairs<false, true><<<blocks, threads, 0, stream>>>(*s, *to);
    else
        write_pairs<false, false><<<blocks, threads, 0, stream>>>(*s, *to);
}
