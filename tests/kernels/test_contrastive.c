/* The losses on matched features, by numbers worked out by hand, and what they draw. Gradients stand in test_cases. */
#include "kernels/contrastive.h"
#include "tests/check.h"

/* Features of one channel. The source has rows 0, 1, 3 in the first sample, the target 0, 2, 5 and 6; in the second
   sample there is nothing to match. Matches: (0, 0), (0, 1), (2, 2). */
static const float source[] = {0, 1, 3, 9}, target[] = {0, 2, 5, 6, 8};
static const int64_t source_splits[] = {0, 3, 4}, target_splits[] = {0, 4, 5};
static const int64_t start[] = {0, 2, 2, 3, 3};
static const int32_t other[] = {0, 1, 2};

static struct pnet_matched pair_of(void)
{
    return (struct pnet_matched){.samples = 2,
        .width = 1,
        .a_rows = pnet_count(4),
        .b_rows = pnet_count(5),
        .a_splits = source_splits,
        .b_splits = target_splits,
        .a = source,
        .b = target,
        .start = start,
        .other = other,
        .rand = {.seed = 5, .purpose = PNET_DRAW_LOSS, .a = 3}};
}

static void *room(size_t size)
{
    void *p = aligned_alloc(64, (size + 64) / 64 * 64);
    if (!p) abort();
    return memset(p, 0xff, size);
}

static bool close_to(double a, double b)
{
    return fabs(a - b) <= 1e-6 * (1 + fabs(b));
}

/* Everything is drawn. Distances of the matches: 0, 2, 2. Hardest rows of the target: for 0 its match 0, which does
   not count, both times; for 3 it is 2, at a distance of 1. Of the source: for 0 the match 0; for 2 the lower one of
   1 and 3, which are as near; for 5 the match 3. */
static void test_hardest(void)
{
    enum { POSITIVES = 5 };
    struct pnet_hardest h = {pair_of(), POSITIVES, 4, 0.5, 3};
    int32_t mined[2 * POSITIVES * 4];
    static const int32_t want[] = {0, 0, -1, -1, 0, 1, -1, 1, 2, 2, 1, -1};
    float sizes[3], loss, ga[4], gb[5], gloss = 2;
    void *work = room(pnet_cpu_hardest_work(&h, false));
    pnet_cpu_hardest(&h, mined, sizes, &loss, work);
    free(work);
    for (int i = 0; i < 12; i++) CHECKF(mined[i] == want[i], "mined[%d] is %d", i, mined[i]);
    for (int i = 12; i < 2 * POSITIVES * 4; i++) CHECKF(mined[i] == -1, "mined[%d]", i);
    CHECK(sizes[0] == 3 && sizes[1] == 1 && sizes[2] == 1);
    CHECKF(close_to(loss, (0 + 2.25 + 2.25) / 3 + 4 / 2. + 4 / 2.), "%g", (double)loss);
    /* d loss by each distance: 2 * 1.5 / 3 of the matches, -(3 - 1) of either negative */
    struct pnet_matched_gradients g = {ga, gb, false, true};
    for (int i = 0; i < 5; i++) gb[i] = 100;
    work = room(pnet_cpu_hardest_work(&h, true));
    pnet_cpu_hardest_backward(&h, mined, sizes, &gloss, &g, work);
    free(work);
    static const double want_a[] = {-2, 4, -2 - 4, 0}, want_b[] = {0, 2 - 4 + 4, 2, 0, 0};
    for (int i = 0; i < 4; i++) CHECKF(close_to(ga[i], want_a[i]), "a[%d]: %g", i, (double)ga[i]);
    for (int i = 0; i < 5; i++)
        CHECKF(close_to(gb[i], 100 + want_b[i]), "b[%d]: %g", i, (double)gb[i]);
}

/* Three anchors a side, the drawn pairs (0, 0), (0, 1), (2, 2); row 0 of the source stands there twice, with the
   matches 0 and 1 and the negative 2; the wider matches take (2, 1) out. */
static void test_circle(void)
{
    static const int64_t safe_start[] = {0, 2, 2, 4, 4};
    static const int32_t safe_other[] = {0, 1, 1, 2};
    enum { PAIRS = 4 };
    struct pnet_circle c = {pair_of(), safe_start, safe_other, PAIRS, 1, 6, 0.25};
    int32_t drawn[2 * PAIRS * 2];
    double sums[2 * 2 * PAIRS * 2];
    float sizes[2], loss;
    pnet_cpu_circle(&c, drawn, sums, sizes, &loss, NULL);
    static const int32_t want[] = {0, 0, 0, 1, 2, 2, -1, -1};
    for (int i = 0; i < 8; i++) CHECKF(drawn[i] == want[i], "drawn[%d] is %d", i, drawn[i]);
    /* d: 0-0 0, 0-2 2, 0-5 5; 3-5 2, 3-0 3 */
    double positive = 1 + exp(0.25), row = log(1 + positive * exp(0.25)) / 0.25;
    double last = log(1 + exp(0.25) * exp(0.25 * 9)) / 0.25;
    double column0 = log(1 + 2 * exp(0.25 * 9)) / 0.25;
    double column2 = log(1 + exp(0.25) * 2 * exp(0.25)) / 0.25;
    CHECK(sizes[0] == 3 && sizes[1] == 2); /* column 1 has no negative */
    double mean = ((row + row + last) / 3 + (column0 + column2) / 2) / 2;
    CHECKF(close_to(loss, mean), "%g, not %g", (double)loss, mean);
}

/* All where there are not more; else one of each stretch, other ones in other steps. */
static void test_draws(void)
{
    struct pnet_rand r = {.seed = 7, .purpose = PNET_DRAW_LOSS, .a = 1}, next = r;
    int64_t moved = 0;
    next.a = 2;
    for (int i = 0; i < 10; i++) CHECK(pnet_matched_draw(&r, 0, PNET_DRAW_SOURCE, 10, 10, i) == i);
    for (int64_t count = 11; count < 100000; count = count * 3 + 1) {
        for (int32_t i = 0; i < 10; i++) {
            int64_t at = pnet_matched_draw(&r, 2, PNET_DRAW_TARGET, count, 10, i);
            CHECK(at >= count * i / 10 && at < count * (i + 1) / 10);
            moved += at != pnet_matched_draw(&next, 2, PNET_DRAW_TARGET, count, 10, i);
            moved += at != pnet_matched_draw(&r, 1, PNET_DRAW_TARGET, count, 10, i);
        }
    }
    CHECKF(moved > 100, "%lld", (long long)moved);
}

int main(void)
{
    test_hardest();
    test_circle();
    test_draws();
    return check_end();
}
