/* Matching, RANSAC and ICP: against brute force, against poses that are known, and for any number of threads. */
#include <omp.h>

#include "kernels/feature.h"
#include "tests/check.h"
#include "tests/register/clouds.h"

static void test_nearest(int64_t rows, int64_t others, int32_t width)
{
    struct pnet_rand r = test_rand(1);
    float *a = malloc((size_t)(rows * width + 1) * sizeof *a),
          *b = malloc((size_t)(others * width + 1) * sizeof *b);
    int32_t *nearest = malloc((size_t)(rows + 1) * sizeof *nearest);
    if (!a || !b || !nearest) exit(1);
    /* Small whole numbers: distances are exact in any order of operations, and many are equal. */
    for (int64_t i = 0; i < rows * width; i++) a[i] = (float)(pnet_rand_bits(&r, (uint64_t)i) % 3);
    for (int64_t i = 0; i < others * width; i++)
        b[i] = (float)(pnet_rand_bits(&r, (uint64_t)(rows * width + i)) % 3);
    if (others > 5) b[5 * width] = NAN;
    struct guarded g = guarded_new(pnet_cpu_feature_nearest_work(others, width));
    pnet_cpu_feature_nearest(rows, a, others, b, width, nearest, g.data);
    int wrong = 0;
    for (int64_t i = 0; i < rows; i++) {
        double least = INFINITY;
        int32_t best = -1;
        for (int64_t j = 0; j < others; j++) {
            double sum = 0;
            for (int c = 0; c < width; c++) {
                double d = (double)a[i * width + c] - (double)b[j * width + c];
                sum += d * d;
            }
            if (sum < least) {
                least = sum;
                best = (int32_t)j;
            }
        }
        wrong += best != nearest[i];
    }
    CHECKF(wrong == 0, "%d of %d rows, %d others, width %d", wrong, (int)rows, (int)others, width);
    CHECK(guarded_end(g));
    free(a);
    free(b);
    free(nearest);
}

static void test_draw(void)
{
    struct pnet_rand r = test_rand(2);
    int32_t row[1000], again[1000];
    int seen[200] = {0}, ascending = 1;
    struct guarded g = guarded_new(pnet_register_draw_work(200));
    for (uint32_t round = 0; round < 400; round++) {
        r.a = round;
        CHECK(pnet_register_draw(200, 50, &r, row, g.data) == 50);
        for (int i = 0; i < 50; i++) {
            seen[row[i]]++;
            ascending &= !i || row[i] > row[i - 1];
        }
    }
    CHECK(ascending);
    for (int i = 0; i < 200; i++) /* 100 expected, standard deviation 8.7 */
        CHECKF(seen[i] > 55 && seen[i] < 145, "row %d drawn %d times", i, seen[i]);
    pnet_register_draw(200, 50, &r, again, g.data);
    CHECK(memcmp(row, again, 50 * sizeof *row) == 0);
    CHECK(pnet_register_draw(30, 50, &r, row, g.data) == 30 && row[0] == 0 && row[29] == 29);
    CHECK(pnet_register_draw(0, 50, &r, row, g.data) == 0);
    CHECK(guarded_end(g));
}

/* On a line, with one channel: 0 1 2 10 against 0.1 1.6 20. */
static void test_match(void)
{
    float a[4] = {0, 1, 2, 10}, b[3] = {0.1f, 1.6f, 20};
    int32_t rows[4] = {0, 1, 2, 3};
    float at[12] = {0, 0, 0, 10, 0, 0, 11, 0, 0, 30, 0, 0};
    struct pnet_described source = {a, 1, rows, 4, at}, target = {b, 1, rows, 3, NULL};
    struct pnet_match p[4];
    struct pnet_register_choice c;
    struct guarded g = guarded_new(pnet_register_match_work(4, 3, 1));
    CHECK(pnet_register_match(&source, &target, false, p, &c, g.data) == 4);
    CHECK(
        c.distinct == 2 && c.shared == 3); /* 20 is nobody's nearest; 0 and its neighbour differ */
    CHECK(p[0].target == 0 && p[1].target == 1 && p[2].target == 1 && p[3].target == 1);
    CHECK(pnet_register_match(&source, &target, true, p, &c, g.data) == 2);
    CHECK(c.distinct == 2 && c.shared == 3);
    CHECK(p[0].source == 0 && p[0].target == 0 && p[1].source == 2 && p[1].target == 1);
    int32_t drawn[2] = {1, 3}; /* rows that were not drawn are nobody's partner */
    source = (struct pnet_described){a, 1, drawn, 2, at};
    CHECK(pnet_register_match(&source, &target, true, p, &c, g.data) == 1);
    CHECK(c.distinct == 1 && c.shared == 2);
    CHECK(p[0].source == 1 && p[0].target == 1);
    target.count = 0;
    CHECK(pnet_register_match(&source, &target, true, p, &c, g.data) == 0);
    CHECK(c.distinct == 0 && c.shared == 0);
    CHECK(pnet_register_match(&source, &target, true, p, NULL, g.data) == 0);
    CHECK(guarded_end(g));
}

static struct pnet_ransac options(double distance)
{
    return (struct pnet_ransac){.distance = distance,
        .iterations = 50000,
        .points = 3,
        .similarity = 0.9,
        .rand = test_rand(3)};
}

static struct pnet_ransac_result ransac(const struct scene *s, const struct pnet_ransac *o)
{
    struct pnet_ransac_result r;
    struct guarded g = guarded_new(pnet_register_ransac_work(s->count));
    pnet_register_ransac(s->count, s->pairs, s->source, s->target, o, &r, g.data);
    CHECK(guarded_end(g));
    return r;
}

static void test_ransac(int outliers, int points, double confidence)
{
    struct scene s = scene_new(1000, outliers, 0.01);
    struct pnet_ransac o = options(0.05);
    double rre, rte;
    o.points = points;
    o.confidence = confidence;
    struct pnet_ransac_result r = ransac(&s, &o), again;
    pnet_register_error(s.truth, r.pose, &rre, &rte);
    CHECKF(r.found && rre < 0.1 && rte < 0.005, "%d%% outliers: %g deg %g m", outliers, rre, rte);
    /* every true pair is in, false ones only by chance */
    CHECKF(r.inliers >= 10 * (100 - outliers) && r.inliers < 10 * (100 - outliers) + 20,
        "%d inliers", (int)r.inliers);
    CHECK(r.rmse > 0.005 && r.rmse < 0.02);
    CHECK(confidence > 0 ? r.iterations < o.iterations : r.iterations == o.iterations);
    int threads = omp_get_max_threads();
    for (int n = 1; n <= 3; n++) {
        omp_set_num_threads(n);
        again = ransac(&s, &o);
        CHECKF(memcmp(again.pose, r.pose, sizeof r.pose) == 0 && again.inliers == r.inliers &&
                   memcmp(&again.rmse, &r.rmse, sizeof r.rmse) == 0 &&
                   again.iterations == r.iterations,
            "%d threads", n);
    }
    omp_set_num_threads(threads);
    scene_free(&s);
}

static void test_ransac_ends(void)
{
    struct scene s = scene_new(100, 0, 0);
    struct pnet_ransac o = options(0.05);
    double one[16];
    pnet_rigid_identity(one);
    for (s.count = 0; s.count < 3; s.count++) {
        struct pnet_ransac_result r = ransac(&s, &o);
        CHECK(!r.found && !r.inliers && memcmp(r.pose, one, sizeof one) == 0);
    }
    s.count = 3; /* the least */
    struct pnet_ransac_result r = ransac(&s, &o);
    CHECK(r.found && r.inliers == 3);
    s.count = 100; /* twice as large: no edge keeps its length */
    for (int i = 0; i < 300; i++) s.target[i] *= 2;
    CHECK(!ransac(&s, &o).found);
    for (int i = 0; i < 100; i++) /* on a line: no rotation is determined */
        for (int k = 0; k < 3; k++)
            s.source[3 * i + k] = s.target[3 * i + k] = (float)(k == 0) * (float)i;
    CHECK(!ransac(&s, &o).found);
    scene_free(&s);
}

static void test_icp(bool planes)
{
    enum { SOURCE = 3000, TARGET = 6000 };
    float *source = corner(SOURCE, 4), *target = corner(TARGET, 5);
    double truth[16], off[16], start[16], rre, rte;
    if (!source || !target) exit(1);
    struct pnet_icp o = {.distance = 0.2, .iterations = 100, .planes = planes, .neighbours = 12};
    struct pnet_icp_result r, again;
    pnet_rigid_make((double[3]){1, 2, 2}, 25, (double[3]){3, -1, 2}, truth);
    double back[16];
    pnet_rigid_invert(truth, back);
    pnet_rigid_apply(back, SOURCE, source, source);
    pnet_rigid_make((double[3]){0, 1, -1}, 2, (double[3]){0.04, -0.03, 0.02}, off);
    pnet_rigid_multiply(off, truth, start);
    struct guarded g = guarded_new(pnet_register_icp_work(SOURCE, TARGET, &o));
    pnet_register_icp(SOURCE, source, TARGET, target, start, &o, &r, g.data);
    pnet_register_error(truth, r.pose, &rre, &rte);
    CHECKF(rre < (planes ? 0.05 : 0.3) && rte < (planes ? 0.002 : 0.01),
        "%s: %g deg %g m after %d iterations", planes ? "planes" : "points", rre, rte,
        r.iterations);
    CHECK(r.inliers == SOURCE && r.iterations > 1);
    if (planes) CHECKF(r.iterations < 40, "%d iterations", r.iterations);
    int threads = omp_get_max_threads();
    for (int n = 1; n <= 3; n++) {
        omp_set_num_threads(n);
        pnet_register_icp(SOURCE, source, TARGET, target, start, &o, &again, g.data);
        CHECKF(memcmp(again.pose, r.pose, sizeof r.pose) == 0 && again.inliers == r.inliers,
            "%d threads", n);
    }
    omp_set_num_threads(threads);
    /* Nothing near: it stays where it began. */
    start[3] += 100;
    pnet_register_icp(SOURCE, source, TARGET, target, start, &o, &r, g.data);
    CHECK(!r.inliers && !r.iterations && memcmp(r.pose, start, sizeof start) == 0);
    CHECK(guarded_end(g));
    free(source);
    free(target);
}

/* A floor alone says nothing about moves along it and turns about its normal. */
static void test_icp_plane(void)
{
    enum { N = 2000 };
    struct pnet_rand rand = test_rand(6);
    float *source = malloc(3 * N * sizeof *source), *target = malloc(3 * N * sizeof *target);
    if (!source || !target) exit(1);
    for (int i = 0; i < 3 * N; i++) {
        source[i] = i % 3 == 2 ? 0 : (float)signed_unit(&rand, (uint64_t)i);
        target[i] = i % 3 == 2 ? 0 : (float)signed_unit(&rand, (uint64_t)i + 3 * N);
    }
    double start[16];
    struct pnet_icp o = {.distance = 0.3, .iterations = 30, .planes = true, .neighbours = 8};
    struct pnet_icp_result r;
    pnet_rigid_make((double[3]){1, 0, 0}, 1, (double[3]){0.05, 0.02, 0.1}, start);
    struct guarded g = guarded_new(pnet_register_icp_work(N, N, &o));
    pnet_register_icp(N, source, N, target, start, &o, &r, g.data);
    CHECKF(fabs(r.pose[11]) < 1e-5 && fabs(r.pose[10] - 1) < 1e-9, "height %g", r.pose[11]);
    CHECKF(fabs(r.pose[3] - 0.05) < 1e-3 && fabs(r.pose[7] - 0.02) < 3e-3 &&
               pnet_rigid_angle(r.pose) < 0.01,
        "moved along by %g %g, turned %g", r.pose[3], r.pose[7], pnet_rigid_angle(r.pose));
    CHECK(guarded_end(g));
    free(source);
    free(target);
}

/* Points in the corners of a box, turned and moved: their mean squared distances from the axes are those of a corner. Errors are
   even between -1 and 1 cm in each coordinate, and `alike` points of a corner have the same: then the squares of the fit's
   errors over those of independent ones are, in the mean, `alike`. */
static void test_spread(int alike)
{
    enum { CORNERS = 8, EACH = 4, N = CORNERS * EACH, ROUNDS = 2000 };
    const double half[3] = {1.5, 0.7, 0.1};
    struct pnet_rand rand = test_rand(7);
    struct pnet_match pairs[N];
    float box[3 * N], source[3 * N], target[3 * N];
    double pose[16], fit[16], middle[3], rms, rre, rte, inverses = 0, turned = 0, moved = 0;
    for (int i = 0; i < 3 * N; i++)
        box[i] = (float)(i / 3 / EACH >> i % 3 & 1 ? half[i % 3] : -half[i % 3]);
    for (int i = 0; i < N; i++) pairs[i] = (struct pnet_match){N - 1 - i, N - 1 - i};
    for (int k = 0; k < 3; k++)
        inverses +=
            1 / (half[(k + 1) % 3] * half[(k + 1) % 3] + half[(k + 2) % 3] * half[(k + 2) % 3]);
    pnet_rigid_make((double[3]){1, 2, -0.5}, 50, (double[3]){2, -1, 3}, pose);
    pnet_rigid_apply(pose, N, box, source);
    double spread = pnet_register_spread(N, pairs, source, middle);
    CHECKF(fabs(spread - sqrt(3 / inverses)) < 1e-6, "%g, by hand %g", spread, sqrt(3 / inverses));
    CHECKF(hypot(hypot(middle[0] - 2, middle[1] + 1), middle[2] - 3) < 1e-6, "middle %g %g %g",
        middle[0], middle[1], middle[2]);
    CHECK(pnet_register_spread(EACH + 1, pairs, source, middle) < 1e-3); /* two corners */
    pnet_rigid_identity(pose);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        double mean[3] = {0}, square = 0;
        rand.a = round;
        for (int i = 0; i < 3 * N; i++) {
            uint64_t draw = (uint64_t)(i / 3 / alike) * 3 + (uint64_t)(i % 3);
            target[i] = source[i] + (float)(0.01 * signed_unit(&rand, draw));
            mean[i % 3] += ((double)target[i] - source[i]) / N;
        }
        CHECK(pnet_register_right(N, pairs, source, target, pose, 0.1, &rms) == N);
        CHECK(pnet_rigid_fit(N, pairs, source, target, fit));
        pnet_register_error(pose, fit, &rre, &rte);
        for (int k = 0; k < 3; k++) square += mean[k] * mean[k];
        rre *= spread / 57.295779513082320877 / rms;
        turned += rre * rre * N / ROUNDS;
        moved += square / (rms * rms) * N / ROUNDS;
    }
    /* a standard deviation is up to sqrt(2 / ROUNDS) of what is turned, 0.032, and sqrt(2 / 3 / ROUNDS) of what is moved */
    CHECKF(fabs(turned / alike - 1) < 0.13, "turned %g, %d alike", turned, alike);
    CHECKF(fabs(moved / alike - 1) < 0.07, "moved %g, %d alike", moved, alike);
}

int main(void)
{
    int64_t sizes[] = {0, 1, 3, 4, 15, 16, 17, 70, 300};
    for (int i = 0; i < 9; i++)
        for (int k = 0; k < 9; k++) test_nearest(sizes[i], sizes[k], 5);
    test_nearest(200, 1500, 1);
    test_nearest(130, 1100, 32);
    test_nearest(65, 100, 64);
    test_draw();
    test_match();
    test_ransac(0, 3, 0);
    test_ransac(50, 3, 0);
    test_ransac(65, 4, 0);
    test_ransac(80, 3, 0);
    test_ransac(80, 4, 0.999);
    test_ransac_ends();
    test_icp(false);
    test_icp(true);
    test_icp_plane();
    for (int alike = 1; alike <= 4; alike *= 2) test_spread(alike);
    return check_end();
}
