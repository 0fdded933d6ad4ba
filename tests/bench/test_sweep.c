/* What pnet-bench sweep says of times: trends, cliffs, exponents. */
#include "bench/sweep.h"

#include "tests/check.h"

static struct sweep_case row(int series, double x, double seconds)
{
    struct sweep_case c = {.series = series, .x = x};
    c.m.work = 1e6 * x;
    c.m.triplets = (int64_t)(1000 * x);
    for (int p = 0; p < PRODUCTS; p++) c.m.time[p] = seconds;
    return c;
}

static void test_trend(void)
{
    struct sweep_case c[] = {row(0, 1, 1), row(0, 2, 8), row(0, 4, 4), row(1, 10, 5)};
    sweep_trend(c, 4);
    for (int p = 0; p < PRODUCTS; p++) {
        CHECKF(
            fabs(c[0].trend[p] - 8) < 1e-9, "%g", c[0].trend[p]); /* less work than its neighbour */
        CHECKF(fabs(c[1].trend[p] - 2) < 1e-9, "%g", c[1].trend[p]);  /* halfway from 1 to 4 */
        CHECKF(fabs(c[2].trend[p] - 16) < 1e-9, "%g", c[2].trend[p]); /* twice the work */
        CHECK(c[3].trend[p] == 0);                                    /* alone in its series */
    }
    CHECKF(sweep_cliffs(c, 4) == PRODUCTS, "%d", sweep_cliffs(c, 4));
    c[1].m.time[2] = 3.9;
    CHECKF(sweep_cliffs(c, 4) == PRODUCTS - 1, "%d", sweep_cliffs(c, 4));
}

static void test_slope(void)
{
    struct sweep_case c[5];
    for (int i = 0; i < 5; i++) c[i] = row(0, 1 << 2 * i, pow(1 << 2 * i, 1.25));
    for (int p = 0; p < PRODUCTS; p++)
        CHECKF(fabs(sweep_slope(c, 5, p) - 1.25) < 1e-9, "%g", sweep_slope(c, 5, p));
}

int main(void)
{
    test_trend();
    test_slope();
    return check_end();
}
