#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/sort.h"

#include <cstdio>
#include <cstdlib>
#include <cub/device/device_radix_sort.cuh>

/* Our own mistakes, which would corrupt memory: told in any build. */
static void require(bool holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "kernels/cuda/base/sort.cu: %s\n", what);
    abort();
}

uint64_t *pnet_cuda_sort_keys(
    int64_t n, uint64_t *keys, uint64_t *spare, int begin, int end, void *work)
{
    if (n <= 0 || begin >= end) return keys;
    cub::DoubleBuffer<uint64_t> buffer(keys, spare);
    size_t need = 0, have = pnet_cuda_sort_work(n);
    if (cub::DeviceRadixSort::SortKeys(nullptr, need, buffer, n, begin, end, pnet_cuda_stream()))
        return keys; /* no device: its error sticks */
    require(need <= have, "a radix sort needs more workspace than its formula grants");
    cub::DeviceRadixSort::SortKeys(work, need, buffer, n, begin, end, pnet_cuda_stream());
    return buffer.Current();
}

int pnet_cuda_sort_bits(int64_t n)
{
    int bits = 0;
    while (bits < 63 && n >> bits) bits++;
    return bits;
}
