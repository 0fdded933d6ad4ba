#include "kernels/matches.h"

#include "kernels/geometry_stage.h"

enum { LINE = 64 };

static size_t lines(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

/* Returns the neighbourhood of matches: a triplet set with one cell, in which the moved points of `a` are centres among the
   points of `b`. */
static struct pnet_neighbourhood ball(float radius)
{
    return (struct pnet_neighbourhood){.kernel = 1, .radius = radius, .shape = PNET_BALL};
}

/* Returns the level `a` after the move. Its rows keep their order, in which neighbours are close, but its keys belong to the
   old places. */
static struct pnet_level moved(const struct pnet_level *a, const float *xyz)
{
    struct pnet_level m = *a;
    m.xyz = xyz;
    m.key = NULL;
    return m;
}

void pnet_cpu_move(const struct pnet_level *a, const float *pose, float *to)
{
    for (int32_t s = 0; s < a->samples; s++) {
        const float *t = pose + 16 * (int64_t)s;
#pragma omp parallel for schedule(static)
        for (int64_t i = a->row_splits[s]; i < a->row_splits[s + 1]; i++) {
            const float *p = a->xyz + 3 * i;
            for (int r = 0; r < 3; r++)
                to[3 * i + r] =
                    ((t[4 * r] * p[0] + t[4 * r + 1] * p[1]) + t[4 * r + 2] * p[2]) + t[4 * r + 3];
        }
    }
}

size_t pnet_cpu_matches_work(
    const struct pnet_level *a, const struct pnet_level *b, float radius, int64_t number)
{
    struct pnet_neighbourhood nb = ball(radius);
    return lines((size_t)a->rows * 3 * sizeof(float)) + lines((size_t)number * sizeof(uint16_t)) +
           pnet_cpu_triplets_work(a, b, &nb);
}

int64_t pnet_cpu_matches_count(const struct pnet_level *a, const struct pnet_level *b,
    const float *pose, float radius, int64_t *start, void *work)
{
    struct pnet_neighbourhood nb = ball(radius);
    struct pnet_level m = moved(a, work);
    pnet_cpu_move(a, pose, work);
    return pnet_cpu_triplets_count(
        &m, b, &nb, NULL, start, (char *)work + lines((size_t)a->rows * 3 * sizeof(float)));
}

void pnet_cpu_matches_write(const struct pnet_level *a, const struct pnet_level *b,
    const float *pose, float radius, int64_t number, const int64_t *start, int32_t *other,
    void *work)
{
    struct pnet_neighbourhood nb = ball(radius);
    struct pnet_level m = moved(a, work);
    char *cell = (char *)work + lines((size_t)a->rows * 3 * sizeof(float));
    pnet_cpu_move(a, pose, work);
    pnet_cpu_triplets_write(&m, b, &nb, NULL, start, other, (uint16_t *)cell,
        cell + lines((size_t)number * sizeof(uint16_t)));
}
