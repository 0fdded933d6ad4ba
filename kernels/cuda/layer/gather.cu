#include "kernels/cuda/base/launch.cuh"
#include "kernels/rows.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

static const unsigned THREADS = 256;

/* One thread a word: neighbours in a row are neighbours in a warp. */
__global__ static void gather(
    int64_t n, int32_t words, const uint32_t *from, const int32_t *index, uint32_t *to)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < n * words; at += step) {
        int64_t row = at / words;
        int32_t word = (int32_t)(at - row * words);
        to[at] = from[(index ? (int64_t)index[row] : row) * words + word];
    }
}

extern "C" void pnet_cuda_gather(
    int64_t n, int32_t words, const void *from, const int32_t *index, void *to)
{
    const int64_t MOST = 1 << 16;
    int64_t blocks = (n * words + THREADS - 1) / THREADS;
    if (blocks <= 0) return;
    gather<<<(unsigned)(blocks < MOST ? blocks : MOST), THREADS, 0, pnet_cuda_stream()>>>(
        n, words, (const uint32_t *)from, index, (uint32_t *)to);
}

template <typename T>
__global__ static void gather_features(
    int64_t n, int32_t width, const float *from, const int32_t *index, T *to)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < n * width; at += step) {
        int64_t row = at / width;
        to[at] = (T)from[(index ? (int64_t)index[row] : row) * width + (at - row * width)];
    }
}

extern "C" void pnet_cuda_gather_features(int64_t n, int32_t width, const float *from,
    const int32_t *index, enum pnet_storage storage, void *to)
{
    const int64_t MOST = 1 << 16;
    int64_t blocks = (n * width + THREADS - 1) / THREADS;
    unsigned grid = (unsigned)(blocks < MOST ? blocks : MOST);
    if (blocks <= 0) return;
    if (storage == PNET_STORE_BF16)
        gather_features<<<grid, THREADS, 0, pnet_cuda_stream()>>>(
            n, width, from, index, (__nv_bfloat16 *)to);
    else if (storage == PNET_STORE_FP16)
        gather_features<<<grid, THREADS, 0, pnet_cuda_stream()>>>(
            n, width, from, index, (__half *)to);
    else
        gather_features<<<grid, THREADS, 0, pnet_cuda_stream()>>>(
            n, width, from, index, (float *)to);
}

static __device__ __forceinline__ int64_t place(const struct pnet_placing &p, int64_t i)
{
    return p.index ? p.index[i / p.each] * p.each + i % p.each : i;
}

template <typename T>
__global__ static void rows_out(struct pnet_placing p, const T *x, const int32_t *from, float *to)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x, count = p.rows * p.width;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
        int64_t row = at / p.width, k = at - row * p.width;
        to[place(p, row) * p.width + k] = (float)x[(from ? from[row] : row) * p.width + k];
    }
}

template <typename T> __global__ static void rows_in(struct pnet_placing p, const float *x, T *y)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x, count = p.rows * p.width;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
        int64_t row = at / p.width;
        y[at] = (T)x[place(p, row) * p.width + (at - row * p.width)];
    }
}

static unsigned blocks_of(const struct pnet_placing &p)
{
    const int64_t MOST = 1 << 16;
    int64_t blocks = (p.rows * p.width + THREADS - 1) / THREADS;
    return (unsigned)(blocks < MOST ? blocks : MOST);
}

extern "C" void pnet_cuda_rows_out(
    struct pnet_placing p, const void *x, enum pnet_storage storage, const int32_t *from, float *to)
{
    unsigned blocks = blocks_of(p);
    if (!blocks) return;
    if (storage == PNET_STORE_BF16)
        rows_out<<<blocks, THREADS, 0, pnet_cuda_stream()>>>(p, (const __nv_bfloat16 *)x, from, to);
    else if (storage == PNET_STORE_FP16)
        rows_out<<<blocks, THREADS, 0, pnet_cuda_stream()>>>(p, (const __half *)x, from, to);
    else
        rows_out<<<blocks, THREADS, 0, pnet_cuda_stream()>>>(p, (const float *)x, from, to);
}

extern "C" void pnet_cuda_rows_in(
    struct pnet_placing p, const float *x, enum pnet_storage storage, void *y)
{
    unsigned blocks = blocks_of(p);
    if (!blocks) return;
    if (storage == PNET_STORE_BF16)
        rows_in<<<blocks, THREADS, 0, pnet_cuda_stream()>>>(p, x, (__nv_bfloat16 *)y);
    else if (storage == PNET_STORE_FP16)
        rows_in<<<blocks, THREADS, 0, pnet_cuda_stream()>>>(p, x, (__half *)y);
    else
        rows_in<<<blocks, THREADS, 0, pnet_cuda_stream()>>>(p, x, (float *)y);
}
