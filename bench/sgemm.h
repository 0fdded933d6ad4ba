/* The rate of OpenBLAS's sgemm, the ceiling convolutions are held against. The library is looked
   for when the program runs: nothing else depends on it. */
#ifndef PNET_BENCH_SGEMM_H
#define PNET_BENCH_SGEMM_H

#include <dlfcn.h>
#include <string.h>
#include "bench/bench.h"

/* Of cblas.h; 101 and 111 are row-major order and no transposition. */
typedef void sgemm_function(int order, int transpose_a, int transpose_b, int m, int n, int k,
    float alpha, const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);

/* A product of two matrices of `size` squared that can be run again and again. `product` is NULL without OpenBLAS. It uses
   its own default number of threads, or what OPENBLAS_NUM_THREADS or OMP_NUM_THREADS say. */
struct sgemm {
    sgemm_function *product;
    int size;
    float *a, *b, *c;
};

static inline struct sgemm sgemm_open(int size)
{
    struct sgemm s = {.size = size};
    size_t n = (size_t)size * (size_t)size;
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "cblas_sgemm") : NULL;
    if (!symbol) return s;
    memcpy(&s.product, &symbol, sizeof s.product);
    s.a = bench_floats(n, 1);
    s.b = bench_floats(n, 2);
    s.c = bench_alloc(n * sizeof *s.c);
    return s;
}

static inline void sgemm_close(struct sgemm *s)
{
    free(s->a);
    free(s->b);
    free(s->c);
}

/* Seconds of one product. */
static inline double sgemm_run(const struct sgemm *s)
{
    int n = s->size;
    double begin = bench_now();
    s->product(101, 111, 111, n, n, n, 1, s->a, n, s->b, n, 0, s->c, n);
    return bench_now() - begin;
}

static inline double sgemm_flop(const struct sgemm *s)
{
    return 2.0 * s->size * s->size * s->size;
}

/* FLOP/s, the median of `repeat` products after one to warm up; 0 without OpenBLAS. */
static inline double sgemm_rate(int size, int repeat)
{
    struct sgemm s = sgemm_open(size);
    if (!s.product) return 0;
    double *seconds = bench_alloc((size_t)repeat * sizeof *seconds);
    sgemm_run(&s);
    for (int i = 0; i < repeat; i++) seconds[i] = sgemm_run(&s);
    double rate = sgemm_flop(&s) / bench_median(seconds, repeat);
    sgemm_close(&s);
    free(seconds);
    return rate;
}

#endif
