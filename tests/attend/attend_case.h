/* Batches for tests of attention, and its definition in double. */
#ifndef PNET_TESTS_ATTEND_CASE_H
#define PNET_TESTS_ATTEND_CASE_H

#include "kernels/attend.h"
#include "tests/check.h"

/* One batch, and all that comes out. */
struct problem {
    struct pnet_attend a;
    int64_t splits[8];
    int32_t *order;
    float *qkv, *out, *log_sum, *gout, *gqkv;
};

static uint64_t drawn = 7;

/* In [-1, 1), by a linear congruential generator (Knuth, The Art of Computer Programming 2): there are many to draw. */
static inline float draw(void)
{
    drawn = drawn * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (float)(int32_t)(drawn >> 32) * 0x1p-31f;
}

static inline void *room(int64_t count, size_t size)
{
    void *p = calloc((size_t)count + 1, size);
    if (!p) exit(1);
    return p;
}

static inline struct problem make(const int64_t *sizes, int samples, int32_t heads, int32_t width,
    struct pnet_scopes scopes, bool ordered)
{
    struct problem p = {.a = {.samples = samples,
                            .heads = heads,
                            .width = width,
                            .scale = 1 / sqrtf((float)width),
                            .scopes = scopes}};
    for (int s = 0; s < samples; s++) p.splits[s + 1] = p.splits[s] + sizes[s];
    int64_t n = p.splits[samples], c = (int64_t)heads * width;
    p.a.rows = pnet_count(n);
    p.order = room(n, sizeof *p.order);
    p.qkv = room(3 * n * c, sizeof(float));
    p.out = room(n * c, sizeof(float));
    p.log_sum = room(n * heads, sizeof(float));
    p.gout = room(n * c, sizeof(float));
    p.gqkv = room(3 * n * c, sizeof(float));
    for (int64_t i = 0; i < 3 * n * c; i++) p.qkv[i] = 3 * draw();
    for (int64_t i = 0; i < n * c; i++) p.gout[i] = draw();
    /* steps through a sample by a number that shares no divisor with its size */
    for (int s = 0; s < samples; s++)
        for (int64_t i = 0, at = 0, step = sizes[s] % 7 ? 7 : 11; i < sizes[s]; i++) {
            p.order[p.splits[s] + i] = (int32_t)(p.splits[s] + at);
            at = (at + step) % sizes[s];
        }
    p.a.order = ordered ? p.order : NULL;
    return p;
}

static inline void drop(struct problem *p)
{
    free(p->order);
    free(p->qkv);
    free(p->out);
    free(p->log_sum);
    free(p->gout);
    free(p->gqkv);
}

/* Rows of a scope. */
static inline int64_t rows_of(const struct problem *p, int s, int64_t scope, int32_t *row)
{
    int64_t n = p->splits[s + 1] - p->splits[s], found = 0;
    struct pnet_scope t = pnet_scope_of(&p->a.scopes, n, scope);
    for (int64_t i = 0; i < t.count; i++) {
        int64_t k = pnet_scope_bucket(&t, i);
        for (int64_t j = pnet_bucket_begin(n, t.buckets, k);
             j < pnet_bucket_begin(n, t.buckets, k + 1); j++)
            row[found++] = p->a.order ? p->order[p->splits[s] + j] : (int32_t)(p->splits[s] + j);
    }
    return found;
}

/* What a row has at a third of qkv. */
static inline const float *part(const struct problem *p, int32_t row, int third, int32_t head)
{
    int64_t c = (int64_t)p->a.heads * p->a.width;
    return p->qkv + row * 3 * c + third * c + head * p->a.width;
}

static inline double dot(int32_t width, const float *a, const double *b, const float *c)
{
    double sum = 0;
    for (int32_t i = 0; i < width; i++) sum += (double)a[i] * (b ? b[i] : (double)c[i]);
    return sum;
}

/* The definition, for one query of a scope: adds to out [C] and gradients [3 C] of all rows. */
static inline void define(const struct problem *p, const int32_t *row, int64_t count, int32_t i,
    int32_t head, double *out, double *g)
{
    int32_t w = p->a.width;
    int64_t c = (int64_t)p->a.heads * w;
    double *share = room(count, sizeof *share), top = -INFINITY, sum = 0, mean = 0,
           sigma = (double)p->a.scale;
    const float *q = part(p, i, 0, head), *gout = p->gout + i * c + head * w;
    double *o = out + i * c + head * w;
    for (int64_t j = 0; j < count; j++) {
        share[j] = sigma * dot(w, q, NULL, part(p, row[j], 1, head));
        top = fmax(top, share[j]);
    }
    for (int64_t j = 0; j < count; j++) sum += share[j] = exp(share[j] - top);
    for (int64_t j = 0; j < count; j++)
        for (int32_t k = 0; k < w; k++)
            o[k] += share[j] / sum * (double)part(p, row[j], 2, head)[k];
    mean = dot(w, gout, o, NULL);
    for (int64_t j = 0; j < count; j++) {
        const float *key = part(p, row[j], 1, head);
        double d = share[j] / sum * (dot(w, gout, NULL, part(p, row[j], 2, head)) - mean) * sigma;
        for (int32_t k = 0; k < w; k++) {
            g[i * 3 * c + head * w + k] += d * (double)key[k];
            g[row[j] * 3 * c + c + head * w + k] += d * (double)q[k];
            g[row[j] * 3 * c + 2 * c + head * w + k] += share[j] / sum * (double)gout[k];
        }
    }
    free(share);
}

static inline double difference(int64_t n, const float *got, const double *want)
{
    double above = 0, below = 0;
    for (int64_t i = 0; i < n; i++) {
        above += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        below += want[i] * want[i];
    }
    return n ? sqrt(above / (below > 0 ? below : 1)) : 0;
}

/* The definition, for all rows: out [rows, C], g [rows, 3 C], both zeros before. */
static inline void define_all(const struct problem *p, double *out, double *g)
{
    int32_t *row = room(p->splits[p->a.samples], sizeof *row);
    for (int s = 0; s < p->a.samples; s++)
        for (int64_t t = 0; t < pnet_scope_count(&p->a.scopes, p->splits[s + 1] - p->splits[s]);
             t++) {
            int64_t count = rows_of(p, s, t, row);
            for (int64_t i = 0; i < count; i++)
                for (int32_t h = 0; h < p->a.heads; h++) define(p, row, count, row[i], h, out, g);
        }
    free(row);
}

#endif
