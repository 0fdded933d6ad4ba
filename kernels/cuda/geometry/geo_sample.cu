/* Grid sampling: selects one original point a voxel, and finds the children of each selected point. */
#include "kernels/geometry_stage.h"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/geometry/geo_grid.h"
#include "kernels/cuda/geometry/geo_parts.h"

static __device__ __forceinline__ int64_t row_at(const int32_t *order, int64_t place)
{
    return order ? order[place] : place;
}

/* Sets head[place] to 1 where a voxel begins. */
static __global__ void find_heads(int64_t n, const struct pnet_level fine, struct pnet_grid grid,
    const int32_t *order, int32_t *head)
{
    bool inside = true;
    for (int64_t i = thread_index(); i < n; i += thread_count()) {
        bool first = i == 0 || point_key(fine.xyz + 3 * row_at(order, i), grid, inside) !=
                                   point_key(fine.xyz + 3 * row_at(order, i - 1), grid, inside);
        if (!first) first = fine.row_splits[sample_of(fine.row_splits, fine.samples, i)] == i;
        head[i] = first;
    }
}

static __device__ uint32_t distance2_to_centre(const float *p, struct pnet_grid grid)
{
    float d[3], cell = grid_cell(grid);
    bool inside = true;
    for (int a = 0; a < 3; a++)
        d[a] = p[a] - ((float)voxel_index(p[a], grid, inside) + 0.5f) * cell;
    return __float_as_uint((d[0] * d[0] + d[1] * d[1]) + d[2] * d[2]);
}

/* Lowers least[voxel] to the least `own` of its places. A warp whose lanes have one voxel updates it once. */
static __device__ __forceinline__ void keep_least(uint32_t *least, int32_t voxel, uint32_t own)
{
    if (__all_sync(WARP_ALL, voxel == __shfl_sync(WARP_ALL, voxel, 0))) {
        own = __reduce_min_sync(WARP_ALL, own);
        if (threadIdx.x % 32 != 0) return;
    }
    if (voxel >= 0 && own != UINT32_MAX) atomicMin(&least[voxel], own);
}

/* voxel[place] is the number of voxels that begin up to there. Distances are not negative, so the order of their bits is
   their order. */
static __global__ void find_nearest(int64_t n, const float *xyz, struct pnet_grid grid,
    const int32_t *order, const int32_t *voxel, uint32_t *nearest)
{
    int64_t rounds = (n + thread_count() - 1) / thread_count();
    for (int64_t round = 0; round < rounds; round++) {
        int64_t i = round * thread_count() + thread_index();
        bool there = i < n;
        keep_least(nearest, there ? voxel[i] - 1 : -1,
            there ? distance2_to_centre(xyz + 3 * row_at(order, i), grid) : UINT32_MAX);
    }
}

/* Selects the lowest row among the nearest ones, and sets parents, which may overwrite `voxel`. */
static __global__ void find_keep(int64_t n, const float *xyz, struct pnet_grid grid,
    const int32_t *order, const int32_t *voxel, const uint32_t *nearest, uint32_t *keep,
    int32_t *parent)
{
    int64_t rounds = (n + thread_count() - 1) / thread_count();
    for (int64_t round = 0; round < rounds; round++) {
        int64_t i = round * thread_count() + thread_index();
        int32_t own = -1;
        uint32_t row = UINT32_MAX;
        if (i < n) {
            int64_t candidate = row_at(order, i);
            own = voxel[i] - 1;
            if (distance2_to_centre(xyz + 3 * candidate, grid) == nearest[own])
                row = (uint32_t)candidate;
            parent[candidate] = own;
        }
        keep_least(keep, own, row);
    }
}

static __global__ void find_splits(
    int32_t samples, const int64_t *fine_splits, const int32_t *voxel, int64_t *row_splits)
{
    for (int64_t s = thread_index(); s <= samples; s += thread_count())
        row_splits[s] = fine_splits[s] > 0 ? voxel[fine_splits[s] - 1] : 0;
}

extern "C" int64_t pnet_cuda_sample(const struct pnet_level *fine, struct pnet_grid grid,
    bool ordered, int32_t *keep, int32_t *parent, int64_t *row_splits, void *work)
{
    struct geo_sample_work p;
    int64_t n = fine->rows;
    int32_t samples = fine->samples;
    cudaStream_t stream = pnet_cuda_stream();
    if (n <= 0) {
        cudaMemsetAsync(row_splits, 0, ((size_t)samples + 1) * sizeof *row_splits, stream);
        return 0;
    }
    pnet_cuda_geo_sample_take(n, ordered, work, &p);
    unsigned blocks = geo_blocks(n);
    if (!ordered)
        pnet_cuda_order_points(
            n, samples, fine->row_splits, fine->xyz, grid, p.order, p.room, p.sorting);
    int32_t *voxel = p.voxel ? p.voxel : parent;
    find_heads<<<blocks, GEO_THREADS, 0, stream>>>(n, *fine, grid, p.order, voxel);
    pnet_cuda_geo_scan(n, voxel, p.sums);
    find_splits<<<1, GEO_THREADS, 0, stream>>>(samples, fine->row_splits, voxel, row_splits);
    cudaMemsetAsync(p.nearest, 0xff, (size_t)n * sizeof *p.nearest, stream);
    cudaMemsetAsync(keep, 0xff, (size_t)n * sizeof *keep, stream);
    find_nearest<<<blocks, GEO_THREADS, 0, stream>>>(n, fine->xyz, grid, p.order, voxel, p.nearest);
    find_keep<<<blocks, GEO_THREADS, 0, stream>>>(
        n, fine->xyz, grid, p.order, voxel, p.nearest, (uint32_t *)keep, parent);
    return pnet_cuda_geo_read(row_splits + samples);
}

/* Adds `sign` to the counter of each parent; a warp with one parent adds once for all lanes. Returns the counter's value
   before this thread's turn. */
static __device__ int64_t take_turn(int32_t parent, bool there, int64_t *number, int64_t sign)
{
    int lane = threadIdx.x % 32;
    uint32_t mask = __ballot_sync(WARP_ALL, there);
    if (!mask) return 0;
    int first = __ffs((int)mask) - 1;
    int32_t common = __shfl_sync(WARP_ALL, parent, first);
    unsigned long long before = 0;
    if (__all_sync(WARP_ALL, !there || parent == common)) {
        if (lane == first)
            before = atomicAdd(
                (unsigned long long *)&number[common], (unsigned long long)(sign * __popc(mask)));
        before = __shfl_sync(WARP_ALL, before, first);
        return (int64_t)before + sign * __popc(mask & ((1u << lane) - 1));
    }
    if (there) before = atomicAdd((unsigned long long *)&number[parent], (unsigned long long)sign);
    return (int64_t)before;
}

static __global__ void count_children(int64_t n, const int32_t *parent, int64_t *start)
{
    int64_t rounds = (n + thread_count() - 1) / thread_count();
    for (int64_t round = 0; round < rounds; round++) {
        int64_t j = round * thread_count() + thread_index();
        take_turn(j < n ? parent[j] : -1, j < n, start, 1);
    }
}

/* start[i] is the end of row i, and is lowered to its begin. */
static __global__ void place_children(
    int64_t n, int64_t coarse_rows, const int32_t *parent, int64_t *start, int32_t *child)
{
    int64_t rounds = (n + thread_count() - 1) / thread_count();
    for (int64_t round = 0; round < rounds; round++) {
        int64_t j = round * thread_count() + thread_index();
        int64_t place = take_turn(j < n ? parent[j] : -1, j < n, start, -1) - 1;
        if (j < n) child[place] = (int32_t)j;
    }
    if (thread_index() == 0) start[coarse_rows] = n;
}

/* Sets start[i] if parents ascend and each has a child. */
static __global__ void find_stretches(
    int64_t n, int64_t coarse_rows, const int32_t *parent, int64_t *start)
{
    for (int64_t j = thread_index(); j < n; j += thread_count()) {
        if (j == 0 || parent[j] != parent[j - 1]) start[parent[j]] = j;
        if (j == 0) start[coarse_rows] = n;
    }
}

/* Each coarse row has a child, so there are no more coarse rows than fine rows: the memory of the children holds the sums of
   the scan first. */
extern "C" void pnet_cuda_children(
    int64_t fine_rows, int64_t coarse_rows, const int32_t *parent, int64_t *start, int32_t *child)
{
    cudaStream_t stream = pnet_cuda_stream();
    cudaMemsetAsync(start, 0, ((size_t)coarse_rows + 1) * sizeof *start, stream);
    if (fine_rows <= 0) return;
    unsigned blocks = geo_blocks(fine_rows);
    if (!child) {
        find_stretches<<<blocks, GEO_THREADS, 0, stream>>>(fine_rows, coarse_rows, parent, start);
        return;
    }
    count_children<<<blocks, GEO_THREADS, 0, stream>>>(fine_rows, parent, start);
    pnet_cuda_geo_scan(coarse_rows, start, (int64_t *)child);
    place_children<<<blocks, GEO_THREADS, 0, stream>>>(
        fine_rows, coarse_rows, parent, start, child);
    pnet_cuda_geo_sort_children(coarse_rows, start, child);
}
