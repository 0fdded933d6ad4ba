/* Arrays as a program gives them: checks on the device where they lie, and the way between the program's order of rows and the
   order inside of geometry. Numbers are moved as they are. GPU alone, as kernels/both.h has it; the work functions are in every
   build. Rows number less than 2^31. */
#ifndef PNET_KERNELS_GIVEN_H
#define PNET_KERNELS_GIVEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The first row of xyz[rows, 3] with a coordinate that is not at most `farthest` in size, as a NaN is not; -1: there is none, and
   *largest is the size of the largest coordinate. Waits. work: 16 bytes */
int64_t pnet_cuda_positions_beyond(
    int64_t rows, const float *xyz, float farthest, float *largest, void *work);
/* The first of `count` integers, of 64 bits if `wide`, else of 32, that is none of begin .. end - 1; -1: all are. Waits. work: 8
   bytes */
int64_t pnet_cuda_integers_outside(
    int64_t count, const void *list, bool wide, int64_t begin, int64_t end, void *work);
/* to[i] = list[i], which 32 bits hold. */
void pnet_cuda_integers_narrow(int64_t count, const int64_t *list, int32_t *to);
/* The first i with order[i] != i; -1: there is none. Waits. work: 8 bytes */
int64_t pnet_cuda_first_moved(int64_t n, const int32_t *order, void *work);

/* to[i] = i. */
void pnet_cuda_count_up(int64_t n, int32_t *to);
/* to[order[i]] = the sample of row i; order NULL: to[i]. */
void pnet_cuda_list_samples(
    int64_t rows, int32_t samples, const int64_t *splits, const int32_t *order, int32_t *to);
/* other[n] = order[other[n]]; negative ones stay. */
void pnet_cuda_rename(int64_t n, const int32_t *order, int32_t *other);
/* to[order[i]] = from[i] for i < n, rows of `words` 32-bit words; order is a permutation. */
void pnet_cuda_scatter(int64_t n, int32_t words, const void *from, const int32_t *order, void *to);
/* The same for float32, added. */
void pnet_cuda_scatter_add(
    int64_t n, int32_t width, const float *from, const int32_t *order, float *to);

/* to[0] = number * by[0]; by NULL: number. */
void pnet_cuda_scale_number(float number, const float *by, float *to);

/* Lists of rows, begun by start [rows + 1]: list i becomes list order[i]. First to_start [rows + 1], then the elements, of 2 or 4
   bytes. */
size_t pnet_cuda_place_starts_work(int64_t rows);
void pnet_cuda_place_starts(
    int64_t rows, const int32_t *order, const int64_t *start, int64_t *to_start, void *work);
void pnet_cuda_place_lists(int64_t rows, const int32_t *order, const int64_t *start,
    const int64_t *to_start, int bytes, const void *from, void *to);

/* Sorts the triplets of each row by (cell, other), in place. */
void pnet_cuda_sort_rows(int64_t rows, const int64_t *start, int32_t *other, uint16_t *cell);

#ifdef __cplusplus
}
#endif

#endif
