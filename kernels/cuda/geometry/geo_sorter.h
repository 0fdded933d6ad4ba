/* Sorting rows by keys of 32 or 64 bits. For .cu files alone. */
#ifndef PNET_KERNELS_CUDA_GEO_SORTER_H
#define PNET_KERNELS_CUDA_GEO_SORTER_H

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/geometry/geo_parts.h"

#include <cstdio>
#include <cstdlib>
#include <cub/device/device_radix_sort.cuh>

/* The buffers of a sort: two for items, a second one for rows, and CUB's workspace. */
template <class T> struct sorter {
    T *item[2];
    int32_t *spare;
    char *temporary;
    size_t temporary_bytes;
};

/* Places the buffers in `room`, which has two items and a row for each of n, and in `purse`. */
template <class T> static sorter<T> sorter_of(int64_t n, void *room, geo_purse &purse)
{
    sorter<T> s;
    s.item[0] = (T *)room;
    s.item[1] = s.item[0] + n;
    s.spare = (int32_t *)(s.item[1] + n);
    s.temporary_bytes = pnet_cuda_geo_sorter_bytes(n);
    s.temporary = purse.take<char>(s.temporary_bytes);
    return s;
}

/* Sorts pairs (item, order) by the low bits of item[0]; the sort is stable. The result's order is in the same buffer. */
template <class T> static void sort_pairs(int64_t n, const sorter<T> *s, int bits, int32_t *order)
{
    cub::DoubleBuffer<T> item(s->item[0], s->item[1]);
    cub::DoubleBuffer<int32_t> row(order, s->spare);
    size_t bytes = 0;
    cub::DeviceRadixSort::SortPairs(nullptr, bytes, item, row, (int)n, 0, bits, pnet_cuda_stream());
    if (bytes > s->temporary_bytes) {
        fprintf(stderr,
            "pnet: sorting %lld rows takes %zu bytes beside the rows, %zu are planned\n",
            (long long)n, bytes, s->temporary_bytes);
        abort();
    }
    cub::DeviceRadixSort::SortPairs(
        s->temporary, bytes, item, row, (int)n, 0, bits, pnet_cuda_stream());
    if (row.Current() != order)
        cudaMemcpyAsync(order, row.Current(), (size_t)n * sizeof *order, cudaMemcpyDeviceToDevice,
            pnet_cuda_stream());
}

static inline int bits_of_samples(int32_t samples)
{
    int bits = 0;
    while ((int64_t)1 << bits < samples) bits++;
    return bits;
}

#endif
