#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/sets/near_terms.cuh"

struct density_term {
    struct pnet_dcd d;
    /* of each row of the other set: points of this one to which it is nearest */
    int32_t *count[SIDES];

    __device__ struct near_term operator()(const struct near_point &p) const
    {
        double n = (double)p.rows, share = n / (double)p.others;
        if (d.at_least_one) share = fmax(share, 1.0);
        double weight = share / (pow((double)count[p.side][p.near], d.lambda) + 1e-6),
               e = exp(-d.alpha * p.square);
        return {0.5 * (1 - weight * e) / n, weight * d.alpha * e / n};
    }
};

/* Counts are integers: their order does not matter, so they are made by atomics. Grid: rows, SIDES. */
__global__ static void __launch_bounds__(THREADS) count_near(
    const __grid_constant__ struct sides sides, const __grid_constant__ struct density_term f)
{
    const struct side &s = sides.of[blockIdx.y];
    int32_t *count = f.count[blockIdx.y];
    const int64_t n = pnet_live(s.a.rows);
    for (int64_t row = FLAT_BEGIN; row < n; row += FLAT_STEP)
        if (s.near[row] >= 0) atomicAdd(count + s.near[row], 1);
}

void pnet_cuda_dcd(const struct pnet_set_pair *p, const struct pnet_dcd *d, float *loss,
    float *x_pull, float *y_pull, void *work)
{
    struct carver room = {(char *)work};
    double *part = room.take<double>(SIDES * SLICES);
    int64_t n = p->x.rows.most, m = p->y.rows.most;
    struct density_term f = {*d, {room.take<int32_t>(m), room.take<int32_t>(n)}};
    size_t bytes = (size_t)(room.at - (char *)f.count[0]);
    if (bytes) cudaMemsetAsync(f.count[0], 0, bytes, pnet_cuda_stream());
    unsigned grid = element_blocks(most_rows(p));
    if (grid) count_near<<<dim3(grid, SIDES), THREADS, 0, pnet_cuda_stream()>>>(sides_of(p), f);
    near_terms(p, f, loss, x_pull, y_pull, part);
}
