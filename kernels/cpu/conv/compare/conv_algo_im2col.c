/* im2col: lays the summed inputs of all cells of each output row side by side, for a chunk of rows, zeros where a row has
   none of a cell, and multiplies that by the weight as one matrix. */
#include "kernels/cpu/conv/compare/conv_algo_parts.h"

#include <string.h>

/* x[r][k * width + c] = sum over the run (first + r, k) of in[other][c] */
static void lay_out(const struct pnet_triplets *t, int64_t first, int64_t rows, int width,
    const float *in, float *x)
{
    size_t row_floats = (size_t)t->cells * (size_t)width;
#pragma omp parallel for schedule(static)
    for (int64_t r = 0; r < rows; r++) {
        float *to = x + (size_t)r * row_floats;
        memset(to, 0, row_floats * sizeof *to);
        for (int64_t n = t->start[first + r]; n < t->start[first + r + 1]; n++) {
            const float *from = in + (int64_t)t->other[n] * width;
            float *sum = to + (size_t)t->cell[n] * (size_t)width;
            for (int c = 0; c < width; c++) sum[c] += from[c];
        }
    }
}

static int64_t chunk(const struct pnet_triplets *t, int width)
{
    return pnet_conv_chunk(t->rows, (int64_t)t->cells * width * (int64_t)sizeof(float));
}

static size_t columns_bytes(const struct pnet_triplets *t, int width)
{
    return pnet_align64((size_t)chunk(t, width) * (size_t)t->cells * (size_t)width * sizeof(float));
}

static size_t dense_bytes(const struct pnet_triplets *t, struct pnet_conv_shape s)
{
    return pnet_align64((size_t)t->cells * (size_t)s.cin * (size_t)s.cout * sizeof(float));
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

size_t pnet_conv_im2col_mvmr_work(const struct pnet_triplets *t, struct pnet_conv_shape s)
{
    return columns_bytes(t, s.cin) + dense_bytes(t, s) +
           pnet_cpu_gemm_work(pnet_count(chunk(t, s.cin)), t->cells * s.cin, s.cout, PNET_FP32);
}

void pnet_conv_im2col_mvmr(const struct pnet_mvmr *m, char *work)
{
    const struct pnet_triplets *t = m->triplets;
    struct pnet_conv_shape s = m->shape;
    int64_t step = chunk(t, s.cin), matrix = (int64_t)s.cin * s.cout;
    float *x = conv_floats(&work, step * t->cells * s.cin),
          *dense = conv_floats(&work, t->cells * matrix);
#pragma omp parallel for schedule(static)
    for (int k = 0; k < t->cells; k++)
        pnet_conv_widen_cell(m->weight, s, m->transposed, k, dense + k * matrix);
    for (int64_t first = 0; first < t->rows; first += step) {
        int64_t rows = smaller(step, t->rows - first);
        lay_out(t, first, rows, s.cin, m->in, x);
        struct pnet_gemm g = {.n = pnet_count(rows),
            .cin = t->cells * s.cin,
            .cout = s.cout,
            .x = x,
            .w = dense,
            .bias = m->bias,
            .y = m->out + first * s.cout,
            .add = m->add,
            .act = m->act,
            .slope = m->slope};
        pnet_cpu_gemm(&g, work);
    }
}

size_t pnet_conv_im2col_vvor_work(const struct pnet_triplets *t, struct pnet_conv_shape s)
{
    int most = s.cin > s.cout ? s.cin : s.cout, least = s.cin + s.cout - most;
    struct pnet_count n = pnet_count(chunk(t, least));
    return larger(columns_bytes(t, most), columns_bytes(t, least)) + dense_bytes(t, s) +
           larger(pnet_cpu_outer_work(n, t->cells * s.cin, s.cout, PNET_FP32),
               pnet_cpu_outer_work(n, s.cin, t->cells * s.cout, PNET_FP32));
}

/* dense [V * cin, cout], or [cin, V * cout] where the rows of the set are those of `in`. */
void pnet_conv_im2col_vvor(const struct pnet_vvor *v, char *work)
{
    const struct pnet_triplets *t = v->triplets;
    struct pnet_conv_shape s = v->shape;
    int width = v->swapped ? s.cout : s.cin;
    int64_t step = chunk(t, width), cells = t->cells;
    float *x = conv_floats(&work, step * cells * width),
          *dense = conv_floats(&work, cells * s.cin * s.cout);
    for (int64_t first = 0; first < t->rows; first += step) {
        int64_t rows = smaller(step, t->rows - first);
        lay_out(t, first, rows, width, v->swapped ? v->gout : v->in, x);
        struct pnet_outer o = {.n = pnet_count(rows),
            .cin = v->swapped ? s.cin : t->cells * s.cin,
            .cout = v->swapped ? t->cells * s.cout : s.cout,
            .x = v->swapped ? v->in + first * s.cin : x,
            .g = v->swapped ? x : v->gout + first * s.cout,
            .gw = dense,
            .add = first > 0};
        pnet_cpu_outer(&o, work);
    }
    for (int k = 0; k < t->cells && t->rows > 0; k++)
        pnet_conv_narrow_cell(
            v->swapped ? dense + (int64_t)k * s.cout : dense + (int64_t)k * s.cin * s.cout,
            v->swapped ? cells * s.cout : s.cout, s, k, v->gweight);
}
