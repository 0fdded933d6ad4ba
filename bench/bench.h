/* What benchmarks share: memory that must be there, wall time, medians. */
#ifndef PNET_BENCH_BENCH_H
#define PNET_BENCH_BENCH_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

/* Ends the program where there is no memory. Large blocks ask for huge pages, as a runner's arena
 * does. */
static inline void *bench_alloc(size_t bytes)
{
    const size_t page = (size_t)2 << 20;
    size_t rounded = (bytes / page + 1) * page;
    void *p = aligned_alloc(page, rounded);
    if (!p) {
        fprintf(stderr, "out of memory\n");
        exit(5);
    }
    madvise(p, rounded, MADV_HUGEPAGE);
    return p;
}

/* Uniform in [-1, 1), the same for any number of threads. */
static inline float *bench_floats(size_t n, uint32_t seed)
{
    float *x = bench_alloc(n * sizeof *x);
#pragma omp parallel for
    for (size_t i = 0; i < n; i++) { /* splitmix64 (Steele, Lea, Flood, 2014) */
        uint64_t z = ((uint64_t)seed << 40) + (i + 1) * 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        x[i] = (float)(z >> 40) * 0x1p-23f - 1;
    }
    return x;
}

/* Parses the number of an option; if it is wrong, `fail` prints a message and ends the program. */
static inline double bench_number(
    const char *text, double least, double most, void (*fail)(const char *message))
{
    char *end, message[256];
    double x = strtod(text, &end);
    if (end == text || *end || !(x >= least && x <= most)) {
        snprintf(
            message, sizeof message, "%.100s is not a number from %g to %g", text, least, most);
        fail(message);
    }
    return x;
}

static inline double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int bench_compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Seconds; sorts them. */
static inline double bench_median(double *seconds, int n)
{
    qsort(seconds, (size_t)n, sizeof *seconds, bench_compare);
    return n % 2 ? seconds[n / 2] : (seconds[n / 2 - 1] + seconds[n / 2]) / 2;
}

/* Sums of |x - want|^2 and |want|^2, for a relative error over several pieces. */
struct bench_error {
    double difference, norm;
};

static inline void bench_error_add(struct bench_error *e, double x, double want)
{
    e->difference += (x - want) * (x - want);
    e->norm += want * want;
}

static inline double bench_error_value(const struct bench_error *e)
{
    return e->norm > 0 ? sqrt(e->difference / e->norm) : sqrt(e->difference);
}

/* How far a number is off, relative to `want` where that is not 0. */
static inline double bench_off(double x, double want)
{
    return fabs(x - want) / (want != 0 ? fabs(want) : 1);
}

#endif
