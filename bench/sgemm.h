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

/* FLOP/s of one product of `size` cubed, the median of `repeat` after one to warm up; 0 without
   OpenBLAS. It uses its own default number of threads, or what OPENBLAS_NUM_THREADS or
   OMP_NUM_THREADS say. */
static inline double sgemm_rate(int size, int repeat)
{
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "cblas_sgemm") : NULL;
    if (!symbol) return 0;
    sgemm_function *sgemm;
    memcpy(&sgemm, &symbol, sizeof sgemm);
    size_t n = (size_t)size * (size_t)size;
    float *a = bench_floats(n, 1), *b = bench_floats(n, 2), *c = bench_alloc(n * sizeof *c);
    double *seconds = bench_alloc((size_t)repeat * sizeof *seconds);
    for (int i = -1; i < repeat; i++) {
        double begin = bench_now();
        sgemm(101, 111, 111, size, size, size, 1, a, size, b, size, 0, c, size);
        if (i >= 0) seconds[i] = bench_now() - begin;
    }
    double rate = 2.0 * (double)n * size / bench_median(seconds, repeat);
    free(a);
    free(b);
    free(c);
    free(seconds);
    return rate;
}

#endif
