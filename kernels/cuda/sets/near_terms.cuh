/* Sums over points of a function of the distance to the nearest point of the other set, and what set_pull makes gradients from:
   the same as kernels/cpu/sets/near_terms.h. Rows are summed in SLICES slices, one a block, for either side. */
#ifndef PNET_KERNELS_CUDA_SETS_NEAR_TERMS_CUH
#define PNET_KERNELS_CUDA_SETS_NEAR_TERMS_CUH

#include "kernels/cuda/sets/points.cuh"

/* A point that has a nearest one. */
struct near_point {
    double square;        /* of the distance */
    int64_t near;         /* row of the other set */
    int64_t rows, others; /* of its sample, in its own set and in the other one */
    int32_t sample;
    int side;
};

/* What a point adds to the loss of its sample, and the derivative of that by the point's place, over the difference of the two
   places. */
struct near_term {
    double value, pull;
};

struct pulls {
    float *of[SIDES]; /* or NULL */
};

/* The terms of a row; `function` as term_of of a loss. */
template <class F>
static __device__ __forceinline__ struct near_term term_at(
    const F &function, const struct side &s, int which, int64_t row)
{
    struct near_point p = {};
    p.sample = sample_of(s.a, row);
    p.rows = rows_in(s.a, p.sample);
    p.others = rows_in(s.b, p.sample);
    p.near = s.near[row];
    p.side = which;
    if (!p.others) return {0, 0};
    p.square = near_square(s, row);
    if (!isfinite(p.square)) return {nan(""), nan("")};
    return function(p);
}

/* Grid: SLICES, SIDES. */
template <class F>
__global__ static void __launch_bounds__(THREADS) sum_terms(
    const __grid_constant__ struct sides sides, F function, struct pulls pull, double *part)
{
    const int which = (int)blockIdx.y, slice = (int)blockIdx.x;
    const struct side &s = sides.of[which];
    float *to = pull.of[which];
    const double mean = s.a.samples ? 1 / (double)s.a.samples : 0;
    let_next_come();
    wait_for_earlier();
    const int64_t n = pnet_live(s.a.rows), end = slice_begin(n, slice + 1);
    double sum = 0;
    for (int64_t row = slice_begin(n, slice) + threadIdx.x; row < end; row += THREADS) {
        struct near_term t = term_at(function, s, which, row);
        sum += t.value;
        if (to) to[row] = (float)(t.pull * mean);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) part[which * SLICES + slice] = sum;
}

__global__ static void __launch_bounds__(SLICES)
    join_terms(int32_t samples, const double *part, float *loss)
{
    static_assert(SLICES == 1024, "one block joins them");
    let_next_come();
    wait_for_earlier();
    double x = block_sum(part[threadIdx.x]), y = block_sum(part[SLICES + threadIdx.x]);
    if (threadIdx.x == 0) *loss = samples ? (float)((x + y) / (double)samples) : 0;
}

/* Writes the loss and both pulls. `function` is called with a struct near_point, and returns a struct near_term. */
template <class F>
static void near_terms(const struct pnet_set_pair *p, F function, float *loss, float *x_pull,
    float *y_pull, double *part)
{
    struct pulls pull = {{x_pull, y_pull}};
    launch_early(
        sum_terms<F>, dim3(SLICES, SIDES), dim3(THREADS), 0, 1, sides_of(p), function, pull, part);
    launch_early(join_terms, dim3(1), dim3(SLICES), 0, 1, p->x.samples, (const double *)part, loss);
}

#endif
