/* Verdicts: more evidence never makes one worse, and the ends are what they must be. */
#include "runtime/register/register_verdict.h"
#include "tests/check.h"

static void test_matches(void)
{
    for (int64_t matches = 0; matches <= 60; matches++)
        for (int64_t chance = 0; chance <= matches; chance++)
            for (int64_t inliers = 1; inliers <= matches; inliers++) {
                enum pnet_verdict v = pnet_verdict_matches(matches, inliers, chance);
                CHECK(v <= pnet_verdict_matches(matches, inliers - 1, chance));
                CHECK(v >= pnet_verdict_matches(matches, inliers, chance - 1));
            }
    CHECK(pnet_verdict_matches(0, 0, 0) == PNET_POSE_FAILED);
    CHECK(pnet_verdict_matches(1119, 7, 5) == PNET_POSE_FAILED);
    CHECK(pnet_verdict_matches(654, 125, 5) == PNET_POSE_REGISTERED);
    CHECK(pnet_verdict_matches(600, 30, 5) == PNET_POSE_DOUBTFUL);
    CHECK(pnet_verdict_matches(4, 4, 4) == PNET_POSE_FAILED);
    CHECK(pnet_verdict_matches(20, 20, 5) == PNET_POSE_REGISTERED);
}

static void test_points(void)
{
    for (int64_t rows = 0; rows <= 200; rows++)
        for (int64_t inliers = 1; inliers <= rows; inliers++)
            CHECK(pnet_verdict_points(rows, inliers) <= pnet_verdict_points(rows, inliers - 1));
    CHECK(pnet_verdict_points(50000, 0) == PNET_POSE_FAILED);
    CHECK(pnet_verdict_points(0, 0) == PNET_POSE_FAILED);
    CHECK(pnet_verdict_points(50000, 10000) == PNET_POSE_DOUBTFUL);
    CHECK(pnet_verdict_points(50000, 50000) == PNET_POSE_REGISTERED);
}

int main(void)
{
    test_matches();
    test_points();
    return check_end();
}
