/* Pairs within a radius or a window. A warp takes 32 places of the centres: the points near the box
   around them are gathered from the tree into shared memory, then each lane tests its centre against
   all of them. The first kernel counts; the second does it again, keeps what it finds in shared
   memory, as many rows at a time as fit, and writes each row sorted. */
#include "kernels/cuda/geo_rank.h"

enum {
    GATHER = 256,    /* points in shared memory */
    FEW = 3,         /* rows that are searched one by one, points side by side */
    NOBODY = -2,     /* row of an idle lane; -1: parent of an idle point */
    COUNT_WARPS = 4, /* of a block */
    WRITE_WARPS = 2,
};

struct gathered {
    float4 point[GATHER]; /* position, row */
    int32_t parent[GATHER];
    int count;
};

/* The boxes around a warp's centres, and around their children. */
struct reach {
    float low[3], high[3], child_low[3], child_high[3];
};

/* A lane's centre. */
struct query {
    int32_t row;
    float pair_at[3]; /* not a number: idle */
};

static __device__ struct query query_at(const struct geo_set &s, bool active, int64_t place)
{
    struct query q = {NOBODY, {NAN, NAN, NAN}};
    if (active) {
        q.row = row_at(s.out, place);
        centre_of(s, q.row, s.pair_in_voxels, q.pair_at);
    }
    return q;
}

template <bool PARENT>
static __device__ struct reach reach_of(const struct geo_set &s, const struct query &q)
{
    struct reach r;
    for (int a = 0; a < 3; a++) {
        uint32_t rank = float_rank(q.pair_at[a]);
        bool idle = q.row == NOBODY;
        r.low[a] = rank_float(__reduce_min_sync(WARP_ALL, idle ? UINT32_MAX : rank));
        r.high[a] = rank_float(__reduce_max_sync(WARP_ALL, idle ? 0 : rank));
        if (!PARENT) continue;
        uint32_t low = idle ? UINT32_MAX : s.child_box[6 * (int64_t)q.row + a];
        uint32_t high = idle ? 0 : s.child_box[6 * (int64_t)q.row + 3 + a];
        r.child_low[a] = rank_float(__reduce_min_sync(WARP_ALL, low));
        r.child_high[a] = rank_float(__reduce_max_sync(WARP_ALL, high));
    }
    return r;
}

/* Can a box (or a point) hold a point that makes a pair with any centre, or a child of one? */
template <bool BALL, bool PARENT>
static __device__ __forceinline__ bool is_near(
    const struct geo_set &s, const struct reach &r, const float low[3], const float high[3])
{
    bool near = true, child = PARENT;
    float gap[3];
    for (int a = 0; a < 3; a++) {
        float above = low[a] - r.high[a];
        if (BALL)
            gap[a] = fmaxf(fmaxf(above, r.low[a] - high[a]), 0.0f);
        else
            near = near && s.low <= high[a] - r.low[a] && above <= s.high;
        if (PARENT) child = child && low[a] <= r.child_high[a] && r.child_low[a] <= high[a];
    }
    if (BALL) near = (gap[0] * gap[0] + gap[1] * gap[1]) + gap[2] * gap[2] <= s.radius2;
    return near || child;
}

template <bool BALL, bool PARENT>
static __device__ __forceinline__ uint32_t near_members(const struct geo_set &s,
    const struct reach &r, const struct geo_walk &w, int level, int64_t group)
{
    int64_t member = group * 32 + threadIdx.x % 32, nodes = s.tree.nodes[level];
    bool near = false;
    if (walk_member(w, level, member)) {
        const float *box = s.tree.box[level] + member;
        float low[3], high[3];
        for (int a = 0; a < 3; a++) {
            low[a] = box[a * nodes];
            high[a] = box[(3 + a) * nodes];
        }
        near = is_near<BALL, PARENT>(s, r, low, high);
    }
    return __ballot_sync(WARP_ALL, near);
}

/* Gathers near points from where the walk stands on, until there is no room for another leaf; fills
   up to a multiple of 32 with points that are near to nothing. */
template <bool BALL, bool PARENT>
static __device__ void gather(
    const struct geo_set &s, const struct reach &r, struct geo_walk &w, struct gathered &room)
{
    int lane = threadIdx.x % 32, count = 0;
    while (w.level < s.tree.depth && count <= GATHER - 32) {
        uint32_t left = walk_left(w);
        if (!left) {
            w.level++;
            continue;
        }
        int64_t member = walk_take(w, __ffs((int)left) - 1);
        if (w.level) {
            int level = w.level - 1;
            walk_enter(w, level, member, near_members<BALL, PARENT>(s, r, w, level, member));
            continue;
        }
        int64_t place = member * 32 + lane;
        float at[3];
        int32_t row = -1;
        bool near = false;
        if (place >= w.first && place < w.end) {
            row = row_at(s.in, place);
            place_of(s.in, row, s.pair_in_voxels, at);
            near = is_near<BALL, PARENT>(s, r, at, at);
        }
        uint32_t mask = __ballot_sync(WARP_ALL, near);
        int slot = count + __popc(mask & ((1u << lane) - 1));
        if (near) {
            room.point[slot] = make_float4(at[0], at[1], at[2], __int_as_float(row));
            if (PARENT) room.parent[slot] = s.parent[row];
        }
        count += __popc(mask);
    }
    for (int slot = count + lane; slot < (count + 31) / 32 * 32; slot += 32) {
        room.point[slot] = make_float4(NAN, NAN, NAN, 0);
        if (PARENT) room.parent[slot] = -1;
    }
    if (lane == 0) room.count = count;
    __syncwarp();
}

template <bool BALL, bool PARENT>
static __device__ __forceinline__ bool is_pair(
    const struct geo_set &s, const struct query &q, const struct gathered &points, int slot)
{
    float4 p = points.point[slot];
    float d[3] = {p.x - q.pair_at[0], p.y - q.pair_at[1], p.z - q.pair_at[2]};
    bool pair = true;
    if (BALL)
        pair = (d[0] * d[0] + d[1] * d[1]) + d[2] * d[2] <= s.radius2;
    else
        for (int a = 0; a < 3; a++) pair = pair && s.low <= d[a] && d[a] <= s.high;
    if (PARENT) pair = pair || points.parent[slot] == q.row;
    return pair;
}

static __device__ struct geo_walk walk_from(const struct geo_set &s, int32_t sample)
{
    struct geo_walk w = {};
    w.first = s.in.row_splits[sample];
    w.end = s.in.row_splits[sample + 1];
    w.level = s.tree.depth;
    return w;
}

template <bool BALL, bool PARENT>
static __device__ struct geo_walk walk_begin(
    const struct geo_set &s, const struct reach &r, int32_t sample)
{
    struct geo_walk w = walk_from(s, sample);
    int top = s.tree.depth - 1;
    if (w.end > w.first) walk_enter(w, top, 0, near_members<BALL, PARENT>(s, r, w, top, 0));
    return w;
}

template <bool BALL, bool PARENT>
static __global__ void __launch_bounds__(32 * COUNT_WARPS)
    count_pairs(const __grid_constant__ struct geo_set s, int64_t *count)
{
    __shared__ struct gathered rooms[COUNT_WARPS];
    struct gathered &room = rooms[threadIdx.x / 32];
    int64_t place = thread_index(), first = place - threadIdx.x % 32;
    int64_t end = first + 32 < s.out.rows ? first + 32 : s.out.rows;
    if (first >= s.out.rows) return;
    int32_t sample = sample_of(s.out.row_splits, s.out.samples, first);
    for (; first < end; sample++) {
        int64_t until = s.out.row_splits[sample + 1] < end ? s.out.row_splits[sample + 1] : end;
        if (until <= first) continue;
        bool active = place >= first && place < until;
        first = until;
        struct query q = query_at(s, active, place);
        struct reach r = reach_of<PARENT>(s, q);
        struct geo_walk w = walk_begin<BALL, PARENT>(s, r, sample);
        int found = 0;
        while (w.level < s.tree.depth) {
            gather<BALL, PARENT>(s, r, w, room);
            for (int begin = 0; begin < room.count; begin += 32)
#pragma unroll 8
                for (int c = 0; c < 32; c++) found += is_pair<BALL, PARENT>(s, q, room, begin + c);
            __syncwarp();
        }
        if (active) count[q.row + 1] = found;
    }
}

/* What a writing warp holds. */
struct write_room {
    struct gathered points;
    uint32_t hits[GATHER / 32][32]; /* of each group of points, for each lane's centre */
    struct rank_room rows;
};

/* d of a pair in the space of cells. */
static __device__ __forceinline__ int32_t pair_cell(
    const struct geo_set &s, const float cell_at[3], float4 p)
{
    float at[3] = {p.x, p.y, p.z};
    if (s.pair_in_voxels != s.cell_in_voxels)
        place_of(s.in, __float_as_int(p.w), s.cell_in_voxels, at);
    for (int a = 0; a < 3; a++) at[a] -= cell_at[a];
    return cell_of(s, at);
}

/* Tests the gathered points, a centre a lane; `found` moves on. */
template <bool BALL, bool PARENT>
static __device__ void take_by_centre(const struct geo_set &s, const struct query &q,
    const float cell_at[3], struct write_room &room, int &found)
{
    int lane = threadIdx.x % 32, groups = (room.points.count + 31) / 32, g = 0;
    for (int n = 0; n < groups; n++) {
        uint32_t hits = 0;
#pragma unroll 8
        for (int c = 0; c < 32; c++)
            hits |= (uint32_t)is_pair<BALL, PARENT>(s, q, room.points, 32 * n + c) << c;
        room.hits[n][lane] = hits;
    }
    for (uint32_t hits = 0;;) { /* lanes run through their hits side by side */
        while (!hits && g < groups) hits = room.hits[g++][lane];
        if (!hits) break;
        float4 p = room.points.point[32 * (g - 1) + __ffs((int)hits) - 1];
        hits &= hits - 1;
        room.rows.item[found++] = rank_item(lane, pair_cell(s, cell_at, p), __float_as_int(p.w));
    }
}

/* The same a point a lane, for the centres of lanes [from, to): there are few of them. A single row
   that is too long for the room goes where it belongs, unsorted. */
template <bool BALL, bool PARENT>
static __device__ void take_by_point(const struct geo_set &s, const struct query &own,
    const float own_cell_at[3], int from, int to, bool is_long, const struct geo_results &set,
    struct write_room &room, int &found)
{
    int lane = threadIdx.x % 32, points = (room.points.count + 31) / 32 * 32;
    for (int l = from; l < to; l++) {
        struct query q;
        float cell_at[3];
        q.row = __shfl_sync(WARP_ALL, own.row, l);
        for (int a = 0; a < 3; a++) {
            q.pair_at[a] = __shfl_sync(WARP_ALL, own.pair_at[a], l);
            cell_at[a] = __shfl_sync(WARP_ALL, own_cell_at[a], l);
        }
        int at = __shfl_sync(WARP_ALL, found, l);
        for (int slot = lane; slot < points; slot += 32) {
            bool pair = is_pair<BALL, PARENT>(s, q, room.points, slot);
            uint32_t mask = __ballot_sync(WARP_ALL, pair);
            int place = at + __popc(mask & ((1u << lane) - 1));
            at += __popc(mask);
            if (!pair) continue;
            float4 p = room.points.point[slot];
            int32_t cell = pair_cell(s, cell_at, p);
            if (is_long) {
                set.other[room.rows.start[l] + place] = __float_as_int(p.w);
                set.cell[room.rows.start[l] + place] = (uint16_t)cell;
            } else {
                room.rows.item[place] = rank_item(l, cell, __float_as_int(p.w));
            }
        }
        if (lane == l) found = at;
    }
}

/* Searches and writes the rows of lanes [from, to), of one sample. */
template <bool BALL, bool PARENT>
static __device__ void write_rows(const struct geo_set &s, const struct geo_results &set,
    int32_t sample, int64_t place, int from, int to, bool is_long, struct write_room &room)
{
    int lane = threadIdx.x % 32, found = room.rows.offset[lane];
    bool active = lane >= from && lane < to;
    struct query q = query_at(s, active, place);
    float cell_at[3] = {0, 0, 0};
    if (active) centre_of(s, q.row, s.cell_in_voxels, cell_at);
    struct reach r = reach_of<PARENT>(s, q);
    struct geo_walk w = walk_begin<BALL, PARENT>(s, r, sample);
    while (w.level < s.tree.depth) {
        gather<BALL, PARENT>(s, r, w, room.points);
        if (to - from <= FEW)
            take_by_point<BALL, PARENT>(s, q, cell_at, from, to, is_long, set, room, found);
        else
            take_by_centre<BALL, PARENT>(s, q, cell_at, room, found);
        __syncwarp();
    }
    if (!is_long) rank_write(room.rows, from, to, set.other, set.cell);
    __syncwarp();
}

template <bool BALL, bool PARENT>
static __global__ void __launch_bounds__(32 * WRITE_WARPS)
    write_pairs(const __grid_constant__ struct geo_set s, const struct geo_results set)
{
    __shared__ struct write_room rooms[WRITE_WARPS];
    struct write_room &room = rooms[threadIdx.x / 32];
    int lane = threadIdx.x % 32;
    int64_t place = thread_index(), first = place - lane;
    if (first >= s.out.rows) return;
    bool there = place < s.out.rows;
    int64_t row = there ? row_at(s.out, place) : 0, start = there ? set.start[row] : 0;
    int64_t length = there ? set.start[row + 1] - start : 0;
    int ends = lane_sums(length <= ROW_LIMIT ? (int)length : ROW_LIMIT + 1);
    int lanes = (int)(s.out.rows - first < 32 ? s.out.rows - first : 32), sample_end;
    int32_t sample = sample_of(s.out.row_splits, s.out.samples, first);
    room.rows.start[lane] = start;
    if (lane == 0) room.rows.offset[0] = 0;
    for (int from = 0, to; from < lanes; from = to) {
        while (s.out.row_splits[sample + 1] <= first + from) sample++;
        int64_t left = s.out.row_splits[sample + 1] - first;
        sample_end = left < lanes ? (int)left : lanes;
        int before = from ? __shfl_sync(WARP_ALL, ends, from - 1) : 0;
        to = rank_share(from, sample_end, ends, before);
        room.rows.offset[lane + 1] = ends - before;
        __syncwarp();
        bool is_long = __shfl_sync(WARP_ALL, length, from) > ROW_LIMIT;
        write_rows<BALL, PARENT>(s, set, sample, place, from, to, is_long, room);
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
