extern "C" {
#include "kernels/arrays.h"
}
#include "kernels/cuda/base/cuda.h"
#include "kernels/cuda/base/dense.cuh"
#include "kernels/cuda/base/launch.cuh"

template <class T>
static __global__ void __launch_bounds__(THREADS)
    take_classes(int64_t n, const T *from, int32_t classes, int32_t *to, unsigned long long *first)
{
    int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += step) {
        T label = from[i];
        if (label < -1 || label >= classes) atomicMin(first, (unsigned long long)i);
        to[i] = (int32_t)label;
    }
}

extern "C" int64_t pnet_cuda_classes_take(
    int64_t n, const void *from, bool wide, int32_t classes, int32_t *to, void *work)
{
    unsigned long long *first = (unsigned long long *)work;
    unsigned blocks = blocks_for(divide_up(n, THREADS));
    int64_t row = -1;
    if (n <= 0) return row;
    cudaMemsetAsync(first, 0xff, sizeof *first, pnet_cuda_stream());
    if (wide)
        take_classes<<<blocks, THREADS, 0, pnet_cuda_stream()>>>(
            n, (const int64_t *)from, classes, to, first);
    else
        take_classes<<<blocks, THREADS, 0, pnet_cuda_stream()>>>(
            n, (const int32_t *)from, classes, to, first);
    pnet_cuda_copy_out(&row, first, sizeof row);
    return row;
}

/* Sizes are ordered as the numbers that have their bits. */
static __global__ void __launch_bounds__(THREADS)
    find_largest(int64_t n, const float *x, int *largest)
{
    int64_t step = (int64_t)gridDim.x * THREADS;
    int most = 0;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += step)
        if (x[i] == x[i]) most = max(most, __float_as_int(fabsf(x[i])));
    atomicMax(largest, most);
}

extern "C" float pnet_cuda_largest(int64_t n, const float *x, void *work)
{
    float largest = 0;
    if (n <= 0) return largest;
    cudaMemsetAsync(work, 0, sizeof largest, pnet_cuda_stream());
    find_largest<<<blocks_for(divide_up(n, THREADS)), THREADS, 0, pnet_cuda_stream()>>>(
        n, x, (int *)work);
    pnet_cuda_copy_out(&largest, work, sizeof largest);
    return largest;
}
