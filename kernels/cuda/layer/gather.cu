#include "kernels/rows.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

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
    const int64_t THREADS = 256, MOST = 1 << 16;
    int64_t blocks = (n * words + THREADS - 1) / THREADS;
    if (blocks <= 0) return;
    gather<<<(unsigned)(blocks < MOST ? blocks : MOST), (unsigned)THREADS, 0,
        cudaStreamPerThread>>>(n, words, (const uint32_t *)from, index, (uint32_t *)to);
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
    const int64_t THREADS = 256, MOST = 1 << 16;
    int64_t blocks = (n * width + THREADS - 1) / THREADS;
    unsigned grid = (unsigned)(blocks < MOST ? blocks : MOST), threads = (unsigned)THREADS;
    if (blocks <= 0) return;
    if (storage == PNET_STORE_BF16)
        gather_features<<<grid, threads, 0, cudaStreamPerThread>>>(
            n, width, from, index, (__nv_bfloat16 *)to);
    else if (storage == PNET_STORE_FP16)
        gather_features<<<grid, threads, 0, cudaStreamPerThread>>>(
            n, width, from, index, (__half *)to);
    else
        gather_features<<<grid, threads, 0, cudaStreamPerThread>>>(
            n, width, from, index, (float *)to);
}
