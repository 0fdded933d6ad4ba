/* The rounds of APML, P_ij = u_i P0_ij v_j: entries are read and not written. Half a round sets the factors of one set from those
   of the other. Where samples are small, a block has one of them in all rounds, and their factors in shared memory; else half a
   round is a launch. Who adds up a row depends on the length of its lists, so the bits do not depend on the number of threads. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/sets/apml_lists.cuh"
#include "kernels/cuda/sets/points.cuh"

#include <climits>

enum {
    SHORT = 16,             /* entries of a list that one thread adds up; a warp has more */
    SAMPLE_ROWS = 8192,     /* of both sets, on average: up to here samples are small */
    SAMPLE_THREADS = 1024,  /* that have a small sample */
    SHARED_FACTORS = 12288, /* 48 KiB; those of a larger sample lie in global memory */
};

/* Adds up entries first, first + step .. of a list of n, each times its factor. factor[0] is that of row `base`. */
static __device__ __forceinline__ float weigh(const struct pnet_apml_entry *entry, int first, int n,
    int step, const float *factor, int64_t base)
{
    float sum = 0;
#pragma unroll 4
    for (int k = first; k < n; k += step) {
        struct pnet_apml_entry e = entry_at(entry + k);
        sum += e.p * factor[e.other - base];
    }
    return sum;
}

struct row_sum {
    float of;
    bool any; /* entries */
};

/* The sum of a row over both lists. Two neighbouring threads have a row, and a list each; all threads of the warp take part. A
   row that is not `there`, or has more than `most` entries in a list, is left out, as if it had none. */

static __device__ __forceinline__ struct row_sum sum_row(
    const struct apml_side &s, int64_t row, bool there, int most, const float *factor, int64_t base)
{
    const int lane = (int)threadIdx.x % WARP;
    const struct apml_list &own = s.list[lane % 2];
    int64_t begin = there ? list_begin(own, row) : 0;
    int n = there ? (int)list_length(own, row) : 0;
    float sum = 0;
    if (max(n, __shfl_xor_sync(~0u, n, 1)) > most) n = 0;
    if (n <= SHORT) sum = weigh(own.entry + begin, 0, n, 1, factor, base);
    for (unsigned rest = __ballot_sync(~0u, n > SHORT); rest; rest &= rest - 1) {
        int from = __ffs((int)rest) - 1, count = __shfl_sync(~0u, n, from);
        int64_t first = __shfl_sync(~0u, begin, from);
        float part = weigh(s.list[from % 2].entry + first, lane, count, WARP, factor, base);
        part = lanes_sum(part, WARP);
        if (lane == from) sum = part;
    }
    return {sum + __shfl_xor_sync(~0u, sum, 1), n + __shfl_xor_sync(~0u, n, 1) > 0};
}

static __device__ __forceinline__ void set_factor(float *factor, float sum)
{
    *factor = *factor / (*factor * sum + 1e-8f);
}

struct apml_sides {
    struct apml_side of[SIDES];
};

/* The factors of both sets become 1, and long rows are listed. Grid: rows, SIDES. */

__global__ static void __launch_bounds__(THREADS)
    begin_rounds(const __grid_constant__ struct apml_sides sides)
{
    const struct apml_side &s = sides.of[blockIdx.y];
    const int64_t rows = pnet_live(s.set.rows);
    for (int64_t row = FLAT_BEGIN; row < rows; row += FLAT_STEP) {
        s.factor[row] = 1;
        if (max(list_length(s.list[0], row), list_length(s.list[1], row)) > PNET_APML_LONG)
            s.longest.row[atomicAdd(s.longest.count, 1)] = (int32_t)row;
    }
}

__global__ static void __launch_bounds__(THREADS, 5)
    half_round(const __grid_constant__ struct apml_side s, const float *factor)
{
    let_next_come();
    wait_for_earlier();
    const int64_t rows = pnet_live(s.set.rows);
    for (int64_t base = FLAT_BEGIN / WARP * (WARP / 2); base < rows; base += FLAT_STEP / 2) {
        int64_t row = base + threadIdx.x % WARP / 2;
        struct row_sum sum = sum_row(s, row, row < rows, PNET_APML_LONG, factor, 0);
        if (sum.any && threadIdx.x % 2 == 0) set_factor(s.factor + row, sum.of);
    }
    for (int k = (int)blockIdx.x; k < *s.longest.count; k += (int)gridDim.x) {
        const int64_t row = s.longest.row[k];
        float sum = 0;
        for (int i = 0; i < 2; i++)
            sum += weigh(s.list[i].entry + list_begin(s.list[i], row), (int)threadIdx.x,
                (int)list_length(s.list[i], row), THREADS, factor, 0);
        sum = block_sum(sum);
        if (threadIdx.x == 0) set_factor(s.factor + row, sum);
    }
}

/* Rows of a sample, and their factors. */
struct apml_rows {
    int64_t begin, end;
    float *factor;
};

/* Half a round of one sample, by a block. Rows that follow each other, which may be long alike, go to different warps. */
static __device__ __forceinline__ void half_round_of(
    const struct apml_side &s, const struct apml_rows &own, const struct apml_rows &other)
{
    enum { TOGETHER = SAMPLE_THREADS / 2, SAMPLE_WARPS = SAMPLE_THREADS / WARP };
    const int place = (int)(threadIdx.x % WARP / 2 * SAMPLE_WARPS + threadIdx.x / WARP);
    for (int64_t base = own.begin; base < own.end; base += TOGETHER) {
        int64_t row = base + place;
        struct row_sum sum = sum_row(s, row, row < own.end, INT_MAX, other.factor, other.begin);
        if (sum.any && threadIdx.x % 2 == 0) set_factor(own.factor + (row - own.begin), sum.of);
    }
    __syncthreads();
}

static __device__ __forceinline__ void scale_sample(const struct apml_sides &sides,
    const struct apml_rows &x, const struct apml_rows &y, int32_t rounds)
{
    for (int64_t i = threadIdx.x; i < x.end - x.begin; i += SAMPLE_THREADS) x.factor[i] = 1;
    for (int64_t j = threadIdx.x; j < y.end - y.begin; j += SAMPLE_THREADS) y.factor[j] = 1;
    __syncthreads();
    for (int32_t k = 0; k < rounds; k++) {
        half_round_of(sides.of[1], y, x);
        half_round_of(sides.of[0], x, y);
    }
}

static __device__ __forceinline__ struct apml_rows rows_of_sample(
    const struct apml_side &s, int32_t sample)
{
    int64_t begin = s.set.splits[sample];
    return {begin, s.set.splits[sample + 1], s.factor + begin};
}

/* All rounds. Grid: samples. */
__global__ static void __launch_bounds__(SAMPLE_THREADS, 1)
    scale_samples(const __grid_constant__ struct apml_sides sides, int32_t rounds)
{
    __shared__ float shared[SHARED_FACTORS];
    const struct apml_rows x = rows_of_sample(sides.of[0], (int32_t)blockIdx.x),
                           y = rows_of_sample(sides.of[1], (int32_t)blockIdx.x);
    const int64_t n = x.end - x.begin, m = y.end - y.begin;
    if (n == 0 || m == 0) return; /* their factors are not read */
    if (n + m > SHARED_FACTORS) {
        scale_sample(sides, x, y, rounds);
        return;
    }
    scale_sample(sides, {x.begin, x.end, shared}, {y.begin, y.end, shared + n}, rounds);
    for (int64_t i = threadIdx.x; i < n; i += SAMPLE_THREADS) x.factor[i] = shared[i];
    for (int64_t j = threadIdx.x; j < m; j += SAMPLE_THREADS) y.factor[j] = shared[n + j];
}

void pnet_cuda_apml_scale(const struct apml_side *x, const struct apml_side *y, int32_t rounds)
{
    const int64_t n = x->set.rows.most, m = y->set.rows.most;
    const int32_t samples = x->set.samples;
    const struct apml_sides sides = {{*x, *y}};
    if (n <= 0 || m <= 0 || samples <= 0) return;
    if ((n + m) / samples <= SAMPLE_ROWS) {
        scale_samples<<<(unsigned)samples, SAMPLE_THREADS, 0, pnet_cuda_stream()>>>(sides, rounds);
        return;
    }
    cudaMemsetAsync(x->longest.count, 0, sizeof(int32_t), pnet_cuda_stream());
    cudaMemsetAsync(y->longest.count, 0, sizeof(int32_t), pnet_cuda_stream());
    begin_rounds<<<dim3(element_blocks(n > m ? n : m), SIDES), THREADS, 0, pnet_cuda_stream()>>>(
        sides);
    for (int32_t k = 0; k < rounds; k++)
        for (int side = SIDES - 1; side >= 0; side--) {
            const struct apml_side &own = sides.of[side];
            launch_early(half_round, dim3(blocks_for(2 * own.set.rows.most, THREADS)),
                dim3(THREADS), 0, 1, own, (const float *)sides.of[1 - side].factor);
        }
}
