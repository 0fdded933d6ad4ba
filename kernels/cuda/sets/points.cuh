/* Rows and samples of point sets. */
#ifndef PNET_KERNELS_CUDA_SETS_POINTS_CUH
#define PNET_KERNELS_CUDA_SETS_POINTS_CUH

#include "kernels/cuda/base/early.cuh"
#include "kernels/cuda/base/levels.cuh"
#include "kernels/cuda/sets/sets_work.h"

/* One of the two sides of a pair: the set a against b. */
struct side {
    struct pnet_point_set a, b;
    const int32_t *near; /* [rows of a], rows of b */
};

static inline struct side side_of(const struct pnet_set_pair *p, int which)
{
    if (which == 0) return {p->x, p->y, p->x_near};
    return {p->y, p->x, p->y_near};
}

struct sides {
    struct side of[SIDES];
};

static inline struct sides sides_of(const struct pnet_set_pair *p)
{
    return {{side_of(p, 0), side_of(p, 1)}};
}

static inline int64_t most_rows(const struct pnet_set_pair *p)
{
    return p->x.rows.most > p->y.rows.most ? p->x.rows.most : p->y.rows.most;
}

static __device__ __forceinline__ int64_t rows_in(const struct pnet_point_set &s, int32_t sample)
{
    return s.splits[sample + 1] - s.splits[sample];
}

/* The sample of a row that is there. */
static __device__ __forceinline__ int32_t sample_of(const struct pnet_point_set &s, int64_t row)
{
    int32_t low = 0, high = s.samples;
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (s.splits[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The squared distance of a row to one of the other set; NaN where that is -1. */
static __device__ __forceinline__ double square_to(const struct side &s, int64_t row, int64_t other)
{
    double sum = 0;
    if (other < 0) return nan("");
    for (int c = 0; c < 3; c++) {
        double d = (double)s.a.xyz[3 * row + c] - (double)s.b.xyz[3 * other + c];
        sum += d * d;
    }
    return sum;
}

/* The same to its nearest one. */
static __device__ __forceinline__ double near_square(const struct side &s, int64_t row)
{
    return square_to(s, row, s.near[row]);
}

/* The rows of a stretch of a sample. */
struct stretch {
    int64_t begin, end;
};

static __device__ __forceinline__ struct stretch stretch_of(
    const struct pnet_point_set &s, int32_t sample, int32_t part, int32_t parts)
{
    int64_t first = s.splits[sample], n = rows_in(s, sample);
    return {first + n * part / parts, first + n * (part + 1) / parts};
}

/* Blocks for kernels that have one for each stretch of each sample along x, and stride over more. */
static inline unsigned stretch_blocks(int32_t samples)
{
    return blocks_for((int64_t)samples * parts_of_sample(samples), 1);
}

#endif
