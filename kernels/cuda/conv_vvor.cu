/* VVOR in float32: a block of threads sums the outer products of one kernel cell, one tile of its matrix, over a chunk
   of rows; the chunks' partial sums are added in order. */
#include "kernels/cuda/conv_pairs.cuh"

enum { SIDE = 64, STEP = 32, THREADS = CONV_PAIR_ROWS };

struct panels {
    float x[STEP][SIDE], y[STEP][SIDE];
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

template <typename T>
static __global__ __launch_bounds__(THREADS) void vvor(conv_outer o, const T *in, const T *gout,
    int64_t chunk, int tiles_a, int tiles_b, float *partial)
{
    __shared__ conv_pairs pairs;
    __shared__ panels t;
    const conv_groups &g = o.groups;
    int64_t id = blockIdx.x;
    int b = (int)(id % tiles_b) * SIDE, a = (int)(id / tiles_b % tiles_a) * SIDE;
    id /= (int64_t)tiles_a * tiles_b;
    int group = (int)(id % g.count), k = (int)(id / g.count);
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
    float *to = partial + (int64_t)blockIdx.y * o.set.cells * g.cin1 * o.cout;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            int x = a + a0 + i, y = b + b0 + j;
            if (x < g.cin && y < g.cout && x / g.cin1 == y / g.cout1)
                to[((int64_t)k * g.cin1 + x % g.cin1) * o.cout + group * g.cout + y] = sum[i][j];
        }
}

static __global__ void reduce(conv_outer o, const float *partial, int splits, int64_t elements)
{
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < elements;
         i += (int64_t)gridDim.x * blockDim.x) {
        double sum = 0;
        for (int s = 0; s < splits; s++) sum += partial[s * elements + i];
        float *to = o.gweight + (o.transposed ? i % o.cout * o.cin + i / o.cout : i);
        *to = o.add ? *to + (float)sum : (float)sum;
    }
}

void conv_reduce(const conv_outer &o, const float *partial, int splits)
{
    enum { BLOCK = 256, MOST = 4096 };
    int64_t elements = (int64_t)o.set.cells * o.groups.cin1 * o.cout,
            blocks = (elements + BLOCK - 1) / BLOCK;
    reduce<<<(unsigned)(blocks < MOST ? blocks : (int64_t)MOST), BLOCK, 0, cudaStreamPerThread>>>(
        o, partial, splits, elements);
}

struct plan {
    conv_groups groups;
    int tiles_a, tiles_b;
    int64_t blocks, bytes;
    conv_splits splits;
};

static plan make_plan(const conv_set &s, struct pnet_conv_shape shape)
{
    plan p;
    p.groups = conv_merge(shape, SIDE);
    p.tiles_a = (p.groups.cin + SIDE - 1) / SIDE;
    p.tiles_b = (p.groups.cout + SIDE - 1) / SIDE;
    p.blocks = (int64_t)s.cells * p.groups.count * p.tiles_a * p.tiles_b;
    p.bytes = (int64_t)s.cells * p.groups.cin1 * shape.cout * (int64_t)sizeof(float);
    p.splits = conv_split_rows(s.rows.most, p.blocks, p.bytes);
    return p;
}

size_t conv_plain_vvor_work(const conv_set &s, struct pnet_conv_shape shape)
{
    plan p = make_plan(s, shape);
    return (size_t)p.splits.count * (size_t)p.bytes;
}

void conv_plain_vvor(const conv_outer &outer, struct pnet_conv_shape shape, void *work)
{
    plan p = make_plan(outer.set, shape);
    conv_outer o = outer;
    o.groups = p.groups;
    dim3 grid((unsigned)p.blocks, (unsigned)p.splits.count);
    by_storage(o.set.rows.storage, [&](auto form) {
        using T = typename decltype(form)::T;
        vvor<<<grid, THREADS, 0, cudaStreamPerThread>>>(
            o, as<T>(o.in), as<T>(o.gout), p.splits.rows, p.tiles_a, p.tiles_b, (float *)work);
    });
    conv_reduce(o, (const float *)work, p.splits.count);
}
