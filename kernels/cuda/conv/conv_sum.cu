/* Column sums in two stages: chunks of rows, then the chunks, both in fixed order and in doubles. */
#include "kernels/conv.h"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/conv_work.h"
#include "kernels/cuda/base/storage.cuh"

enum { THREADS = 256, LANES = 32, STRIPES = THREADS / LANES };

/* partial[chunk][c]: rows chunk * step to (chunk + 1) * step. */
template <typename T>
static __global__ __launch_bounds__(THREADS) void sum_chunks(
    struct pnet_count n, int c, const T *x, int64_t step, double *partial)
{
    __shared__ double sums[STRIPES][LANES];
    int lane = threadIdx.x % LANES, stripe = threadIdx.x / LANES,
        column = (int)blockIdx.y * LANES + lane;
    int64_t live = pnet_live(n), end = (blockIdx.x + 1) * step;
    if (end > live) end = live;
    double sum = 0;
    if (column < c)
        for (int64_t row = blockIdx.x * step + stripe; row < end; row += STRIPES)
            sum += (double)widen(x[row * c + column]);
    sums[stripe][lane] = sum;
    __syncthreads();
    if (stripe > 0 || column >= c) return;
    for (int s = 1; s < STRIPES; s++) sum += sums[s][lane];
    partial[(int64_t)blockIdx.x * c + column] = sum;
}

static __global__ void sum_partial(int chunks, int c, const double *partial, bool add, float *sum)
{
    int column = blockIdx.x * THREADS + threadIdx.x;
    if (column >= c) return;
    double total = 0;
    for (int i = 0; i < chunks; i++) total += partial[(int64_t)i * c + column];
    sum[column] = add ? sum[column] + (float)total : (float)total;
}

void pnet_cuda_column_sum(
    struct pnet_count n, int32_t c, const float *x, bool add, float *sum, void *work)
{
    int chunks = pnet_cuda_conv_sum_chunks(n);
    double *partial = (double *)work;
    if (chunks > 0) {
        dim3 grid((unsigned)chunks, (unsigned)((c + LANES - 1) / LANES));
        int64_t step = (n.most + chunks - 1) / chunks;
        by_storage(n.storage, [&](auto form) {
            using T = typename decltype(form)::T;
            sum_chunks<<<grid, THREADS, 0, pnet_cuda_stream()>>>(n, c, as<T>(x), step, partial);
        });
    }
    sum_partial<<<(unsigned)((c + THREADS - 1) / THREADS), THREADS, 0, pnet_cuda_stream()>>>(
        chunks, c, partial, add, sum);
}
