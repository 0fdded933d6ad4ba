/* The code of the APML papers differs from the papers, and pnet from the code: an emulation of the code, on numbers worked out by
   hand, says by how much, and that pnet's loss is that of the papers. */
#include "tests/sets/apml_dense.h"

static void check_plan(const char *what, const double *p, int64_t n, const double *want)
{
    for (int64_t i = 0; i < n; i++)
        CHECKF(fabs(p[i] - want[i]) < 1e-6, "%s: P[%lld] = %.8f, not %.8f", what, (long long)i,
            p[i], want[i]);
}

/* The plan of the emulation; of pnet, where it does all as the papers say. */
static void check_both(
    const char *what, const struct apml_dense *a, const struct sets *s, const double *want)
{
    int64_t n = s->splits[X][1] * s->splits[Y][1];
    double *p = apml_dense_plan(a, s);
    check_plan(what, p, n, want);
    free(p);
    if (a->without_p || a->whole || a->rows_first) return;
    struct pnet_apml own = apml_uncut();
    own.p = a->p;
    own.tau = a->tau;
    own.rounds = a->rounds;
    struct apml_result r = apml_run(own, s);
    p = apml_dense(&r, s);
    check_plan("pnet", p, n, want);
    free(p);
    apml_free(&r);
}

/* Distances 0, 1, 2 and p = 0.8: without p in its numerator the temperature is ln 10, not ln 8. */
static void test_temperature(void)
{
    const float x[] = {0}, y[] = {0, 1, 2};
    const double with[] = {64 / 73., 8 / 73., 1 / 73.},
                 without[] = {100 / 111., 10 / 111., 1 / 111.};
    struct sets s = sets_line(1, x, 3, y);
    struct apml_dense a = {.p = 0.8, .tau = 1e-8};
    double want[3];
    for (int code = 0; code < 2; code++) {
        a.without_p = code;
        for (int j = 0; j < 3; j++) want[j] = ((code ? without : with)[j] + 1) / 2;
        check_both("temperature", &a, &s, want);
    }
    sets_free(&s);
}

/* At tau = 0.05 a row of three keeps what lies within 1.44 gaps. y_2 alone keeps (x_0, y_2), and x_2 alone (x_2, y_1) and
   (x_2, y_2): the papers halve these, the code does not. */
static void test_one_sided(void)
{
    const float x[] = {0, 1, 10}, y[] = {0, 1, 2};
    double want[] = {8 / 9., 1 / 9., 1 / 18., 19 / 180., 38 / 45., 89 / 180., 0, 1 / 18., 4 / 9.};
    struct sets s = sets_line(3, x, 3, y);
    struct apml_dense a = {.p = 0.8, .tau = 0.05};
    check_both("half weights", &a, &s, want);
    a.whole = true;
    want[2] *= 2;
    want[7] *= 2;
    want[8] *= 2;
    check_both("full weights", &a, &s, want);
    sets_free(&s);
}

/* One round of weights [3, 2] that test_apml.c has worked out: the last step decides which sums are 1. */
static void test_order(void)
{
    const float x[] = {0, 1, 5}, y[] = {0, 2};
    const double rows_last[] = {0.84508571, 0.15491428, 0.3074262, 0.69257378, 0.19731877,
        0.8026812},
                 columns_last[] = {
                     0.62606793, 0.09387781, 0.22775168, 0.41969863, 0.14618038, 0.48642356};
    struct sets s = sets_line(3, x, 2, y);
    struct apml_dense a = {.p = 0.8, .tau = 1e-8, .rounds = 1};
    check_both("rows last", &a, &s, rows_last);
    a.rows_first = true;
    check_both("columns last", &a, &s, columns_last);
    sets_free(&s);
}

/* What each difference, and all of them with the code's 20 rounds and tau, make of the loss of larger sets: parts in a
   thousand, and rounds most of it. pnet's is that of the papers. */
static void test_losses(void)
{
    static const struct {
        const char *what;
        struct apml_dense a;
        double least, most; /* of the relative difference */
    } of[] = {{"papers", {0.8, 1e-8, 10, false, false, false}, 0, 1e-6},
        {"temperature", {0.8, 1e-8, 10, true, false, false}, 1e-3, 1e-2},
        {"full weights", {0.8, 1e-8, 10, false, true, false}, 1e-3, 1e-2},
        {"rows first", {0.8, 1e-8, 10, false, false, true}, 1e-3, 2e-2},
        {"20 rounds", {0.8, 1e-8, 20, false, false, false}, 2e-2, 0.1},
        {"code", {0.8, 1e-10, 20, true, true, true}, 2e-2, 0.15}};
    for (enum kind kind = RANDOM; kind <= SURFACE; kind++) {
        struct sets s = sets_make(500, 500);
        sets_draw(&s, kind);
        struct apml_result r = apml_run(apml_uncut(), &s);
        for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
            double off = fabs(apml_dense_loss(&of[i].a, &s) / (double)r.loss - 1);
            CHECKF(off >= of[i].least && off < of[i].most, "%s, %s: the loss differs by %g",
                kinds[kind], of[i].what, off);
        }
        apml_free(&r);
        sets_free(&s);
    }
}

int main(void)
{
    test_temperature();
    test_one_sided();
    test_order();
    test_losses();
    return check_end();
}
