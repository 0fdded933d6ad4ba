#include "kernels/geometry_stage.h"
#include "kernels/sets.h"

#include <math.h>

enum { SMALL = 8192 }; /* rows below which threads cost more than they save */

struct room {
    float *distance2; /* [a.rows] */
    float *xyz;       /* [b.rows, 3] */
    void *search;
};

static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static size_t distance_bytes(const struct pnet_point_set *a)
{
    return aligned((size_t)a->rows.most * sizeof(float));
}

static size_t copy_bytes(const struct pnet_point_set *b)
{
    return aligned((size_t)b->rows.most * 3 * sizeof(float));
}

/* A set as the geometry stage takes it: points in any order. */
static struct pnet_level level_of(const struct pnet_point_set *s, const float *xyz)
{
    return (struct pnet_level){
        .rows = s->rows.most, .samples = s->samples, .row_splits = s->splits, .xyz = xyz};
}

size_t pnet_cpu_set_near_work(const struct pnet_point_set *a, const struct pnet_point_set *b)
{
    struct pnet_level from = level_of(a, a->xyz), to = level_of(b, b->xyz);
    return distance_bytes(a) + copy_bytes(b) + pnet_cpu_nearest_work(&from, &to, 1);
}

static bool is_finite_at(const float *at)
{
    return isfinite(at[0]) && isfinite(at[1]) && isfinite(at[2]);
}

/* The search leaves out an axis on which a coordinate is NaN. Here such points are infinitely far from all others. */
static void copy_points(const struct pnet_point_set *b, float *xyz)
{
#pragma omp parallel for schedule(static) if (b->rows.most > SMALL)
    for (int64_t j = 0; j < b->rows.most; j++) {
        bool finite = is_finite_at(b->xyz + 3 * j);
        for (int c = 0; c < 3; c++) xyz[3 * j + c] = finite ? b->xyz[3 * j + c] : INFINITY;
    }
}

void pnet_cpu_set_near(
    const struct pnet_point_set *a, const struct pnet_point_set *b, int32_t *near, void *work)
{
    char *at = work;
    struct room r = {
        work, (float *)(at + distance_bytes(a)), at + distance_bytes(a) + copy_bytes(b)};
    struct pnet_level from = level_of(a, a->xyz), to = level_of(b, r.xyz);
    copy_points(b, r.xyz);
    pnet_cpu_nearest(&from, &to, 1, near, r.distance2, r.search);
    for (int64_t i = 0; i < a->rows.most; i++)
        if (!isfinite(r.distance2[i]) || !is_finite_at(a->xyz + 3 * i)) near[i] = -1;
}
