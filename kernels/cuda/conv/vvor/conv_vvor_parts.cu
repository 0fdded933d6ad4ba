/* VVOR of sets, besides the products: bounds of the parts of a row, sizes of values, the sum of all shares. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/vvor/conv_vvor_fast.cuh"

enum { BLOCK = 256, MOST_BLOCKS = 4096 };

static unsigned blocks_for(int64_t n)
{
    int64_t blocks = (n + BLOCK - 1) / BLOCK;
    return (unsigned)(blocks < 1 ? 1 : blocks < MOST_BLOCKS ? blocks : (int64_t)MOST_BLOCKS);
}

/* bound[p - 1][row]: the number of the row's triplets in parts before p. */
static __global__ void find_bounds(
    const conv_set s, int parts, int64_t first, int64_t window, uint32_t *bound)
{
    int64_t live = pnet_live(s.rows);
    if (live > first + window) live = first + window;
    for (int64_t row = first + blockIdx.x * (int64_t)BLOCK + threadIdx.x; row < live;
         row += (int64_t)gridDim.x * BLOCK) {
        int64_t begin = conv_start(s, row), end = conv_start(s, row + 1), at = begin;
        for (int p = 1; p < parts; p++) {
            int cell = vvor_part_cell(s.cells, parts, p);
            for (int64_t last = end; at < last;) {
                int64_t middle = at + (last - at) / 2;
                if (conv_cell(s, middle) < cell)
                    at = middle + 1;
                else
                    last = middle;
            }
            bound[(p - 1) * window + row - first] = (uint32_t)(at - begin);
        }
    }
}

void pnet_cuda_vvor_find_bounds(
    const conv_set &s, int parts, int64_t first, int64_t window, uint32_t *bound)
{
    if (parts > 1)
        find_bounds<<<blocks_for(window), BLOCK, 0, pnet_cuda_stream()>>>(
            s, parts, first, window, bound);
}

/* One more than the largest row that the tile's triplets name: from its list, or from the triplets where it lists
   nothing. Where it lists them, the triplets may not be in memory. */
static __device__ uint32_t tile_others(const conv_set &s, int64_t tile, int64_t live)
{
    const pnet_tile &t = s.tiles.tile[tile];
    uint32_t others = 0;
    if (t.neighbours >= 0) {
        const int32_t *neighbour = (const int32_t *)(s.tiles.list + t.at);
        for (int i = threadIdx.x; i < t.neighbours; i += BLOCK)
            others = max(others, (uint32_t)neighbour[i] + 1);
    } else {
        int64_t row = tile * PNET_TILE_ROWS, end = s.start[min(row + PNET_TILE_ROWS, live)];
        for (int64_t n = s.start[row] + threadIdx.x; n < end; n += BLOCK)
            others = max(others, (uint32_t)s.other[n] + 1);
    }
    return others;
}

/* Measures how many rows are gathered from: rows behind them may not exist. */
static __global__ void measure_set(const vvor_job<float> j)
{
    const conv_set &s = j.set;
    int64_t live = pnet_live(s.rows), stride = (int64_t)gridDim.x * BLOCK,
            first = blockIdx.x * (int64_t)BLOCK + threadIdx.x;
    uint32_t others = 0, longest = 1;
    if (!s.start) { /* dense */
        others = (uint32_t)live;
    } else if (s.tiles.tile) {
        for (int64_t tile = blockIdx.x; tile * PNET_TILE_ROWS < live; tile += gridDim.x)
            others = max(others, tile_others(s, tile, live));
    } else {
        int64_t count = live > 0 ? s.start[live] : 0;
        for (int64_t n = first; n < count; n += stride)
            others = max(others, (uint32_t)s.other[n] + 1);
    }
    for (int64_t row = first; s.start && row < live; row += stride)
        longest = max(longest, (uint32_t)(s.start[row + 1] - s.start[row]));
    others = __reduce_max_sync(~0u, others);
    longest = __reduce_max_sync(~0u, longest);
    if (threadIdx.x % 32 == 0) {
        atomicMax(&j.measures->others, others);
        atomicMax(&j.measures->longest, longest);
    }
}

static __device__ __forceinline__ uint32_t largest(
    const float *x, int64_t n, int64_t first, int64_t stride)
{
    float most = 0;
    int64_t fours = (uintptr_t)x % 16 == 0 ? n / 4 : 0;
    for (int64_t i = first; i < fours; i += stride) {
        float4 v = ((const float4 *)x)[i];
        most = fmaxf(fmaxf(fmaxf(most, conv_finite_size(v.x)), conv_finite_size(v.y)),
            fmaxf(conv_finite_size(v.z), conv_finite_size(v.w)));
    }
    for (int64_t i = fours * 4 + first; i < n; i += stride)
        most = fmaxf(most, conv_finite_size(x[i]));
    return __reduce_max_sync(~0u, __float_as_uint(most));
}

static __global__ void measure_values(const vvor_job<float> j)
{
    int64_t stride = (int64_t)gridDim.x * BLOCK, first = blockIdx.x * (int64_t)BLOCK + threadIdx.x;
    uint32_t gathered =
        largest(j.gathered, (int64_t)j.measures->others * j.gathered_stride, first, stride);
    uint32_t rows = largest(j.rows, pnet_live(j.set.rows) * j.rows_stride, first, stride);
    if (threadIdx.x % 32 == 0) {
        atomicMax(&j.measures->gathered, gathered);
        atomicMax(&j.measures->rows, rows);
    }
}

void pnet_cuda_vvor_measure_set(const conv_set &s, vvor_measures *measures)
{
    vvor_job<float> j = {};
    j.set = s;
    j.measures = measures;
    cudaMemsetAsync(j.measures, 0, sizeof *j.measures, pnet_cuda_stream());
    measure_set<<<blocks_for(j.set.rows.most), BLOCK, 0, pnet_cuda_stream()>>>(j);
}

void pnet_cuda_vvor_measure(const conv_outer &o, vvor_measures *measures)
{
    vvor_job<float> j = {};
    j.set = o.set;
    j.gathered = o.swapped ? o.gout_matrix : o.in;
    j.rows = o.swapped ? o.in : o.gout_matrix;
    j.gathered_stride = o.swapped ? o.cout : o.cin;
    j.rows_stride = o.swapped ? o.cin : o.cout;
    j.measures = measures;
    pnet_cuda_vvor_measure_set(o.set, measures);
    measure_values<<<blocks_for(j.set.rows.most * j.rows_stride / 16), BLOCK, 0,
        pnet_cuda_stream()>>>(j);
}

/* Adds element `i` of the sums of a type of block, in the order in which `flush` stores them, over all streams. */
template <bool SCALED>
static __global__ void reduce(
    conv_outer o, const vvor_plan p, const float *slots, const vvor_measures *measures)
{
    int blocks = p.blocks, slot = p.slot, sums = p.columns / 2;
    const conv_groups &g = o.groups;
    vvor_scales scale = vvor_scales_of<SCALED>(measures);
    double unit = 1 / ((double)scale.gathered * (double)scale.rows);
    for (int64_t n = blockIdx.x * (int64_t)BLOCK + threadIdx.x; n < (int64_t)p.types * slot;
         n += (int64_t)gridDim.x * BLOCK) {
        int type = (int)(n / slot), i = (int)(n % slot), t = i % CONSUMERS, e = i / CONSUMERS;
        vvor_share w = vvor_share_of(p, o.set.cells, type, blocks * 64);
        int warpgroup = t / 128, lane = t % 32;
        int cell = blocks == 2 ? e / sums : e / sums * 2 + warpgroup;
        int row_side = w.m0 + (blocks == 2 ? warpgroup * 64 : 0) + t % 128 / 32 * 16 + lane / 4 +
                       e / 2 % 2 * 8,
            gathered = w.n0 + e % sums / 4 * 8 + lane % 4 * 2 + e % 2;
        int a = o.swapped ? row_side : gathered, b = o.swapped ? gathered : row_side;
        if (cell >= w.cells || a >= g.cin || b >= g.cout || a / g.cin1 != b / g.cout1) continue;
        double sum = 0;
        for (int s = 0; s < p.streams; s++) sum += slots[(int64_t)s * p.types * slot + n];
        sum *= unit;
        int64_t at =
            ((int64_t)(w.cell0 + cell) * g.cin1 + a % g.cin1) * o.cout + w.group * g.cout + b;
        float *to = o.gweight + at;
        *to = o.add ? *to + (float)sum : (float)sum;
    }
}

void pnet_cuda_vvor_reduce(const conv_outer &o, const vvor_plan &p, bool scaled, void *work)
{
    unsigned blocks = blocks_for((int64_t)p.types * p.slot);
    (scaled ? reduce<true> : reduce<false>)<<<blocks, BLOCK, 0, pnet_cuda_stream()>>>(
        o, p, (const float *)work, (const vvor_measures *)((const char *)work + p.measures));
}
