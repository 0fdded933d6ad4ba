/* Cases of attention whose results are known without its definition, for the tests of either device: shares that are rational
   numbers, and what must hold of keys that are equal, and of keys that are all moved by the same. */
#ifndef PNET_TESTS_ATTEND_EXACT_H
#define PNET_TESTS_ATTEND_EXACT_H

#include "tests/attend/attend_case.h"

/* How a device runs a problem, and how far results and gradients may be off, in 2-norms. */
struct exact {
    void (*run)(struct problem *p); /* fills out and gqkv */
    double result, gradient;
};

static inline void exact_check(const struct exact *e, const char *what, const struct problem *p,
    const double *out, const double *g)
{
    int64_t n = p->splits[p->a.samples], c = (int64_t)p->a.heads * p->a.width;
    double forward = difference(n * c, p->out, out), backward = difference(3 * n * c, p->gqkv, g);
    CHECKF(forward <= e->result, "%s, width %d: result off by %g", what, p->a.width, forward);
    CHECKF(backward <= e->gradient, "%s, width %d: gradient off by %g", what, p->a.width, backward);
}

/* Three numbers that add up to ln x, of 8 bits each, so that every precision stores them as they are. */
static inline void exact_log(int x, float part[3])
{
    double left = log(x);
    for (int k = 0; k < 3; k++) {
        double unit = x == 1 ? 1 : exp2(floor(log2(fabs(left))) - 7);
        part[k] = (float)(round(left / unit) * unit);
        left -= (double)part[k];
    }
}

/* Three rows with the keys ln 1, ln 2 and ln 3 and the queries 1, 0 and -1: the products ln 1, ln 2, ln 3 give the shares 1/6,
   1/3 and 1/2. Keys have the parts of their logarithm in channels 0 to 2; channels behind these are 0. Both heads are alike. */
static inline void exact_shares(const struct exact *e, int32_t width)
{
    static const double share[3][3] = {
        {1 / 6., 1 / 3., 1 / 2.}, {1 / 3., 1 / 3., 1 / 3.}, {6 / 11., 3 / 11., 2 / 11.}};
    /* share (g v - g out) */
    static const double gproduct[3][3] = {{-2 / 9., -1 / 9., 1 / 3.}, {4 / 3., -2 / 3., -2 / 3.},
        {-108 / 121., 144 / 121., -36 / 121.}};
    static const double out[3][3] = {{1, 2, 7 / 3.}, {2, 2, 2}, {36 / 11., 18 / 11., 18 / 11.}};
    static const float value[3][3] = {{6, 0, 1}, {0, 6, 2}, {0, 0, 3}}, query[3] = {1, 0, -1},
                       gout[3][3] = {{0, 0, 1}, {1, 0, 0}, {0, 1, 0}};
    enum { HEADS = 2 };
    struct pnet_scopes s = {16, 1, 0, 1, false};
    struct problem p = make((int64_t[]){3}, 1, HEADS, width, s, false);
    int64_t c = HEADS * width;
    double *want = room(3 * c, sizeof *want), *g = room(9 * c, sizeof *g);
    float key[3][3];
    p.a.scale = 1;
    memset(p.qkv, 0, (size_t)(9 * c) * sizeof *p.qkv);
    memset(p.gout, 0, (size_t)(3 * c) * sizeof *p.gout);
    for (int j = 0; j < 3; j++) exact_log(j + 1, key[j]);
    for (int64_t at = 0; at < 9 * HEADS; at++) {
        int64_t i = at / 3 % 3, k = at % 3, own = at / 9 * width + k, q = 3 * c * i + own;
        p.qkv[q] = query[i];
        p.qkv[q + c] = key[i][k];
        p.qkv[q + 2 * c] = value[i][k];
        p.gout[c * i + own] = gout[i][k];
        want[c * i + own] = out[i][k];
        for (int j = 0; j < 3; j++) {
            g[q] += gproduct[i][j] * (double)key[j][k];
            g[q + c] += gproduct[j][i] * (double)query[j];
            g[q + 2 * c] += share[j][i] * (double)gout[j][k];
        }
    }
    e->run(&p);
    exact_check(e, "shares of 1/6, 1/3 and 1/2", &p, want, g);
    free(want);
    free(g);
    drop(&p);
}

/* Equal keys give the mean of the values, and queries no gradient: the gradients of a row's products add up to 0. */
static inline void exact_equal_keys(const struct exact *e, int32_t width)
{
    enum { ROWS = 200 };
    struct pnet_scopes s = {512, 8, 0, 1, false};
    struct problem p = make((int64_t[]){ROWS}, 1, 1, width, s, false);
    double *want = room((int64_t)ROWS * width, sizeof *want), of_queries = 0, all = 0;
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t k = 0; k < width; k++) {
            float *q = p.qkv + 3 * width * i + k;
            q[width] = (float)(k % 3) + 1;
            q[2 * width] = rintf(16 * q[2 * width]) / 16; /* every precision stores it as it is */
            for (int64_t j = 0; j < ROWS; j++) want[width * j + k] += (double)q[2 * width] / ROWS;
        }
    e->run(&p);
    double off = difference((int64_t)ROWS * width, p.out, want);
    for (int64_t i = 0; i < 3 * (int64_t)ROWS * width; i++) {
        double square = (double)p.gqkv[i] * (double)p.gqkv[i];
        all += square;
        if (i % (3 * width) < width) of_queries += square;
    }
    CHECKF(off <= e->result, "equal keys, width %d: off by %g", width, off);
    CHECKF(of_queries <= e->gradient * e->gradient * all && all > 1e-3,
        "equal keys, width %d: queries have a gradient of %g of %g", width, sqrt(of_queries),
        sqrt(all));
    free(want);
    drop(&p);
}

/* What all keys of a scope have in common changes neither results nor gradients. */
static inline void exact_moved_keys(const struct exact *e, int32_t width)
{
    enum { ROWS = 200 };
    struct pnet_scopes s = {512, 8, 0, 1, false};
    struct problem p = make((int64_t[]){ROWS}, 1, 1, width, s, true);
    int64_t n = (int64_t)ROWS * width;
    double *out = room(n, sizeof *out), *g = room(3 * n, sizeof *g);
    for (int64_t i = 0; i < 3 * n; i++) p.qkv[i] = rintf(16 * p.qkv[i]) / 32;
    e->run(&p);
    for (int64_t i = 0; i < n; i++) out[i] = (double)p.out[i];
    for (int64_t i = 0; i < 3 * n; i++) g[i] = (double)p.gqkv[i];
    for (int64_t i = 0; i < 3 * n; i++)
        if (i / width % 3 == 1) p.qkv[i] += 0.5f;
    e->run(&p);
    struct exact twice = {e->run, 2 * e->result, 2 * e->gradient}; /* both runs may be off */
    exact_check(&twice, "moved keys", &p, out, g);
    free(out);
    free(g);
    drop(&p);
}

/* As many rows as a bucket has, one less, and one more: then there are two buckets, each a scope of its own. Equal keys, and a
   row's number as its value: results are the means of the numbers. */
static inline void exact_buckets(const struct exact *e, int32_t width)
{
    struct pnet_scopes s = {16, 1, 0, 1, false};
    for (int64_t rows = 15; rows <= 17; rows++) {
        struct problem p = make((int64_t[]){rows}, 1, 1, width, s, false);
        double *want = room(rows * width, sizeof *want);
        for (int64_t i = 0; i < rows * width; i++) {
            float *q = p.qkv + 3 * width * (i / width) + i % width;
            q[width] = 1;
            q[2 * width] = (float)(i / width);
            want[i] = rows == 17 ? i / width < 8 ? 3.5 : 12 : (double)(rows - 1) / 2;
        }
        e->run(&p);
        double off = difference(rows * width, p.out, want);
        CHECKF(off <= e->result, "%lld rows in buckets of 16, width %d: off by %g", (long long)rows,
            width, off);
        free(want);
        drop(&p);
    }
}

static inline void exact_all(const struct exact *e)
{
    for (int32_t width = 8; width <= 128; width *= 2) {
        exact_shares(e, width);
        exact_equal_keys(e, width);
        exact_moved_keys(e, width);
        exact_buckets(e, width);
    }
}

#endif
