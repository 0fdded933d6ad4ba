/* Rigid motions, the best fit, and the measures, against what is known of them. */
#include "tests/check.h"
#include "tests/register/clouds.h"

static double apart(const double a[16], const double b[16])
{
    double worst = 0;
    for (int i = 0; i < 16; i++) worst = fmax(worst, fabs(a[i] - b[i]));
    return worst;
}

static void test_motions(void)
{
    double axis[3] = {0, 0, 3}, move[3] = {1, 2, 3}, t[16], back[16], one[16], both[16];
    float p[3] = {1, 0, 0}, q[3];
    pnet_rigid_make(axis, 90, move, t);
    pnet_rigid_apply(t, 1, p, q);
    CHECK(fabsf(q[0] - 1) < 1e-6f && fabsf(q[1] - 3) < 1e-6f && fabsf(q[2] - 3) < 1e-6f);
    CHECK(fabs(pnet_rigid_angle(t) - 90) < 1e-12 && fabs(pnet_rigid_length(t) - sqrt(14)) < 1e-12);
    pnet_rigid_invert(t, back);
    pnet_rigid_multiply(back, t, both);
    pnet_rigid_identity(one);
    CHECK(apart(both, one) < 1e-15);
    double angles[] = {0, 1e-7, 1e-3, 5, 179.999, 180};
    for (int i = 0; i < 6; i++) {
        pnet_rigid_make((double[3]){1, -2, 0.5}, angles[i], move, t);
        CHECKF(fabs(pnet_rigid_angle(t) - angles[i]) < 1e-12 * (1 + angles[i]), "%.17g",
            pnet_rigid_angle(t));
    }
    double source[3] = {400000, 5000000, 0}, target[3] = {400100, 5000100, 0}, file[16];
    double at[3] = {3, 4, 5}, to[3], far[3];
    pnet_rigid_make(axis, 30, move, t);
    pnet_rigid_to_file(t, source, target, file);
    for (int k = 0; k < 3; k++) {
        to[k] = t[4 * k + 3];
        far[k] = file[4 * k + 3];
        for (int c = 0; c < 3; c++) {
            to[k] += t[4 * k + c] * at[c];
            far[k] += file[4 * k + c] * (source[c] + at[c]);
        }
        CHECK(fabs(far[k] - (target[k] + to[k])) < 1e-8);
    }
}

static void test_clean(void)
{
    double axis[3] = {1, 1, -2}, move[3] = {0.1, 20, -3}, t[16], u[16];
    float rounded[16];
    pnet_rigid_make(axis, 33, move, t);
    for (int i = 0; i < 16; i++) rounded[i] = (float)t[i];
    pnet_rigid_from_floats(rounded, u);
    CHECK(apart(t, u) < 1e-6);
    double back[16], one[16];
    pnet_rigid_invert(u, back);
    pnet_rigid_multiply(back, u, back);
    pnet_rigid_identity(one);
    CHECK(apart(back, one) < 1e-14); /* a rotation again, to the last bits */
    for (int k = 0; k < 3; k++) t[4 * k] = -t[4 * k];
    CHECK(!pnet_rigid_clean(t, 1e-3)); /* a mirror */
    pnet_rigid_make(axis, 33, move, t);
    t[5] *= 1.1;
    CHECK(!pnet_rigid_clean(t, 1e-3));
    pnet_rigid_make(axis, 33, move, t);
    t[3] = NAN;
    CHECK(!pnet_rigid_clean(t, 1e-3));
}

static void test_fit(void)
{
    struct scene s = scene_new(300, 0, 0);
    double t[16];
    CHECK(pnet_rigid_fit(s.count, s.pairs, s.source, s.target, t));
    CHECKF(apart(t, s.truth) < 1e-6, "%g", apart(t, s.truth));
    CHECK(pnet_rigid_fit(3, s.pairs, s.source, s.target, t) && apart(t, s.truth) < 1e-5);
    /* A mirrored cloud: the best rotation, no reflection. */
    for (int64_t i = 0; i < s.count; i++) s.target[3 * i] = -s.target[3 * i];
    pnet_rigid_fit(s.count, s.pairs, s.source, s.target, t);
    double det = t[0] * (t[5] * t[10] - t[6] * t[9]) - t[1] * (t[4] * t[10] - t[6] * t[8]) +
                 t[2] * (t[4] * t[9] - t[5] * t[8]);
    CHECK(fabs(det - 1) < 1e-12);
    scene_free(&s);
}

/* The best rotation beats its neighbours: a check that knows nothing of quaternions. */
static double cost(const struct scene *s, const double t[16])
{
    double sum = 0;
    for (int64_t i = 0; i < s->count; i++)
        for (int k = 0; k < 3; k++) {
            const float *p = s->source + 3 * s->pairs[i].source;
            double d = t[4 * k] * p[0] + t[4 * k + 1] * p[1] + t[4 * k + 2] * p[2] + t[4 * k + 3] -
                       s->target[3 * s->pairs[i].target + k];
            sum += d * d;
        }
    return sum;
}

static void test_fit_is_least(void)
{
    struct scene s = scene_new(60, 40, 0.2);
    double t[16], turn[16], other[16];
    CHECK(pnet_rigid_fit(s.count, s.pairs, s.source, s.target, t));
    double least = cost(&s, t);
    for (int axis = 0; axis < 3; axis++)
        for (int side = -1; side <= 1; side += 2) {
            pnet_rigid_make((double[3]){axis == 0, axis == 1, axis == 2}, 0.01 * side,
                (double[3]){0, 0, 0}, turn);
            pnet_rigid_multiply(turn, t, other);
            CHECK(cost(&s, other) > least);
            memcpy(other, t, sizeof t);
            other[4 * axis + 3] += 1e-4 * side;
            CHECK(cost(&s, other) > least);
        }
    scene_free(&s);
}

static void test_degenerate(void)
{
    struct pnet_match pairs[4] = {{0, 0}, {1, 1}, {2, 2}, {3, 3}};
    float line[12] = {0, 0, 0, 1, 0, 0, 2, 0, 0, 5, 0, 0},
          turned[12] = {1, 1, 1, 1, 2, 1, 1, 3, 1, 1, 6, 1};
    double t[16], one[16];
    pnet_rigid_identity(one);
    CHECK(!pnet_rigid_fit(0, pairs, line, turned, t) && apart(t, one) == 0);
    CHECK(!pnet_rigid_fit(1, pairs, line, turned, t));
    CHECK(pnet_rigid_angle(t) == 0 && t[3] == 1 && t[7] == 1 && t[11] == 1);
    for (int n = 2; n <= 4; n++) { /* a line: lies where it should, turned no more than needed */
        float moved[12];
        CHECK(!pnet_rigid_fit(n, pairs, line, turned, t));
        pnet_rigid_apply(t, n, line, moved);
        for (int i = 0; i < 3 * n; i++) CHECK(fabsf(moved[i] - turned[i]) < 1e-5f);
        CHECKF(fabs(pnet_rigid_angle(t) - 90) < 1e-5, "%g", pnet_rigid_angle(t));
    }
    float back[6] = {0, 0, 0, -1, 0, 0}; /* half a turn about any axis across */
    CHECK(!pnet_rigid_fit(2, pairs, line, back, t));
    CHECK(fabs(pnet_rigid_angle(t) - 180) < 1e-5);
}

static void test_errors(void)
{
    double truth[16], off[16], pose[16], rre, rte;
    pnet_rigid_make((double[3]){1, 2, 3}, 40, (double[3]){5, 6, 7}, truth);
    pnet_rigid_make((double[3]){-1, 0.3, 1}, 2.5, (double[3]){0, 0, 0}, off);
    pnet_rigid_multiply(truth, off, pose);
    pose[3] += 0.3;
    pose[7] -= 0.4;
    pnet_register_error(truth, pose, &rre, &rte);
    CHECKF(fabs(rre - 2.5) < 1e-10 && fabs(rte - 0.5) < 1e-12, "%g %g", rre, rte);
    pnet_register_error(truth, truth, &rre, &rte);
    CHECK(rre < 1e-12 && rte == 0);
}

/* Hand-made: the true pose is the identity, three of four pairs lie 5, 10 and 20 cm apart. */
static void test_inliers(void)
{
    float source[12] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1},
          target[12] = {0.05f, 0, 0, 1, 0.0999f, 0, 0, 1, 0.2f, 3, 3, 3};
    struct pnet_match pairs[4] = {{0, 0}, {1, 1}, {2, 2}, {3, 3}};
    double one[16];
    pnet_rigid_identity(one);
    CHECK(pnet_register_inliers(4, pairs, source, target, one, 0.1) == 2);
    CHECK(pnet_register_inliers(4, pairs, source, target, one, 0.04) == 0);
    CHECK(pnet_register_inliers(4, pairs, source, target, one, 0.21) == 3);
    CHECK(pnet_register_inliers(0, pairs, source, target, one, 0.1) == 0);
    one[3] = 0.05; /* now the first fits exactly, the second and third are farther off */
    CHECK(pnet_register_inliers(4, pairs, source, target, one, 0.01) == 1);
}

static void test_rmse(void)
{
    /* Points at +-1 on each axis, turned about z by a: x and y move by 2 sin(a/2), z stays; one point of the target
       is missing, so that the sixth does not count. */
    float at[18] = {1, 0, 0, -1, 0, 0, 0, 1, 0, 0, -1, 0, 0, 0, 1, 0, 0, -1};
    double truth[16], pose[16];
    pnet_rigid_identity(truth);
    pnet_rigid_make((double[3]){0, 0, 1}, 8, (double[3]){0, 0, 0}, pose);
    double chord = 2 * sin(4 / 57.295779513082320877);
    struct guarded g = guarded_new(pnet_register_rmse_work(6, 5));
    double rmse = pnet_register_rmse(6, at, 5, at, truth, pose, 0.5, g.data);
    CHECKF(fabs(rmse - chord * sqrt(4.0 / 5)) < 1e-9, "%.9g", rmse);
    CHECK(guarded_end(g));
    float far[3] = {100, 0, 0};
    g = guarded_new(pnet_register_rmse_work(6, 5));
    CHECK(pnet_register_overlap(6, at, 5, at, truth, 0.5, g.data) == 5.0 / 6);
    CHECK(pnet_register_overlap(6, at, 5, at, pose, 0.1, g.data) ==
          1.0 / 6); /* the turn moves all but one away */
    CHECK(pnet_register_overlap(6, at, 0, at, truth, 0.5, g.data) == 0);
    CHECK(guarded_end(g));
    g = guarded_new(pnet_register_rmse_work(6, 1));
    CHECK(isnan(pnet_register_rmse(6, at, 1, far, truth, pose, 0.5, g.data)));
    CHECK(guarded_end(g));
}

/* The matrix of points p is the sum of G^T G, G = [1 | -p x]: then e^T C e is the sum of |t + q x p|^2. */
static void test_info(void)
{
    struct scene s = scene_new(50, 0, 0);
    double info[36] = {0}, pose[16], off[16], sum = 0;
    for (int64_t i = 0; i < s.count; i++) {
        double x = s.source[3 * i], y = s.source[3 * i + 1], z = s.source[3 * i + 2];
        double g[3][6] = {{1, 0, 0, 0, z, -y}, {0, 1, 0, -z, 0, x}, {0, 0, 1, y, -x, 0}};
        for (int a = 0; a < 6; a++)
            for (int b = 0; b < 6; b++)
                for (int k = 0; k < 3; k++) info[6 * a + b] += g[k][a] * g[k][b];
    }
    pnet_rigid_make((double[3]){0, 0, 1}, 3, (double[3]){0.1, -0.2, 0.05}, off);
    pnet_rigid_multiply(s.truth, off, pose);
    double q = sin(1.5 / 57.295779513082320877);
    for (int64_t i = 0; i < s.count; i++) {
        double x = s.source[3 * i], y = s.source[3 * i + 1];
        double d[3] = {0.1 - q * y, -0.2 + q * x, 0.05};
        sum += d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
    }
    double rmse = pnet_register_info_rmse(info, s.truth, pose);
    CHECKF(fabs(rmse - sqrt(sum / 50)) < 1e-9, "%.9g %.9g", rmse, sqrt(sum / 50));
    scene_free(&s);
}

int main(void)
{
    test_motions();
    test_clean();
    test_fit();
    test_fit_is_least();
    test_degenerate();
    test_errors();
    test_inliers();
    test_rmse();
    test_info();
    return check_end();
}
