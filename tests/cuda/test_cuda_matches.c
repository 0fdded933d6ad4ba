/* Matches on a GPU are those of the CPU, bit for bit. */
#include "kernels/matches.h"
#include "runtime/device/device.h"
#include "tests/geometry/matches.h"

static const struct pnet_device gpu = {PNET_CUDA, 0};

#ifdef PNET_CUDA_BUILT
static void *take(size_t bytes)
{
    void *p = pnet_device_alloc(gpu, bytes + 64);
    if (!p) abort();
    return p;
}

static void *copy(const void *from, size_t bytes)
{
    void *p = take(bytes);
    pnet_device_put(gpu, p, from, bytes);
    return p;
}

static void *host(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 64) / 64 * 64);
    if (!p) abort();
    return p;
}

/* As a runner has it: counted, then room, then written. Returns the number. */
static int64_t on_cpu(const struct side *a, const struct side *b, const float *pose, float radius,
    int64_t *start, int32_t **other)
{
    void *work = host(pnet_cpu_matches_work(&a->level, &b->level, radius, 0));
    int64_t number = pnet_cpu_matches_count(&a->level, &b->level, pose, radius, start, work);
    free(work);
    work = host(pnet_cpu_matches_work(&a->level, &b->level, radius, number));
    *other = host((size_t)number * sizeof **other);
    pnet_cpu_matches_write(&a->level, &b->level, pose, radius, number, start, *other, work);
    free(work);
    return number;
}

static int64_t check(const struct side *a, const struct side *b, const float *pose, float radius)
{
    static int64_t start[MOST + 1], got_start[MOST + 1];
    int32_t *other;
    int64_t number = on_cpu(a, b, pose, radius, start, &other);
    struct pnet_level la = a->level, lb = b->level;
    size_t starts = ((size_t)la.rows + 1) * sizeof *start, others = (size_t)number * sizeof *other;
    void *splits_a = copy(a->splits, sizeof a->splits),
         *splits_b = copy(b->splits, sizeof b->splits);
    void *xyz_a = copy(a->xyz, (size_t)la.rows * 12), *xyz_b = copy(b->xyz, (size_t)lb.rows * 12);
    float *d_pose = copy(pose, 16 * SAMPLES * sizeof *pose);
    int64_t *d_start = take(starts);
    int32_t *d_other = take(others), *got_other = host(others);
    la.row_splits = splits_a;
    lb.row_splits = splits_b;
    la.xyz = xyz_a;
    lb.xyz = xyz_b;
    void *work = take(pnet_cuda_matches_work(&la, &lb, radius, 0));
    int64_t got = pnet_cuda_matches_count(&la, &lb, d_pose, radius, d_start, work);
    CHECKF(got == number, "%lld matches, the CPU's %lld", (long long)got, (long long)number);
    pnet_device_free(gpu, work);
    work = take(pnet_cuda_matches_work(&la, &lb, radius, number));
    if (got == number)
        pnet_cuda_matches_write(&la, &lb, d_pose, radius, number, d_start, d_other, work);
    pnet_device_get(gpu, got_start, d_start, starts);
    pnet_device_get(gpu, got_other, d_other, others);
    CHECKF(memcmp(start, got_start, starts) == 0, "starts of %lld matches", (long long)number);
    CHECKF(memcmp(other, got_other, others) == 0, "%lld matches", (long long)number);
    void *all[] = {splits_a, splits_b, xyz_a, xyz_b, d_pose, d_start, d_other, work};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) pnet_device_free(gpu, all[i]);
    free(other);
    free(got_other);
    return number;
}
#endif

int main(void)
{
    struct pnet_error e;
    if (pnet_device_check(gpu, &e) || pnet_device_enter(gpu, &e)) {
        fprintf(stderr, "skipped: %s\n", e.message);
        return 77;
    }
#ifdef PNET_CUDA_BUILT
    static const int64_t sizes[][2][SAMPLES] = {{{9000, 0, 3000, 7000}, {7000, 400, 0, 8000}},
        {{1, 0, 0, 0}, {0, 0, 0, 3}}, {{0, 0, 0, 0}, {5, 5, 5, 5}}, {{5, 5, 5, 5}, {0, 0, 0, 0}},
        {{17, 33, 1, 2}, {1, 16, 31, 2}}, {{40000, 0, 0, 0}, {30000, 10, 0, 0}}};
    static const float radii[] = {0.02f, 0.1f, 4};
    static struct side a, b;
    float pose[16 * SAMPLES];
    int64_t sum = 0;
    poses(pose);
    for (size_t n = 0; n < sizeof sizes / sizeof sizes[0]; n++)
        for (int r = 0; r < 3; r++) {
            fill(&a, sizes[n][0], 2 * n + 1);
            fill(&b, sizes[n][1], 2 * n + 2);
            if (radii[r] > 1 && a.level.rows > 1000) continue; /* all pairs */
            sum += check(&a, &b, pose, radii[r]);
        }
    CHECK(sum > 100000);
    CHECK(pnet_device_wait(gpu, &e) == PNET_OK);
#endif
    return check_end();
}
