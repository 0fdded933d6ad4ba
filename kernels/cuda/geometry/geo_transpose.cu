/* Sorts the triplets by the other side: integer atomics count them and give them places in no particular order, then each
   row is sorted. No row holds a triplet twice, so the result is determined. */
#include "kernels/geometry_stage.h"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/geometry/geo_rank.h"

enum { WARPS = 2 };

struct room {
    struct rank_items packed;
    struct rank_rows rows;
    uint16_t sorted[ROW_LIMIT];
};

static __global__ void count_others(int64_t count, const int32_t *other, int64_t *start)
{
    for (int64_t t = thread_index(); t < count; t += thread_count())
        atomicAdd((unsigned long long *)&start[other[t]], 1ull);
}

/* start[j] is the end of row j, and is lowered to its begin. A warp takes 32 rows of the set. */
static __global__ void deal_out(
    const struct pnet_triplets set, int64_t *start, int32_t *other, uint16_t *cell)
{
    int lane = threadIdx.x % 32;
    int64_t row = thread_index(), first = row - lane;
    if (row == 0) start[set.others] = set.count;
    if (first >= set.rows) return;
    int64_t ends = set.start[row < set.rows ? row + 1 : set.rows];
    int64_t begin = set.start[first], end = __shfl_sync(WARP_ALL, ends, 31);
    for (; begin < end; begin += 32) {
        int64_t t = begin + lane;
        int before = 0; /* rows that end before t */
        for (int step = 16; step > 0; step /= 2) {
            int64_t last = __shfl_sync(WARP_ALL, ends, before + step - 1);
            if (last <= t) before += step;
        }
        if (t >= end) continue;
        unsigned long long *next = (unsigned long long *)&start[set.other[t]];
        int64_t place = (int64_t)atomicAdd(next, ~0ull) - 1;
        other[place] = (int32_t)(first + before);
        cell[place] = set.cell[t];
    }
}

static __global__ void __launch_bounds__(32 * WARPS)
    sort_short(int64_t rows, int32_t cells, const int64_t *start, int32_t *other, uint16_t *cell)
{
    __shared__ struct room rooms[WARPS];
    struct room &room = rooms[threadIdx.x / 32];
    int lane = threadIdx.x % 32;
    int64_t row = thread_index(), first = row - lane;
    if (first >= rows) return;
    int64_t begin = row < rows ? start[row] : 0, length = row < rows ? start[row + 1] - begin : 0;
    int lanes = (int)(rows - first < 32 ? rows - first : 32);
    int ends = lane_sums(length <= ROW_LIMIT ? (int)length : ROW_LIMIT + 1);
    room.rows.start[lane] = begin;
    if (lane == 0) room.rows.offset[0] = 0;
    for (int from = 0, to; from < lanes; from = to) {
        int before = from ? __shfl_sync(WARP_ALL, ends, from - 1) : 0;
        to = rank_share(from, lanes, ends, before);
        room.rows.offset[lane + 1] = ends - before;
        __syncwarp();
        int items = room.rows.offset[to];
        int64_t place = room.rows.start[from];
        if (items > ROW_LIMIT) { /* a long row */
            __syncwarp();
            continue;
        }
        for (int e = lane; e < items; e += 32) {
            room.rows.other[e] = other[place + e];
            room.rows.cell[e] = cell[place + e];
        }
        __syncwarp();
        rank_pack(room.rows, from, to, cells, room.packed, room.sorted);
        __syncwarp();
        rank_write(room.rows, from, to, true, room.sorted, other, cell);
        __syncwarp();
    }
}

extern "C" void pnet_cuda_transpose(
    const struct pnet_triplets *t, int64_t *start, int32_t *other, uint16_t *cell, void *work)
{
    cudaStream_t stream = pnet_cuda_stream();
    cudaMemsetAsync(start, 0, ((size_t)t->others + 1) * sizeof *start, stream);
    if (t->others <= 0 || t->rows <= 0) return;
    count_others<<<geo_blocks(t->count), GEO_THREADS, 0, stream>>>(t->count, t->other, start);
    pnet_cuda_geo_scan(t->others, start, (int64_t *)work);
    deal_out<<<(unsigned)((t->rows + GEO_THREADS - 1) / GEO_THREADS), GEO_THREADS, 0, stream>>>(
        *t, start, other, cell);
    unsigned blocks = (unsigned)((t->others + 32 * WARPS - 1) / (32 * WARPS));
    sort_short<<<blocks, 32 * WARPS, 0, stream>>>(t->others, t->cells, start, other, cell);
    pnet_cuda_geo_sort_long(t->others, start, ROW_LIMIT, other, cell);
}

/* Each block writes its number to the host. */
static __global__ void count_runs(const struct pnet_triplets set, int64_t *partial)
{
    __shared__ int64_t sum[GEO_THREADS / 32];
    int64_t runs = 0;
    for (int64_t i = thread_index(); i < set.rows; i += thread_count())
        for (int64_t t = set.start[i]; t < set.start[i + 1]; t++)
            runs += t == set.start[i] || set.cell[t] != set.cell[t - 1];
    for (int step = 16; step > 0; step /= 2) runs += __shfl_xor_sync(WARP_ALL, runs, step);
    if (threadIdx.x % 32 == 0) sum[threadIdx.x / 32] = runs;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int w = 1; w < GEO_THREADS / 32; w++) runs += sum[w];
    partial[blockIdx.x] = runs;
}

extern "C" int64_t pnet_cuda_cell_runs(const struct pnet_triplets *t)
{
    int64_t *partial = pnet_cuda_geo_readback();
    if (!partial || t->rows <= 0) return 0;
    int blocks = geo_few_blocks(t->rows);
    count_runs<<<(unsigned)blocks, GEO_THREADS, 0, pnet_cuda_stream()>>>(*t, partial);
    return pnet_cuda_geo_read_partials(blocks);
}
