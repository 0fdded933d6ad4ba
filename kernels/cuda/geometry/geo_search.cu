/* Pairs within a radius or a window. A warp takes 32 places of the centres, or fewer where the curve jumps: the points near
   the box around them are gathered from the tree into shared memory, then each lane tests its centre against all of them.
   The first kernel counts; the second does it again, keeps what it finds in shared memory, as many rows at a time as fit,
   and writes each row sorted. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/geometry/geo_gather.h"
#include "kernels/cuda/geometry/geo_rank.h"

enum {
    FEW = 3,         /* so few centres are tested one after the other, a point a lane */
    COUNT_WARPS = 4, /* of a block */
    WRITE_WARPS = 2,
};

template <int KIND, bool PARENT>
static __device__ void count_gathered(const struct geo_set &s, const struct reach &r,
    const struct query &q, int from, int to, const struct gathered<KIND, PARENT> &room, int points,
    int &found)
{
    int lane = threadIdx.x % 32;
    if (to - from > FEW) {
        for_pairs<KIND, PARENT>(s, r, q, room, points, [&](int) { found++; });
        return;
    }
    for (int l = from; l < to; l++) {
        struct query one = query_of(q, l);
        int sum = 0;
        for (int slot = lane; slot < points; slot += 32)
            sum += __popc(__ballot_sync(WARP_ALL, is_pair<KIND, PARENT>(s, one, room, slot)));
        if (lane == l) found += sum;
    }
}

template <int KIND, bool PARENT>
static __global__ void __launch_bounds__(32 * COUNT_WARPS)
    count_pairs(const __grid_constant__ struct geo_set s, int64_t *count)
{
    __shared__ __align__(16) struct gathered<KIND, PARENT> rooms[COUNT_WARPS];
    struct gathered<KIND, PARENT> &room = rooms[threadIdx.x / 32];
    int lane = threadIdx.x % 32, found = 0;
    struct tile t = tile_of(s.out);
    if (!t.lanes || (s.blocks.missing && !*s.blocks.missing)) return;
    struct query all = query_at(s, lane < t.lanes, t.first + lane);
    for (int from = 0, to; from < t.lanes; from = to) {
        struct query q;
        struct reach r;
        to = reach_part<KIND, PARENT>(s, all, from, tile_sample_end(s.out, t, from), q, r);
        struct geo_walk w = walk_begin<KIND, PARENT>(s, r, t.sample);
        while (w.level < s.tree.depth) {
            int points = gather<KIND, PARENT>(s, r, w, room);
            count_gathered<KIND, PARENT>(s, r, q, from, to, room, points, found);
            __syncwarp();
        }
    }
    if (lane < t.lanes) count[all.row + 1] = found;
}

/* The shared memory of a warp that writes. */
template <int KIND, bool PARENT, int CELLS> struct __align__(16) write_room
{
    union {
        struct gathered<KIND, PARENT> points;
        struct rank_room<CELLS> ranks; /* used after the search */
    };
    struct rank_rows rows;
};

/* The position of a lane's row in the space of cells. */
struct cell_place {
    float at[3];
};

/* Returns the kernel cell of a pair of the lane's row and a gathered point. */
static __device__ __forceinline__ int32_t pair_cell(
    const struct geo_set &s, const struct cell_place &own, float4 p)
{
    float d[3] = {p.x, p.y, p.z};
    int32_t row = __float_as_int(p.w);
    if (s.backward && s.snap && !s.cell_in_voxels)
        centre_of(s, row, false, d);
    else if (s.pair_in_voxels != s.cell_in_voxels)
        place_of(s.in, row, s.cell_in_voxels, d);
    for (int a = 0; a < 3; a++) d[a] = s.backward ? own.at[a] - d[a] : d[a] - own.at[a];
    return cell_of(s.cells, d);
}

/* Tests the gathered points, a centre a lane. Advances `found`. */
template <int KIND, bool PARENT, int CELLS>
static __device__ void take_by_centre(const struct geo_set &s, const struct reach &r,
    const struct query &q, const struct cell_place &own, int points,
    struct write_room<KIND, PARENT, CELLS> &room, int &found)
{
    int begin = found;
    for_pairs<KIND, PARENT>(
        s, r, q, room.points, points, [&](int slot) { room.rows.cell[found++] = (uint16_t)slot; });
    for (int i = begin; i < found; i++) {
        float4 p = room.points.point[room.rows.cell[i]];
        room.rows.other[i] = __float_as_int(p.w);
        room.rows.cell[i] = (uint16_t)pair_cell(s, own, p);
    }
}

/* The same with a point a lane, for the few centres of lanes [from, to). A single row that is too long for the room is
   written to the set at once, unsorted. */
template <int KIND, bool PARENT, int CELLS>
static __device__ void take_by_point(const struct geo_set &s, const struct query &q,
    const struct cell_place &own, int from, int to, int points, bool is_long,
    const struct geo_results &set, struct write_room<KIND, PARENT, CELLS> &room, int &found)
{
    int lane = threadIdx.x % 32;
    for (int l = from; l < to; l++) {
        struct query one = query_of(q, l);
        struct cell_place one_place;
        for (int a = 0; a < 3; a++) one_place.at[a] = __shfl_sync(WARP_ALL, own.at[a], l);
        int at = __shfl_sync(WARP_ALL, found, l);
        int64_t start = room.rows.start[l];
        for (int slot = lane; slot < points; slot += 32) {
            bool pair = is_pair<KIND, PARENT>(s, one, room.points, slot);
            uint32_t mask = __ballot_sync(WARP_ALL, pair);
            int place = at + __popc(mask & ((1u << lane) - 1));
            at += __popc(mask);
            if (!pair) continue;
            float4 p = room.points.point[slot];
            uint16_t cell = (uint16_t)pair_cell(s, one_place, p);
            if (is_long) {
                set.other[start + place] = __float_as_int(p.w);
                set.cell[start + place] = cell;
            } else {
                room.rows.other[place] = __float_as_int(p.w);
                room.rows.cell[place] = cell;
            }
        }
        if (lane == l) found = at;
    }
}

/* Sorts the triplets found for lanes [from, to) and writes them. */
template <int KIND, bool PARENT, int CELLS>
static __device__ void write_found(const struct geo_set &s, const struct geo_results &set, int from,
    int to, struct write_room<KIND, PARENT, CELLS> &room)
{
    int lane = threadIdx.x % 32, K = s.cells.kernel, cells = K * K * K;
    int length = room.rows.offset[lane + 1] - room.rows.offset[lane];
    bool is_short = lane < from || lane >= to || length <= RANK_LONGEST;
    if (cells <= CELLS && !s.in.order && __all_sync(WARP_ALL, is_short))
        rank_count(room.rows, from, to, cells, room.ranks);
    else
        rank_compare(room.rows, from, to, room.ranks.sorted);
    __syncwarp();
    rank_write(room.rows, from, to, !s.out.order, room.ranks.sorted, set.other, set.cell);
    __syncwarp();
}

template <int KIND, bool PARENT, int CELLS>
static __global__ void __launch_bounds__(32 * WRITE_WARPS)
    write_pairs(const __grid_constant__ struct geo_set s, const struct geo_results set)
{
    __shared__ struct write_room<KIND, PARENT, CELLS> rooms[WRITE_WARPS];
    struct write_room<KIND, PARENT, CELLS> &room = rooms[threadIdx.x / 32];
    int lane = threadIdx.x % 32;
    struct tile t = tile_of(s.out);
    if (!t.lanes || (s.blocks.missing && !*s.blocks.missing)) return;
    bool there = lane < t.lanes;
    struct query all = query_at(s, there, t.first + lane);
    struct cell_place own = {};
    if (there && s.backward)
        place_of(s.in, all.row, s.cell_in_voxels, own.at);
    else if (there)
        centre_of(s, all.row, s.cell_in_voxels, own.at);
    int64_t start = there ? set.start[all.row] : 0;
    int64_t length = there ? set.start[all.row + 1] - start : 0;
    int ends = lane_sums(length <= ROW_LIMIT ? (int)length : ROW_LIMIT + 1);
    room.rows.start[lane] = start;
    if (lane == 0) room.rows.offset[0] = 0;
    for (int from = 0, to; from < t.lanes; from = to) {
        struct query q;
        struct reach r;
        int before = from ? __shfl_sync(WARP_ALL, ends, from - 1) : 0;
        to = rank_share(from, tile_sample_end(s.out, t, from), ends, before);
        to = reach_part<KIND, PARENT>(s, all, from, to, q, r);
        room.rows.offset[lane + 1] = ends - before;
        __syncwarp();
        bool is_long = __shfl_sync(WARP_ALL, length, from) > ROW_LIMIT;
        int found = room.rows.offset[lane];
        struct geo_walk w = walk_begin<KIND, PARENT>(s, r, t.sample);
        while (w.level < s.tree.depth) {
            int points = gather<KIND, PARENT>(s, r, w, room.points);
            if (to - from > FEW)
                take_by_centre<KIND, PARENT, CELLS>(s, r, q, own, points, room, found);
            else
                take_by_point<KIND, PARENT, CELLS>(
                    s, q, own, from, to, points, is_long, set, room, found);
            __syncwarp();
        }
        if (!is_long) write_found<KIND, PARENT, CELLS>(s, set, from, to, room);
    }
}

static unsigned blocks_of(int64_t rows, int warps)
{
    int64_t tiles = (rows + 31) / 32;
    return (unsigned)((tiles + warps - 1) / warps);
}

void pnet_cuda_geo_window_count(const struct geo_set *s, int64_t *count)
{
    unsigned blocks = blocks_of(s->out.rows, COUNT_WARPS), threads = 32 * COUNT_WARPS;
    cudaStream_t stream = pnet_cuda_stream();
    if (s->pair_in_voxels)
        count_pairs<SEARCH_WINDOW, false><<<blocks, threads, 0, stream>>>(*s, count);
    else if (s->ball && s->parent)
        count_pairs<SEARCH_BALL, true><<<blocks, threads, 0, stream>>>(*s, count);
    else if (s->ball)
        count_pairs<SEARCH_BALL, false><<<blocks, threads, 0, stream>>>(*s, count);
    else if (s->parent)
        count_pairs<SEARCH_CUBE, true><<<blocks, threads, 0, stream>>>(*s, count);
    else
        count_pairs<SEARCH_CUBE, false><<<blocks, threads, 0, stream>>>(*s, count);
}

template <int CELLS> static void write_cells(const struct geo_set *s, const struct geo_results *to)
{
    unsigned blocks = blocks_of(s->out.rows, WRITE_WARPS), threads = 32 * WRITE_WARPS;
    cudaStream_t stream = pnet_cuda_stream();
    if (s->pair_in_voxels)
        write_pairs<SEARCH_WINDOW, false, CELLS><<<blocks, threads, 0, stream>>>(*s, *to);
    else if (s->ball && s->parent)
        write_pairs<SEARCH_BALL, true, CELLS><<<blocks, threads, 0, stream>>>(*s, *to);
    else if (s->ball)
        write_pairs<SEARCH_BALL, false, CELLS><<<blocks, threads, 0, stream>>>(*s, *to);
    else if (s->parent)
        write_pairs<SEARCH_CUBE, true, CELLS><<<blocks, threads, 0, stream>>>(*s, *to);
    else
        write_pairs<SEARCH_CUBE, false, CELLS><<<blocks, threads, 0, stream>>>(*s, *to);
}

void pnet_cuda_geo_window_write(const struct geo_set *s, const struct geo_results *to)
{
    int K = s->cells.kernel;
    if (K * K * K <= RANK_FEW)
        write_cells<RANK_FEW>(s, to);
    else
        write_cells<RANK_MANY>(s, to);
}
