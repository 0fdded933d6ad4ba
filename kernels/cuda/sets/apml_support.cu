/* Sums of the sizes of supports. They are integers until the end, so their order is free. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/sets/apml_parts.h"
#include "kernels/cuda/sets/points.cuh"

enum { TALLY_BLOCKS = 264 }; /* of a side */

struct tally_side {
    struct pnet_count rows;
    const int64_t *count;
};
struct tally_sides {
    struct tally_side of[SIDES];
};

static __device__ __forceinline__ void add_to(uint64_t *sum, uint64_t value)
{
    if (value) atomicAdd((unsigned long long *)sum, (unsigned long long)value);
}

/* Grid: TALLY_BLOCKS, SIDES. */
static __global__ void __launch_bounds__(THREADS)
    tally_rows(const __grid_constant__ struct tally_sides sides, const int32_t *limit,
        const int32_t *finite, uint64_t *sum)
{
    __shared__ unsigned bin[PNET_APML_BINS];
    const struct tally_side &t = sides.of[blockIdx.y];
    const int64_t rows = *finite ? pnet_live(t.rows) : 0, most = limit[blockIdx.y];
    uint64_t there = 0, points = 0, cut = 0;
    for (int k = threadIdx.x; k < PNET_APML_BINS; k += THREADS) bin[k] = 0;
    __syncthreads();
    for (int64_t row = FLAT_BEGIN; row < rows; row += FLAT_STEP) {
        const int64_t count = t.count[row];
        if (count == 0) continue; /* its sample has no points of the other set */
        there++;
        points += (uint64_t)count;
        cut += count > most;
        atomicAdd(&bin[pnet_apml_bin(count)], 1u);
    }
    there = block_sum(there);
    points = block_sum(points);
    cut = block_sum(cut);
    if (threadIdx.x == 0) {
        add_to(sum + PNET_APML_ROWS, there);
        add_to(sum + PNET_APML_COUNT, points);
        add_to(sum + PNET_APML_CUT, cut);
    }
    __syncthreads();
    for (int k = threadIdx.x; k < PNET_APML_BINS; k += THREADS)
        add_to(sum + PNET_APML_BIN + k, bin[k]);
}

static __global__ void __launch_bounds__(THREADS)
    write_sums(const int32_t *finite, const uint64_t *from, double *sum)
{
    for (int64_t k = FLAT_BEGIN; k < PNET_APML_SUMS; k += FLAT_STEP)
        sum[k] = *finite ? (double)from[k] : nan("");
}

void pnet_cuda_apml_support(const struct pnet_apml *a, double *sum, void *work)
{
    struct apml_parts p;
    cudaStream_t stream = pnet_cuda_stream();
    pnet_cuda_apml_take(a, true, work, &p);
    const struct tally_sides sides = {{{a->sets.x.rows, p.count[0]}, {a->sets.y.rows, p.count[1]}}};
    cudaMemsetAsync(p.tally, 0, PNET_APML_SUMS * sizeof *p.tally, stream);
    pnet_cuda_apml_count(a, &p, p.count, p.finite);
    tally_rows<<<dim3(TALLY_BLOCKS, SIDES), THREADS, 0, stream>>>(
        sides, p.limit, p.finite, p.tally);
    write_sums<<<blocks_for(PNET_APML_SUMS, THREADS), THREADS, 0, stream>>>(p.finite, p.tally, sum);
}
