/* The mean distance of an assignment, and its gradients. */
#include "kernels/cuda/sets/points.cuh"
#include "kernels/emd.h"

enum { MEAN_THREADS = 512 };

static __device__ __forceinline__ double distance_of(
    const struct pnet_set_pair &p, int64_t row, int64_t partner)
{
    double sum = 0;
    for (int c = 0; c < 3; c++) {
        double d = (double)p.x.xyz[3 * row + c] - (double)p.y.xyz[3 * partner + c];
        sum += d * d;
    }
    return sqrt(sum);
}

static __device__ __forceinline__ bool has_points(const struct pnet_set_pair &p, int32_t sample)
{
    return rows_in(p.x, sample) > 0 && rows_in(p.y, sample) > 0;
}

/* A block sums a sample. */
__global__ static void __launch_bounds__(MEAN_THREADS)
    find_means(const __grid_constant__ struct pnet_set_pair p, const int32_t *partner, double *mean)
{
    let_next_come();
    wait_for_earlier();
    for (int32_t s = (int32_t)blockIdx.x; s < p.x.samples; s += (int32_t)gridDim.x) {
        const int64_t end = p.x.splits[s + 1];
        double sum = 0;
        for (int64_t row = p.x.splits[s] + threadIdx.x; row < end; row += MEAN_THREADS)
            sum += partner[row] >= 0 ? distance_of(p, row, partner[row]) : nan("");
        sum = block_sum(sum);
        if (threadIdx.x == 0) mean[s] = has_points(p, s) ? sum / (double)rows_in(p.x, s) : 0;
    }
}

__global__ static void __launch_bounds__(THREADS)
    join_means(int32_t samples, const double *mean, float *loss)
{
    double total = 0;
    let_next_come();
    wait_for_earlier();
    for (int32_t s = (int32_t)threadIdx.x; s < samples; s += THREADS) total += mean[s];
    total = block_sum(total);
    if (threadIdx.x == 0) *loss = samples > 0 ? (float)(total / samples) : 0;
}

void pnet_cuda_emd(
    const struct pnet_set_pair *sets, const int32_t *partner, double *mean, float *loss)
{
    const int32_t samples = sets->x.samples;
    if (samples > 0)
        launch_early(find_means, dim3(blocks_for(samples, 1)), dim3(MEAN_THREADS), 0, 1, *sets,
            partner, mean);
    if (loss)
        launch_early(join_means, dim3(1), dim3(THREADS), 0, 1, samples, (const double *)mean, loss);
}

static __device__ __forceinline__ void put(float *to, bool add, float v)
{
    *to = add ? *to + v : v;
}

static __device__ void put_all(float *to, bool add, int64_t row, float v)
{
    for (int c = 0; c < 3 && to; c++) put(to + 3 * row + c, add, v);
}

/* A row of x writes the gradient of its partner too. Rows of a sample without an assignment have NaN, or 0 where a set is
   empty. */
__global__ static void __launch_bounds__(THREADS)
    pull_partners(const __grid_constant__ struct pnet_set_pair p, const int32_t *partner,
        const float *gloss, struct pnet_set_gradients g)
{
    let_next_come();
    wait_for_earlier();
    const int64_t n = pnet_live(p.x.rows), m = pnet_live(p.y.rows);
    for (int64_t row = FLAT_BEGIN; row < n; row += FLAT_STEP) {
        const int32_t s = sample_of(p.x, row);
        const int64_t j = has_points(p, s) ? partner[row] : -1;
        if (j < 0) {
            put_all(g.x, g.add_x, row, has_points(p, s) ? nanf("") : 0);
            continue;
        }
        const double factor = (double)*gloss / (double)rows_in(p.x, s) / p.x.samples,
                     d = fmax(distance_of(p, row, j), 1e-6);
        for (int c = 0; c < 3; c++) {
            double difference = (double)p.x.xyz[3 * row + c] - (double)p.y.xyz[3 * j + c];
            float v = (float)(factor * difference / d);
            if (g.x) put(g.x + 3 * row + c, g.add_x, v);
            if (g.y) put(g.y + 3 * j + c, g.add_y, -v);
        }
    }
    for (int64_t row = FLAT_BEGIN; row < m && g.y; row += FLAT_STEP) {
        const int32_t s = sample_of(p.y, row);
        if (!has_points(p, s))
            put_all(g.y, g.add_y, row, 0);
        else if (partner[p.x.splits[s]] < 0)
            put_all(g.y, g.add_y, row, nanf(""));
    }
}

void pnet_cuda_emd_backward(const struct pnet_set_pair *sets, const int32_t *partner,
    const float *gloss, const struct pnet_set_gradients *g)
{
    const unsigned blocks = element_blocks(most_rows(sets));
    if (blocks)
        launch_early(pull_partners, dim3(blocks), dim3(THREADS), 0, 1, *sets, partner, gloss, *g);
}
