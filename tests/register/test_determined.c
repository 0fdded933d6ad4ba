/* What points and correspondences determine of a pose: shapes whose free motions are known, at any place and in any turn, and
   lines of correspondences. */
#include "runtime/register/register_verdict.h"
#include "tests/check.h"
#include "tests/register/clouds.h"

enum { ROWS = 3000 };

/* Surfaces, and how many motions lead them into themselves. */
static const struct shape {
    const char *name;
    int free;
} shapes[] = {{"plane", 3}, {"sphere", 3}, {"half sphere", 3}, {"cylinder", 2}, {"cone", 1},
    {"torus", 1}, {"box", 0}, {"corner", 0}, {"line", 6}, {"place", 6}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void put(int shape, int64_t i, double u, double v, float p[3])
{
    double turn = 2 * M_PI * u, z = 2 * v - 1, r = sqrt(1 - z * z), ring = 1 + 0.3 * cos(7 * v);
    const double at[SHAPES][3] = {{3 * u, 2 * v, 0}, {r * cos(turn), r * sin(turn), z},
        {r * cos(turn), r * sin(turn), fabs(z)}, {0.5 * cos(turn), 0.5 * sin(turn), 3 * v},
        {sqrt(v) * cos(turn), sqrt(v) * sin(turn), 2 * sqrt(v)},
        {ring * cos(turn), ring * sin(turn), 0.3 * sin(7 * v)}, {u, v, 0}, {u, v, 0}, {5 * u, 0, 0},
        {1, 2, 3}};
    int side = (int)(i % 6), axis = side % 3;
    for (int k = 0; k < 3; k++) p[k] = (float)at[shape][k];
    if (strcmp(shapes[shape].name, "box") == 0 || strcmp(shapes[shape].name, "corner") == 0) {
        p[axis] = strcmp(shapes[shape].name, "box") == 0 && side > 2;
        p[(axis + 1) % 3] = (float)u;
        p[(axis + 2) % 3] = (float)v;
    }
}

static float *sample(int shape, uint32_t stream, const double pose[16], double noise)
{
    struct pnet_rand r = test_rand(stream);
    float *xyz = malloc(3 * ROWS * sizeof *xyz);
    if (!xyz) exit(1);
    for (uint64_t i = 0; i < ROWS; i++) {
        put(shape, (int64_t)i, (double)pnet_rand_unit(&r, 5 * i),
            (double)pnet_rand_unit(&r, 5 * i + 1), xyz + 3 * i);
        for (uint64_t k = 0; k < 3; k++)
            xyz[3 * i + k] += (float)(noise * signed_unit(&r, 5 * i + 2 + k));
    }
    pnet_rigid_apply(pose, ROWS, xyz, xyz);
    return xyz;
}

/* Two samplings of a shape, or one twice, each in its own place, under the pose that joins them. */
static void test_shapes(void)
{
    struct pnet_icp o = {.distance = 0.3, .planes = true, .neighbours = 20};
    void *work = aligned_alloc(64, (pnet_register_icp_work(ROWS, ROWS, &o) + 127) / 64 * 64);
    double at[2][16], pose[16], hold[6];
    pnet_rigid_make((double[]){1, 2, 3}, 40, (double[]){5, -4, 2}, at[0]);
    pnet_rigid_make((double[]){-2, 1, 1}, 160, (double[]){-30, 10, 7}, at[1]);
    pnet_rigid_invert(at[0], pose);
    pnet_rigid_multiply(at[1], pose, pose);
    for (int s = 0; s < SHAPES; s++)
        for (int kind = 0; kind < (shapes[s].free < 6 ? 3 : 2); kind++) {
            /* the same points; others; others with noise, of which a line would be a rod */
            float *source = sample(s, 1, at[0], 0),
                  *target = sample(s, kind ? 2 : 1, at[1], kind > 1 ? 0.002 : 0);
            pnet_register_hold(ROWS, source, ROWS, target, pose, &o, hold, work);
            int found = pnet_verdict_free(hold);
            CHECKF(found == shapes[s].free, "%s, %d: %d motions are free: %g %g %g %g %g %g",
                shapes[s].name, kind, found, hold[0], hold[1], hold[2], hold[3], hold[4], hold[5]);
            for (int k = 1; k < 6; k++) CHECK(hold[k] <= hold[k - 1]);
            free(source);
            free(target);
        }
    for (int rows = 0; rows < 3; rows++) { /* too few points */
        float few[] = {0, 0, 0, 1, 2, 0};
        pnet_register_hold(rows, few, rows, few, at[0], &o, hold, work);
        CHECK(pnet_verdict_free(hold) == 6);
    }
    free(work);
}

/* Numbers made by hand: a plate of 3 x 4 x 0 around its centre, and points on a line. */
static void test_lines(void)
{
    static const struct pnet_match pairs[] = {{0, 0}, {1, 1}, {2, 2}, {3, 3}};
    static const float plate[] = {0, 0, 5, 3, 0, 5, 0, 8, 5, 3, 8, 5};
    static const float line[] = {0, 0, 0, 1, 2, 3, 2, 4, 6, -1, -2, -3};
    double off = pnet_register_off_line(4, pairs, plate); /* the long axis is y */
    CHECKF(fabs(off - 1.5) < 1e-12, "%g", off);
    off = pnet_register_off_line(4, pairs, line);
    CHECKF(off < 1e-6, "%g", off);
    CHECK(
        pnet_register_off_line(0, pairs, line) == 0 && pnet_register_off_line(1, pairs, line) == 0);
    CHECK(pnet_verdict_hold(3, 1.5, 0.1) && pnet_verdict_hold(3, 0.051, 0.1));
    CHECK(!pnet_verdict_hold(2, 1.5, 0.1) && !pnet_verdict_hold(1000, 0.049, 0.1));
    CHECK(!pnet_verdict_hold(1000, 0, 0.1) && !pnet_verdict_hold(1000, (double)NAN, 0.1));
}

int main(void)
{
    test_shapes();
    test_lines();
    return check_end();
}
