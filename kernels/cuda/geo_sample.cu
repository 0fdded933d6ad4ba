/* Grid sampling: one original point a voxel, and the children of each of them. */
#include "kernels/cuda/geo.h"
#include "kernels/cuda/geo_grid.h"
#include "kernels/cuda/geo_parts.h"

/* The parts of a workspace. Sorting is over before voxels are numbered. */
struct parts {
    uint64_t *key;  /* [n] on the grid */
    int32_t *order; /* [n] place to row, by sample and key */
    void *sorting;
    int64_t *heads;           /* [n + 1] voxels that begin before a place */
    unsigned long long *best; /* [n] of each voxel: distance^2 to its centre above the row */
    int64_t *sums;
};

static size_t lay_out(int64_t n, void *work, struct parts *p)
{
    geo_purse purse(work);
    size_t rows = (size_t)n;
    p->key = purse.take<uint64_t>(rows);
    p->order = purse.take<int32_t>(rows);
    geo_purse shared = purse;
    p->sorting = shared.take<char>(pnet_cuda_order_work(n));
    p->heads = purse.take<int64_t>(rows + 1);
    p->best = purse.take<unsigned long long>(rows);
    p->sums = purse.take<int64_t>(geo_scan_sums(n));
    return shared.used > purse.used ? shared.used : purse.used;
}

static __global__ void find_heads(int64_t n, int32_t samples, const int64_t *row_splits,
    const uint64_t *key, const int32_t *order, int64_t *heads)
{
    for (int64_t i = thread_index(); i < n; i += thread_count()) {
        bool head = i == 0 || key[order[i]] != key[order[i - 1]];
        if (!head) head = row_splits[sample_of(row_splits, samples, i)] == i;
        heads[i + 1] = head;
        if (i == 0) heads[0] = 0;
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

/* Distances are not negative: their bits compare as they do, and equal ones leave it to the row. */
static __global__ void find_best(int64_t n, const float *xyz, struct pnet_grid grid,
    const int32_t *order, const int64_t *heads, int32_t *parent, unsigned long long *best)
{
    int64_t rounds = (n + thread_count() - 1) / thread_count();
    for (int64_t round = 0; round < rounds; round++) {
        int64_t i = round * thread_count() + thread_index();
        int32_t voxel = -1;
        unsigned long long own = ~0ull;
        if (i < n) {
            int32_t row = order[i];
            voxel = (int32_t)(heads[i + 1] - 1);
            parent[row] = voxel;
            own = (unsigned long long)distance2_to_centre(xyz + 3 * (int64_t)row, grid) << 32 |
                  (uint32_t)row;
        }
        if (__all_sync(WARP_ALL, voxel == __shfl_sync(WARP_ALL, voxel, 0))) {
            for (int step = 16; step > 0; step /= 2)
                own = min(own, __shfl_xor_sync(WARP_ALL, own, step));
            if (voxel >= 0 && threadIdx.x % 32 == 0) atomicMin(&best[voxel], own);
        } else if (voxel >= 0) {
            atomicMin(&best[voxel], own);
        }
    }
}

static __global__ void keep_best(int64_t n, int32_t samples, const int64_t *fine_splits,
    const int64_t *heads, const unsigned long long *best, int32_t *keep, int64_t *row_splits)
{
    int64_t voxels = heads[n];
    for (int64_t i = thread_index(); i < voxels; i += thread_count()) keep[i] = (int32_t)best[i];
    for (int64_t s = thread_index(); s <= samples; s += thread_count())
        row_splits[s] = heads[fine_splits[s]];
}

extern "C" size_t pnet_cuda_sample_work(int64_t n)
{
    struct parts p;
    return lay_out(n, nullptr, &p);
}

extern "C" int64_t pnet_cuda_sample(const struct pnet_level *fine, struct pnet_grid grid,
    int32_t *keep, int32_t *parent, int64_t *row_splits, void *work)
{
    struct parts p;
    int64_t n = fine->rows;
    int32_t samples = fine->samples;
    cudaStream_t stream = cudaStreamPerThread;
    if (n <= 0) {
        cudaMemsetAsync(row_splits, 0, ((size_t)samples + 1) * sizeof *row_splits, stream);
        return 0;
    }
    lay_out(n, work, &p);
    unsigned blocks = geo_blocks(n);
    geo_keys(n, fine->xyz, grid, p.key, nullptr, (int)blocks);
    pnet_cuda_order(n, samples, fine->row_splits, p.key, p.order, p.sorting);
    find_heads<<<blocks, GEO_THREADS, 0, stream>>>(
        n, samples, fine->row_splits, p.key, p.order, p.heads);
    geo_scan(n, p.heads + 1, p.sums);
    cudaMemsetAsync(p.best, 0xff, (size_t)n * sizeof *p.best, stream);
    find_best<<<blocks, GEO_THREADS, 0, stream>>>(
        n, fine->xyz, grid, p.order, p.heads, parent, p.best);
    keep_best<<<blocks, GEO_THREADS, 0, stream>>>(
        n, samples, fine->row_splits, p.heads, p.best, keep, row_splits);
    return geo_read(row_splits + samples);
}

/* Adds `sign` to the number of each parent, 32 at a time where a warp has one parent, and returns
   what it was for this thread's turn. */
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

/* start[i] is where row i ends, and moves down to where it begins. */
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

/* A coarse row has a child: there are no more of them than fine rows, so that the children have
   room for the sums of the scan until they come. */
extern "C" void pnet_cuda_children(
    int64_t fine_rows, int64_t coarse_rows, const int32_t *parent, int64_t *start, int32_t *child)
{
    cudaStream_t stream = cudaStreamPerThread;
    cudaMemsetAsync(start, 0, ((size_t)coarse_rows + 1) * sizeof *start, stream);
    if (fine_rows <= 0) return;
    unsigned blocks = geo_blocks(fine_rows);
    count_children<<<blocks, GEO_THREADS, 0, stream>>>(fine_rows, parent, start);
    geo_scan(coarse_rows, start, (int64_t *)child);
    place_children<<<blocks, GEO_THREADS, 0, stream>>>(
        fine_rows, coarse_rows, parent, start, child);
    geo_sort_children(coarse_rows, start, child);
}
