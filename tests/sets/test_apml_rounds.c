/* The rounds of apml where factors of rows and columns leave float32, from collapsed to equal sets: against rounds in long
   double that begin with the same weights, and against the definition over all pairs in float64. */
#include "tests/sets/apml_dense.h"
#include "tests/sets/apml_rounds.h"

#include <omp.h>

static char name[96];

/* |got - want| of a gradient, relative to |want|. */
static double off(const float *got, const double *want, int64_t n)
{
    double error = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        error += pow((double)got[i] - want[i], 2);
        size += pow(want[i], 2);
    }
    return size > 0 ? sqrt(error / size) : sqrt(error);
}

/* Loss, gradients and plan are those of rounds in long double, within a relative `bound`, and ten times as much of a
   gradient and of P. */
static void check_rounds(struct pnet_apml a, const struct sets *s, double bound)
{
    struct pnet_apml none = a;
    none.rounds = 0;
    struct apml_result start = apml_run(none, s), r = apml_run(a, s);
    const struct pnet_set_pair sets = {.x = apml_set(s, X), .y = apml_set(s, Y)};
    struct apml_rounds want = apml_rounds_of(&sets, &start.plan, a.rounds);
    double worst = 0;
    CHECKF(fabs((double)r.loss - want.loss) <= bound * want.loss,
        "%s, %d rounds: loss %.9g, not %.9g", name, a.rounds, (double)r.loss, want.loss);
    for (int k = 0; k < 2; k++) {
        const struct pnet_apml_entry *e = k ? r.plan.by_column : r.plan.by_row;
        double by = off(r.gradient[k], want.gradient[k], 3 * s->splits[k][s->samples]);
        CHECKF(by < 10 * bound, "%s, %d rounds: gradient %d is off by %g", name, a.rounds, k, by);
        for (int64_t i = 0; i < r.plan.end[2 * (sets.x.rows.most - 1) + k]; i++) {
            double error = fabs((double)e[i].p - want.entry[k][i]);
            worst = error <= worst ? worst : error; /* NaN too */
        }
    }
    CHECKF(worst < 10 * bound, "%s, %d rounds: P is off by %g", name, a.rounds, worst);
    apml_rounds_free(&want);
    apml_free(&start);
    apml_free(&r);
}

/* From collapsed to equal sets, equally large and not, from one round to the most that the language allows. */
static void test_kinds(void)
{
    static const int64_t sizes[][2] = {{150, 150}, {17, 64}, {200, 3}, {1, 90}, {2, 2}};
    static const int32_t rounds[] = {1, 10, 20, 64, 150, 1000};
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            struct sets s = sets_make(sizes[i][0], sizes[i][1]);
            sets_draw(&s, (enum kind)kind);
            snprintf(name, sizeof name, "%s, %lld x %lld", kinds[kind], (long long)sizes[i][0],
                (long long)sizes[i][1]);
            for (size_t k = 0; k < sizeof rounds / sizeof *rounds; k++) {
                struct pnet_apml a = apml_standard();
                if (i == 0 && rounds[k] == 1000) continue; /* takes long */
                a.rounds = rounds[k];
                check_rounds(a, &s, 3e-6);
                a.p = 0.95;
                a.tau = 1e-30;
                a.entries = 64;
                check_rounds(a, &s, 3e-6);
            }
            sets_free(&s);
        }
}

/* All predictions in a cube of 1 cm in the middle of a cube of 1 m, which has the other points. */
static struct sets sets_within(int64_t n, int64_t m)
{
    struct sets s = sets_make(n, m);
    for (int64_t i = 0; i < 3 * n; i++) s.xyz[X][i] = 0.01f * unit(900, (uint64_t)i) + 0.5f;
    for (int64_t i = 0; i < 3 * m; i++) s.xyz[Y][i] = unit(901, (uint64_t)i);
    return s;
}

/* Networks before they have learned. Sums over the many entries of the columns in the middle have larger errors. */
static void test_collapsed(void)
{
    struct pnet_apml a = apml_standard();
    struct sets s = sets_within(20000, 20000);
    snprintf(name, sizeof name, "20000 within 1 cm");
    check_rounds(a, &s, 3e-6);
    sets_free(&s);
    s = sets_within(1000, 1000);
    snprintf(name, sizeof name, "1000 within 1 cm");
    for (a.rounds = 10; a.rounds <= 160; a.rounds *= 2) check_rounds(a, &s, 3e-6);
    sets_free(&s);
}

/* Columns with an entry for each row: float32 alone would be off by parts in a thousand. */
static void test_long_rows(void)
{
    enum { N = 40000 };
    struct sets s = sets_make(N, 200);
    struct pnet_apml a = apml_standard();
    sets_draw(&s, RANDOM);
    for (int64_t i = 0; i < 3 * N; i++) s.xyz[X][i] = 0.3f + 0.001f * (float)(i % 3);
    snprintf(name, sizeof name, "long rows");
    check_rounds(a, &s, 3e-6);
    a.rounds = 3; /* here float32 does not overflow */
    check_rounds(a, &s, 3e-6);
    sets_free(&s);
}

static void check_dense(const struct pnet_apml *a, const struct sets *s)
{
    struct apml_dense dense = {.p = a->p, .tau = a->tau, .rounds = a->rounds};
    struct apml_result r = apml_run(*a, s);
    double want = apml_dense_loss(&dense, s);
    CHECKF(fabs((double)r.loss - want) < 1e-5 * want, "%s, %d rounds: loss %.9g, not %.9g", name,
        a->rounds, (double)r.loss, want);
    apml_free(&r);
}

static void test_definition(void)
{
    static const enum kind of[] = {RANDOM, SURFACE, COLLAPSED, NEAR};
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        struct pnet_apml a = apml_uncut();
        struct sets s = sets_make(17, 64), t = sets_make(400, 400);
        sets_draw(&s, of[k]);
        sets_draw(&t, of[k]);
        snprintf(name, sizeof name, "all pairs, %s", kinds[of[k]]);
        for (a.rounds = 20; a.rounds <= 320; a.rounds *= 2) {
            a.p = 0.95;
            check_dense(&a, &s);
            a.p = 0.8;
            if (a.rounds <= 80) check_dense(&a, &t);
        }
        sets_free(&s);
        sets_free(&t);
    }
    struct pnet_apml a = apml_uncut();
    struct sets s = sets_within(1000, 1000);
    a.rounds = 20;
    snprintf(name, sizeof name, "all pairs, 1000 within 1 cm");
    check_dense(&a, &s);
    sets_free(&s);
}

/* Samples whose factors leave float32 beside such whose do not. */
static void test_samples(void)
{
    static const int64_t splits[2][5] = {{0, 300, 600, 600, 1100}, {0, 250, 650, 700, 1000}};
    struct sets s = sets_make(1100, 1000), t = sets_make(1100, 1000);
    struct pnet_apml a = apml_standard();
    sets_draw(&s, NEAR);
    sets_draw(&t, COLLAPSED);
    for (int k = 0; k < 2; k++) {
        int64_t from = 3 * splits[k][1], to = 3 * splits[k][2];
        memcpy(s.xyz[k] + from, t.xyz[k] + from, (size_t)(to - from) * sizeof(float));
    }
    s.samples = 4;
    memcpy(s.splits, splits, sizeof splits);
    snprintf(name, sizeof name, "samples");
    for (a.rounds = 10; a.rounds <= 160; a.rounds *= 2) check_rounds(a, &s, 3e-6);
    sets_free(&s);
    sets_free(&t);
}

/* The same bits whatever the number of threads, where they share the rows of a sample whose factors leave float32. */
static void test_threads(void)
{
    struct sets s = sets_make(40000, 35000);
    struct pnet_apml a = apml_standard();
    float loss[3];
    sets_draw(&s, DUPLICATES);
    a.rounds = 40;
    for (int t = 0; t < 3; t++) {
        omp_set_num_threads(t + 1);
        struct apml_result r = apml_run(a, &s);
        loss[t] = r.loss;
        apml_free(&r);
    }
    CHECK(isfinite(loss[0]) && loss[0] == loss[1] && loss[0] == loss[2]);
    sets_free(&s);
}

int main(void)
{
    omp_set_num_threads(1);
    test_kinds();
    test_collapsed();
    test_long_rows();
    test_definition();
    test_samples();
    test_threads();
    return check_end();
}
