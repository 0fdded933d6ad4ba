/* MVMR in float32, on any GPU. A block of threads has 64 output rows and goes through the cells that they have. It sums
   the runs of a cell while it gathers them to shared memory, and multiplies the sums by the cell's matrix. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/conv_common.cuh"

#include <climits>

enum {
    ROWS = 64,
    COLUMNS = 64,
    DEPTH = 32,
    THREADS = 256,
    PART = 256 /* channels of a partial sum */
};

struct tile {
    int64_t begin[ROWS], end[ROWS]; /* the run of each row in the cell at work */
    float x[DEPTH][ROWS + 1], w[DEPTH][COLUMNS];
    int least[ROWS / 32];
};

/* The smallest cell that some row has not had yet, or INT_MAX; sets begin and end to its runs. `at`, `last`: the triplets
   that row `threadIdx.x` has left. */
static __device__ int next_cell(tile &t, const conv_set &s, int64_t &at, int64_t last)
{
    int r = threadIdx.x, cell = r < ROWS && at < last ? conv_cell(s, at) : INT_MAX;
    if (r < ROWS) {
        int least = __reduce_min_sync(~0u, cell);
        if (r % 32 == 0) t.least[r / 32] = least;
    }
    __syncthreads();
    int k = min(t.least[0], t.least[1]);
    if (r < ROWS && k != INT_MAX) {
        t.begin[r] = at;
        if (cell == k)
            while (at < last && conv_cell(s, at) == k) at++;
        t.end[r] = at;
    }
    __syncthreads();
    return k;
}

/* x[c][r] = sum of the run of row r, channel first + c of the group at `in`. */
template <typename T>
static __device__ void gather(
    tile &t, const conv_set &s, const T *in, int stride, int first, int width)
{
    int lane = threadIdx.x % 32, c = first + lane;
    for (int r = threadIdx.x / 32; r < ROWS; r += THREADS / 32) {
        float sum = 0;
        if (c < width)
            for (int64_t n = t.begin[r]; n < t.end[r]; n++)
                sum += widen(in[conv_other(s, n) * stride + c]);
        t.x[lane][r] = sum;
    }
}

template <typename T>
static __global__ __launch_bounds__(THREADS) void mvmr(conv_product p, const T *in)
{
    __shared__ tile t;
    int64_t row0 = (int64_t)blockIdx.x * ROWS, live = pnet_live(p.set.rows);
    if (row0 >= live) return;
    int tiles = (p.groups.cout + COLUMNS - 1) / COLUMNS;
    int group = blockIdx.y / tiles, column0 = blockIdx.y % tiles * COLUMNS;
    int64_t at = 0, last = 0, row = row0 + threadIdx.x;
    if (threadIdx.x < ROWS && row < live) {
        at = conv_start(p.set, row);
        last = conv_start(p.set, row + 1);
    }
    int r0 = threadIdx.x / 16 * 4, c0 = threadIdx.x % 16 * 4;
    float sum[4][4] = {}, part[4][4] = {};
    for (int k; (k = next_cell(t, p.set, at, last)) != INT_MAX;) {
        for (int first = 0; first < p.groups.cin; first += DEPTH) {
            gather(t, p.set, in + (int64_t)group * p.groups.cin, p.cin, first, p.groups.cin);
            for (int i = threadIdx.x; i < DEPTH * COLUMNS; i += THREADS)
                t.w[i / COLUMNS][i % COLUMNS] = conv_weight(p.weight, p.groups, p.cin, p.cout,
                    p.transposed, k, group, first + i / COLUMNS, column0 + i % COLUMNS);
            __syncthreads();
#pragma unroll 8
            for (int d = 0; d < DEPTH; d++)
                for (int r = 0; r < 4; r++)
                    for (int c = 0; c < 4; c++) part[r][c] += t.x[d][r0 + r] * t.w[d][c0 + c];
            __syncthreads();
            /* sums of sums: rounding grows with the longest of them */
            if ((first + DEPTH) % PART && first + DEPTH < p.groups.cin) continue;
            for (int r = 0; r < 4; r++)
                for (int c = 0; c < 4; c++) {
                    sum[r][c] += part[r][c];
                    part[r][c] = 0;
                }
        }
    }
    for (int r = 0; r < 4; r++) {
        if (row0 + r0 + r >= live) break;
        int64_t to = conv_row(p.set, row0 + r0 + r);
        for (int c = 0; c < 4; c++)
            if (column0 + c0 + c < p.groups.cout)
                conv_finish<T>(
                    p.end, to, p.cout, group * p.groups.cout + column0 + c0 + c, sum[r][c]);
    }
}

void pnet_cuda_conv_plain_mvmr(const struct conv_product *sum, enum pnet_precision, void *)
{
    const conv_product &p = *sum;
    if (p.set.rows.most == 0) return;
    dim3 grid((unsigned)((p.set.rows.most + ROWS - 1) / ROWS),
        (unsigned)(p.groups.count * ((p.groups.cout + COLUMNS - 1) / COLUMNS)));
    by_storage(p.set.rows.storage, [&](auto form) {
        using T = typename decltype(form)::T;
        mvmr<<<grid, THREADS, 0, pnet_cuda_stream()>>>(p, as<T>(p.in));
    });
}
