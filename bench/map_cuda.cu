/* pnet-bench ablate map: hashing on a GPU. Where rows lie in the table depends on the order of arrival; what is found does
   not. */
#include "bench/map.h"
#include "kernels/cuda/geometry/geo_grid.h"
#include "kernels/cuda/geometry/geo_parts.h"

static size_t work_bytes(const struct map_task *t)
{
    return pnet_cuda_geo_scan_sums(t->out.rows) * sizeof(int64_t);
}

static __global__ void __launch_bounds__(GEO_THREADS)
    insert(const __grid_constant__ struct map_task t)
{
    uint32_t last = (1u << t.bits) - 1;
    for (int64_t i = thread_index(); i < t.in.rows; i += thread_count()) {
        int32_t sample = sample_of(t.in.row_splits, t.in.samples, i);
        uint32_t at = map_home(t.in.key[i], sample, t.bits);
        while (atomicCAS(&t.table[at], -1, (int32_t)i) != -1) at = (at + 1) & last;
    }
}

static void build(const struct map_task *t, void *work)
{
    (void)work;
    cudaMemsetAsync(t->table, 0xff, sizeof *t->table << t->bits, cudaStreamPerThread);
    if (t->in.rows > 0) insert<<<geo_blocks(t->in.rows), GEO_THREADS, 0, cudaStreamPerThread>>>(*t);
}

/* Threads of a warp have neighbouring rows and one cell. */
static __global__ void __launch_bounds__(GEO_THREADS)
    find_cells(const __grid_constant__ struct map_task t)
{
    int64_t i = thread_index();
    int32_t v = (int32_t)blockIdx.y, K = t.kernel;
    if (i >= t.out.rows) return;
    struct map_centre c = map_centre(&t, sample_of(t.out.row_splits, t.out.samples, i), i);
    map_find(&t, &c, v / (K * K), v / K % K, v % K);
}

static void find(const struct map_task *t)
{
    int32_t cells = map_cells(t);
    if (t->out.rows <= 0) return;
    if (t->half)
        cudaMemsetAsync(t->slot, 0xff, (size_t)cells * (size_t)t->out.rows * sizeof *t->slot,
            cudaStreamPerThread);
    dim3 grid((unsigned)((t->out.rows + GEO_THREADS - 1) / GEO_THREADS),
        (unsigned)(t->half ? cells / 2 + 1 : cells));
    find_cells<<<grid, GEO_THREADS, 0, cudaStreamPerThread>>>(*t);
}

static __global__ void __launch_bounds__(GEO_THREADS)
    count_slots(const __grid_constant__ struct map_task t, int64_t *start)
{
    for (int64_t i = thread_index(); i < t.out.rows; i += thread_count()) {
        int found = 0;
        for (int32_t v = 0; v < map_cells(&t); v++) found += t.slot[v * t.out.rows + i] >= 0;
        start[i + 1] = found;
    }
}

static int64_t count(const struct map_task *t, int64_t *start, void *work)
{
    cudaMemsetAsync(start, 0, sizeof *start, cudaStreamPerThread);
    if (t->out.rows <= 0) return 0;
    count_slots<<<geo_blocks(t->out.rows), GEO_THREADS, 0, cudaStreamPerThread>>>(*t, start);
    pnet_cuda_geo_scan(t->out.rows, start + 1, (int64_t *)work);
    return pnet_cuda_geo_read(start + t->out.rows);
}

static __global__ void __launch_bounds__(GEO_THREADS) write_slots(
    const __grid_constant__ struct map_task t, const int64_t *start, int32_t *other, uint16_t *cell)
{
    for (int64_t i = thread_index(); i < t.out.rows; i += thread_count()) {
        int64_t at = start[i];
        for (int32_t v = 0; v < map_cells(&t); v++) {
            int32_t row = t.slot[v * t.out.rows + i];
            if (row < 0) continue;
            other[at] = row;
            cell[at++] = (uint16_t)v;
        }
    }
}

static void write_triplets(
    const struct map_task *t, const int64_t *start, int32_t *other, uint16_t *cell)
{
    if (t->out.rows > 0)
        write_slots<<<geo_blocks(t->out.rows), GEO_THREADS, 0, cudaStreamPerThread>>>(
            *t, start, other, cell);
}

extern "C" const struct map_device pnet_bench_map_cuda = {
    work_bytes, build, find, count, write_triplets};
