/* The k nearest points of each query, one warp a query: a walk through the tree that visits near boxes first. */
#include "kernels/geometry_stage.h"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/geometry/geo_lists.h"

enum { WARPS = 4 };

/* Finds the nearest among places [first, end), sorted in n.item. `self`: the row that precedes others at the same distance;
   -1: none. */
static __device__ void find_nearest(const struct geo_tree &t, const struct geo_points &in,
    int64_t first, int64_t end, const float at[3], int32_t self, struct nearest &n)
{
    n.count = n.sorted = 0;
    n.bound = UINT64_MAX;
    struct geo_walk w = walk_near(t, first, end, at, at, *n.gaps);
    for (;;) {
        int64_t leaf = next_leaf(t, w, (uint32_t)(n.bound >> 32), at, at, *n.gaps);
        if (leaf < 0) break;
        int64_t place = leaf * 32 + threadIdx.x % 32;
        bool there = place >= first && place < end;
        int32_t row = there ? row_at(in, place) : 0;
        offer(n, there,
            there ? candidate(in.xyz + 3 * (int64_t)row, at, row == self, row) : UINT64_MAX);
    }
    keep_nearest(n);
}

/* Appends the children of a row that are not among its nearest points, while there is room. Returns the number of all
   triplets. If there are fewer points than asked for, all of them are among the nearest. */
static __device__ int64_t add_children(
    const struct geo_set &s, const struct nearest &n, int64_t row, const struct geo_results *to)
{
    int lane = threadIdx.x % 32;
    int64_t count = n.count;
    if (!s.parent || n.count < n.limit) return count;
    uint64_t farthest = n.item[n.limit - 1];
    for (int64_t c = s.child_start[row]; c < s.child_start[row + 1]; c += 32) {
        bool more = false;
        int32_t j = 0;
        if (c + lane < s.child_start[row + 1]) {
            j = s.child[c + lane];
            more = candidate(s.in.xyz + 3 * (int64_t)j, s.out.xyz + 3 * row, false, j) > farthest;
        }
        uint32_t mask = __ballot_sync(WARP_ALL, more);
        if (more && to) to->other[to->start[row] + count + __popc(mask & ((1u << lane) - 1))] = j;
        count += __popc(mask);
    }
    return count;
}

/* `self` is set for triplets within one level: a point precedes others at the same distance. */
static __device__ __forceinline__ int64_t search_row(
    const struct geo_set &s, int64_t place, bool self, struct nearest &n)
{
    int64_t row = row_at(s.out, place);
    int32_t sample = sample_of(s.out.row_splits, s.out.samples, place);
    find_nearest(s.tree, s.in, s.in.row_splits[sample], s.in.row_splits[sample + 1],
        s.out.xyz + 3 * row, self ? (int32_t)row : -1, n);
    return row;
}

static __global__ void __launch_bounds__(32 * WARPS) list_nearest(
    const __grid_constant__ struct geo_set s, int room, int32_t k, int32_t *index, float *distance2)
{
    extern __shared__ char shared[];
    struct nearest n = nearest_in(shared, WARPS, room, k);
    int64_t place = thread_index() / 32;
    if (place >= s.out.rows) return;
    int64_t row = search_row(s, place, false, n);
    for (int i = threadIdx.x % 32; i < k; i += 32) {
        bool there = i < n.count;
        index[row * k + i] = there ? row_of(n.item[i]) : -1;
        distance2[row * k + i] = there ? distance2_of(n.item[i]) : INFINITY;
    }
}

static __global__ void __launch_bounds__(32 * WARPS)
    count_nearest(const __grid_constant__ struct geo_set s, int room, int64_t *count)
{
    extern __shared__ char shared[];
    struct nearest n = nearest_in(shared, WARPS, room, s.knn);
    int64_t place = thread_index() / 32;
    if (place >= s.out.rows) return;
    int64_t row = search_row(s, place, !s.parent, n), all = add_children(s, n, row, nullptr);
    if (threadIdx.x % 32 == 0) count[row + 1] = all;
}

/* Within one level the number of triplets is known without a search. */
static __global__ void count_all(const __grid_constant__ struct geo_set s, int64_t *count)
{
    for (int64_t row = thread_index(); row < s.out.rows; row += thread_count()) {
        int32_t sample = sample_of(s.out.row_splits, s.out.samples, row);
        int64_t points = s.in.row_splits[sample + 1] - s.in.row_splits[sample];
        count[row + 1] = points < s.knn ? points : s.knn;
    }
}

static __device__ uint64_t triplet_item(
    const struct geo_set &s, const struct geo_cells &cells, const float *centre, int32_t j)
{
    float d[3];
    for (int a = 0; a < 3; a++) d[a] = s.in.xyz[3 * (int64_t)j + a] - centre[a];
    return (uint64_t)cell_of(cells, d) << 32 | (uint32_t)j;
}

static __device__ __forceinline__ void put(
    const struct geo_results &to, int64_t place, uint64_t item)
{
    to.other[place] = (int32_t)item;
    to.cell[place] = (uint16_t)(item >> 32);
}

static __global__ void __launch_bounds__(32 * WARPS)
    write_nearest(const __grid_constant__ struct geo_set s, int room, const struct geo_results to)
{
    extern __shared__ char shared[];
    struct nearest n = nearest_in(shared, WARPS, room, s.knn);
    int lane = threadIdx.x % 32;
    int64_t place = thread_index() / 32;
    if (place >= s.out.rows) return;
    int64_t row = search_row(s, place, !s.parent, n), all = add_children(s, n, row, &to),
            start = to.start[row];
    const float *centre = s.out.xyz + 3 * row;
    float radius = n.count ? sqrtf(distance2_of(n.item[n.count - 1])) : 0;
    struct geo_cells cells = cells_of(s.cells.kernel, radius);
    __syncwarp();
    for (int64_t i = lane; i < all; i += 32) {
        int32_t j = i < n.count ? row_of(n.item[i]) : to.other[start + i];
        uint64_t item = triplet_item(s, cells, centre, j);
        if (all <= room)
            n.item[i] = item;
        else
            put(to, start + i, item);
    }
    __syncwarp();
    if (all > room) return;
    sort_all(n.item, (int)all, room);
    for (int i = lane; i < (int)all; i += 32) put(to, start + i, n.item[i]);
}

static unsigned blocks_of(int64_t rows)
{
    return (unsigned)((rows + WARPS - 1) / WARPS);
}

static size_t shared_for(const void *kernel, int room)
{
    size_t bytes = nearest_bytes(WARPS, room);
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    return bytes;
}

void pnet_cuda_geo_nearest_count(const struct geo_set *s, int64_t *count)
{
    int room = room_for(s->knn);
    if (s->parent) {
        size_t bytes = shared_for((const void *)count_nearest, room);
        count_nearest<<<blocks_of(s->out.rows), 32 * WARPS, bytes, pnet_cuda_stream()>>>(
            *s, room, count);
    } else {
        count_all<<<geo_blocks(s->out.rows), GEO_THREADS, 0, pnet_cuda_stream()>>>(*s, count);
    }
}

int64_t pnet_cuda_geo_nearest_write(const struct geo_set *s, const struct geo_results *to)
{
    int room = room_for(s->knn);
    size_t bytes = shared_for((const void *)write_nearest, room);
    write_nearest<<<blocks_of(s->out.rows), 32 * WARPS, bytes, pnet_cuda_stream()>>>(*s, room, *to);
    return room;
}

extern "C" void pnet_cuda_nearest(const struct pnet_level *out, const struct pnet_level *in,
    int32_t k, int32_t *index, float *distance2, void *work)
{
    struct geo_nearest_work p;
    if (out->rows <= 0 || k <= 0) return;
    pnet_cuda_geo_nearest_take(out, in, work, &p);
    struct geo_set s = {};
    s.in = pnet_cuda_geo_points_of(in, p.in_order, p.sorting);
    s.out = out == in ? s.in : pnet_cuda_geo_points_of(out, p.out_order, p.sorting);
    s.tree = p.tree;
    pnet_cuda_geo_tree_build(&s.tree, &s.in, false);
    if (k <= FEW_LIMIT) {
        pnet_cuda_geo_few_list(&s, k, index, distance2);
        return;
    }
    int room = room_for(k);
    size_t bytes = shared_for((const void *)list_nearest, room);
    list_nearest<<<blocks_of(out->rows), 32 * WARPS, bytes, pnet_cuda_stream()>>>(
        s, room, k, index, distance2);
}
