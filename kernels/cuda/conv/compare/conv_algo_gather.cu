/* Gather, product, scatter: the rows of a list laid one after the other, multiplied by the matrices of their cells, and
   added to where they belong by float atomics, so that the last bits vary from run to run. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/compare/conv_algo.cuh"

enum { THREADS = 256 };

/* to[n] = from[index[n]] */
static __global__ void gather(
    pnet_conv_list list, const int32_t *index, int width, const float *from, float *to)
{
    int64_t elements = conv_list_live(list) * width;
    for (int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x; e < elements;
         e += (int64_t)gridDim.x * THREADS)
        to[e] = from[index[e / width] * (int64_t)width + e % width];
}

/* to[row[n]] += from[n] */
static __global__ void scatter(pnet_conv_list list, int width, const float *from, float *to)
{
    int64_t elements = conv_list_live(list) * width;
    for (int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x; e < elements;
         e += (int64_t)gridDim.x * THREADS)
        atomicAdd(to + list.row[e / width] * (int64_t)width + e % width, from[e]);
}

/* One triplet (n, n, cell of n) for each row of the list. */
static conv_set set_of(const pnet_conv_list &list, int32_t cells)
{
    conv_set s = pnet_cuda_conv_dense_set({list.most, list.live, 1, PNET_STORE_F32});
    s.cells = cells;
    s.cell = list.cell;
    return s;
}

static float *gather_rows(conv_pieces &pieces, const pnet_conv_list &list, const int32_t *index,
    int width, const float *from)
{
    float *to = pieces.take<float>(list.most * width);
    gather<<<conv_algo_blocks(list.most * width, THREADS), THREADS, 0, pnet_cuda_stream()>>>(
        list, index, width, from, to);
    return to;
}

void pnet_cuda_conv_gather_mvmr(const struct pnet_mvmr *m, const pnet_conv_list &list, void *work)
{
    if (list.most == 0) return;
    conv_pieces pieces = {(char *)work};
    struct pnet_conv_shape s = m->shape;
    const float *x = gather_rows(pieces, list, list.other, s.cin, m->in);
    float *y = pieces.take<float>(list.most * s.cout);
    conv_product p = {set_of(list, m->triplets->cells), pnet_cuda_conv_merge(s, CONV_MERGED_WIDTH),
        s.cin, s.cout, x, m->weight, m->transposed, false, {nullptr, y, false, PNET_ACT_NONE, 0}};
    pnet_cuda_conv_plain_mvmr(&p, PNET_FP32, nullptr);
    scatter<<<conv_algo_blocks(list.most * s.cout, THREADS), THREADS, 0, pnet_cuda_stream()>>>(
        list, s.cout, y, m->out);
}

enum { SIDE = 64, STEP = 32, PIECE = THREADS };

/* to[n][c] = row first + n of `from`, columns [column, column + SIDE) of those below `width`. */
static __device__ void fill(float (*to)[SIDE], int64_t first, int64_t end, const float *from,
    int stride, int column, int width)
{
    for (int i = threadIdx.x; i < STEP * SIDE; i += THREADS) {
        int64_t n = first + i / SIDE;
        int c = column + i % SIDE;
        to[i / SIDE][i % SIDE] = n < end && c < width ? from[n * stride + c] : 0.0f;
    }
}

/* One piece of the list, one tile of the matrices, cell by cell. */
static __device__ void outer_tile(const pnet_conv_list &list, const conv_groups &g, int cin,
    int cout, int tiles_a, int tiles_b, int id, const float *in, const float *gout, float *gweight)
{
    __shared__ float x[STEP][SIDE], y[STEP][SIDE];
    int group = id / tiles_b / tiles_a;
    int b = id % tiles_b * SIDE + threadIdx.x % 16 * 4,
        a = id / tiles_b % tiles_a * SIDE + threadIdx.x / 16 * 4;
    int64_t live = conv_list_live(list), n = blockIdx.x * (int64_t)PIECE,
            last = n + PIECE < live ? n + PIECE : live;
    while (n < last) {
        int k = list.cell[n];
        int64_t mine = n + threadIdx.x,
                end = n + __syncthreads_count(mine < last && list.cell[mine] == k);
        float sum[4][4] = {};
        for (; n < end; n += STEP) {
            fill(x, n, end, in + (int64_t)group * g.cin, cin, a / SIDE * SIDE, g.cin);
            fill(y, n, end, gout + (int64_t)group * g.cout, cout, b / SIDE * SIDE, g.cout);
            __syncthreads();
#pragma unroll 8
            for (int m = 0; m < STEP; m++)
                for (int i = 0; i < 4; i++)
                    for (int j = 0; j < 4; j++)
                        sum[i][j] += x[m][a % SIDE + i] * y[m][b % SIDE + j];
            __syncthreads();
        }
        n = end;
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 4; j++)
                if (a + i < g.cin && b + j < g.cout && (a + i) / g.cin1 == (b + j) / g.cout1)
                    atomicAdd(gweight + ((int64_t)k * g.cin1 + (a + i) % g.cin1) * cout +
                                  group * g.cout + b + j,
                        sum[i][j]);
    }
}

/* A block of threads sums the outer products of a piece, tile after tile where there are more than a grid has room for. The
   threads have met since the last tile was read. */
static __global__ __launch_bounds__(THREADS) void outer(pnet_conv_list list, conv_groups g, int cin,
    int cout, int tiles_a, int tiles_b, const float *in, const float *gout, float *gweight)
{
    for (int id = blockIdx.y; id < g.count * tiles_a * tiles_b; id += gridDim.y)
        outer_tile(list, g, cin, cout, tiles_a, tiles_b, id, in, gout, gweight);
}

void pnet_cuda_conv_gather_vvor(const struct pnet_vvor *v, const pnet_conv_list &list, void *work)
{
    if (list.most == 0) return;
    conv_pieces pieces = {(char *)work};
    struct pnet_conv_shape s = v->shape;
    conv_groups g = pnet_cuda_conv_merge(s, CONV_MERGED_WIDTH);
    int tiles_a = (g.cin + SIDE - 1) / SIDE, tiles_b = (g.cout + SIDE - 1) / SIDE;
    const float *x = gather_rows(pieces, list, v->swapped ? list.row : list.other, s.cin, v->in);
    const float *y = gather_rows(pieces, list, v->swapped ? list.other : list.row, s.cout, v->gout);
    int tiles = g.count * tiles_a * tiles_b, most = 65535;
    dim3 grid((unsigned)((list.most + PIECE - 1) / PIECE), (unsigned)min(tiles, most));
    outer<<<grid, THREADS, 0, pnet_cuda_stream()>>>(
        list, g, s.cin, s.cout, tiles_a, tiles_b, x, y, v->gweight);
}
