/* The racing hash that pnet-bench ablate orders compares with, and how near points of a group lie. */
#include "bench/orders.h"
#include "tests/check.h"

enum { POINTS = 20000, ROOM = 128 };

static float xyz[3 * POINTS];
static int32_t order[POINTS];

static void draw(double flat)
{
    struct pnet_rand r = {.seed = 4, .purpose = PNET_DRAW_TEST};
    for (int i = 0; i < 3 * POINTS; i++)
        xyz[i] = pnet_rand_unit(&r, (uint64_t)i) * (i % 3 == 2 ? (float)flat : 1);
}

static bool is_permutation(void)
{
    static bool seen[POINTS];
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < POINTS; i++) {
        if (order[i] < 0 || order[i] >= POINTS || seen[order[i]]) return false;
        seen[order[i]] = true;
    }
    return true;
}

/* 20,000 points in buckets of 128 ask for 157 buckets, which the hash makes 256: an even hash has room, and one by place, of
   points in a plane, has not. */
static void test_race(void)
{
    struct race even, flat;
    draw(1);
    even = pnet_bench_race(RACE_XOR_MOD, POINTS, xyz, ROOM, 1, order);
    CHECK(is_permutation());
    CHECKF(even.buckets == 256 && even.recycled == 0, "%lld without a place",
        (long long)even.recycled);
    CHECKF(even.crowded < POINTS / 20 && even.probes >= even.crowded, "%lld crowded, %lld tries",
        (long long)even.crowded, (long long)even.probes);
    double mixed = pnet_bench_spread(POINTS, xyz, order, ROOM);
    CHECKF(mixed > 0.95 * sqrt(3.0 / 12), "hashed points lie within %g", mixed);
    flat = pnet_bench_race(RACE_Z_DIV, POINTS, xyz, ROOM, 1, order);
    CHECK(is_permutation());
    double near = pnet_bench_spread(POINTS, xyz, order, ROOM);
    CHECKF(
        near < mixed / 2, "a curve brings points to within %g, a hash to within %g", near, mixed);
    CHECKF(flat.recycled <= flat.crowded, "%lld crowded, %lld without a place",
        (long long)flat.crowded, (long long)flat.recycled);
    draw(0); /* every point is in the half of the buckets with z = 0 */
    flat = pnet_bench_race(RACE_Z_DIV, POINTS, xyz, ROOM, 1, order);
    CHECK(is_permutation());
    CHECKF(flat.empty > 0 && flat.crowded > 0 && flat.probes > 0, "%lld of %lld buckets are empty",
        (long long)flat.empty, (long long)flat.buckets);
}

/* Four points of a square with edges of 2, and a group of two of them. */
static void test_spread(void)
{
    static const float square[] = {0, 0, 5, 2, 0, 5, 0, 2, 5, 2, 2, 5};
    static const int32_t diagonal[] = {0, 3, 1, 2};
    CHECK(fabs(pnet_bench_spread(4, square, NULL, 4) - sqrt(2)) < 1e-12);
    CHECK(fabs(pnet_bench_spread(4, square, NULL, 2) - 1) < 1e-12);
    CHECK(fabs(pnet_bench_spread(4, square, diagonal, 2) - sqrt(2)) < 1e-12);
    CHECK(pnet_bench_spread(4, square, NULL, 1) == 0);
}

int main(void)
{
    test_race();
    test_spread();
    return check_end();
}
