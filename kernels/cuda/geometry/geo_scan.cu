/* Prefix sums, and reading numbers back on the host. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/geometry/geo_scan.h"
#include "kernels/taps.h"

enum { SUM_THREADS = 1024 };

template <class T> static __global__ void chunk_sums(int64_t n, const T *at, int64_t *sums)
{
    int64_t begin = (int64_t)blockIdx.x * SCAN_CHUNK, sum = 0, total;
    for (int i = threadIdx.x; i < SCAN_CHUNK; i += GEO_THREADS)
        if (begin + i < n) sum += at[begin + i];
    block_scan<GEO_THREADS>(sum, total);
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

/* Replaces the sums of chunks by the sums of all chunks before each. One block. */
static __global__ void scan_sums(int64_t chunks, int64_t *sums)
{
    int64_t carry = 0, total;
    for (int64_t begin = 0; begin < chunks; begin += SUM_THREADS) {
        int64_t i = begin + threadIdx.x, own = i < chunks ? sums[i] : 0;
        int64_t sum = block_scan<SUM_THREADS>(own, total);
        if (i < chunks) sums[i] = carry + sum - own;
        carry += total;
    }
}

template <class T> static __global__ void scan_chunks(int64_t n, T *at, const int64_t *sums)
{
    int64_t begin = (int64_t)blockIdx.x * SCAN_CHUNK, carry = sums ? sums[blockIdx.x] : 0, total;
    for (int step = 0; step < SCAN_CHUNK; step += GEO_THREADS) {
        int64_t i = begin + step + threadIdx.x;
        int64_t sum = block_scan<GEO_THREADS>(i < n ? at[i] : 0, total);
        if (i < n) at[i] = (T)(carry + sum);
        carry += total;
    }
}

template <class T> static void scan(int64_t n, T *at, int64_t *sums)
{
    if (n <= 0) return;
    unsigned chunks = (unsigned)((n + SCAN_CHUNK - 1) / SCAN_CHUNK);
    if (chunks > 1) {
        chunk_sums<<<chunks, GEO_THREADS, 0, pnet_cuda_stream()>>>(n, at, sums);
        scan_sums<<<1, SUM_THREADS, 0, pnet_cuda_stream()>>>(chunks, sums);
    }
    scan_chunks<<<chunks, GEO_THREADS, 0, pnet_cuda_stream()>>>(n, at, chunks > 1 ? sums : nullptr);
}

void pnet_cuda_geo_scan(int64_t n, int64_t *at, int64_t *sums)
{
    scan(n, at, sums);
}

void pnet_cuda_geo_scan(int64_t n, int32_t *at, int64_t *sums)
{
    scan(n, at, sums);
}

/* A thread's few pinned numbers, which live as long as the thread. */
struct readback {
    int64_t *at = nullptr;
    ~readback()
    {
        if (at) cudaFreeHost(at);
    }
};

int64_t *pnet_cuda_geo_readback(void)
{
    static thread_local readback own;
    unsigned flags = cudaHostAllocMapped | cudaHostAllocPortable;
    if (!own.at && cudaHostAlloc((void **)&own.at, GEO_PARTIALS * sizeof(int64_t), flags))
        own.at = nullptr;
    return own.at;
}

int64_t pnet_cuda_geo_read(const int64_t *device)
{
    int64_t *at = pnet_cuda_geo_readback();
    if (!at) return 0;
    at[0] = 0;
    cudaMemcpyAsync(at, device, sizeof *at, cudaMemcpyDeviceToHost, pnet_cuda_stream());
    cudaStreamSynchronize(pnet_cuda_stream());
    return at[0];
}

void pnet_cuda_numbers(int count, const int64_t *const *device, int64_t *to)
{
    int64_t *at = pnet_cuda_geo_readback();
    for (int i = 0; i < count; i++) to[i] = 0;
    if (!at) return;
    for (int i = 0; i < count; i++)
        cudaMemcpyAsync(at + i, device[i], sizeof *at, cudaMemcpyDeviceToHost, pnet_cuda_stream());
    if (cudaStreamSynchronize(pnet_cuda_stream()) != cudaSuccess) return;
    for (int i = 0; i < count; i++) to[i] = at[i];
}

int64_t pnet_cuda_geo_read_partials(int count)
{
    const int64_t *at = pnet_cuda_geo_readback();
    int64_t sum = 0;
    if (!at || cudaStreamSynchronize(pnet_cuda_stream())) return 0;
    for (int i = 0; i < count; i++) sum += at[i];
    return sum;
}
