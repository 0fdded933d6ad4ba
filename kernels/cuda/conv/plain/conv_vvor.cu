/* VVOR in float32, on any GPU. A block of threads sums the outer products of one kernel cell, 64 by 64 channels of its
   matrix, over a chunk of rows; the partial sums of chunks are added in order. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/plain/conv_pairs.cuh"

enum { SIDE = CONV_PLAIN_SIDE, STEP = 32, THREADS = CONV_PAIR_ROWS };

struct panels {
    float x[STEP][SIDE], y[STEP][SIDE];
};

/* Kernel cells that are summed by one launch. */
struct conv_cells {
    int first, count;
};

/* to[n][c] = row `row` of pair first + n, or the sum of its run: columns [column, column + SIDE) of those below
   `width`. */
template <typename T>
static __device__ void fill(float (*to)[SIDE], const conv_set &s, const conv_pairs &p, int first,
    int count, bool rows, const T *from, int stride, int column, int width)
{
    for (int i = threadIdx.x; i < STEP * SIDE; i += THREADS) {
        int n = first + i / SIDE, c = column + i % SIDE;
        float sum = 0;
        if (n < count && c < width) {
            if (rows)
                sum = widen(from[p.row[n] * stride + c]);
            else
                for (int64_t m = p.begin[n]; m < p.end[n]; m++)
                    sum += widen(from[conv_other(s, m) * stride + c]);
        }
        to[i / SIDE][i % SIDE] = sum;
    }
}

/* Of `cells`: their sums alone lie in `partial`. */
template <typename T>
static __global__ __launch_bounds__(THREADS) void vvor(conv_outer o, const T *in, const T *gout,
    int64_t chunk, int tiles_a, int tiles_b, conv_cells cells, float *partial)
{
    __shared__ conv_pairs pairs;
    __shared__ panels t;
    const conv_groups &g = o.groups;
    int64_t id = blockIdx.x;
    int b = (int)(id % tiles_b) * SIDE, a = (int)(id / tiles_b % tiles_a) * SIDE;
    id /= (int64_t)tiles_a * tiles_b;
    int group = (int)(id % g.count), at = (int)(id / g.count), k = cells.first + at;
    int64_t live = pnet_live(o.set.rows), row = blockIdx.y * chunk;
    int64_t end = row + chunk < live ? row + chunk : live;
    int a0 = threadIdx.x / 16 * 4, b0 = threadIdx.x % 16 * 4;
    float sum[4][4] = {};
    for (; row < end; row += CONV_PAIR_ROWS) {
        int64_t stop = row + CONV_PAIR_ROWS < end ? row + CONV_PAIR_ROWS : end;
        int count = conv_find_pairs(pairs, o.set, row, stop, k);
        float part[4][4] = {};
        for (int first = 0; first < count; first += STEP) {
            fill(t.x, o.set, pairs, first, count, o.swapped, in + (int64_t)group * g.cin, o.cin, a,
                g.cin);
            fill(t.y, o.set, pairs, first, count, !o.swapped, gout + (int64_t)group * g.cout,
                o.cout, b, g.cout);
            __syncthreads();
#pragma unroll 8
            for (int n = 0; n < STEP; n++)
                for (int i = 0; i < 4; i++)
                    for (int j = 0; j < 4; j++) part[i][j] += t.x[n][a0 + i] * t.y[n][b0 + j];
            __syncthreads();
        }
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 4; j++) sum[i][j] += part[i][j];
    }
    float *to = partial + (int64_t)blockIdx.y * cells.count * g.cin1 * o.cout;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            int x = a + a0 + i, y = b + b0 + j;
            if (x < g.cin && y < g.cout && x / g.cin1 == y / g.cout1)
                to[((int64_t)at * g.cin1 + x % g.cin1) * o.cout + group * g.cout + y] = sum[i][j];
        }
}

/* Of the elements of gweight from `first` on. */
static __global__ void reduce(
    conv_outer o, const float *partial, int splits, int64_t first, int64_t elements)
{
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < elements;
         i += (int64_t)gridDim.x * blockDim.x) {
        double sum = 0;
        for (int s = 0; s < splits; s++) sum += partial[s * elements + i];
        int64_t n = first + i;
        float *to = o.gweight + (o.transposed ? n % o.cout * o.cin + n / o.cout : n);
        *to = o.add ? *to + (float)sum : (float)sum;
    }
}

static void reduce_cells(const conv_outer &o, const float *partial, int splits, conv_cells cells)
{
    enum { BLOCK = 256, MOST = 4096 };
    int64_t matrix = (int64_t)o.groups.cin1 * o.cout, elements = cells.count * matrix,
            blocks = (elements + BLOCK - 1) / BLOCK;
    reduce<<<(unsigned)(blocks < MOST ? blocks : (int64_t)MOST), BLOCK, 0, pnet_cuda_stream()>>>(
        o, partial, splits, cells.first * matrix, elements);
}

void pnet_cuda_conv_reduce(const conv_outer &o, const float *partial, int splits)
{
    reduce_cells(o, partial, splits, {0, o.set.cells});
}

void pnet_cuda_conv_plain_vvor(const struct conv_outer *sum, enum pnet_precision, void *work)
{
    const conv_outer &outer = *sum;
    conv_outer o = outer;
    plain_plan p = pnet_cuda_conv_plain_plan(&o.set, {o.cin, o.cout, o.cin / o.groups.cin1});
    o.groups = p.groups;
    for (conv_cells c = {}; c.first < o.set.cells; c.first += c.count) {
        c.count = min(p.cells_at_once, o.set.cells - c.first);
        int64_t blocks = p.blocks / p.cells_at_once * c.count;
        dim3 grid((unsigned)blocks, (unsigned)p.splits.count);
        by_storage(o.set.rows.storage, [&](auto form) {
            using T = typename decltype(form)::T;
            vvor<<<grid, THREADS, 0, pnet_cuda_stream()>>>(o, as<T>(o.in), as<T>(o.gout),
                p.splits.rows, p.tiles_a, p.tiles_b, c, (float *)work);
        });
        reduce_cells(o, (const float *)work, p.splits.count, c);
    }
}
