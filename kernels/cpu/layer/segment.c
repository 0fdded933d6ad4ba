#include "kernels/cpu/layer/segment.h"

enum {
    TILE = 16,    /* channels joined at a time */
    SMALL = 8192, /* elements below which threads cost more than they save */
};

/* Adds rows [begin, end) to sum, four at a time. */
static void add_rows(int64_t begin, int64_t end, int32_t c, const float *a, double *restrict sum)
{
    int64_t row = begin;
    for (; row + 4 <= end; row += 4) {
        const float *p = a + row * c, *q = p + c, *r = q + c, *t = r + c;
        for (int32_t i = 0; i < c; i++)
            sum[i] += ((double)p[i] + (double)q[i]) + ((double)r[i] + (double)t[i]);
    }
    for (; row < end; row++)
        for (int32_t i = 0; i < c; i++) sum[i] += (double)a[row * c + i];
}

/* The same with products. Products of floats are exact in double. */
static void add_rows_products(int64_t begin, int64_t end, int32_t c, const float *a, const float *b,
    double *restrict sum, double *restrict sum_ab)
{
    int64_t row = begin;
    for (; row + 2 <= end; row += 2) {
        const float *p = a + row * c, *q = p + c, *u = b + row * c, *v = u + c;
        for (int32_t i = 0; i < c; i++) {
            double s = p[i], t = q[i];
            sum[i] += s + t;
            sum_ab[i] += s * (double)u[i] + t * (double)v[i];
        }
    }
    for (; row < end; row++)
        for (int32_t i = 0; i < c; i++) {
            sum[i] += (double)a[row * c + i];
            sum_ab[i] += (double)a[row * c + i] * (double)b[row * c + i];
        }
}

size_t pnet_cpu_segment_sums_work(struct pnet_segments s, int32_t c)
{
    return (size_t)(pnet_segment_blocks(s.rows) + s.count) * (size_t)c * 2 * sizeof(double);
}

static void join_blocks(struct pnet_segments s, int32_t c, const double *part, double *sum)
{
#pragma omp parallel for collapse(2) schedule(static) if (s.rows * c > SMALL)
    for (int32_t segment = 0; segment < s.count; segment++)
        for (int32_t tile = 0; tile < c; tile += TILE) {
            int64_t begin = pnet_segment_split(s, segment),
                    end = pnet_segment_split(s, segment + 1);
            double *to = sum + (int64_t)segment * c;
            int32_t last = tile + TILE < c ? tile + TILE : c;
            for (int32_t i = tile; i < last; i++) to[i] = 0;
            if (begin == end) continue;
            for (int64_t block = begin / PNET_SEGMENT_BLOCK;
                 block <= (end - 1) / PNET_SEGMENT_BLOCK; block++)
                for (int32_t i = tile; i < last; i++) to[i] += part[(block + segment) * c + i];
        }
}

void pnet_cpu_segment_sums(struct pnet_segments s, int32_t c, const float *a, const float *b,
    double *sum, double *sum_ab, void *work)
{
    int64_t blocks = pnet_segment_blocks(s.rows);
    double *part = work, *part_ab = part + (blocks + s.count) * c;
#pragma omp parallel for schedule(static) if (s.rows * c > SMALL)
    for (int64_t block = 0; block < blocks; block++) {
        struct pnet_piece p = pnet_piece_first(s, block);
        for (; p.begin < p.last; p = pnet_piece_next(s, p)) {
            if (p.begin == p.end) continue;
            double *to = part + (block + p.segment) * c, *to_ab = part_ab + (block + p.segment) * c;
            for (int32_t i = 0; i < c; i++) to[i] = 0;
            if (b) {
                for (int32_t i = 0; i < c; i++) to_ab[i] = 0;
                add_rows_products(p.begin, p.end, c, a, b, to, to_ab);
            } else {
                add_rows(p.begin, p.end, c, a, to);
            }
        }
    }
    join_blocks(s, c, part, sum);
    if (b) join_blocks(s, c, part_ab, sum_ab);
}
