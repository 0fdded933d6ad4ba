/* One kernel on both devices: the same numbers go in, and what comes out is compared. */
#ifndef PNET_TESTS_CUDA_DENSE_CASE_H
#define PNET_TESTS_CUDA_DENSE_CASE_H

#include "kernels/count.h"
#include "tests/check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef PNET_CUDA_BUILT

#include "kernels/cuda/base/cuda.h"
#include "tests/cuda/storage_case.h"

enum {
    SEGMENTS = 5,
    GUARD = 64,                /* floats behind an array that must stay as they are */
    SMALLS = 2 + 2 * SEGMENTS, /* vectors of c: gweight gbias mean inverse */
};

/* Where a kernel runs, and on what. Sizes: a b y [rows, c], one [rows, 1]; weight bias gweight gbias [c]; mean inverse
   [SEGMENTS, c]; sums [2, SEGMENTS, c]; splits [SEGMENTS + 1]. */
struct side {
    bool gpu, add;
    enum pnet_storage
        storage; /* of a b y one, where this is a GPU; on the CPU they have been rounded to it */
    struct pnet_count rows, elements;
    int32_t c;
    float *a, *b, *y, *one, *weight, *bias, *gweight, *gbias, *mean, *inverse;
    double *sums;
    int64_t *splits, *live;
    uint32_t *step; /* 41 */
};

struct dense_case {
    const char *name;
    void (*run)(const struct side *d);
    double
        floor; /* what y is a difference of, where that may be much larger than y: of an element */
};

/* A shape: the CPU, a GPU that knows the number of rows, and one with room for more. */
struct world {
    struct side cpu, exact, roomy;
    int64_t rows, most;
    float *start; /* what results hold before: y, then the small ones */
};

/* 0 .. 1 */
static inline float random_at(uint64_t seed, int64_t i)
{
    uint64_t x = (uint64_t)i * UINT64_C(0x9E3779B97F4A7C15) + seed * UINT64_C(0xD1B54A32D192ED03);
    x = (x ^ x >> 32) * UINT64_C(0xD6E8FEB86659FD93);
    x = (x ^ x >> 32) * UINT64_C(0xD6E8FEB86659FD93);
    return (float)(x >> 40) * 0x1p-24f;
}

static inline void check_sync(const char *name)
{
    const char *wrong = pnet_cuda_sync();
    CHECKF(!wrong, "%s: %s", name, wrong);
    if (wrong) exit(1); /* nothing works from here on */
}

/* Filled with NaN. */
static inline void *device_alloc(size_t bytes)
{
    void *p = pnet_cuda_alloc(bytes + GUARD * sizeof(float));
    if (!p) {
        fprintf(stderr, "out of device memory\n");
        exit(1);
    }
    pnet_cuda_fill_bytes(p, 0xFF, bytes + GUARD * sizeof(float));
    return p;
}

static inline void *take_work(const struct side *d, size_t bytes)
{
    void *p = d->gpu ? device_alloc(bytes) : malloc(bytes + 1);
    if (!p) exit(1);
    return p;
}

/* A GPU's workspace must not be left on its far side. */
static inline void give_work(const struct side *d, void *p)
{
    if (!d->gpu) {
        free(p);
        return;
    }
    check_sync("workspace");
    pnet_cuda_free(p);
}

static inline float *host_floats(int64_t n, uint64_t seed)
{
    float *x = malloc((size_t)(n + GUARD) * sizeof *x);
    if (!x) exit(1);
    for (int64_t i = 0; i < n; i++) x[i] = 2 * random_at(seed, i) - 1;
    return x;
}

static inline struct side side_new(
    bool gpu, enum pnet_storage storage, int64_t rows, int64_t most, int32_t c)
{
    bool roomy = most > rows;
    enum pnet_storage lies = gpu ? storage : PNET_STORE_F32;
    size_t matrix = storage_bytes(lies, most * c), vector = (size_t)c * sizeof(float);
    struct side d = {.gpu = gpu, .storage = storage, .c = c};
    void *(*take)(size_t) = gpu ? device_alloc : malloc;
    d.a = take(matrix + 1), d.b = take(matrix + 1), d.y = take(matrix + 1);
    d.one = take(storage_bytes(lies, most) + 1);
    d.weight = take(vector), d.bias = take(vector);
    d.gweight = take(vector), d.gbias = take(vector);
    d.mean = take(SEGMENTS * vector), d.inverse = take(SEGMENTS * vector);
    d.sums = take(4 * SEGMENTS * vector);
    d.splits = take((SEGMENTS + 1) * sizeof *d.splits);
    d.live = take(sizeof *d.live);
    d.step = take(sizeof *d.step);
    d.rows = (struct pnet_count){most, roomy ? d.live : NULL, 1, lies};
    d.elements = (struct pnet_count){most * c, roomy ? d.live : NULL, c, lies};
    return d;
}

static inline void side_free(const struct side *d)
{
    void *all[] = {d->a, d->b, d->y, d->one, d->weight, d->bias, d->gweight, d->gbias, d->mean,
        d->inverse, d->sums, d->splits, d->live, d->step};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) (d->gpu ? pnet_cuda_free : free)(all[i]);
}

static inline void put(const struct side *d, void *to, const void *from, size_t bytes)
{
    if (d->gpu)
        pnet_cuda_copy_in(to, from, bytes);
    else if (bytes)
        memcpy(to, from, bytes);
}

/* n features. */
static inline void put_features(const struct side *d, void *to, const float *from, int64_t n)
{
    enum pnet_storage lies = d->rows.storage;
    void *bits = malloc(storage_bytes(lies, n) + 1);
    if (!bits) exit(1);
    to_storage(lies, from, n, bits);
    put(d, to, bits, storage_bytes(lies, n));
    if (d->gpu) pnet_cuda_sync(); /* errors stick */
    free(bits);
}

/* What kernels read; the same on all sides. */
static inline void side_fill(const struct side *d, int64_t rows)
{
    int64_t n = rows * d->c, splits[SEGMENTS + 1] = {0, 0, rows / 3, rows / 3, rows / 3, rows};
    uint32_t step = 41;
    if (rows > 3) splits[3] = splits[4] = rows / 3 + 1;
    struct {
        float *to;
        int64_t n;
        bool features;
    } inputs[] = {{d->a, n, true}, {d->b, n, true}, {d->one, rows, true}, {d->weight, d->c, false},
        {d->bias, d->c, false}};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        float *x = host_floats(inputs[i].n, i + 1);
        if (inputs[i].features) {
            round_to_storage(d->storage, x, inputs[i].n);
            put_features(d, inputs[i].to, x, inputs[i].n);
        } else {
            put(d, inputs[i].to, x, (size_t)inputs[i].n * sizeof *x);
        }
        free(x);
    }
    put(d, d->splits, splits, sizeof splits);
    put(d, d->live, &rows, sizeof rows);
    put(d, d->step, &step, sizeof step);
}

static inline struct world *world_new(enum pnet_storage storage, int64_t rows, int32_t c)
{
    struct world *w = malloc(sizeof *w);
    if (!w) exit(1);
    w->rows = rows;
    w->most = rows + (rows > 1000 ? 8192 : rows / 8 + 3); /* few rows in a launch for many */
    w->cpu = side_new(false, storage, rows, rows, c);
    w->exact = side_new(true, storage, rows, rows, c);
    w->roomy = side_new(true, storage, rows, w->most, c);
    side_fill(&w->cpu, rows);
    side_fill(&w->exact, rows);
    side_fill(&w->roomy, rows);
    check_sync("copies");
    w->start = host_floats(rows * c + SMALLS * c, 99);
    round_to_storage(storage, w->start, rows * c);
    for (int32_t i = 0; i < c; i++) w->start[rows * c + c + i] += 1.5f; /* gbias: also a variance */
    return w;
}

static inline void world_free(struct world *w)
{
    side_free(&w->cpu);
    side_free(&w->exact);
    side_free(&w->roomy);
    free(w->start);
    free(w);
}

/* |got - want| <= 1e-6 max(|want|, floor), in the 2-norm, and what one rounding to the storage adds; NaN where NaN is
   expected. */
static inline void check_stored(const char *name, const char *what, enum pnet_storage storage,
    const float *got, const float *want, int64_t n, double floor)
{
    double difference = 0, length = 0;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(want[i]) && isnan(got[i])) continue;
        double d = (double)got[i] - (double)want[i];
        difference += d * d;
        length += (double)want[i] * (double)want[i];
    }
    double bound = 1e-6 * sqrt(length + floor * floor) + storage_relative[storage] * sqrt(length) +
                   storage_absolute[storage] * sqrt((double)n);
    CHECKF(sqrt(difference) <= bound, "%s: %s: off by %g of %g (%lld numbers)", name, what,
        sqrt(difference), sqrt(length), (long long)n);
}

static inline void check_close(const char *name, const char *what, const float *got,
    const float *want, int64_t n, double floor)
{
    check_stored(name, what, PNET_STORE_F32, got, want, n, floor);
}

/* What a kernel may have written. */
struct result {
    float *y, *small;
    double *sums;
};

static inline void get(const struct side *d, void *to, const void *from, size_t bytes)
{
    if (d->gpu)
        pnet_cuda_copy_out(to, from, bytes);
    else if (bytes)
        memcpy(to, from, bytes);
}

static inline void get_features(const struct side *d, float *to, const void *from, int64_t n)
{
    enum pnet_storage lies = d->rows.storage;
    void *bits = malloc(storage_bytes(lies, n) + 1);
    if (!bits) exit(1);
    get(d, bits, from, storage_bytes(lies, n));
    from_storage(lies, bits, n, to);
    free(bits);
}

static inline struct result run_case(
    const struct dense_case *k, const struct world *w, struct side *d, bool add)
{
    int32_t c = d->c;
    size_t n = (size_t)(w->rows * c), v = (size_t)c * sizeof(float);
    const float *start = w->start, *small = start + n;
    double *sums = calloc(2 * SEGMENTS, (size_t)c * sizeof *sums);
    struct result r = {malloc(n * sizeof(float) + 1), malloc(SMALLS * v), sums};
    if (!r.y || !r.small || !sums) exit(1);
    put_features(d, d->y, start, w->rows * c);
    put(d, d->gweight, small, v);
    put(d, d->gbias, small + c, v);
    put(d, d->mean, small + 2 * c, SEGMENTS * v);
    put(d, d->inverse, small + (2 + SEGMENTS) * c, SEGMENTS * v);
    put(d, d->sums, sums, 4 * SEGMENTS * v);
    d->add = add;
    k->run(d);
    if (d->gpu) check_sync(k->name);
    get_features(d, r.y, d->y, w->rows * c);
    get(d, r.small, d->gweight, v);
    get(d, r.small + c, d->gbias, v);
    get(d, r.small + 2 * c, d->mean, SEGMENTS * v);
    get(d, r.small + (2 + SEGMENTS) * c, d->inverse, SEGMENTS * v);
    get(d, r.sums, d->sums, 4 * SEGMENTS * v);
    return r;
}

static inline void result_free(struct result r)
{
    free(r.y);
    free(r.small);
    free(r.sums);
}

/* Is the guard behind a matrix of a GPU as it was? */
static inline bool guard_stands(const struct side *d, int64_t most)
{
    uint32_t guard[GUARD];
    pnet_cuda_copy_out(
        guard, (char *)d->y + storage_bytes(d->rows.storage, most * d->c), sizeof guard);
    for (int i = 0; i < GUARD; i++)
        if (guard[i] != UINT32_MAX) return false;
    return true;
}

/* The gradient of a norm over very little is a difference of nearly equal numbers, as wrong as those are. */
static inline double floor_of(const struct world *w, const struct dense_case *k)
{
    bool little = w->rows <= 8 || w->cpu.c == 1;
    return little ? k->floor * sqrt((double)(w->rows * w->cpu.c)) : 0;
}

/* The first of n numbers whose bits are others; -1: none. */
static inline int64_t first_difference(const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (memcmp(a + i, b + i, sizeof *a) != 0) return i;
    return -1;
}

static inline void check_case(struct world *w, const struct dense_case *k, bool add)
{
    int32_t c = w->cpu.c;
    int64_t n = w->rows * c;
    char name[160];
    snprintf(name, sizeof name, "%s [%lld, %d] %s%s", k->name, (long long)w->rows, (int)c,
        storage_names[w->cpu.storage], add ? " add" : "");
    struct result want = run_case(k, w, &w->cpu, add);
    struct result exact = run_case(k, w, &w->exact, add);
    struct result roomy = run_case(k, w, &w->roomy, add);
    check_stored(name, "y", w->cpu.storage, exact.y, want.y, n, floor_of(w, k));
    for (int part = 0; part < SMALLS; part++)
        check_close(name, part < 2 ? "gradients of weight and bias" : "statistics",
            exact.small + part * c, want.small + part * c, c,
            part < 2 && k->floor > 0 ? floor_of(w, k) / k->floor : 0);
    double off = 0, scale = 0;
    for (int32_t i = 0; i < 2 * SEGMENTS * c; i++) {
        off = fmax(off, fabs(exact.sums[i] - want.sums[i]));
        scale = fmax(scale, fabs(want.sums[i]));
    }
    CHECKF(off <= 1e-11 * fmax(scale, sqrt((double)w->rows)), "%s: sums off by %g", name, off);
    size_t bytes = (size_t)n * sizeof(float);
    CHECKF(memcmp(exact.y, roomy.y, bytes) == 0, "%s: y depends on the capacity", name);
    int64_t other = first_difference(exact.small, roomy.small, SMALLS * (int64_t)c);
    CHECKF(other < 0,
        "%s: gradients or statistics depend on the capacity: vector %d, channel %d: %.9g, %.9g "
        "(CPU %.9g)",
        name, (int)(other / c), (int)(other % c), (double)exact.small[other],
        (double)roomy.small[other], (double)want.small[other]);
    CHECKF(memcmp(exact.sums, roomy.sums, 2 * SEGMENTS * (size_t)c * sizeof(double)) == 0,
        "%s: sums depend on the capacity", name);
    CHECKF(guard_stands(&w->exact, w->rows) && guard_stands(&w->roomy, w->most),
        "%s: wrote behind y", name);
    result_free(want);
    result_free(exact);
    result_free(roomy);
}

#endif

#endif
