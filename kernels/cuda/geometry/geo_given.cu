/* Arrays as a program gives them (kernels/given.h). */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/geometry/geo_grid.h"
#include "kernels/cuda/geometry/geo_parts.h"
#include "kernels/cuda/geometry/geo_sites.h"
#include "kernels/given.h"

/* found[0]: the first row beyond; found[1]: the bits of the largest size, which order sizes as the sizes themselves. */
static __global__ void find_beyond(
    int64_t rows, const float *xyz, float farthest, unsigned long long *found)
{
    uint32_t largest = 0;
    for (int64_t i = thread_index(); i < rows; i += thread_count())
        for (int a = 0; a < 3; a++) {
            float size = fabsf(xyz[3 * i + a]);
            if (!(size <= farthest)) {
                atomicMin(&found[0], (unsigned long long)i);
                continue;
            }
            uint32_t bits = __float_as_uint(size);
            if (bits > largest) largest = bits;
        }
    atomicMax(&found[1], (unsigned long long)largest);
}

int64_t pnet_cuda_positions_beyond(
    int64_t rows, const float *xyz, float farthest, float *largest, void *work)
{
    *largest = 0;
    if (rows <= 0) return -1;
    int64_t *found = (int64_t *)work;
    pnet_cuda_geo_least_begin(found);
    cudaMemsetAsync(found + 1, 0, sizeof *found, pnet_cuda_stream());
    find_beyond<<<(unsigned)geo_few_blocks(rows), GEO_THREADS, 0, pnet_cuda_stream()>>>(
        rows, xyz, farthest, (unsigned long long *)found);
    uint32_t bits = (uint32_t)pnet_cuda_geo_read(found + 1);
    static_assert(sizeof bits == sizeof *largest, "the bits of a float");
    memcpy(largest, &bits, sizeof bits);
    return pnet_cuda_geo_least(found);
}

template <class T>
static __global__ void find_outside(
    int64_t count, const T *list, int64_t begin, int64_t end, unsigned long long *first)
{
    for (int64_t n = thread_index(); n < count; n += thread_count())
        if (list[n] < begin || list[n] >= end) atomicMin(first, (unsigned long long)n);
}

int64_t pnet_cuda_integers_outside(
    int64_t count, const void *list, bool wide, int64_t begin, int64_t end, void *work)
{
    unsigned long long *first = (unsigned long long *)work;
    if (count <= 0) return -1;
    pnet_cuda_geo_least_begin(work);
    if (wide)
        find_outside<<<geo_blocks(count), GEO_THREADS, 0, pnet_cuda_stream()>>>(
            count, (const int64_t *)list, begin, end, first);
    else
        find_outside<<<geo_blocks(count), GEO_THREADS, 0, pnet_cuda_stream()>>>(
            count, (const int32_t *)list, begin, end, first);
    return pnet_cuda_geo_least(work);
}

static __global__ void narrow(int64_t count, const int64_t *list, int32_t *to)
{
    for (int64_t i = thread_index(); i < count; i += thread_count()) to[i] = (int32_t)list[i];
}

void pnet_cuda_integers_narrow(int64_t count, const int64_t *list, int32_t *to)
{
    if (count > 0)
        narrow<<<geo_blocks(count), GEO_THREADS, 0, pnet_cuda_stream()>>>(count, list, to);
}

static __global__ void find_moved(int64_t n, const int32_t *order, unsigned long long *first)
{
    for (int64_t i = thread_index(); i < n; i += thread_count())
        if (order[i] != i) atomicMin(first, (unsigned long long)i);
}

int64_t pnet_cuda_first_moved(int64_t n, const int32_t *order, void *work)
{
    if (n <= 0) return -1;
    pnet_cuda_geo_least_begin(work);
    find_moved<<<geo_blocks(n), GEO_THREADS, 0, pnet_cuda_stream()>>>(
        n, order, (unsigned long long *)work);
    return pnet_cuda_geo_least(work);
}

static __global__ void count_up(int64_t n, int32_t *to)
{
    for (int64_t i = thread_index(); i < n; i += thread_count()) to[i] = (int32_t)i;
}

void pnet_cuda_count_up(int64_t n, int32_t *to)
{
    if (n > 0) count_up<<<geo_blocks(n), GEO_THREADS, 0, pnet_cuda_stream()>>>(n, to);
}

static __global__ void list_samples(
    int64_t rows, int32_t samples, const int64_t *splits, const int32_t *order, int32_t *to)
{
    for (int64_t i = thread_index(); i < rows; i += thread_count())
        to[order ? (int64_t)order[i] : i] = sample_of(splits, samples, i);
}

void pnet_cuda_list_samples(
    int64_t rows, int32_t samples, const int64_t *splits, const int32_t *order, int32_t *to)
{
    if (rows > 0)
        list_samples<<<geo_blocks(rows), GEO_THREADS, 0, pnet_cuda_stream()>>>(
            rows, samples, splits, order, to);
}

static __global__ void rename(int64_t n, const int32_t *order, int32_t *other)
{
    for (int64_t i = thread_index(); i < n; i += thread_count())
        if (other[i] >= 0) other[i] = order[other[i]];
}

void pnet_cuda_rename(int64_t n, const int32_t *order, int32_t *other)
{
    if (n > 0) rename<<<geo_blocks(n), GEO_THREADS, 0, pnet_cuda_stream()>>>(n, order, other);
}

static __global__ void scatter(
    int64_t n, int32_t words, const uint32_t *from, const int32_t *order, uint32_t *to)
{
    for (int64_t at = thread_index(); at < n * words; at += thread_count()) {
        int64_t row = at / words;
        to[(int64_t)order[row] * words + (at - row * words)] = from[at];
    }
}

void pnet_cuda_scatter(int64_t n, int32_t words, const void *from, const int32_t *order, void *to)
{
    if (n > 0 && words > 0)
        scatter<<<geo_blocks(n * words), GEO_THREADS, 0, pnet_cuda_stream()>>>(
            n, words, (const uint32_t *)from, order, (uint32_t *)to);
}

static __global__ void scatter_add(
    int64_t n, int32_t width, const float *from, const int32_t *order, float *to)
{
    for (int64_t at = thread_index(); at < n * width; at += thread_count()) {
        int64_t row = at / width;
        to[(int64_t)order[row] * width + (at - row * width)] += from[at];
    }
}

void pnet_cuda_scatter_add(
    int64_t n, int32_t width, const float *from, const int32_t *order, float *to)
{
    if (n > 0 && width > 0)
        scatter_add<<<geo_blocks(n * width), GEO_THREADS, 0, pnet_cuda_stream()>>>(
            n, width, from, order, to);
}

static __global__ void scale_number(float number, const float *by, float *to)
{
    to[0] = by ? number * by[0] : number;
}

void pnet_cuda_scale_number(float number, const float *by, float *to)
{
    scale_number<<<1, 1, 0, pnet_cuda_stream()>>>(number, by, to);
}

static __global__ void place_counts(
    int64_t rows, const int32_t *order, const int64_t *start, int64_t *to_start)
{
    for (int64_t i = thread_index(); i < rows; i += thread_count())
        to_start[order[i] + 1] = start[i + 1] - start[i];
}

void pnet_cuda_place_starts(
    int64_t rows, const int32_t *order, const int64_t *start, int64_t *to_start, void *work)
{
    cudaMemsetAsync(to_start, 0, sizeof *to_start, pnet_cuda_stream());
    if (rows <= 0) return;
    place_counts<<<geo_blocks(rows), GEO_THREADS, 0, pnet_cuda_stream()>>>(
        rows, order, start, to_start);
    pnet_cuda_geo_scan(rows, to_start + 1, (int64_t *)work);
}

/* Eight threads a list. */
template <class T>
static __global__ void place_lists(int64_t rows, const int32_t *order, const int64_t *start,
    const int64_t *to_start, const T *from, T *to)
{
    const int LANES = 8;
    int64_t all = thread_count() / LANES;
    for (int64_t row = thread_index() / LANES; row < rows; row += all) {
        int64_t begin = start[row], end = start[row + 1], at = to_start[order[row]];
        for (int64_t n = begin + threadIdx.x % LANES; n < end; n += LANES)
            to[at + n - begin] = from[n];
    }
}

void pnet_cuda_place_lists(int64_t rows, const int32_t *order, const int64_t *start,
    const int64_t *to_start, int bytes, const void *from, void *to)
{
    unsigned blocks = geo_blocks(8 * rows);
    if (rows <= 0) return;
    if (bytes == 2)
        place_lists<<<blocks, GEO_THREADS, 0, pnet_cuda_stream()>>>(
            rows, order, start, to_start, (const uint16_t *)from, (uint16_t *)to);
    else
        place_lists<<<blocks, GEO_THREADS, 0, pnet_cuda_stream()>>>(
            rows, order, start, to_start, (const uint32_t *)from, (uint32_t *)to);
}

void pnet_cuda_sort_rows(int64_t rows, const int64_t *start, int32_t *other, uint16_t *cell)
{
    pnet_cuda_geo_sort_long(rows, start, 1, other, cell);
}
