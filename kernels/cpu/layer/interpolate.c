/* Interpolation between nearest points, and its gradient without atomics: the pairs are sorted by
   coarse row first. */
#include "kernels/pool.h"

#include <string.h>

enum {
    CHUNKS = 8,   /* stretches of fine rows that are counted apart */
    SLICES = 64,  /* stretches of coarse rows that share a scratch row */
    SMALL = 8192, /* elements below which threads cost more than they save */
};

struct pair {
    int32_t row; /* fine */
    float weight;
};

static float reciprocal(float distance2)
{
    return 1 / (distance2 + 1e-8f);
}

static int32_t fine_row(const struct pnet_nearest *n, int64_t place)
{
    return n->row ? n->row[place] : (int32_t)place;
}

/* 1 / sum of the reciprocals of one fine row, by its place. */
static float row_factor(const struct pnet_nearest *n, int64_t row)
{
    float sum = 0;
    for (int64_t at = row * n->k; at < (row + 1) * n->k; at++)
        if (n->index[at] >= 0) sum += reciprocal(n->distance2[at]);
    return sum > 0 ? 1 / sum : 0;
}

void pnet_cpu_interpolate(const struct pnet_nearest *n, int32_t c, const float *x, float *y)
{
#pragma omp parallel for schedule(static) if (n->fine_rows.most * c > SMALL)
    for (int64_t row = 0; row < n->fine_rows.most; row++) {
        float *q = y + fine_row(n, row) * c, factor = row_factor(n, row);
        for (int32_t i = 0; i < c; i++) q[i] = 0;
        for (int64_t at = row * n->k; at < (row + 1) * n->k; at++) {
            if (n->index[at] < 0) continue;
            const float *p = x + (int64_t)n->index[at] * c;
            float weight = reciprocal(n->distance2[at]) * factor;
#pragma omp simd
            for (int32_t i = 0; i < c; i++) q[i] += weight * p[i];
        }
    }
}

struct transposed {
    double *sum;       /* [SLICES, c] */
    int64_t *start;    /* [coarse_rows + 1] */
    struct pair *pair; /* [fine_rows * k] by coarse row, then in the order of entries */
    uint32_t *before;  /* [CHUNKS, coarse_rows]: pairs of a coarse row in the chunks before */
};

static struct transposed transposed_of(const struct pnet_nearest *n, int32_t c, void *work)
{
    struct transposed t = {.sum = work};
    t.start = (int64_t *)(t.sum + (int64_t)SLICES * c);
    t.pair = (struct pair *)(t.start + n->coarse_rows.most + 1);
    t.before = (uint32_t *)(t.pair + n->fine_rows.most * n->k);
    return t;
}

size_t pnet_cpu_interpolate_backward_work(const struct pnet_nearest *n, int32_t c)
{
    return (size_t)SLICES * (size_t)c * sizeof(double) +
           (size_t)(n->coarse_rows.most + 1) * sizeof(int64_t) +
           (size_t)(n->fine_rows.most * n->k) * sizeof(struct pair) +
           (size_t)CHUNKS * (size_t)n->coarse_rows.most * sizeof(uint32_t);
}

static int64_t chunk_begin(const struct pnet_nearest *n, int32_t chunk)
{
    return n->fine_rows.most * chunk / CHUNKS;
}

/* A stable counting sort: each chunk counts, the counts become places, each chunk fills. */
static void transpose(const struct pnet_nearest *n, const struct transposed *t)
{
    int64_t coarse = n->coarse_rows.most;
#pragma omp parallel for schedule(static) if (n->fine_rows.most * n->k > SMALL)
    for (int32_t chunk = 0; chunk < CHUNKS; chunk++) {
        uint32_t *count = t->before + chunk * coarse;
        memset(count, 0, (size_t)coarse * sizeof *count);
        for (int64_t at = chunk_begin(n, chunk) * n->k; at < chunk_begin(n, chunk + 1) * n->k; at++)
            if (n->index[at] >= 0) count[n->index[at]]++;
    }
    t->start[0] = 0;
    for (int64_t row = 0; row < coarse; row++) {
        uint32_t sum = 0;
        for (int32_t chunk = 0; chunk < CHUNKS; chunk++) {
            uint32_t count = t->before[chunk * coarse + row];
            t->before[chunk * coarse + row] = sum;
            sum += count;
        }
        t->start[row + 1] = t->start[row] + sum;
    }
#pragma omp parallel for schedule(static) if (n->fine_rows.most * n->k > SMALL)
    for (int32_t chunk = 0; chunk < CHUNKS; chunk++) {
        uint32_t *place = t->before + chunk * coarse;
        for (int64_t row = chunk_begin(n, chunk); row < chunk_begin(n, chunk + 1); row++) {
            float factor = row_factor(n, row);
            for (int64_t at = row * n->k; at < (row + 1) * n->k; at++) {
                int64_t to = n->index[at];
                if (to >= 0)
                    t->pair[t->start[to] + place[to]++] =
                        (struct pair){fine_row(n, row), reciprocal(n->distance2[at]) * factor};
            }
        }
    }
}

void pnet_cpu_interpolate_backward(
    const struct pnet_nearest *n, int32_t c, const float *g, bool add, float *gx, void *work)
{
    struct transposed t = transposed_of(n, c, work);
    transpose(n, &t);
#pragma omp parallel for schedule(dynamic) if (n->fine_rows.most * c > SMALL)
    for (int32_t slice = 0; slice < SLICES; slice++) {
        double *sum = t.sum + (int64_t)slice * c;
        int64_t end = n->coarse_rows.most * (slice + 1) / SLICES;
        for (int64_t row = n->coarse_rows.most * slice / SLICES; row < end; row++) {
            float *q = gx + row * c;
            for (int32_t i = 0; i < c; i++) sum[i] = 0;
            for (int64_t at = t.start[row]; at < t.start[row + 1]; at++) {
                const float *p = g + (int64_t)t.pair[at].row * c;
                double weight = (double)t.pair[at].weight;
                for (int32_t i = 0; i < c; i++) sum[i] += weight * (double)p[i];
            }
            for (int32_t i = 0; i < c; i++) q[i] = (add ? q[i] : 0) + (float)sum[i];
        }
    }
}
