/* Gather, product, scatter: the rows of a list by kernel cell laid one after the other, one dense product a cell, and the
   results added to their rows. */
#include "kernels/cpu/conv/compare/conv_algo_parts.h"

#include <string.h>

enum { SCATTER_COLUMNS = 16 };

static float *gather_rows(char **work, const struct pnet_conv_list *list, const int32_t *index,
    int width, const float *from)
{
    float *to = conv_floats(work, list->most * width);
#pragma omp parallel for schedule(static)
    for (int64_t n = 0; n < list->most; n++)
        memcpy(to + n * width, from + (int64_t)index[n] * width, (size_t)width * sizeof *to);
    return to;
}

/* The end of the chunk of one cell that begins at n. */
static int64_t cell_end(const struct pnet_conv_list *list, int64_t n)
{
    int64_t end = n;
    while (end < list->most && list->cell[end] == list->cell[n]) end++;
    return end;
}

/* Threads own columns, so that a row gets its sums in the order of the list. */
static void scatter(const struct pnet_conv_list *list, int width, const float *from, float *to)
{
#pragma omp parallel for schedule(static)
    for (int c = 0; c < width; c += SCATTER_COLUMNS) {
        int columns = width - c < SCATTER_COLUMNS ? width - c : SCATTER_COLUMNS;
        for (int64_t n = 0; n < list->most; n++) {
            const float *x = from + n * width + c;
            float *sum = to + (int64_t)list->row[n] * width + c;
            for (int i = 0; i < columns; i++) sum[i] += x[i];
        }
    }
}

static size_t rows_bytes(int64_t most, int width)
{
    return pnet_align64((size_t)most * (size_t)width * sizeof(float));
}

static size_t cell_bytes(struct pnet_conv_shape s)
{
    return pnet_align64((size_t)s.cin * (size_t)s.cout * sizeof(float));
}

size_t pnet_conv_gather_mvmr_work(int64_t most, struct pnet_conv_shape s)
{
    return rows_bytes(most, s.cin) + rows_bytes(most, s.cout) + cell_bytes(s) +
           pnet_cpu_gemm_work(pnet_count(most), s.cin, s.cout, PNET_FP32);
}

void pnet_conv_gather_mvmr(const struct pnet_mvmr *m, const struct pnet_conv_list *list, char *work)
{
    struct pnet_conv_shape s = m->shape;
    const float *x = gather_rows(&work, list, list->other, s.cin, m->in);
    float *y = conv_floats(&work, list->most * s.cout),
          *dense = conv_floats(&work, (int64_t)s.cin * s.cout);
    for (int64_t n = 0, end; n < list->most; n = end) {
        end = cell_end(list, n);
        struct pnet_gemm g = {.n = pnet_count(end - n),
            .cin = s.cin,
            .cout = s.cout,
            .x = x + n * s.cin,
            .w = dense,
            .y = y + n * s.cout};
        pnet_conv_widen_cell(m->weight, s, m->transposed, list->cell[n], dense);
        pnet_cpu_gemm(&g, work);
    }
    scatter(list, s.cout, y, m->out);
}

size_t pnet_conv_gather_vvor_work(int64_t most, struct pnet_conv_shape s)
{
    return rows_bytes(most, s.cin) + rows_bytes(most, s.cout) + cell_bytes(s) +
           pnet_cpu_outer_work(pnet_count(most), s.cin, s.cout, PNET_FP32);
}

void pnet_conv_gather_vvor(const struct pnet_vvor *v, const struct pnet_conv_list *list, char *work)
{
    struct pnet_conv_shape s = v->shape;
    const float *x = gather_rows(&work, list, v->swapped ? list->row : list->other, s.cin, v->in);
    const float *g =
        gather_rows(&work, list, v->swapped ? list->other : list->row, s.cout, v->gout);
    float *dense = conv_floats(&work, (int64_t)s.cin * s.cout);
    for (int64_t n = 0, end; n < list->most; n = end) {
        end = cell_end(list, n);
        struct pnet_outer o = {.n = pnet_count(end - n),
            .cin = s.cin,
            .cout = s.cout,
            .x = x + n * s.cin,
            .g = g + n * s.cout,
            .gw = dense};
        pnet_cpu_outer(&o, work);
        pnet_conv_narrow_cell(dense, s.cout, s, list->cell[n], v->gweight);
    }
}
