/* Matches against all pairs: the same ones, in the same order, for any number of threads. */
#include "tests/geometry/matches.h"

#include <omp.h>
#include <stdbool.h>

static bool near(const float *t, const float *p, const float *q, float radius)
{
    float d[3];
    for (int r = 0; r < 3; r++) {
        volatile float x = t[4 * r] * p[0], y = t[4 * r + 1] * p[1], z = t[4 * r + 2] * p[2];
        volatile float xy = x + y, xyz = xy + z, at = xyz + t[4 * r + 3];
        d[r] = q[r] - at;
    }
    volatile float x = d[0] * d[0], y = d[1] * d[1], z = d[2] * d[2], xy = x + y;
    return xy + z <= radius * radius;
}

/* Returns the number of matches. */
static int64_t check(const struct side *a, const struct side *b, const float *pose, float radius)
{
    int64_t start[2001], at = 0;
    size_t size = pnet_cpu_matches_work(&a->level, &b->level, radius, 0);
    void *work = aligned_alloc(64, (size + 64) / 64 * 64);
    if (!work) abort();
    int64_t number = pnet_cpu_matches_count(&a->level, &b->level, pose, radius, start, work);
    free(work);
    size = pnet_cpu_matches_work(&a->level, &b->level, radius, number);
    work = aligned_alloc(64, (size + 64) / 64 * 64);
    int32_t *other = malloc((size_t)number * sizeof *other + 1);
    if (!work || !other) abort();
    memset(other, 0xff, (size_t)number * sizeof *other);
    pnet_cpu_matches_write(&a->level, &b->level, pose, radius, number, start, other, work);
    for (int s = 0; s < SAMPLES; s++)
        for (int64_t i = a->splits[s]; i < a->splits[s + 1]; i++) {
            CHECKF(start[i] == at, "row %lld begins at %lld, not %lld", (long long)i,
                (long long)start[i], (long long)at);
            for (int64_t j = b->splits[s]; j < b->splits[s + 1]; j++) {
                if (!near(pose + 16 * s, a->xyz + 3 * i, b->xyz + 3 * j, radius)) continue;
                CHECKF(at < number && other[at] == j, "row %lld, match %lld", (long long)i,
                    (long long)j);
                at++;
            }
        }
    CHECKF(at == number && start[a->level.rows] == at, "%lld matches, not %lld", (long long)number,
        (long long)at);
    free(work);
    free(other);
    return number;
}

int main(void)
{
    static const int64_t sizes[][2][SAMPLES] = {{{900, 0, 300, 700}, {700, 40, 0, 800}},
        {{1, 0, 0, 0}, {0, 0, 0, 3}}, {{0, 0, 0, 0}, {5, 5, 5, 5}}, {{5, 5, 5, 5}, {0, 0, 0, 0}},
        {{17, 33, 1, 2}, {1, 16, 31, 2}}};
    static const float radii[] = {0.05f, 0.3f, 4};
    static struct side a, b;
    float pose[16 * SAMPLES];
    int64_t sum = 0;
    poses(pose);
    for (size_t n = 0; n < sizeof sizes / sizeof sizes[0]; n++) {
        fill(&a, sizes[n][0], 2 * n + 1);
        fill(&b, sizes[n][1], 2 * n + 2);
        for (int r = 0; r < 3; r++)
            for (int threads = 1; threads <= 3; threads++) {
                omp_set_num_threads(threads);
                sum += check(&a, &b, pose, radii[r]);
            }
    }
    CHECK(sum > 1000000);
    /* a point on the sphere belongs to it */
    fill(&a, (int64_t[]){1, 0, 0, 0}, 1);
    fill(&b, (int64_t[]){2, 0, 0, 0}, 2);
    memset(pose, 0, sizeof pose);
    for (int i = 0; i < 3; i++) pose[5 * i] = 1;
    memcpy(a.xyz, (float[]){0.5f, 0, 0}, 3 * sizeof(float));
    memcpy(b.xyz, (float[]){0.75f, 0, 0, 0.75000006f, 0, 0}, 6 * sizeof(float));
    CHECK(check(&a, &b, pose, 0.25f) == 1);
    return check_end();
}
