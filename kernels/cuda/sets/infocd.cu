#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/sets/near_terms.cuh"

static __device__ __forceinline__ double least()
{
    return 1e-9; /* of a squared distance */
}

struct contrast_term {
    struct pnet_infocd d;
    double *sum[SIDES]; /* [samples]: S */

    __device__ struct near_term operator()(const struct near_point &p) const
    {
        double n = (double)p.rows, share = d.sums ? 0.5 : 0.5 / n, s = sum[p.side][p.sample],
               a = sqrt(fmax(p.square, least()));
        double slope = 1 / d.tau - d.lambda * n * exp(-a / d.tau) / (d.tau * s);
        return {
            share * (a / d.tau + d.lambda * log(s)), p.square > least() ? share * slope / a : 0};
    }
};

/* The part of S of a stretch of a sample. Grid: stretches, SIDES. part [SIDES, samples, parts]. */
__global__ static void __launch_bounds__(THREADS) sum_stretches(
    const __grid_constant__ struct sides sides, double tau, int32_t parts, double *part)
{
    const struct side &s = sides.of[blockIdx.y];
    const int64_t all = (int64_t)s.a.samples * parts;
    for (int64_t at = blockIdx.x; at < all; at += gridDim.x) {
        struct stretch r = stretch_of(s.a, (int32_t)(at / parts), (int32_t)(at % parts), parts);
        double sum = 0;
        for (int64_t row = r.begin + threadIdx.x; row < r.end; row += THREADS)
            if (s.near[row] >= 0)
                sum += 1e-7 + exp(-sqrt(fmax(near_square(s, row), least())) / tau);
        sum = block_sum(sum);
        if (threadIdx.x == 0) part[(int64_t)blockIdx.y * all + at] = sum;
    }
}

/* The sums of samples, in order of their stretches; `samples` of both sides together. */
__global__ static void __launch_bounds__(THREADS)
    join_stretches(int64_t samples, int32_t parts, const double *part, double *sum)
{
    for (int64_t s = FLAT_BEGIN; s < samples; s += FLAT_STEP) {
        double total = 0;
        for (int32_t k = 0; k < parts; k++) total += part[s * parts + k];
        sum[s] = total;
    }
}

void pnet_cuda_infocd(const struct pnet_set_pair *p, const struct pnet_infocd *d, float *loss,
    float *x_pull, float *y_pull, void *work)
{
    int32_t samples = p->x.samples, parts = parts_of_sample(samples);
    int64_t sums = SIDES * (int64_t)samples;
    struct carver room = {(char *)work};
    double *slice = room.take<double>(SIDES * SLICES), *sum = room.take<double>(sums),
           *part = room.take<double>(sums * parts);
    struct contrast_term f = {*d, {sum, sum + samples}};
    if (samples) {
        sum_stretches<<<dim3(stretch_blocks(samples), SIDES), THREADS, 0, pnet_cuda_stream()>>>(
            sides_of(p), d->tau, parts, part);
        join_stretches<<<blocks_for(sums, THREADS), THREADS, 0, pnet_cuda_stream()>>>(
            sums, parts, part, sum);
    }
    near_terms(p, f, loss, x_pull, y_pull, slice);
}
