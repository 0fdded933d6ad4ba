#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/sets/points.cuh"
#include "kernels/emd.h"

/* hit[j]: is row j of y the nearest one of some x? All that write a byte write the same. */
__global__ static void __launch_bounds__(THREADS)
    mark_hits(const __grid_constant__ struct side x, uint8_t *hit)
{
    const int64_t n = pnet_live(x.a.rows);
    for (int64_t row = FLAT_BEGIN; row < n; row += FLAT_STEP)
        if (x.near[row] >= 0) hit[x.near[row]] = 1;
}

/* Sums over a stretch of a sample. Grid: stretches, SIDES. part [SIDES, samples, parts]. */
__global__ static void __launch_bounds__(THREADS)
    judge_stretches(const __grid_constant__ struct sides sides, double at, const uint8_t *hit,
        const int32_t *partner, int32_t parts, struct judged *part)
{
    const bool of_y = blockIdx.y == 1;
    const struct side &s = sides.of[blockIdx.y];
    const int64_t all = (int64_t)s.a.samples * parts;
    for (int64_t k = blockIdx.x; k < all; k += gridDim.x) {
        int32_t sample = (int32_t)(k / parts);
        struct stretch r = stretch_of(s.a, sample, (int32_t)(k % parts), parts);
        struct judged sum = {};
        for (int64_t row = r.begin + threadIdx.x; row < r.end && rows_in(s.b, sample);
             row += THREADS) {
            double square = near_square(s, row), distance = sqrt(square);
            sum.distance += distance;
            sum.square += square;
            sum.near += distance < at;
            if (of_y) sum.hits += hit[row];
            if (of_y || !partner) continue;
            const bool left = partner[row] <= PNET_EMD_LEFT;
            sum.moved +=
                sqrt(square_to(s, row, left ? PNET_EMD_LEFT - partner[row] : partner[row]));
            sum.left += left;
        }
        sum.distance = block_sum(sum.distance);
        sum.square = block_sum(sum.square);
        sum.near = block_sum(sum.near);
        sum.hits = block_sum(sum.hits);
        sum.moved = block_sum(sum.moved);
        sum.left = block_sum(sum.left);
        if (threadIdx.x == 0) part[(int64_t)blockIdx.y * all + k] = sum;
    }
}

/* Means over the rows of a sample, from its stretches in order. */
static __device__ struct judged mean_of(const struct judged *part, int32_t parts, int64_t rows)
{
    struct judged sum = {};
    for (int32_t k = 0; k < parts; k++) {
        sum.distance += part[k].distance;
        sum.square += part[k].square;
        sum.near += part[k].near;
        sum.hits += part[k].hits;
        sum.moved += part[k].moved;
        sum.left += part[k].left;
    }
    const double n = (double)rows;
    return {
        sum.distance / n, sum.square / n, sum.near / n, sum.hits / n, sum.moved / n, sum.left / n};
}

/* own [samples, PNET_COMPLETION_SUMS]. */
__global__ static void __launch_bounds__(THREADS)
    judge_samples(const __grid_constant__ struct sides sides, int32_t parts,
        const struct judged *part, double *own)
{
    const struct side &s = sides.of[0];
    const int32_t samples = s.a.samples;
    for (int64_t i = FLAT_BEGIN; i < samples; i += FLAT_STEP) {
        double *out = own + i * PNET_COMPLETION_SUMS;
        int64_t n = rows_in(s.a, (int32_t)i), m = rows_in(s.b, (int32_t)i);
        for (int k = 0; k < PNET_COMPLETION_SUMS; k++) out[k] = 0;
        if (!n || !m) continue;
        struct judged x = mean_of(part + i * parts, parts, n),
                      y = mean_of(part + (samples + i) * parts, parts, m);
        out[PNET_COMPLETION_CLOUDS] = 1;
        out[PNET_COMPLETION_L1] = (x.distance + y.distance) / 2;
        out[PNET_COMPLETION_L2] = x.square + y.square;
        out[PNET_COMPLETION_PRECISION] = x.near;
        out[PNET_COMPLETION_RECALL] = y.near;
        out[PNET_COMPLETION_F] = x.near + y.near > 0 ? 2 * x.near * y.near / (x.near + y.near) : 0;
        out[PNET_COMPLETION_COVERED] = y.hits;
        out[PNET_COMPLETION_EMD] = x.moved;
        out[PNET_COMPLETION_LEFT] = x.left > 0 ? 1 : 0;
    }
}

/* A thread for each number of each class adds up samples in order. */
__global__ static void __launch_bounds__(THREADS) add_samples(
    int32_t samples, const int32_t *label, int32_t classes, const double *own, double *sums)
{
    const int64_t all = (int64_t)classes * PNET_COMPLETION_SUMS;
    for (int64_t at = FLAT_BEGIN; at < all; at += FLAT_STEP) {
        int32_t wanted = (int32_t)(at / PNET_COMPLETION_SUMS);
        double sum = 0;
        for (int32_t s = 0; s < samples; s++)
            if ((label ? label[s] : 0) == wanted)
                sum += own[(int64_t)s * PNET_COMPLETION_SUMS + at % PNET_COMPLETION_SUMS];
        sums[at] = sum;
    }
}

void pnet_cuda_completion(
    const struct pnet_set_pair *p, const struct pnet_completion *c, double *sums, void *work)
{
    int32_t samples = p->x.samples, parts = parts_of_sample(samples);
    struct sides sides = sides_of(p);
    struct carver room = {(char *)work};
    uint8_t *hit = room.take<uint8_t>(p->y.rows.most);
    struct judged *part = room.take<struct judged>(SIDES * (int64_t)samples * parts);
    double *own = room.take<double>((int64_t)samples * PNET_COMPLETION_SUMS);
    cudaStream_t stream = pnet_cuda_stream();
    unsigned rows = element_blocks(p->x.rows.most);
    if (p->y.rows.most) cudaMemsetAsync(hit, 0, (size_t)p->y.rows.most, stream);
    if (rows) mark_hits<<<rows, THREADS, 0, stream>>>(sides.of[0], hit);
    if (samples) {
        judge_stretches<<<dim3(stretch_blocks(samples), SIDES), THREADS, 0, stream>>>(
            sides, c->at, hit, c->partner, parts, part);
        judge_samples<<<blocks_for(samples, THREADS), THREADS, 0, stream>>>(
            sides, parts, part, own);
    }
    if (c->classes > 0)
        add_samples<<<blocks_for((int64_t)c->classes * PNET_COMPLETION_SUMS, THREADS), THREADS, 0,
            stream>>>(samples, c->label, c->classes, own, sums);
}
