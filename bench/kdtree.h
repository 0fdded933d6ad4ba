/* nanoflann's k-d tree, which searches on the CPU are held against. There where the build found it:
   Debian's libnanoflann-dev, and the CUDA compiler, since the library is C++. */
#ifndef PNET_BENCH_KDTREE_H
#define PNET_BENCH_KDTREE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Builds the tree of xyz [rows, 3] and counts the neighbours of every point at distance <= radius, on all threads of
   OpenMP. Seconds of both; returns their number. */
int64_t pnet_bench_kdtree_neighbours(
    int64_t rows, const float *xyz, float radius, double *build, double *search);

/* Builds the tree of xyz [rows, 3] and finds the two nearest points of each query, from [queries, 3], on all threads of OpenMP.
   Seconds of both; returns the sum of the squared distances. */
double pnet_bench_kdtree_two_nearest(int64_t queries, const float *from, int64_t rows,
    const float *xyz, double *build, double *search);

#ifdef __cplusplus
}
#endif

#endif
