/* Two point sets, and what apml makes of them. */
#ifndef PNET_TESTS_SETS_APML_CASE_H
#define PNET_TESTS_SETS_APML_CASE_H

#include "kernels/apml.h"
#include "kernels/philox.h"
#include "tests/check.h"

enum { X, Y, SETS_SAMPLES = 4, GUARD = 64 };

struct sets {
    int32_t samples;
    int64_t splits[2][SETS_SAMPLES + 1];
    float *xyz[2];
};

static inline void *apml_take(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (!p) abort();
    memset(p, 0xff, bytes);
    return p;
}

/* One sample of n and m points. */
static inline struct sets sets_make(int64_t n, int64_t m)
{
    struct sets s = {.samples = 1, .splits = {{0, n}, {0, m}}};
    for (int k = 0; k < 2; k++) s.xyz[k] = apml_take((size_t)s.splits[k][1] * 3 * sizeof(float));
    return s;
}

static inline void sets_free(struct sets *s)
{
    free(s->xyz[X]);
    free(s->xyz[Y]);
}

/* Points on a line. */
static inline struct sets sets_line(int64_t n, const float *x, int64_t m, const float *y)
{
    struct sets s = sets_make(n, m);
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < s.splits[k][1]; i++) {
            s.xyz[k][3 * i] = (k == X ? x : y)[i];
            s.xyz[k][3 * i + 1] = s.xyz[k][3 * i + 2] = 0;
        }
    return s;
}

static inline float unit(uint64_t stream, uint64_t i)
{
    struct pnet_rand r = {.seed = stream, .purpose = PNET_DRAW_TEST};
    return pnet_rand_unit(&r, i);
}

/* Sets by kind; `kinds` names them. */
enum kind { RANDOM, SURFACE, DUPLICATES, COLLAPSED, FAR, EQUAL, NEAR, KINDS };
static const char *const kinds[] = {
    "random", "surface", "duplicates", "collapsed", "far", "equal", "near"};

static inline void sets_draw(struct sets *s, enum kind kind)
{
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < s->splits[k][s->samples]; i++) {
            uint64_t of = kind == NEAR ? 0 : (uint64_t)k;
            int64_t source = kind == DUPLICATES ? i / 5 : i;
            float *p = s->xyz[k] + 3 * i, length = 0;
            for (int a = 0; a < 3; a++) {
                p[a] = unit(10 * (uint64_t)kind + of, (uint64_t)(3 * source + a)) - 0.5f;
                length += p[a] * p[a];
            }
            for (int a = 0; a < 3; a++) {
                if (kind == SURFACE || (kind == COLLAPSED && k == Y)) p[a] /= sqrtf(length);
                if (kind == DUPLICATES) p[a] = roundf(4 * p[a]) / 4;
                if (kind == COLLAPSED && k == X) p[a] *= 0.01f;
                if (kind == FAR && k == X) p[a] += 1e4f;
                if (kind == EQUAL) p[a] = 0.3f;
                if (kind == NEAR && k == X)
                    p[a] += 0.001f * (unit(77, (uint64_t)(3 * i + a)) - 0.5f);
            }
        }
}

/* Loss, gradients, and the entries, to be freed. */
struct apml_result {
    float loss, *gradient[2];
    struct pnet_apml_plan plan;
};

static inline struct pnet_point_set apml_set(const struct sets *s, int k)
{
    return (struct pnet_point_set){
        pnet_count(s->splits[k][s->samples]), s->samples, s->splits[k], s->xyz[k]};
}

static inline struct pnet_apml apml_standard(void)
{
    return (struct pnet_apml){.p = 0.8, .tau = 1e-8, .rounds = 10, .most = 64, .entries = 12};
}

/* Both supports whole. */
static inline struct pnet_apml apml_uncut(void)
{
    struct pnet_apml a = apml_standard();
    a.most = a.entries = PNET_APML_MOST;
    return a;
}

static inline void apml_check_guard(const unsigned char *work, size_t size)
{
    bool whole = true;
    for (size_t i = 0; i < GUARD; i++) whole &= work[size + i] == 0xff;
    CHECKF(whole, "writes beyond its workspace of %zu bytes", size);
}

/* Runs forward and backward with the gradient 1, in poisoned memory. */
static inline struct apml_result apml_run(struct pnet_apml a, const struct sets *s)
{
    size_t n = (size_t)s->splits[X][s->samples], m = (size_t)s->splits[Y][s->samples],
           entries = (size_t)a.entries * sizeof(struct pnet_apml_entry);
    struct apml_result r = {
        .gradient = {apml_take(n * 3 * sizeof(float)), apml_take(m * 3 * sizeof(float))},
        .plan = {
            apml_take(2 * n * sizeof(int64_t)), apml_take(n * entries), apml_take(m * entries)}};
    const float one = 1;
    a.sets = (struct pnet_set_pair){.x = apml_set(s, X), .y = apml_set(s, Y)};
    struct pnet_apml_gradients g = {.x = r.gradient[X], .y = r.gradient[Y]};
    size_t forward = pnet_cpu_apml_work(&a, false), backward = pnet_cpu_apml_work(&a, true);
    unsigned char *work = apml_take(forward + GUARD);
    pnet_cpu_apml(&a, &r.plan, &r.loss, work);
    apml_check_guard(work, forward);
    free(work);
    work = apml_take(backward + GUARD);
    pnet_cpu_apml_backward(&a, &r.plan, &one, &g, work);
    apml_check_guard(work, backward);
    free(work);
    return r;
}

static inline void apml_free(struct apml_result *r)
{
    free(r->gradient[X]);
    free(r->gradient[Y]);
    free(r->plan.end);
    free(r->plan.by_row);
    free(r->plan.by_column);
}

/* The entries of row i: k = 0 of the support of rows, 1 of columns. Returns their number. */
static inline int64_t apml_row(
    const struct apml_result *r, int k, int64_t i, const struct pnet_apml_entry **entries)
{
    int64_t begin = i ? r->plan.end[2 * (i - 1) + k] : 0;
    *entries = (k ? r->plan.by_column : r->plan.by_row) + begin;
    return r->plan.end[2 * i + k] - begin;
}

/* The plan of a single sample, [n, m], to be freed. */
static inline double *apml_dense(const struct apml_result *r, const struct sets *s)
{
    int64_t n = s->splits[X][1], m = s->splits[Y][1];
    double *p = calloc((size_t)(n * m) + 1, sizeof *p);
    if (!p) abort();
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++) {
            const struct pnet_apml_entry *e;
            int64_t count = apml_row(r, k, i, &e);
            for (int64_t t = 0; t < count; t++) p[i * m + e[t].other] += (double)e[t].p;
        }
    return p;
}

/* The definition's distance, every operation rounded to float32. */
static inline float apml_distance(const float *p, const float *q)
{
    volatile float d[3], sum;
    for (int a = 0; a < 3; a++) {
        d[a] = p[a] - q[a];
        d[a] = d[a] * d[a];
    }
    sum = d[0] + d[1];
    sum = sum + d[2];
    return sqrtf(sum);
}

#endif
