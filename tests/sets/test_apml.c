/* The loss apml: numbers worked out by hand, a dense plan in float64, symmetries, gradients, threads, what is not finite. */
#include "tests/sets/apml_dense.h"

#include <omp.h>

static void check_plan(
    const char *what, const struct apml_result *r, const struct sets *s, const double *want)
{
    int64_t n = s->splits[X][1] * s->splits[Y][1];
    double *p = apml_dense(r, s);
    for (int64_t i = 0; i < n; i++)
        CHECKF(fabs(p[i] - want[i]) < 1e-6, "%s: P[%lld] = %.8f, not %.8f", what, (long long)i,
            p[i], want[i]);
    free(p);
}

static void check_number(const char *what, double got, double want)
{
    CHECKF(fabs(got - want) <= 2e-6 * fabs(want) + 1e-7, "%s: %.8f, not %.8f", what, got, want);
}

/* Distances 0, 1, 2 and p = 0.8: L = ln 8, so similarities are 1, 1/8, 1/64. */
static void test_one_row(void)
{
    const float x[] = {0}, y[] = {0, 1, 2};
    const double want[] = {0.8767123, 0.1095890, 0.0136986};
    struct sets s = sets_line(1, x, 3, y);
    struct pnet_apml a = apml_standard();
    a.rounds = 0;
    struct apml_result r = apml_run(a, &s);
    const struct pnet_apml_entry *e;
    CHECK(apml_row(&r, 0, 0, &e) == 3);
    for (int j = 0; j < 3; j++) check_number("half a weight", 2 * (double)e[j].p, want[j]);
    CHECK(apml_row(&r, 1, 0, &e) == 3); /* each column has one entry: 1 */
    for (int j = 0; j < 3; j++) check_number("half of one", (double)e[j].p, 0.5);
    apml_free(&r);
    sets_free(&s);
}

/* Plans worked out by hand, after no round, one and two. */
static void test_plans(void)
{
    const float two[] = {0, 1}, other[] = {0, 3}, three[] = {0, 1, 5}, between[] = {0, 2};
    const double by_two[][4] = {{0.8, 0.2, 0.5, 0.5}, {0.68292682, 0.31707317, 0.35, 0.65},
        {0.66849314, 0.33150685, 0.33516483, 0.66483516}};
    const double by_three[][6] = {
        {0.84443239, 0.15479452, 0.30555405, 0.68835616, 0.10001356, 0.40684932},
        {0.84508571, 0.15491428, 0.3074262, 0.69257378, 0.19731877, 0.8026812},
        {0.86960431, 0.13039567, 0.35176703, 0.64823295, 0.23107726, 0.76892273}};
    for (int32_t rounds = 0; rounds < 3; rounds++) {
        struct pnet_apml a = apml_standard();
        a.rounds = rounds;
        struct sets s = sets_line(2, two, 2, other), t = sets_line(3, three, 2, between);
        struct apml_result r = apml_run(a, &s), q = apml_run(a, &t);
        check_plan("2 x 2", &r, &s, by_two[rounds]);
        check_plan("3 x 2", &q, &t, by_three[rounds]);
        if (rounds == 2) {
            check_number("2 x 2", (double)r.loss, 3 * 0.33150685 + 0.33516483 + 2 * 0.66483516);
            check_number(
                "3 x 2", (double)q.loss, 2 * 0.13039567 + 1 + 5 * 0.23107726 + 3 * 0.76892273);
            check_number("gradient of x_2", (double)q.gradient[X][6], 1);
            check_number("gradient of x_1", (double)q.gradient[X][3], 0.35176703 - 0.64823295);
            check_number("gradient of y_0", (double)q.gradient[Y][0], -0.35176703 - 0.23107726);
        }
        apml_free(&r);
        apml_free(&q);
        sets_free(&s);
        sets_free(&t);
    }
}

/* Equal sets do not give 0; a tied minimum shares the weight; one point of either set; one place. */
static void test_special(void)
{
    const float line[] = {0, 1}, tied[] = {1, -1, 5}, zero[] = {0}, many[] = {2, 3, 5};
    const double equal[] = {0.8, 0.2, 0.2, 0.8}, half[] = {0.5, 0.5, 0}, ones[] = {1, 1, 1},
                 thirds[] = {1 / 3., 1 / 3., 1 / 3.};
    struct pnet_apml a = apml_standard();
    struct sets s = sets_line(2, line, 2, line);
    struct apml_result r = apml_run(a, &s);
    check_plan("equal sets", &r, &s, equal);
    check_number("equal sets", (double)r.loss, 0.4);
    check_number("equal sets", (double)r.gradient[X][0], -0.2);
    check_number("equal sets", (double)r.gradient[X][3], 0.2);
    /* y_0 is pulled to x_1 as x_0 is to y_1 */
    check_number("equal sets", (double)r.gradient[Y][0], -0.2);
    check_number("equal sets", (double)r.gradient[Y][3], 0.2);
    apml_free(&r);
    sets_free(&s);
    s = sets_line(1, zero, 3, tied);
    a.rounds = 0;
    r = apml_run(a, &s);
    const struct pnet_apml_entry *e;
    CHECK(apml_row(&r, 0, 0, &e) == 2);
    for (int j = 0; j < 2; j++) check_number("tied", 2 * (double)e[j].p, half[j]);
    apml_free(&r);
    sets_free(&s);
    a.rounds = 10;
    s = sets_line(3, many, 1, zero); /* rows have one entry, 1, and the last step is theirs */
    r = apml_run(a, &s);
    check_plan("m = 1", &r, &s, ones);
    check_number("m = 1", (double)r.loss, 10);
    check_number("m = 1", (double)r.gradient[Y][0], -3);
    apml_free(&r);
    sets_free(&s);
    s = sets_line(1, zero, 3, many); /* columns add up to 1, which the row shares among them */
    r = apml_run(a, &s);
    check_plan("n = 1", &r, &s, thirds);
    check_number("n = 1", (double)r.loss, 10 / 3.);
    check_number("n = 1", (double)r.gradient[X][0], -1);
    for (int j = 0; j < 3; j++) check_number("n = 1", (double)r.gradient[Y][3 * j], 1 / 3.);
    apml_free(&r);
    sets_free(&s);
    s = sets_line(1, zero, 1, zero);
    r = apml_run(a, &s);
    CHECK(r.loss == 0);
    for (int k = 0; k < 6; k++) CHECK(r.gradient[k / 3][k % 3] == 0);
    apml_free(&r);
    sets_free(&s);
}

/* The rows of both sets that a limit cuts. */
static double rows_cut(struct pnet_apml a, const struct sets *s)
{
    double sum[PNET_APML_SUMS];
    a.sets = (struct pnet_set_pair){.x = apml_set(s, X), .y = apml_set(s, Y)};
    void *work = apml_take(pnet_cpu_apml_support_work(&a));
    pnet_cpu_apml_support(&a, sum, work);
    free(work);
    return sum[PNET_APML_CUT];
}

/* By how much the loss is off that of every pair, and that of the pairs that tau leaves. */
static void check_dense(
    const char *what, const struct pnet_apml *a, const struct sets *s, double all, double off)
{
    struct apml_dense left = {.p = a->p, .tau = a->tau, .rounds = a->rounds};
    struct apml_result r = apml_run(*a, s);
    double error = fabs((double)r.loss / all - 1),
           own = fabs((double)r.loss / apml_dense_loss(&left, s) - 1);
    CHECK(rows_cut(*a, s) == 0);
    CHECKF(error < off && own < 1e-6, "%s: off by %g at %g, %d rounds; by %g of the same pairs",
        what, error, a->tau, a->rounds, own);
    apml_free(&r);
}

/* The sparse plan against the dense one. Without rounds it is as near as K tau says. Rounds magnify what the threshold leaves
   out: a column that no row has as a near point is scaled up until far entries carry it. So at 1e-8 the loss of independent
   samples of a surface is off by parts in a thousand, with the limits of the default too; a float64 plan of the same pairs is
   off by as much. */
static void test_dense(void)
{
    static const int64_t sizes[][2] = {{500, 500}, {300, 700}, {900, 250}};
    static const struct {
        enum kind kind;
        double off[3]; /* at 1e-8, 1e-12, 1e-16 */
    } of[] = {{RANDOM, {1e-3, 1e-5, 1e-6}}, {SURFACE, {4e-3, 1e-4, 1e-6}},
        {NEAR, {1e-3, 1e-5, 1e-6}}, {COLLAPSED, {1e-5, 1e-6, 1e-6}}};
    int uncut = 0;
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++) {
            struct sets s = sets_make(sizes[i][0], sizes[i][1]);
            struct pnet_apml a = apml_standard();
            struct apml_dense all = {.p = 0.8, .rounds = 10}, weights = {.p = 0.8};
            sets_draw(&s, of[k].kind);
            double want = apml_dense_loss(&all, &s);
            if (rows_cut(a, &s) == 0) {
                check_dense(kinds[of[k].kind], &a, &s, want, of[k].off[0]);
                uncut++;
            }
            a = apml_uncut();
            for (int t = 0; t < 3; t++) {
                a.tau = pow(10, -8 - 4 * t);
                check_dense(kinds[of[k].kind], &a, &s, want, of[k].off[t]);
            }
            a.tau = 1e-8;
            a.rounds = 0;
            check_dense(kinds[of[k].kind], &a, &s, apml_dense_loss(&weights, &s), 2e-5);
            sets_free(&s);
        }
    CHECKF(uncut >= 10, "%d cases fit the limits of the default", uncut);
}

/* After many rounds rows add up to 1, and columns of equally large sets too. */
static void test_marginals(void)
{
    enum { N = 400 };
    struct sets s = sets_make(N, N);
    struct pnet_apml a = apml_standard();
    double column[N] = {0}, off = 0;
    a.rounds = 50;
    sets_draw(&s, NEAR);
    struct apml_result r = apml_run(a, &s);
    double *p = apml_dense(&r, &s);
    for (int64_t i = 0; i < N; i++) {
        double row = 0;
        for (int64_t j = 0; j < N; j++) {
            row += p[i * N + j];
            column[j] += p[i * N + j];
        }
        CHECKF(fabs(row - 1) < 1e-5, "row %lld adds up to %g", (long long)i, row);
    }
    for (int j = 0; j < N; j++) off = fmax(off, fabs(column[j] - 1));
    CHECKF(off < 1e-3, "a column is off by %g", off);
    free(p);
    apml_free(&r);
    sets_free(&s);
}

/* The same loss and gradients wherever the rows stand and the sets lie. */
static void test_symmetries(void)
{
    enum { N = 350, M = 260 };
    struct sets s = sets_make(N, M), t = sets_make(N, M);
    struct pnet_apml a = apml_standard();
    sets_draw(&s, SURFACE);
    for (int k = 0; k < 2; k++) {
        int64_t n = s.splits[k][1];
        for (int64_t i = 0; i < n; i++) /* 37 and 11 have no factor in common with the sizes */
            memcpy(t.xyz[k] + 3 * i, s.xyz[k] + 3 * (i * (k ? 11 : 37) % n), 3 * sizeof(float));
    }
    struct apml_result r = apml_run(a, &s), q = apml_run(a, &t);
    CHECKF(
        fabsf(r.loss - q.loss) < 1e-5f * r.loss, "%g, permuted %g", (double)r.loss, (double)q.loss);
    for (int k = 0; k < 2; k++) {
        double error = 0, size = 0;
        int64_t n = s.splits[k][1];
        for (int64_t i = 0; i < 3 * n; i++) {
            int64_t from = 3 * (i / 3 * (k ? 11 : 37) % n) + i % 3;
            error += pow((double)q.gradient[k][i] - (double)r.gradient[k][from], 2);
            size += pow((double)r.gradient[k][from], 2);
        }
        CHECKF(error < 1e-8 * size, "permuted gradient %d is off by %g", k, sqrt(error / size));
    }
    apml_free(&q);
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < 3 * s.splits[k][1]; i++)
            t.xyz[k][i] = s.xyz[k][i] + 0.25f * (float)(i % 3);
    q = apml_run(a, &t);
    CHECKF(fabsf(r.loss - q.loss) < 1e-4f * r.loss, "%g, moved %g", (double)r.loss, (double)q.loss);
    apml_free(&r);
    apml_free(&q);
    sets_free(&s);
    sets_free(&t);
}

/* Central differences of what the plan carries, the plan held fixed, in float64. */
static void test_gradient(void)
{
    enum { N = 60, M = 45 };
    struct sets s = sets_make(N, M);
    sets_draw(&s, RANDOM);
    struct apml_result r = apml_run(apml_standard(), &s);
    double *p = apml_dense(&r, &s);
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < s.splits[k][1]; i++)
            for (int a = 0; a < 3; a++) {
                double sum[2] = {0, 0}, h = 1e-4;
                for (int64_t j = 0; j < s.splits[1 - k][1]; j++)
                    for (int up = 0; up < 2; up++) {
                        double square = 0;
                        for (int b = 0; b < 3; b++) {
                            double d =
                                (double)s.xyz[k][3 * i + b] - (double)s.xyz[1 - k][3 * j + b];
                            d += b == a ? up ? h : -h : 0;
                            square += d * d;
                        }
                        sum[up] += p[k == X ? i * M + j : j * M + i] * sqrt(square);
                    }
                double want = (sum[1] - sum[0]) / (2 * h), got = (double)r.gradient[k][3 * i + a];
                CHECKF(fabs(got - want) < 1e-4 * (fabs(want) + 1), "%g, not %g", got, want);
            }
    free(p);
    apml_free(&r);
    sets_free(&s);
}

static bool same(const struct apml_result *r, const struct apml_result *q, const struct sets *s)
{
    bool equal = memcmp(&r->loss, &q->loss, sizeof r->loss) == 0;
    for (int k = 0; k < 2; k++)
        equal &= memcmp(r->gradient[k], q->gradient[k],
                     (size_t)s->splits[k][s->samples] * 3 * sizeof(float)) == 0;
    return equal;
}

static void check_threads(const char *what, const struct pnet_apml *a, const struct sets *s)
{
    struct apml_result r[4];
    for (int t = 0; t < 4; t++) {
        omp_set_num_threads(t < 3 ? t + 1 : 2);
        r[t] = apml_run(*a, s);
        CHECKF(same(&r[0], &r[t], s), "%s, run %d has other bits", what, t);
    }
    for (int t = 0; t < 4; t++) apml_free(&r[t]);
    omp_set_num_threads(2);
}

/* The same bits with 1, 2 and 3 threads, and again; with room for all supports, and where some are searched again; where
   threads share samples, and where they share the rows of one. */
static void test_threads(void)
{
    static const int64_t splits[2][5] = {{0, 300, 700, 1100, 1500}, {0, 500, 600, 900, 1200}};
    struct pnet_apml a = apml_standard();
    for (int kind = 0; kind < KINDS; kind++)
        for (a.entries = 4; a.entries <= 64; a.entries *= 4) {
            struct sets s = sets_make(1500, 1200);
            sets_draw(&s, (enum kind)kind);
            check_threads(kinds[kind], &a, &s);
            s.samples = 4;
            memcpy(s.splits, splits, sizeof splits);
            check_threads("samples", &a, &s);
            sets_free(&s);
        }
    struct sets s = sets_make(40000, 35000);
    sets_draw(&s, RANDOM);
    check_threads("large", &a, &s);
    sets_free(&s);
}

/* Samples do not see each other; one with an empty side adds 0, but counts in the mean. */
static void test_samples(void)
{
    struct sets s = sets_make(100, 120), one[2] = {sets_make(40, 50), sets_make(30, 20)};
    static const int64_t splits[2][5] = {{0, 40, 40, 70, 100}, {0, 50, 100, 120, 120}};
    struct pnet_apml a = apml_standard();
    sets_draw(&s, RANDOM);
    s.samples = 4;
    memcpy(s.splits, splits, sizeof splits);
    a.entries = 64;
    struct apml_result r = apml_run(a, &s);
    double want = 0;
    for (int i = 0; i < 2; i++) { /* samples 0 and 2; 1 has no x, 3 no y */
        for (int k = 0; k < 2; k++)
            memcpy(one[i].xyz[k], s.xyz[k] + 3 * s.splits[k][2 * i],
                (size_t)one[i].splits[k][1] * 3 * sizeof(float));
        struct apml_result q = apml_run(a, &one[i]);
        want += (double)q.loss / 4;
        for (int64_t n = 0; n < 3 * one[i].splits[X][1]; n++)
            check_number("gradient of a sample", (double)r.gradient[X][3 * s.splits[X][2 * i] + n],
                (double)q.gradient[X][n] / 4);
        apml_free(&q);
        sets_free(&one[i]);
    }
    check_number("mean of four samples", (double)r.loss, want);
    for (int64_t n = 0; n < 90; n++) CHECK(r.gradient[X][210 + n] == 0);
    for (int64_t n = 0; n < 150; n++) CHECK(r.gradient[Y][150 + n] == 0);
    apml_free(&r);
    sets_free(&s);
    s = sets_make(0, 0);
    r = apml_run(a, &s);
    CHECK(r.loss == 0);
    apml_free(&r);
    sets_free(&s);
}

/* NaN where a coordinate is not finite, or squared distances are not. */
static void test_not_finite(void)
{
    const float bad[] = {NAN, INFINITY, -INFINITY, 2e19f};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 2; k++) {
            struct sets s = sets_make(2000, 1500);
            sets_draw(&s, RANDOM);
            s.xyz[k][3 * 777 + 1] = bad[i];
            struct apml_result r = apml_run(apml_standard(), &s);
            CHECK(isnan(r.loss) && isnan(r.gradient[X][0]) && isnan(r.gradient[Y][4499]));
            apml_free(&r);
            sets_free(&s);
        }
    struct sets s = sets_make(50, 50); /* large, and so small that squares vanish */
    for (int i = 0; i < 2; i++) {
        sets_draw(&s, RANDOM);
        for (int64_t n = 0; n < 150; n++)
            for (int k = 0; k < 2; k++) s.xyz[k][n] *= i ? 1e-30f : 1e18f;
        struct apml_result r = apml_run(apml_standard(), &s);
        CHECKF(isfinite(r.loss) && isfinite(r.gradient[X][7]), "%g", (double)r.loss);
        apml_free(&r);
    }
    sets_free(&s);
}

int main(void)
{
    omp_set_num_threads(2);
    test_one_row();
    test_plans();
    test_special();
    test_dense();
    test_marginals();
    test_symmetries();
    test_gradient();
    test_threads();
    test_samples();
    test_not_finite();
    return check_end();
}
