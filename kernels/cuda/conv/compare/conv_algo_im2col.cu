/* im2col: lays the summed inputs of all cells of each output row side by side, for a chunk of rows, zeros where a row has
   none of a cell, and multiplies that by the weight as one matrix. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/compare/conv_algo.cuh"
#include "kernels/cuda/conv/plain/conv_pairs.cuh"

enum { THREADS = 256 };

/* x[r][k * width + c] = sum over the run (first + r, k) of in[other][c]; a warp a run. */
static __global__ __launch_bounds__(THREADS) void lay_out(
    conv_set s, int64_t first, const int64_t *live, int width, const float *in, float *x)
{
    int64_t runs = *live * s.cells, warps = (int64_t)gridDim.x * (THREADS / 32);
    int lane = threadIdx.x % 32;
    for (int64_t run = blockIdx.x * (int64_t)(THREADS / 32) + threadIdx.x / 32; run < runs;
         run += warps) {
        int k = (int)(run % s.cells);
        int64_t row = first + run / s.cells, last = s.start[row + 1];
        int64_t begin = conv_find_cell(s, s.start[row], last, k),
                end = conv_find_cell(s, begin, last, k + 1);
        for (int c = lane; c < width; c += 32) {
            float sum = 0;
            for (int64_t n = begin; n < end; n++) sum += in[(int64_t)s.other[n] * width + c];
            x[run * width + c] = sum;
        }
    }
}

/* dense[k][a][b]: the weight without groups, one block-diagonal matrix a cell. */
static __global__ void widen(
    conv_groups g, int cells, int cin, int cout, bool transposed, const float *weight, float *dense)
{
    int64_t elements = (int64_t)cells * cin * cout;
    for (int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x; e < elements;
         e += (int64_t)gridDim.x * THREADS)
        dense[e] = conv_weight(weight, g, cin, cout, transposed, e / cout / cin, 0,
            (int)(e / cout % cin), (int)(e % cout));
}

/* gweight (+)= the blocks on the diagonal of dense[k][a][b], or of dense[a][k][b] with `swapped`. */
static __global__ void narrow(conv_groups g, int cells, int cin, int cout, bool swapped, bool add,
    const float *dense, float *gweight)
{
    int64_t elements = (int64_t)cells * g.cin1 * cout;
    for (int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x; e < elements;
         e += (int64_t)gridDim.x * THREADS) {
        int64_t b = e % cout, a = b / g.cout1 * g.cin1 + e / cout % g.cin1, k = e / cout / g.cin1;
        float x = dense[swapped ? (a * cells + k) * cout + b : (k * cin + a) * cout + b];
        gweight[e] = add ? gweight[e] + x : x;
    }
}

/* All groups as one. */
static conv_groups one_group(struct pnet_conv_shape s)
{
    return {1, s.cin, s.cout, s.cin / s.groups, s.cout / s.groups};
}

static void lay_out_rows(const struct pnet_triplets *t, int64_t first, int64_t rows, int width,
    const float *in, int64_t *live, float *x)
{
    conv_set s = pnet_cuda_conv_set_of(t, PNET_STORE_F32);
    pnet_cuda_conv_algo_live(s.rows, first, rows, live);
    lay_out<<<conv_algo_blocks(rows * t->cells * 32, THREADS), THREADS, 0, pnet_cuda_stream()>>>(
        s, first, live, width, in, x);
}

void pnet_cuda_conv_im2col_mvmr(const struct pnet_mvmr *m, void *work)
{
    const struct pnet_triplets *t = m->triplets;
    struct pnet_conv_shape s = m->shape;
    int64_t step = pnet_cuda_conv_im2col_chunk(t, s.cin),
            elements = (int64_t)t->cells * s.cin * s.cout;
    conv_pieces pieces = {(char *)work};
    int64_t *live = pieces.take<int64_t>(1);
    float *x = pieces.take<float>(step * t->cells * s.cin);
    float *dense = pieces.take<float>(elements);
    widen<<<conv_algo_blocks(elements, THREADS), THREADS, 0, pnet_cuda_stream()>>>(
        one_group(s), t->cells, s.cin, s.cout, m->transposed, m->weight, dense);
    for (int64_t first = 0; first < t->rows; first += step) {
        lay_out_rows(t, first, step, s.cin, m->in, live, x);
        struct pnet_gemm g = {{step, live, 1, PNET_STORE_F32}, t->cells * s.cin, s.cout, x, dense,
            m->bias, m->out + first * s.cout, false, m->add, m->act, m->slope, PNET_FP32,
            PNET_STORE_F32, false, false};
        pnet_cuda_gemm(&g, pieces.at);
    }
}

void pnet_cuda_conv_im2col_vvor(const struct pnet_vvor *v, void *work)
{
    const struct pnet_triplets *t = v->triplets;
    struct pnet_conv_shape s = v->shape;
    int width = v->swapped ? s.cout : s.cin;
    int64_t step = pnet_cuda_conv_im2col_chunk(t, width),
            elements = (int64_t)t->cells * s.cin * s.cout;
    conv_pieces pieces = {(char *)work};
    int64_t *live = pieces.take<int64_t>(1);
    float *x = pieces.take<float>(step * t->cells * width);
    float *dense = pieces.take<float>(elements);
    for (int64_t first = 0; first < t->rows; first += step) {
        lay_out_rows(t, first, step, width, v->swapped ? v->gout : v->in, live, x);
        struct pnet_outer o = {{step, live, 1, PNET_STORE_F32}, t->cells * s.cin, s.cout, x,
            v->gout + first * s.cout, dense, false, first > 0, PNET_FP32, PNET_STORE_F32, false};
        if (v->swapped) {
            o.cin = s.cin;
            o.cout = t->cells * s.cout;
            o.x = v->in + first * s.cin;
            o.g = x;
        }
        pnet_cuda_outer(&o, pieces.at);
    }
    if (t->rows == 0) pnet_cuda_conv_algo_begin(v);
    if (t->rows > 0)
        narrow<<<conv_algo_blocks(elements, THREADS), THREADS, 0, pnet_cuda_stream()>>>(
            one_group(s), t->cells, s.cin, s.cout, v->swapped, v->add, dense, v->gweight);
}
