/* Writes the supports of rows, cut at their limits, with half of the weights. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/geometry/geo_lists.h"
#include "kernels/cuda/geometry/geo_scan.h"
#include "kernels/cuda/sets/apml_ball.cuh"

enum { WRITE_WARPS = 4 };

struct list_side {
    struct pnet_count rows;
    int64_t chunks;
    const int64_t *sums;
    int64_t *start;
    struct pnet_apml_entry *entry;
};
struct lists {
    struct list_side of[SIDES];
};

/* Row i's number of points stands at start[i + 1]; it becomes where the entries of the row end. Grid: chunks, sides. */
static __global__ void __launch_bounds__(THREADS) make_starts(
    const __grid_constant__ struct lists lists, const int32_t *limit, const int32_t *finite)
{
    const struct list_side &l = lists.of[blockIdx.y];
    const int64_t rows = pnet_live(l.rows), begin = blockIdx.x * (int64_t)APML_CHUNK,
                  most = *finite ? limit[blockIdx.y] : 0;
    if (blockIdx.x >= l.chunks) return;
    int64_t carry = l.sums[blockIdx.x], total;
    if (blockIdx.x == 0 && threadIdx.x == 0) l.start[0] = 0;
    for (int step = 0; step < APML_CHUNK; step += THREADS) {
        const int64_t row = begin + step + threadIdx.x;
        const int64_t kept = row < rows && most ? min(l.start[row + 1], most) : 0;
        const int64_t sum = block_scan<THREADS>(kept, total);
        if (row < rows) l.start[row + 1] = carry + sum;
        carry += total;
    }
}

/* The entries of a row. */
struct row_list {
    struct pnet_apml_entry *to;
    int64_t count;
};

static __device__ __forceinline__ struct row_list list_of(
    const struct lists &lists, int side, int64_t row)
{
    const struct list_side &l = lists.of[side];
    const int64_t begin = l.start[row];
    return {l.entry + begin, l.start[row + 1] - begin};
}

/* How fast weights fall with the distance. */
static __device__ __forceinline__ float steepness(
    const struct apml_view &v, const struct part &p, float2 near)
{
    return p.end - p.first < 2 ? 0.0f : v.slope[p.sample] / gap_of(near);
}

static __device__ __forceinline__ float similarity(uint32_t distance, float2 near, float steep)
{
    return expf(-(__uint_as_float(distance) - near.x) * steep);
}

/* A lane's list of (distance, row), ascending, becomes one of (row, distance). */
static __device__ __forceinline__ void sort_by_row(const struct few &f)
{
    for (int i = 0; i < f.count; i++) {
        const uint64_t key = swapped(f.list[i * 32]);
        int to = i;
        for (; to > 0 && f.list[(to - 1) * 32] > key; to--) f.list[to * 32] = f.list[(to - 1) * 32];
        f.list[to * 32] = key;
    }
}

static __device__ __forceinline__ void write_lane(
    const struct few &f, float2 near, float steep, struct pnet_apml_entry *to)
{
    float sum = 0;
    sort_by_row(f);
    for (int i = 0; i < f.count; i++) sum += similarity((uint32_t)f.list[i * 32], near, steep);
    for (int i = 0; i < f.count; i++) {
        const uint64_t key = f.list[i * 32];
        to[i] = {(int32_t)(key >> 32), 0.5f * (similarity((uint32_t)key, near, steep) / sum)};
    }
}

struct write_lane_room {
    struct walk_room walk;
    uint64_t list[APML_SHORT][32];
};

/* Rows that keep at most APML_SHORT points, one a lane. */
static __global__ void __launch_bounds__(WRITE_WARPS *WARP)
    write_short(const __grid_constant__ struct set_search s, const struct apml_view v,
        const __grid_constant__ struct lists lists)
{
    __shared__ __align__(16) struct write_lane_room rooms[WRITE_WARPS];
    struct write_lane_room &room = rooms[threadIdx.x / WARP];
    if (!*v.finite) return;
    for_parts(
        s, *s.in.live, [](int32_t) {},
        [&](const struct part &all) {
            struct part p = all;
            struct row_list list = {};
            if (has_point(p)) list = list_of(lists, p.sample >= s.in.samples / 2, p.own.row);
            if (list.count == 0 || list.count > APML_SHORT) p.own.row = NO_ROW;
            if (!__any_sync(WARP_ALL, has_point(p))) return;
            float2 near = {0, 0};
            uint32_t square = 0;
            if (has_point(p)) {
                near = v.near[p.place];
                square = square_bits(radius_of(near, v.kappa[p.sample], p.end - p.first));
            }
            struct few f = {&room.list[0][threadIdx.x % 32], (int)list.count, 0, UINT64_MAX};
            walk_part(
                s, p, room.walk, [&] { return square; },
                [&](int, uint32_t, const struct geo_box &box, uint32_t gap) {
                    return gap <= square && support_key(gap, box.least) < f.bound;
                },
                [&](uint32_t distance2, int32_t row) {
                    if (!has_point(p) || distance2 > square) return;
                    const uint64_t key = support_key(distance2, row);
                    if (key < f.bound) insert(f, key);
                });
            if (has_point(p)) write_lane(f, near, steepness(v, p, near), list.to);
        });
}

/* The part of one point. */
static __device__ __forceinline__ struct part part_of(const struct set_search &s, int64_t place)
{
    struct part p = {};
    p.place = place;
    p.own.row = row_at(s.in, place);
    point_at(s.in, place, false, p.own.at);
    p.sample = sample_of(s.in.row_splits, s.in.samples, place);
    look_from(s, p);
    return p;
}

/* The nearest n.limit points of the support, sorted by (distance, row). */
static __device__ void find_support(const struct set_search &s, const struct part &p,
    uint32_t square, struct nearest &n, struct centre &centre)
{
    const float *at = p.own.at;
    const struct part_measure measure = {at, at, take_centre(s, p, centre), &centre};
    struct geo_walk w = walk_measured(s.tree, p.first, p.end, measure, *n.gaps);
    for (;;) {
        int64_t leaf =
            next_wanted_leaf(s.tree, w, square, measure, *n.gaps, [&](int level, uint32_t member) {
                struct geo_box box = box_at(&s.tree.box[level][member]);
                uint32_t gap = gap_bits(box.low, box.high, at, at);
                return gap <= square && support_key(gap, box.least) < n.bound;
            });
        if (leaf < 0) break;
        const int64_t place = leaf * 32 + threadIdx.x % 32;
        uint64_t key = UINT64_MAX;
        if (place >= p.first && place < p.end) {
            float from[3];
            point_at(s.in, place, false, from);
            const uint32_t distance2 = distance2_bits(from, at);
            if (distance2 <= square) key = support_key(distance2, row_at(s.in, place));
        }
        offer(n, key != UINT64_MAX, key);
    }
    keep_nearest(n);
}

static __device__ void write_warp(
    struct nearest &n, float2 near, float steep, struct pnet_apml_entry *to)
{
    const int lane = (int)threadIdx.x % 32;
    float sum = 0;
    for (int i = lane; i < n.count; i += 32) n.item[i] = swapped(n.item[i]);
    __syncwarp();
    sort_all(n.item, n.count, n.room);
    for (int i = lane; i < n.count; i += 32) sum += similarity((uint32_t)n.item[i], near, steep);
    sum = lanes_sum(sum, WARP);
    for (int i = lane; i < n.count; i += 32) {
        const uint64_t key = n.item[i];
        to[i] = {(int32_t)(key >> 32), 0.5f * (similarity((uint32_t)key, near, steep) / sum)};
    }
    __syncwarp();
}

/* The other rows, of 32 places a block, one a warp. */
static __global__ void __launch_bounds__(WRITE_WARPS *WARP)
    write_long(const __grid_constant__ struct set_search s, const struct apml_view v,
        const __grid_constant__ struct lists lists, int room)
{
    extern __shared__ __align__(16) char shared[];
    __shared__ struct centre centres[WRITE_WARPS];
    const int64_t live = *s.in.live, base = blockIdx.x * (int64_t)32,
                  own = base + threadIdx.x % WARP;
    const int warp = (int)threadIdx.x / WARP;
    struct row_list list = {};
    if (!*v.finite) return;
    if (own < live)
        list = list_of(lists, own >= s.in.row_splits[s.in.samples / 2], row_at(s.in, own));
    const uint32_t all = __ballot_sync(WARP_ALL, list.count > APML_SHORT);
    int turn = 0;
    for (uint32_t left = all; left; left &= left - 1) {
        if (turn++ % WRITE_WARPS != warp) continue;
        const int from = __ffs((int)left) - 1;
        const int64_t count = __shfl_sync(WARP_ALL, list.count, from);
        const struct part p = part_of(s, base + from);
        const float2 near = v.near[p.place];
        struct nearest n = nearest_in(shared, WRITE_WARPS, room, (int)count);
        find_support(s, p, square_bits(radius_of(near, v.kappa[p.sample], p.end - p.first)), n,
            centres[warp]);
        write_warp(n, near, steepness(v, p, near),
            list_of(lists, p.sample >= s.in.samples / 2, p.own.row).to);
    }
}

void pnet_cuda_apml_search(const struct pnet_apml *a, const struct pnet_cuda_apml_list list[2],
    int32_t *finite, void *work)
{
    const struct pnet_point_set *set[SIDES] = {&a->sets.x, &a->sets.y};
    int64_t *count[SIDES];
    struct apml_parts p;
    struct lists lists;
    int64_t chunks = 1;
    cudaStream_t stream = pnet_cuda_stream();
    pnet_cuda_apml_take(a, false, work, &p);
    for (int side = 0; side < SIDES; side++) {
        count[side] = list[side].start + 1;
        int64_t own = pnet_cuda_apml_chunks(set[side]->rows.most);
        lists.of[side] = {set[side]->rows, own, p.sums[side], list[side].start, list[side].entry};
        chunks = own > chunks ? own : chunks;
    }
    pnet_cuda_apml_count(a, &p, count, finite);
    make_starts<<<dim3((unsigned)chunks, SIDES), THREADS, 0, stream>>>(lists, p.limit, finite);
    if (p.tree.places <= 0) return;
    const struct set_search s = search_of(&p.tree);
    const struct apml_view view = view_of(&p, finite);
    write_short<<<place_blocks(&p.tree, WRITE_WARPS * WARP), WRITE_WARPS * WARP, 0, stream>>>(
        s, view, lists);
    if (a->most <= APML_SHORT) return;
    const int room = room_for(a->most);
    const size_t bytes = nearest_bytes(WRITE_WARPS, room);
    cudaFuncSetAttribute(
        (const void *)write_long, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    write_long<<<place_blocks(&p.tree, WARP), WRITE_WARPS * WARP, bytes, stream>>>(
        s, view, lists, room);
}
