/* The Sinkhorn divergence against a plain computation in double, and against what holds for divergences. */
#include "kernels/conv.h"
#include "kernels/sinkhorn.h"
#include "tests/kernels/set_case.h"

struct result {
    float loss;
    float *gx, *gy; /* [rows, 3] */
};

static struct result divergence(const struct set_case *c, double blur, double scaling)
{
    struct pnet_sinkhorn s = {c->pair, blur, scaling};
    size_t rows[2] = {(size_t)c->pair.x.rows.most, (size_t)c->pair.y.rows.most}, bytes;
    float *potential[2], one = 1, alone;
    struct result r = {.loss = NAN};
    for (int k = 0; k < 2; k++) potential[k] = set_take(4 * rows[k] * sizeof(float));
    r.gx = set_take(3 * rows[0] * sizeof(float));
    r.gy = set_take(3 * rows[1] * sizeof(float));
    void *work = set_work(bytes = pnet_cpu_sinkhorn_work(&s, false));
    pnet_cpu_sinkhorn(&s, NULL, NULL, &alone, work);
    pnet_cpu_sinkhorn(&s, potential[0], potential[1], &r.loss, work);
    CHECK(memcmp(&alone, &r.loss, sizeof alone) == 0);
    set_work_end(work, bytes);
    struct pnet_set_gradients g = {r.gx, r.gy, false, false};
    work = set_work(bytes = pnet_cpu_sinkhorn_work(&s, true));
    pnet_cpu_sinkhorn_backward(&s, potential[0], potential[1], &one, &g, work);
    set_work_end(work, bytes);
    free(potential[0]);
    free(potential[1]);
    return r;
}

static void result_free(struct result *r)
{
    free(r->gx);
    free(r->gy);
}

static double loss_of(const struct set_case *c, double blur, double scaling)
{
    struct result r = divergence(c, blur, scaling);
    result_free(&r);
    return (double)r.loss;
}

static double diagonal_of(const struct set_case *c)
{
    double sum = 0;
    for (int a = 0; a < 3; a++) {
        double low = INFINITY, high = -INFINITY;
        for (int k = 0; k < 2; k++)
            for (int64_t i = 0; i < c->splits[k][1]; i++) {
                low = fmin(low, (double)c->xyz[k][3 * i + a]);
                high = fmax(high, (double)c->xyz[k][3 * i + a]);
            }
        sum += (high - low) * (high - low);
    }
    return sqrt(sum);
}

/* A stored matrix of costs, and potentials with which it is scaled: OT between sets of n and m points. */
struct plan {
    int64_t n, m;
    double *cost, *f, *g, *before_g; /* [n, m], [n], [m], and g before the last step */
};

static double cost_of(const float *x, const float *y)
{
    double sum = 0;
    for (int a = 0; a < 3; a++)
        sum += ((double)x[a] - (double)y[a]) * ((double)x[a] - (double)y[a]) / 2;
    return sum;
}

static double soft(const struct plan *p, int64_t i, bool column, double eps)
{
    int64_t n = column ? p->n : p->m;
    double top = -INFINITY, sum = 0, *other = column ? p->f : p->g;
    for (int64_t j = 0; j < n; j++)
        top = fmax(top, other[j] - p->cost[column ? j * p->m + i : i * p->m + j]);
    for (int64_t j = 0; j < n; j++)
        sum += exp((other[j] - p->cost[column ? j * p->m + i : i * p->m + j] - top) / eps);
    return -top - eps * log(sum / (double)n);
}

static struct plan solve(int64_t n, const float *x, int64_t m, const float *y, double diagonal,
    double blur, double scaling)
{
    struct plan p = {n, m, set_take((size_t)(n * m) * sizeof(double)), calloc((size_t)n, 8),
        calloc((size_t)m, 8), set_take((size_t)m * 8)};
    double *next = set_take((size_t)(n + m) * 8), least = pow(blur * diagonal, 2);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++) p.cost[i * m + j] = cost_of(x + 3 * i, y + 3 * j);
    double eps = diagonal * diagonal;
    for (int left = 2; left > 0;) {
        if (!(eps > least)) {
            eps = least;
            left--;
        }
        memcpy(p.before_g, p.g, (size_t)m * 8);
        for (int64_t i = 0; i < n; i++) next[i] = soft(&p, i, false, eps);
        for (int64_t j = 0; j < m; j++) next[n + j] = soft(&p, j, true, eps);
        for (int64_t i = 0; i < n; i++) p.f[i] = left ? (p.f[i] + next[i]) / 2 : next[i];
        for (int64_t j = 0; j < m; j++) p.g[j] = left ? (p.g[j] + next[n + j]) / 2 : next[n + j];
        eps *= scaling * scaling;
    }
    free(next);
    return p;
}

static double value_of(const struct plan *p)
{
    double f = 0, g = 0;
    for (int64_t i = 0; i < p->n; i++) f += p->f[i] / (double)p->n;
    for (int64_t j = 0; j < p->m; j++) g += p->g[j] / (double)p->m;
    return f + g;
}

/* g += factor / n * the rows of P (x_i - y_j). */
static void pull(
    const struct plan *p, const float *x, const float *y, double eps, double factor, double *g)
{
    for (int64_t i = 0; i < p->n; i++)
        for (int64_t j = 0; j < p->m; j++) {
            double w = exp((p->f[i] + p->before_g[j] - p->cost[i * p->m + j]) / eps) / (double)p->m;
            for (int a = 0; a < 3; a++)
                g[3 * i + a] +=
                    factor * w * ((double)x[3 * i + a] - (double)y[3 * j + a]) / (double)p->n;
        }
}

static void plan_free(struct plan *p)
{
    free(p->cost);
    free(p->f);
    free(p->g);
    free(p->before_g);
}

/* Loss and gradient of one side against the plain computation. */
static void check_plain(const struct set_case *c, double blur, double scaling, const char *what)
{
    struct result r = divergence(c, blur, scaling);
    double d = diagonal_of(c), eps = pow(blur * d, 2), ot[3], error = 0, size = 0;
    for (int side = 0; side < 2; side++) {
        int64_t n = c->splits[side][1], m = c->splits[!side][1];
        const float *x = c->xyz[side], *y = c->xyz[!side], *got = side ? r.gy : r.gx;
        double *g = calloc((size_t)(3 * n + 1), sizeof *g);
        struct plan cross = solve(n, x, m, y, d, blur, scaling),
                    self = solve(n, x, n, x, d, blur, scaling);
        pull(&cross, x, y, eps, 1, g);
        pull(&self, x, x, eps, -1, g);
        ot[0] = value_of(&cross);
        ot[1 + side] = value_of(&self);
        for (int64_t k = 0; k < 3 * n; k++) {
            error += pow((double)got[k] - g[k], 2);
            size += g[k] * g[k];
        }
        plan_free(&cross);
        plan_free(&self);
        free(g);
    }
    double want = ot[0] - (ot[1] + ot[2]) / 2;
    CHECKF(fabs((double)r.loss - want) <= 1e-5 * fabs(want) + 2e-8 * d * d,
        "%s, blur %g, scaling %g: %.9g, not %.9g", what, blur, scaling, (double)r.loss, want);
    CHECKF(sqrt(error) <= 1e-4 * sqrt(size), "%s, blur %g, scaling %g: gradient off by %g of %g",
        what, blur, scaling, sqrt(error), sqrt(size));
    result_free(&r);
}

/* 1100 points: more than the inner loop takes at once. */
static void test_plain(void)
{
    const int64_t sizes[][2] = {{40, 55}, {1, 17}, {16, 3}, {1100, 70}};
    for (int k = 0; k < 4; k++)
        for (int variant = 0; variant < (k < 3 ? 4 : 2); variant++) {
            struct set_case *c = set_case_of(sizes[k][0], sizes[k][1], (uint32_t)k);
            check_plain(c, variant & 1 ? 0.01 : 0.05, variant & 2 ? 0.8 : 0.5, "random");
            for (int64_t i = 0; i < 3 * sizes[k][0] && variant == 0; i++) c->xyz[0][i] *= 0.01f;
            set_case_move(c, 1, 1, 0, 0);
            check_plain(c, variant & 1 ? 0.01 : 0.05, variant & 2 ? 0.8 : 0.5, "moved");
            set_case_free(c);
        }
}

static void test_equal(void)
{
    enum { N = 300 };
    struct set_case *c = set_case_of(N, N, 4);
    memcpy(c->xyz[1], c->xyz[0], 3 * N * sizeof(float));
    struct result r = divergence(c, 0.05, 0.5);
    bool nothing = r.loss == 0;
    for (int k = 0; k < 3 * N; k++) nothing &= r.gx[k] == 0 && r.gy[k] == 0;
    CHECKF(nothing, "equal sets: %g", (double)r.loss);
    result_free(&r);
    for (int k = 0; k < 3 * N; k++) c->xyz[1][k] = c->xyz[0][3 * (N - 1 - k / 3) + k % 3];
    CHECKF(
        fabs(loss_of(c, 0.05, 0.5)) < 1e-7, "equal sets, other order: %g", loss_of(c, 0.05, 0.5));
    set_case_free(c);
}

static void test_signs(void)
{
    for (uint32_t seed = 0; seed < 20; seed++) {
        int64_t n = 1 + 7 * seed, m = 90 - 4 * seed;
        struct set_case *c = set_case_of(n, m, seed), *swapped = set_case_of(m, n, seed);
        memcpy(swapped->xyz[0], c->xyz[1], (size_t)m * 3 * sizeof(float));
        memcpy(swapped->xyz[1], c->xyz[0], (size_t)n * 3 * sizeof(float));
        double s = loss_of(c, 0.1, 0.9);
        CHECKF(s > 0, "%lld and %lld points: %g", (long long)n, (long long)m, s);
        CHECKF(fabs(s - loss_of(swapped, 0.1, 0.9)) < 1e-6 * s + 1e-8, "%g, swapped %g", s,
            loss_of(swapped, 0.1, 0.9));
        set_case_free(swapped);
        set_case_free(c);
    }
}

/* A set and its translate by t: |t|^2 / 2, and the gradient is t over the number of points. Also far away. */
static void test_translation(void)
{
    enum { N = 200 };
    const float by[] = {0.05f, 0.5f, 3, 1e4f};
    for (int k = 0; k < 4; k++) {
        struct set_case *c = set_case_of(N, N, 6);
        memcpy(c->xyz[1], c->xyz[0], 3 * N * sizeof(float));
        set_case_move(c, 1, by[k], 0, -by[k]);
        struct result r = divergence(c, 0.02, 0.95);
        double want = (double)by[k] * (double)by[k], worst = 0;
        for (int i = 0; i < 3 * N; i++) {
            double g = i % 3 == 0 ? -(double)by[k] : i % 3 == 2 ? (double)by[k] : 0;
            worst = fmax(worst, fabs((double)r.gx[i] * N - g));
        }
        CHECKF(fabs((double)r.loss - want) < 0.01 * want, "moved by %g: %g, not %g", (double)by[k],
            (double)r.loss, want);
        CHECKF(
            worst < 0.2 * (double)by[k], "moved by %g: gradient off by %g", (double)by[k], worst);
        result_free(&r);
        set_case_free(c);
    }
}

/* Single points, where the plan is known: half the square of the distance; nothing where both are one. */
static void test_points(void)
{
    struct set_case *c = set_case_of(1, 1, 2);
    double d = sqrt(2 * cost_of(c->xyz[0], c->xyz[1]));
    struct result r = divergence(c, 0.05, 0.5);
    CHECKF(
        fabs((double)r.loss - d * d / 2) < 1e-6 * d * d, "%g, not %g", (double)r.loss, d * d / 2);
    for (int a = 0; a < 3; a++)
        CHECK(fabs((double)r.gx[a] - ((double)c->xyz[0][a] - (double)c->xyz[1][a])) < 1e-6 * d);
    result_free(&r);
    memcpy(c->xyz[1], c->xyz[0], 3 * sizeof(float));
    r = divergence(c, 0.05, 0.5);
    CHECK(r.loss == 0 && r.gx[0] == 0 && r.gy[2] == 0);
    result_free(&r);
    set_case_free(c);
}

/* The gradient of the whole divergence, as far as it has converged: a larger blur converges in fewer steps. Points inside the box
   are moved, so that it stays. */
static void test_gradient(void)
{
    enum { N = 30, M = 40, PROBES = 12 };
    struct set_case *c = set_case_of(N, M, 8);
    for (int a = 0; a < 3; a++) {
        c->xyz[0][a] = -0.2f;
        c->xyz[1][a] = 1.2f;
    }
    struct result r = divergence(c, 0.5, 0.98);
    for (int side = 0; side < 2; side++) {
        double error = 0, size = 0;
        for (int k = 3; k < 3 + PROBES; k++) {
            float *at = c->xyz[side] + k, kept = *at;
            double value[2], place[2];
            for (int sign = 0; sign < 2; sign++) {
                *at = sign ? kept + 0.02f : kept - 0.02f;
                place[sign] = (double)*at;
                value[sign] = loss_of(c, 0.5, 0.98);
            }
            *at = kept;
            double want = (value[1] - value[0]) / (place[1] - place[0]);
            error += pow(want - (double)(side ? r.gy : r.gx)[k], 2);
            size += want * want;
        }
        CHECKF(sqrt(error) < 0.01 * sqrt(size), "side %d: gradient off by %g of %g", side,
            sqrt(error), sqrt(size));
    }
    result_free(&r);
    set_case_free(c);
}

/* A batch: empty samples add 0 and count, others as alone; the same bits for any number of threads, and added to what there
   is. */
static void test_batch(void)
{
    const int64_t n[] = {33, 0, 5, 70, 0, 9}, m[] = {20, 4, 0, 1, 0, 64};
    struct set_case *c = set_case_new(6, n, m, 5);
    struct result first = divergence(c, 0.05, 0.5);
    double sum = 0;
    for (int s = 0; s < 6; s++) {
        if (!n[s] || !m[s]) continue;
        struct set_case *one = set_case_of(n[s], m[s], 0);
        memcpy(one->xyz[0], c->xyz[0] + 3 * c->splits[0][s], (size_t)n[s] * 3 * sizeof(float));
        memcpy(one->xyz[1], c->xyz[1] + 3 * c->splits[1][s], (size_t)m[s] * 3 * sizeof(float));
        struct result r = divergence(one, 0.05, 0.5);
        sum += (double)r.loss / 6;
        double error = 0, size = 0;
        for (int64_t k = 0; k < 3 * m[s]; k++) {
            error += pow((double)first.gy[3 * c->splits[1][s] + k] - (double)r.gy[k] / 6, 2);
            size += pow((double)r.gy[k] / 6, 2);
        }
        CHECKF(sqrt(error) < 1e-6 * sqrt(size), "sample %d: gradient off by %g", s, sqrt(error));
        result_free(&r);
        set_case_free(one);
    }
    CHECKF(fabs((double)first.loss - sum) < 1e-6 * sum, "%g, not %g", (double)first.loss, sum);
    for (int k = 0; k < 12; k++) CHECK(first.gy[3 * 20 + k] == 0); /* sample 1 */
    for (int threads = 1; threads <= 3; threads++) {
        omp_set_num_threads(threads);
        struct result r = divergence(c, 0.05, 0.5);
        CHECK(memcmp(&r.loss, &first.loss, sizeof r.loss) == 0);
        CHECK(memcmp(r.gx, first.gx, (size_t)c->splits[0][6] * 3 * sizeof(float)) == 0);
        CHECK(memcmp(r.gy, first.gy, (size_t)c->splits[1][6] * 3 * sizeof(float)) == 0);
        result_free(&r);
    }
    omp_set_num_threads(2);
    result_free(&first);
    set_case_free(c);
}

/* Coordinates that are not finite: NaN, and an end; the other samples keep their gradients. */
static void test_not_finite(void)
{
    const float bad[] = {NAN, INFINITY, -INFINITY};
    const int64_t n[] = {6, 6}, m[] = {7, 7};
    for (int k = 0; k < 6; k++) {
        struct set_case *c = set_case_new(2, n, m, 5);
        c->xyz[k / 3][4] = bad[k % 3];
        struct result r = divergence(c, 0.05, 0.5);
        CHECK(isnan(r.loss) && isnan(r.gx[0]) && isnan(r.gy[20]));
        for (int i = 18; i < 36; i++) CHECK(isfinite(r.gx[i]));
        result_free(&r);
        set_case_free(c);
    }
}

int main(void)
{
    omp_set_num_threads(2);
    const char *const sets[] = {"base", "avx2", "avx512"};
    for (int k = 0; k < 3; k++) {
        pnet_cpu_isa_limit(sets[k]);
        test_plain();
        test_equal();
        test_points();
    }
    pnet_cpu_isa_limit(NULL);
    test_signs();
    test_translation();
    test_gradient();
    test_batch();
    test_not_finite();
    return check_end();
}
