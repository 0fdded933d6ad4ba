/* The rounds of APML: half a round sets the factors of one set from those of the other; entries are read and not written. Where
   samples are small, a block has one of them in all rounds, and the parts of their factors in shared memory; else half a round
   is a launch. Exponents are read from where a part has come near the ends of float32 (pnet_apml_far_from_ends). Who adds up a
   row depends on the length of its lists, so the bits do not depend on the number of threads. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/sets/apml_lists.cuh"
#include "kernels/cuda/sets/points.cuh"

#include <climits>

enum {
    SHORT = 16,             /* entries of a list that one thread adds up; a warp has more */
    SAMPLE_ROWS = 8192,     /* of both sets, on average: up to here samples are small */
    SAMPLE_THREADS = 1024,  /* that have a small sample */
    SHARED_FACTORS = 12288, /* 48 KiB; those of a larger sample lie in global memory */
    TOGETHER = 256, /* terms that a thread adds up in float32; sums of these are added in float64 */
};

/* The factors of a set from row `base` on, and whether their exponents count. */
struct factors_from {
    struct apml_factors of;
    int64_t base;
    bool split;
};

/* Adds up entries first, first + step .. of a list of n, each times its factor; if it is split, and times 2^exponent. */
template <bool SPLIT>
static __device__ __forceinline__ float weigh_as(const struct pnet_apml_entry *entry, int first,
    int n, int step, const struct factors_from &factors, int32_t exponent)
{
    float sum = 0;
#pragma unroll 4
    for (int k = first; k < n; k += step) {
        struct pnet_apml_entry e = entry_at(entry + k);
        const int64_t at = e.other - factors.base;
        sum += e.p * (SPLIT ? pnet_apml_scaled(factor_at(factors.of, at), exponent)
                            : factors.of.part[at]);
    }
    return sum;
}

static __device__ __forceinline__ float weigh(const struct pnet_apml_entry *entry, int first, int n,
    int step, const struct factors_from &factors, int32_t exponent)
{
    if (factors.split) return weigh_as<true>(entry, first, n, step, factors, exponent);
    return weigh_as<false>(entry, first, n, step, factors, exponent);
}

/* The same for all entries of a list of n, by a warp. */
static __device__ __forceinline__ float weigh_by_warp(const struct pnet_apml_entry *entry, int n,
    const struct factors_from &factors, int32_t exponent)
{
    double sum = 0;
    for (int64_t first = 0; first < n; first += TOGETHER * WARP)
        sum += (double)lanes_sum(
            weigh(entry, (int)first + (int)threadIdx.x % WARP,
                (int)min(first + TOGETHER * WARP, (int64_t)n), WARP, factors, exponent),
            WARP);
    return (float)sum;
}

/* By a block; the first thread gets it. */
static __device__ __forceinline__ double weigh_by_block(const struct pnet_apml_entry *entry, int n,
    const struct factors_from &factors, int32_t exponent)
{
    double sum = 0;
    for (int64_t first = 0; first < n; first += TOGETHER * THREADS)
        sum += (double)weigh(entry, (int)first + (int)threadIdx.x,
            (int)min(first + TOGETHER * THREADS, (int64_t)n), THREADS, factors, exponent);
    return block_sum(sum);
}

/* A row's factor, split if exponents count. */
static __device__ __forceinline__ struct pnet_apml_factor own_factor(
    const struct apml_factors &factors, int64_t at, bool split)
{
    if (split) return pnet_apml_split(factor_at(factors, at));
    return {factors.part[at], 0};
}

/* Sets the factor of a row, `own` before that, from the row's sum. Returns whether its part is far from the ends of float32. */
static __device__ __forceinline__ bool set_factor(const struct apml_factors &factors, int64_t at,
    struct pnet_apml_factor own, float sum, bool split)
{
    own.part = own.part / (own.part * sum + 1e-8f);
    if (split)
        put_factor(factors, at, own);
    else
        factors.part[at] = own.part;
    return pnet_apml_far_from_ends(own.part);
}

/* Divides a row by its sum over both lists. Two neighbouring threads have a row, and a list each; all threads of the warp take
   part. A row that is not `there`, has no entries, or has more than `most` of them in a list, is left out. The row's factor is
   factor `at` of `own`. Returns whether its part is far from the ends of float32. */
static __device__ __forceinline__ bool divide_row(const struct apml_side &s, int64_t row,
    bool there, int most, const struct factors_from &factors, const struct apml_factors &own,
    int64_t at)
{
    const int lane = (int)threadIdx.x % WARP;
    const struct apml_list &list = s.list[lane % 2];
    struct pnet_apml_factor f = {1, 0};
    int64_t begin = there ? list_begin(list, row) : 0;
    int n = there ? (int)list_length(list, row) : 0;
    float sum = 0;
    if (there) f = own_factor(own, at, factors.split);
    if (max(n, __shfl_xor_sync(~0u, n, 1)) > most) n = 0;
    if (n <= SHORT) sum = weigh(list.entry + begin, 0, n, 1, factors, f.exponent);
    for (unsigned rest = __ballot_sync(~0u, n > SHORT); rest; rest &= rest - 1) {
        int from = __ffs((int)rest) - 1, count = __shfl_sync(~0u, n, from);
        int64_t first = __shfl_sync(~0u, begin, from);
        float all = weigh_by_warp(
            s.list[from % 2].entry + first, count, factors, __shfl_sync(~0u, f.exponent, from));
        if (lane == from) sum = all;
    }
    sum += __shfl_xor_sync(~0u, sum, 1);
    n += __shfl_xor_sync(~0u, n, 1);
    return n == 0 || lane % 2 || set_factor(own, at, f, sum, factors.split);
}

struct apml_sides {
    struct apml_side of[SIDES];
};

/* The factors of both sets become 1, and long rows are listed. Grid: rows, SIDES. */
__global__ static void __launch_bounds__(THREADS)
    begin_rounds(const __grid_constant__ struct apml_sides sides, int32_t *begin_split)
{
    const struct apml_side &s = sides.of[blockIdx.y];
    const int64_t rows = pnet_live(s.set.rows);
    if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) *begin_split = INT_MAX;
    for (int64_t row = FLAT_BEGIN; row < rows; row += FLAT_STEP) {
        s.factor.part[row] = 1;
        s.factor.steps[row] = 0;
        if (max(list_length(s.list[0], row), list_length(s.list[1], row)) > PNET_APML_LONG)
            s.longest.row[atomicAdd(s.longest.count, 1)] = (int32_t)row;
    }
}

/* Half round `turn`. What it finds of parts holds from the next one on, so that all its blocks do the same. */
__global__ static void __launch_bounds__(THREADS, 5)
    half_round(const __grid_constant__ struct apml_side s, const struct apml_factors other,
        int32_t turn, int32_t *begin_split)
{
    let_next_come();
    wait_for_earlier();
    const int64_t rows = pnet_live(s.set.rows);
    const struct factors_from factors = {other, 0, *begin_split <= turn};
    bool far = true;
    for (int64_t base = FLAT_BEGIN / WARP * (WARP / 2); base < rows; base += FLAT_STEP / 2) {
        int64_t row = base + threadIdx.x % WARP / 2;
        far &= divide_row(s, row, row < rows, PNET_APML_LONG, factors, s.factor, row);
    }
    for (int k = (int)blockIdx.x; k < *s.longest.count; k += (int)gridDim.x) {
        const int64_t row = s.longest.row[k];
        const struct pnet_apml_factor own = own_factor(s.factor, row, factors.split);
        double sum = 0;
        for (int i = 0; i < 2; i++)
            sum += weigh_by_block(s.list[i].entry + list_begin(s.list[i], row),
                (int)list_length(s.list[i], row), factors, own.exponent);
        if (threadIdx.x == 0) far &= set_factor(s.factor, row, own, (float)sum, factors.split);
    }
    if (!far && !factors.split) atomicMin(begin_split, turn + 1);
}

/* Rows of a sample, and their factors. */
struct apml_rows {
    int64_t begin, end;
    struct apml_factors factor;
};

/* Half a round of one sample, by a block. Rows that follow each other, which may be long alike, go to different warps. Returns
   whether exponents count from here on. */
static __device__ __forceinline__ bool half_round_of(const struct apml_side &s,
    const struct apml_rows &own, const struct apml_rows &other, bool split)
{
    enum { TOGETHER_ROWS = SAMPLE_THREADS / 2, SAMPLE_WARPS = SAMPLE_THREADS / WARP };
    const int place = (int)(threadIdx.x % WARP / 2 * SAMPLE_WARPS + threadIdx.x / WARP);
    const struct factors_from factors = {other.factor, other.begin, split};
    bool far = true;
    for (int64_t base = own.begin; base < own.end; base += TOGETHER_ROWS) {
        int64_t row = base + place;
        far &= divide_row(s, row, row < own.end, INT_MAX, factors, own.factor, row - own.begin);
    }
    return !__syncthreads_and(far) || split;
}

static __device__ __forceinline__ void begin_rows(const struct apml_rows &rows)
{
    for (int64_t i = threadIdx.x; i < rows.end - rows.begin; i += SAMPLE_THREADS) {
        rows.factor.part[i] = 1;
        rows.factor.steps[i] = 0;
    }
}

static __device__ __forceinline__ void scale_sample(const struct apml_sides &sides,
    const struct apml_rows &x, const struct apml_rows &y, int32_t rounds)
{
    bool split = false;
    begin_rows(x);
    begin_rows(y);
    __syncthreads();
    for (int32_t k = 0; k < rounds; k++) {
        split = half_round_of(sides.of[1], y, x, split);
        split = half_round_of(sides.of[0], x, y, split);
    }
}

static __device__ __forceinline__ struct apml_rows rows_of_sample(
    const struct apml_side &s, int32_t sample)
{
    int64_t begin = s.set.splits[sample];
    return {begin, s.set.splits[sample + 1], {s.factor.part + begin, s.factor.steps + begin}};
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
    scale_sample(sides, {x.begin, x.end, {shared, x.factor.steps}},
        {y.begin, y.end, {shared + n, y.factor.steps}}, rounds);
    for (int64_t i = threadIdx.x; i < n; i += SAMPLE_THREADS) x.factor.part[i] = shared[i];
    for (int64_t j = threadIdx.x; j < m; j += SAMPLE_THREADS) y.factor.part[j] = shared[n + j];
}

void pnet_cuda_apml_scale(
    const struct apml_side *x, const struct apml_side *y, int32_t rounds, int32_t *begin_split)
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
        sides, begin_split);
    for (int32_t turn = 0; turn < 2 * rounds; turn++) {
        const struct apml_side &own = sides.of[turn % 2 ? 0 : 1], &other = sides.of[turn % 2];
        launch_early(half_round, dim3(blocks_for(2 * own.set.rows.most, THREADS)), dim3(THREADS), 0,
            1, own, other.factor, turn, begin_split);
    }
}
