/* Attention in scopes of buckets (kernels/attend.h): entry points. */
extern "C" {
#include "kernels/attend.h"
}
#include "kernels/cuda/attend/attend_kernels.h"
#include "kernels/cuda/attend/attend_scope.cuh"
#include "kernels/cuda/attend/attend_work.h"
#include "kernels/cuda/base/launch.cuh"

#include <cuda_runtime.h>

enum { SAMPLE_THREADS = 1024 };

/* start [samples + 1] = tiles of the samples before each; one block. */
static __global__ void __launch_bounds__(SAMPLE_THREADS)
    count_tiles(const struct pnet_attend a, int tile, int64_t *start)
{
    __shared__ int64_t sum[SAMPLE_THREADS];
    int thread = (int)threadIdx.x, each = (a.samples + SAMPLE_THREADS - 1) / SAMPLE_THREADS;
    int begin = min(thread * each, a.samples), end = min(begin + each, a.samples);
    int64_t own = 0;
    for (int s = begin; s < end; s++) {
        int64_t rows = a.splits[s + 1] - a.splits[s];
        own += tiles_of_scope(a, rows, tile) * pnet_scope_count(&a.scopes, rows);
    }
    sum[thread] = own;
    __syncthreads();
    for (int o = 1; o < SAMPLE_THREADS; o *= 2) {
        int64_t before = thread >= o ? sum[thread - o] : 0;
        __syncthreads();
        sum[thread] += before;
        __syncthreads();
    }
    int64_t at = sum[thread] - own;
    for (int s = begin; s < end; s++) {
        int64_t rows = a.splits[s + 1] - a.splits[s];
        start[s] = at;
        at += tiles_of_scope(a, rows, tile) * pnet_scope_count(&a.scopes, rows);
    }
    if (thread == SAMPLE_THREADS - 1) start[a.samples] = sum[thread];
}

static struct attend_launch begin_launch(const struct pnet_attend *a, void *work)
{
    int64_t *start = (int64_t *)work;
    count_tiles<<<1, SAMPLE_THREADS, 0, pnet_cuda_stream()>>>(*a, pnet_cuda_attend_tile(a), start);
    return {*a, start, 0, pnet_cuda_attend_tiles(a), 0};
}

extern "C" void pnet_cuda_attend(
    const struct pnet_attend *a, const float *qkv, float *out, float *log_sum, void *work)
{
    if (a->rows.most <= 0 || a->samples <= 0) return;
    struct attend_launch l = begin_launch(a, work);
    dim3 grid((unsigned)l.last, (unsigned)a->heads);
    if (a->rows.storage == PNET_STORE_F32)
        pnet_cuda_attend_exact(&l, grid, qkv, out, log_sum);
    else
        pnet_cuda_attend_short(&l, grid, qkv, out, log_sum);
}

extern "C" void pnet_cuda_attend_backward(const struct pnet_attend *a, const float *qkv,
    const float *out, const float *log_sum, const float *gout, bool add, float *gqkv, void *work)
{
    if (a->rows.most <= 0 || a->samples <= 0) return;
    struct attend_launch l = begin_launch(a, work);
    struct attend_parts p = pnet_cuda_attend_parts(a);
    struct attend_gradient g = {
        qkv, out, log_sum, gout, gqkv, add, (float *)((char *)work + pnet_cuda_attend_starts(a))};
    for (l.head = 0; l.head < a->heads; l.head += p.heads)
        for (l.first = 0; l.first < p.tiles; l.first += p.window) {
            int heads = a->heads - l.head < p.heads ? a->heads - l.head : p.heads;
            int64_t left = p.tiles - l.first;
            l.last = l.first + p.window;
            dim3 grid((unsigned)(left < p.slots ? left : p.slots), (unsigned)heads);
            if (a->rows.storage == PNET_STORE_F32) {
                pnet_cuda_attend_exact_queries(&l, grid, &g);
                pnet_cuda_attend_exact_keys(&l, grid, &g);
            } else {
                pnet_cuda_attend_short_queries(&l, grid, &g);
                pnet_cuda_attend_short_keys(&l, grid, &g);
            }
        }
}
