/* Which pairs apml looks at: against brute force in float32, against the threshold in float64, and every limit. */
#include "runtime/plan/op.h"
#include "tests/sets/apml_case.h"

#include <omp.h>

/* Row i of set k among the points of the other set, [count] of them: their distances, least and second, radius. */
struct around {
    float *d, radius;
    double exact; /* radius in float64, from coordinates as they are */
};

static double exact_distance(const float *p, const float *q)
{
    double sum = 0;
    for (int a = 0; a < 3; a++) sum += pow((double)p[a] - (double)q[a], 2);
    return sqrt(sum);
}

static void look_around(const struct pnet_apml *a, const float *at, int64_t count,
    const float *others, struct around *r)
{
    double least = INFINITY, next = INFINITY;
    float first = INFINITY, second = INFINITY;
    for (int64_t j = 0; j < count; j++) {
        double d = exact_distance(at, others + 3 * j);
        next = fmin(next, fmax(d, least));
        least = fmin(d, least);
        r->d[j] = apml_distance(at, others + 3 * j);
        second = fminf(second, fmaxf(r->d[j], first));
        first = fminf(first, r->d[j]);
    }
    double kappa = log(1 / a->tau) / log((double)(count - 1) * a->p / (1 - a->p));
    float g = second - first;
    if (g < 1e-8f) g = 1e-8f;
    r->radius = fmaf((float)kappa, g, first);
    r->exact = least + kappa * fmax(next - least, 1e-8);
    if (count == 1) r->radius = first;
    if (count == 1) r->exact = least;
}

/* The supports that brute force finds, [n, m] each: of rows, of columns. Checks them against the threshold in float64. */
static void brute(const struct pnet_apml *a, const struct sets *s, bool *support[2])
{
    for (int k = 0; k < 2; k++) {
        int64_t n = s->splits[k][1], m = s->splits[1 - k][1], wrong = 0;
        struct around r = {.d = apml_take((size_t)m * sizeof(float))};
        for (int64_t i = 0; i < n; i++) {
            look_around(a, s->xyz[k] + 3 * i, m, s->xyz[1 - k], &r);
            for (int64_t j = 0; j < m; j++) {
                bool in = r.d[j] <= r.radius;
                double d = exact_distance(s->xyz[k] + 3 * i, s->xyz[1 - k] + 3 * j);
                support[k][k == 0 ? i * m + j : j * n + i] = in;
                wrong += fabs(d - r.exact) > 1e-5 * r.exact && in != (d <= r.exact);
            }
        }
        CHECKF(wrong == 0, "%lld pairs differ from float64", (long long)wrong);
        free(r.d);
    }
}

/* The entries are the pairs of the support, each once, in ascending order. */
static void check_entries(
    const char *what, const struct apml_result *r, const struct sets *s, bool *const support[2])
{
    int64_t n = s->splits[X][1], m = s->splits[Y][1];
    for (int k = 0; k < 2; k++) {
        int64_t wrong = 0;
        for (int64_t i = 0; i < n; i++) {
            const struct pnet_apml_entry *e;
            int64_t count = apml_row(r, k, i, &e), at = 0;
            for (int64_t j = 0; j < m; j++) {
                if (!support[k][i * m + j]) continue;
                wrong += at >= count || e[at].other != j;
                at++;
            }
            wrong += at != count;
        }
        CHECKF(wrong == 0, "%s, %lld x %lld: %lld wrong entries of %s", what, (long long)n,
            (long long)m, (long long)wrong, k ? "columns" : "rows");
    }
}

static void test_supports(void)
{
    static const int64_t sizes[][2] = {
        {1, 1}, {1, 7}, {7, 1}, {2, 2}, {17, 16}, {300, 300}, {40, 700}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int kind = 0; kind < KINDS; kind++)
            for (int loose = 0; loose < 2; loose++) {
                struct sets s = sets_make(sizes[i][0], sizes[i][1]);
                struct pnet_apml a = apml_uncut();
                size_t pairs = (size_t)(sizes[i][0] * sizes[i][1]);
                bool *support[2] = {apml_take(pairs), apml_take(pairs)};
                if (loose) a.tau = 1e-20;
                a.rounds = 0;
                sets_draw(&s, (enum kind)kind);
                brute(&a, &s, support);
                struct apml_result r = apml_run(a, &s);
                check_entries(kinds[kind], &r, &s, support);
                apml_free(&r);
                free(support[0]);
                free(support[1]);
                sets_free(&s);
            }
}

/* Keeps the `limit` nearest points of each row by (distance, index), and of each column. */
static void cut(const struct sets *s, int32_t limit, bool *const support[2])
{
    int64_t m = s->splits[Y][1];
    for (int k = 0; k < 2; k++) {
        int64_t own = s->splits[k][1], others = s->splits[1 - k][1], i_step = k ? 1 : m,
                j_step = k ? m : 1;
        bool *kept = apml_take((size_t)others);
        for (int64_t i = 0; i < own; i++) {
            bool *row = support[k] + i * i_step;
            const float *at = s->xyz[k] + 3 * i;
            for (int64_t j = 0; j < others; j++) {
                float d = apml_distance(at, s->xyz[1 - k] + 3 * j);
                int64_t before = 0;
                for (int64_t o = 0; o < others; o++) {
                    float than = apml_distance(at, s->xyz[1 - k] + 3 * o);
                    before += row[o * j_step] && (than < d || (than == d && o < j));
                }
                kept[j] = row[j * j_step] && before < limit;
            }
            for (int64_t j = 0; j < others; j++) row[j * j_step] = kept[j];
        }
        free(kept);
    }
}

/* Where all points lie in one place every row has all of the others, so `entries` decides. */
static void test_limits(void)
{
    static const int32_t entries[][2] = {{64, 64}, {63, 32}, {32, 32}, {31, 16}, {16, 16}, {15, 12},
        {12, 12}, {11, 8}, {8, 8}, {7, 6}, {5, 4}, {4, 4}, {3, 2}, {2, 2}};
    struct sets s = sets_make(70, 66);
    bool *support[2] = {apml_take(70 * 66), apml_take(70 * 66)};
    sets_draw(&s, EQUAL);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        struct pnet_apml a = apml_standard();
        a.entries = entries[i][0];
        struct apml_result r = apml_run(a, &s);
        memset(support[0], true, 70 * 66);
        memset(support[1], true, 70 * 66);
        cut(&s, entries[i][1], support);
        check_entries("limited", &r, &s, support);
        CHECKF(r.loss == 0, "loss %g", (double)r.loss);
        apml_free(&r);
    }
    sets_free(&s);
    free(support[0]);
    free(support[1]);
}

/* `most` cuts some rows, at distances that differ and at equal ones. Each set has a limit of its own: predictions in one
   place leave the rows of the references long, and those of the predictions as they are. */
static void test_most(void)
{
    static const enum kind some[] = {RANDOM, DUPLICATES, COLLAPSED, EQUAL};
    for (int i = 0; i < 4; i++)
        for (int32_t most = 2; most < 40; most += 5) {
            struct sets s = sets_make(150, 150);
            struct pnet_apml a = apml_uncut();
            bool *support[2] = {apml_take(150 * 150), apml_take(150 * 150)};
            a.tau = 1e-20;
            a.most = most;
            a.rounds = 0;
            sets_draw(&s, some[i]);
            brute(&a, &s, support);
            cut(&s, most, support);
            struct apml_result r = apml_run(a, &s);
            check_entries(kinds[some[i]], &r, &s, support);
            apml_free(&r);
            free(support[0]);
            free(support[1]);
            sets_free(&s);
        }
}

static void test_each_set(void)
{
    struct sets s = sets_make(200, 200);
    struct pnet_apml a = apml_standard();
    sets_draw(&s, SURFACE);
    for (int64_t i = 0; i < 600; i++) s.xyz[X][i] = 0.01f;
    a.entries = 9;
    struct apml_result r = apml_run(a, &s);
    int64_t rows = r.plan.end[2 * 199], columns = r.plan.end[2 * 199 + 1];
    CHECKF(columns == 200 * 8, "%lld entries of columns", (long long)columns);
    CHECKF(rows < 200 * 9 && rows >= 200 * 2, "%lld entries of rows", (long long)rows);
    apml_free(&r);
    sets_free(&s);
}

/* A row with one point more than its set has room for. */
static void test_room(void)
{
    struct sets s = sets_make(1, 5);
    struct pnet_apml a = apml_standard();
    const struct pnet_apml_entry *e;
    sets_draw(&s, EQUAL);
    for (a.entries = 4; a.entries <= 5; a.entries++) {
        struct apml_result r = apml_run(a, &s);
        CHECKF(apml_row(&r, 0, 0, &e) == (a.entries == 4 ? 4 : 5), "room %d", a.entries);
        apml_free(&r);
    }
    sets_free(&s);
}

/* The points of a row in 0 with the points y on a line. */
static int64_t points_of(int64_t m, const float *y)
{
    const float zero = 0;
    const struct pnet_apml_entry *e;
    struct sets s = sets_line(1, &zero, m, y);
    struct apml_result r = apml_run(apml_uncut(), &s);
    int64_t count = apml_row(&r, 0, 0, &e);
    apml_free(&r);
    sets_free(&s);
    return count;
}

/* A point at the radius is in the support, the next float is not. Distances on a line are the coordinates themselves, and the
   radius is kappa g + a, rounded once. The gap is at least 1e-8: of four points kappa is 7.4. */
static void test_border(void)
{
    const float kappa = (float)(log(1e8) / log(8)), close[] = {1e-6f, -1e-6f, 1.07e-6f, 1.08e-6f};
    int64_t twice = 0, wrong = 0;
    for (uint64_t i = 0; i < 600; i++) {
        float y[3] = {unit(300, i), unit(300, i) + 0.3f * unit(301, i), 0}, g = y[1] - y[0];
        volatile float product = kappa * g;
        float radius = fmaf(kappa, g, y[0]);
        twice += product + y[0] != radius;
        if (!(g > 1e-3f)) continue;
        y[2] = radius;
        wrong += points_of(3, y) != 3;
        y[2] = nextafterf(radius, 9);
        wrong += points_of(3, y) != 2;
    }
    CHECKF(wrong == 0, "%lld wrong points at the border", (long long)wrong);
    CHECKF(twice > 50, "rounding twice differs %lld times", (long long)twice);
    CHECK(points_of(4, close) == 3);
}

/* Bins keep small counts, and an eighth of an octave of large ones. */
static void test_bins(void)
{
    int last = -1;
    for (int64_t count = 0; count < (int64_t)1 << 31; count += 1 + count / 50) {
        int bin = pnet_apml_bin(count);
        int64_t least = pnet_apml_bin_count(bin);
        CHECKF(bin >= last && bin < PNET_APML_BINS && least <= count && count - least <= count / 8,
            "%lld is in bin %d of %lld", (long long)count, bin, (long long)least);
        CHECK(count >= 1024 || least == count);
        last = bin;
    }
}

/* The metric: the numbers of the supports before they are cut. */
static void test_metric(void)
{
    struct sets s = sets_make(70, 20);
    struct pnet_apml a = apml_standard();
    double sum[PNET_APML_SUMS];
    sets_draw(&s, EQUAL);
    a.sets = (struct pnet_set_pair){.x = apml_set(&s, X), .y = apml_set(&s, Y)};
    a.entries = 20;
    void *work = apml_take(pnet_cpu_apml_support_work(&a));
    pnet_cpu_apml_support(&a, sum, work);
    CHECK(sum[PNET_APML_ROWS] == 90 && sum[PNET_APML_COUNT] == 2 * 70 * 20);
    CHECK(sum[PNET_APML_CUT] == 20); /* columns have 70 points, and room for 16 */
    CHECK(sum[PNET_APML_BIN + 20] == 70 && sum[PNET_APML_BIN + 70] == 20);
    s.xyz[Y][4] = NAN;
    pnet_cpu_apml_support(&a, sum, work);
    CHECK(isnan(sum[PNET_APML_ROWS]));
    free(work);
    sets_free(&s);
}

/* What the sums of several batches come to. */
static void test_finish(void)
{
    double sum[PNET_APML_SUMS] = {[PNET_APML_ROWS] = 4,
        [PNET_APML_COUNT] = 1500,
        [PNET_APML_CUT] = 1,
        [PNET_APML_BIN + 2] = 3,
        [PNET_APML_BIN + 1024 + 3] = 1};
    struct pnet_metric_result r = {.value = 0};
    pnet_op_find("apml_support")->finish(NULL, sum, &r);
    CHECK(r.value == 375 && r.value_count == 2);
    CHECK(strcmp(r.values[0].name, "largest") == 0 && r.values[0].value == 1024 + 3 * 128);
    CHECK(strcmp(r.values[1].name, "cut") == 0 && r.values[1].value == 0.25);
    memset(sum, 0, sizeof sum);
    r = (struct pnet_metric_result){.value = 0};
    pnet_op_find("apml_support")->finish(NULL, sum, &r);
    CHECK(isnan(r.value) && isnan(r.values[0].value));
}

int main(void)
{
    omp_set_num_threads(2);
    test_supports();
    test_limits();
    test_most();
    test_each_set();
    test_room();
    test_border();
    test_bins();
    test_metric();
    test_finish();
    return check_end();
}
