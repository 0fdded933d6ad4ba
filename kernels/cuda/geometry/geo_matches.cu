#include "kernels/matches.h"
#include "kernels/geometry_stage.h"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/geometry/geo_grid.h"
#include "kernels/cuda/geometry/geo_parts.h"

static __global__ void move_points(int64_t rows, int32_t samples, const int64_t *row_splits,
    const float *xyz, const float *pose, float *to)
{
    for (int64_t i = thread_index(); i < rows; i += thread_count()) {
        const float *t = pose + 16 * (int64_t)sample_of(row_splits, samples, i), *p = xyz + 3 * i;
        for (int r = 0; r < 3; r++)
            to[3 * i + r] =
                ((t[4 * r] * p[0] + t[4 * r + 1] * p[1]) + t[4 * r + 2] * p[2]) + t[4 * r + 3];
    }
}

extern "C" void pnet_cuda_move(const struct pnet_level *a, const float *pose, float *to)
{
    if (a->rows > 0)
        move_points<<<geo_blocks(a->rows), GEO_THREADS, 0, pnet_cuda_stream()>>>(
            a->rows, a->samples, a->row_splits, a->xyz, pose, to);
}

/* Returns the level `a` after the move. Its keys belong to the old places and are not used. */
static struct pnet_level moved(const struct pnet_level *a, const float *pose, float *xyz)
{
    struct pnet_level m = *a;
    pnet_cuda_move(a, pose, xyz);
    m.xyz = xyz;
    m.key = nullptr;
    return m;
}

extern "C" int64_t pnet_cuda_matches_count(const struct pnet_level *a, const struct pnet_level *b,
    const float *pose, float radius, int64_t *start, void *work)
{
    struct pnet_neighbourhood nb = pnet_cuda_geo_matches_ball(radius);
    struct geo_matches_work p;
    pnet_cuda_geo_matches_take(a, 0, work, &p);
    struct pnet_level m = moved(a, pose, p.xyz);
    return pnet_cuda_triplets_count(&m, b, &nb, nullptr, start, p.triplets);
}

extern "C" void pnet_cuda_matches_write(const struct pnet_level *a, const struct pnet_level *b,
    const float *pose, float radius, int64_t number, const int64_t *start, int32_t *other,
    void *work)
{
    struct pnet_neighbourhood nb = pnet_cuda_geo_matches_ball(radius);
    struct geo_matches_work p;
    pnet_cuda_geo_matches_take(a, number, work, &p);
    struct pnet_level m = moved(a, pose, p.xyz);
    pnet_cuda_triplets_write(&m, b, &nb, nullptr, start, other, p.cell, p.triplets);
}
