/* Levels of chunks: stretches of a finer level's rows. */
#include "kernels/chunks.h"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/geometry/geo_grid.h"
#include "kernels/cuda/geometry/geo_parts.h"

static __device__ __forceinline__ int64_t chunks_in(
    const int64_t *splits, int32_t sample, int32_t size)
{
    return (splits[sample + 1] - splits[sample] + size - 1) / size;
}

/* One block: a thread has neighbouring samples, which it counts, and places behind those of the threads before it. */
static __global__ void __launch_bounds__(GEO_THREADS)
    chunk_splits(int32_t samples, const int64_t *fine_splits, int32_t size, int64_t *row_splits)
{
    __shared__ int64_t counts[GEO_THREADS];
    int32_t t = (int32_t)threadIdx.x;
    int32_t begin = (int32_t)((int64_t)samples * t / GEO_THREADS),
            end = (int32_t)((int64_t)samples * (t + 1) / GEO_THREADS);
    int64_t count = 0, at = 0;
    for (int32_t s = begin; s < end; s++) count += chunks_in(fine_splits, s, size);
    counts[t] = count;
    __syncthreads();
    for (int32_t i = 0; i < t; i++) at += counts[i];
    for (int32_t s = begin; s < end; s++) {
        row_splits[s] = at;
        at += chunks_in(fine_splits, s, size);
    }
    if (t == GEO_THREADS - 1) row_splits[samples] = at;
}

extern "C" int64_t pnet_cuda_chunk_splits(
    int32_t samples, const int64_t *fine_splits, int32_t size, int64_t *row_splits)
{
    chunk_splits<<<1, GEO_THREADS, 0, pnet_cuda_stream()>>>(samples, fine_splits, size, row_splits);
    return pnet_cuda_geo_read(row_splits + samples);
}

static __global__ void __launch_bounds__(GEO_THREADS) chunk_points(
    const struct pnet_level fine, int32_t size, int64_t rows, const int64_t *row_splits, float *xyz)
{
    for (int64_t row = thread_index(); row < rows; row += thread_count()) {
        int32_t s = sample_of(row_splits, fine.samples, row);
        int64_t begin = fine.row_splits[s] + (row - row_splits[s]) * size,
                left = fine.row_splits[s + 1] - begin;
        int64_t kept = begin + pnet_chunk_centre(fine.xyz + 3 * begin, left < size ? left : size);
        for (int a = 0; a < 3; a++) xyz[3 * row + a] = fine.xyz[3 * kept + a];
    }
}

static __global__ void __launch_bounds__(GEO_THREADS) chunk_parents(
    const struct pnet_level fine, int32_t size, const int64_t *row_splits, int32_t *parent)
{
    for (int64_t i = thread_index(); i < fine.rows; i += thread_count()) {
        int32_t s = sample_of(fine.row_splits, fine.samples, i);
        parent[i] = (int32_t)(row_splits[s] + (i - fine.row_splits[s]) / size);
    }
}

extern "C" void pnet_cuda_chunk_points(const struct pnet_level *fine, int32_t size, int64_t rows,
    const int64_t *row_splits, float *xyz, int32_t *parent)
{
    if (fine->rows <= 0) return;
    chunk_points<<<geo_blocks(rows), GEO_THREADS, 0, pnet_cuda_stream()>>>(
        *fine, size, rows, row_splits, xyz);
    chunk_parents<<<geo_blocks(fine->rows), GEO_THREADS, 0, pnet_cuda_stream()>>>(
        *fine, size, row_splits, parent);
}
