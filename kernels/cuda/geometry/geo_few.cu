/* The k nearest points for small k. A warp takes 32 queries, or fewer where the curve jumps, and visits the leaves near the
   box around them, near leaves first. Each lane keeps the nearest points of its query in order, and tests all points of a
   leaf that can be among those of any query. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/geometry/geo_gather.h"
#include "kernels/cuda/geometry/geo_lists.h"
#include "kernels/cuda/geometry/geo_rank.h"

enum { WARPS = 2 };

/* A warp's shared memory; a list of `limit` candidates for each lane follows it. */
struct few_room {
    float4 point[32];
    struct geo_gaps gaps;
};

/* Returns the bytes of a warp's lists; they suffice for the sort that follows. */
static __host__ __device__ size_t list_bytes(int limit)
{
    size_t lists = (size_t)limit * 32 * sizeof(uint64_t), items = sizeof(struct rank_items);
    return lists > items ? lists : items;
}

static __device__ __forceinline__ struct few_room &room_in(char *shared)
{
    return ((struct few_room *)shared)[threadIdx.x / 32];
}

static __device__ struct few few_in(char *shared, int limit)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    struct few f = {};
    char *lists = (char *)((struct few_room *)shared + WARPS) + warp * list_bytes(limit);
    f.list = (uint64_t *)lists + lane;
    f.limit = limit;
    return f;
}

/* Takes the points of a leaf that may be among the nearest of any query. Returns their number. */
static __device__ int take_leaf(const struct geo_set &s, const struct reach &r,
    const struct geo_walk &w, int64_t leaf, uint32_t most, struct few_room &room)
{
    int lane = threadIdx.x % 32;
    int64_t place = leaf * 32 + lane;
    bool near = place >= w.first && place < w.end;
    float at[3] = {0, 0, 0};
    int32_t row = 0;
    if (near) {
        row = row_at(s.in, place);
        place_of(s.in, row, false, at);
        near = gap_bits(at, at, r.low, r.high) <= most;
    }
    uint32_t mask = __ballot_sync(WARP_ALL, near);
    if (near)
        room.point[__popc(mask & ((1u << lane) - 1))] =
            make_float4(at[0], at[1], at[2], __int_as_float(row));
    __syncwarp();
    return __popc(mask);
}

/* Fills the lists of active lanes, whose centres lie in the box of `r`. */
static __device__ void find_few(const struct geo_set &s, const struct reach &r,
    const struct query &q, int32_t sample, bool self_first, struct few_room &room, struct few &f)
{
    bool active = q.row != NO_ROW;
    uint32_t most = UINT32_MAX;
    f.count = 0;
    f.bound = active ? UINT64_MAX : 0;
    struct geo_walk w = walk_near(
        s.tree, s.in.row_splits[sample], s.in.row_splits[sample + 1], r.low, r.high, room.gaps);
    for (;;) {
        int64_t leaf = next_leaf(s.tree, w, most, r.low, r.high, room.gaps);
        if (leaf < 0) break;
        int points = take_leaf(s, r, w, leaf, most, room);
        for (int c = 0; c < points; c++) {
            float4 p = room.point[c];
            float at[3] = {p.x, p.y, p.z};
            int32_t row = __float_as_int(p.w);
            uint64_t item = candidate(at, q.at, self_first && row == q.row, row);
            if (item < f.bound) insert(f, item);
        }
        most = __reduce_max_sync(WARP_ALL, (uint32_t)(f.bound >> 32));
        __syncwarp();
    }
}

static __global__ void __launch_bounds__(32 * WARPS)
    list_few(const __grid_constant__ struct geo_set s, int32_t k, int32_t *index, float *distance2)
{
    extern __shared__ __align__(16) char shared[];
    struct few f = few_in(shared, k);
    int lane = threadIdx.x % 32;
    struct tile t = tile_of(s.out);
    if (!t.lanes) return;
    struct query all = query_at(s, lane < t.lanes, t.first + lane);
    for (int from = 0, to; from < t.lanes; from = to) {
        struct query q;
        struct reach r;
        to = reach_part<SEARCH_BALL, false>(s, all, from, tile_sample_end(s.out, t, from), q, r);
        find_few(s, r, q, t.sample, false, room_in(shared), f);
        if (q.row == NO_ROW) continue;
        for (int i = 0; i < k; i++) {
            int64_t place = (int64_t)q.row * k + i;
            uint64_t item = i < f.count ? f.list[i * 32] : 0;
            index[place] = i < f.count ? row_of(item) : -1;
            distance2[place] = i < f.count ? distance2_of(item) : INFINITY;
        }
    }
}

/* Writes the nearest points of a lane's query as a row of triplets. */
static __device__ void put_row(
    const struct geo_set &s, const struct query &q, const struct few &f, struct rank_rows &rows)
{
    float radius = f.count ? sqrtf(distance2_of(f.list[(f.count - 1) * 32])) : 0;
    struct geo_cells cells = cells_of(s.cells.kernel, radius);
    int first = rows.offset[threadIdx.x % 32];
    for (int i = 0; i < f.count; i++) {
        int32_t j = row_of(f.list[i * 32]);
        float d[3];
        for (int a = 0; a < 3; a++) d[a] = s.in.xyz[3 * (int64_t)j + a] - q.at[a];
        rows.other[first + i] = j;
        rows.cell[first + i] = (uint16_t)cell_of(cells, d);
    }
}

static __global__ void __launch_bounds__(32 * WARPS)
    write_few(const __grid_constant__ struct geo_set s, const struct geo_results set)
{
    extern __shared__ __align__(16) char shared[];
    __shared__ struct rank_rows all_rows[WARPS];
    __shared__ uint16_t all_from[WARPS][ROW_LIMIT];
    struct rank_rows &rows = all_rows[threadIdx.x / 32];
    uint16_t *sorted = all_from[threadIdx.x / 32];
    struct few f = few_in(shared, s.knn);
    int lane = threadIdx.x % 32, K = s.cells.kernel, cells = K * K * K;
    struct tile t = tile_of(s.out);
    if (!t.lanes) return;
    struct query all = query_at(s, lane < t.lanes, t.first + lane);
    for (int from = 0, to; from < t.lanes; from = to) {
        struct query q;
        struct reach r;
        to = reach_part<SEARCH_BALL, false>(s, all, from, tile_sample_end(s.out, t, from), q, r);
        find_few(s, r, q, t.sample, true, room_in(shared), f);
        rows.offset[lane + 1] = lane_sums(f.count);
        if (lane == 0) rows.offset[0] = 0;
        if (q.row != NO_ROW) rows.start[lane] = set.start[q.row];
        __syncwarp();
        if (q.row != NO_ROW) put_row(s, q, f, rows);
        __syncwarp();
        rank_pack(rows, from, to, cells, *(struct rank_items *)(f.list - lane), sorted);
        __syncwarp();
        rank_write(rows, from, to, !s.out.order, sorted, set.other, set.cell);
        __syncwarp();
    }
}

static_assert(FEW_LIMIT * 32 <= ROW_LIMIT, "the rows of a warp have room");

static size_t shared_for(const void *kernel, int limit)
{
    size_t bytes = WARPS * (sizeof(struct few_room) + list_bytes(limit));
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    return bytes;
}

static unsigned blocks_of(int64_t rows)
{
    int64_t tiles = (rows + 31) / 32;
    return (unsigned)((tiles + WARPS - 1) / WARPS);
}

void pnet_cuda_geo_few_list(const struct geo_set *s, int32_t k, int32_t *index, float *distance2)
{
    size_t bytes = shared_for((const void *)list_few, k);
    list_few<<<blocks_of(s->out.rows), 32 * WARPS, bytes, pnet_cuda_stream()>>>(
        *s, k, index, distance2);
}

void pnet_cuda_geo_few_write(const struct geo_set *s, const struct geo_results *to)
{
    size_t bytes = shared_for((const void *)write_few, s->knn);
    write_few<<<blocks_of(s->out.rows), 32 * WARPS, bytes, pnet_cuda_stream()>>>(*s, *to);
}
