/* Layers and losses on numbers and points of any magnitude, against the same in float64. */
#include "kernels/emd.h"
#include "kernels/loss.h"
#include "kernels/norm.h"
#include "kernels/sinkhorn.h"
#include "tests/kernels/set_case.h"

static char name[96];

static void check_close(const char *what, double got, double want, double bound, double scale)
{
    CHECKF(fabs(got - want) <= bound * scale, "%s, %s: %.9g, not %.9g", name, what, got, want);
}

enum { ROWS = 7, WIDTH = 12 };

static void check_softmax(const float *x, const int32_t *label)
{
    struct pnet_cross_entropy e = {.x = x};
    float y[ROWS * WIDTH], loss, divisor;
    double want = 0, size = 0;
    e.targets.rows = e.targets.label_rows = pnet_count(ROWS);
    e.targets.classes = WIDTH;
    e.targets.label = label;
    pnet_cpu_softmax(pnet_count(ROWS), WIDTH, x, y);
    for (int r = 0; r < ROWS; r++) {
        double top = -INFINITY, sum = 0;
        for (int c = 0; c < WIDTH; c++) top = fmax(top, (double)x[r * WIDTH + c]);
        for (int c = 0; c < WIDTH; c++) sum += exp((double)x[r * WIDTH + c] - top);
        for (int c = 0; c < WIDTH; c++)
            check_close("softmax", (double)y[r * WIDTH + c],
                exp((double)x[r * WIDTH + c] - top) / sum, 1e-5, 1);
        double nll = (top - (double)x[r * WIDTH + label[r]]) + log(sum);
        want += nll / ROWS;
        size = fmax(size, nll);
    }
    void *work = set_take(pnet_cpu_cross_entropy_work(&e));
    pnet_cpu_cross_entropy(&e, &loss, &divisor, work);
    free(work);
    check_close("cross entropy", (double)loss, want, 1e-6, size);
}

static void check_rows(const float *x)
{
    float y[ROWS * WIDTH], one[WIDTH], zero[WIDTH] = {0};
    for (int c = 0; c < WIDTH; c++) one[c] = 1;
    for (int layer = 0; layer < 2; layer++) {
        if (layer)
            pnet_cpu_layernorm(pnet_count(ROWS), WIDTH, 1e-5, x, one, zero, PNET_ACT_NONE, 0, y);
        else
            pnet_cpu_l2norm(pnet_count(ROWS), WIDTH, 1e-12, x, y);
        for (int r = 0; r < ROWS; r++) {
            double mean = 0, squares = 0;
            for (int c = 0; c < WIDTH && layer; c++) mean += (double)x[r * WIDTH + c] / WIDTH;
            for (int c = 0; c < WIDTH; c++) squares += pow((double)x[r * WIDTH + c] - mean, 2);
            double divisor = layer ? sqrt(squares / WIDTH + 1e-5) : fmax(sqrt(squares), 1e-12);
            for (int c = 0; c < WIDTH; c++)
                check_close(layer ? "layer norm" : "l2 norm", (double)y[r * WIDTH + c],
                    ((double)x[r * WIDTH + c] - mean) / divisor, 1e-6, 1);
        }
    }
}

/* Numbers whose squares, or differences, leave float32. */
static void test_rows(void)
{
    static const float scale[] = {1e-36f, 1e-20f, 1e-6f, 1, 30, 1e4f, 1e12f, 1e25f, 3e38f};
    struct pnet_rand rand = {.seed = 5, .purpose = PNET_DRAW_TEST};
    for (size_t k = 0; k < sizeof scale / sizeof *scale; k++) {
        float x[ROWS * WIDTH];
        int32_t label[ROWS];
        for (int i = 0; i < ROWS * WIDTH; i++)
            x[i] = scale[k] * (2 * pnet_rand_unit(&rand, (uint64_t)i) - 1);
        for (int r = 0; r < ROWS; r++) label[r] = (5 * r) % WIDTH;
        snprintf(name, sizeof name, "numbers up to %g", (double)scale[k]);
        check_softmax(x, label);
        check_rows(x);
    }
}

/* Batch norm of a channel that is far from 0, and of a constant one. */
static void test_offsets(void)
{
    enum { N = 20000 };
    static const double offset[] = {0, 1, 1e3, 1e5};
    float *x = set_take(2 * N * sizeof *x), *y = set_take(2 * N * sizeof *y);
    struct pnet_rand rand = {.seed = 6, .purpose = PNET_DRAW_TEST};
    for (size_t k = 0; k < sizeof offset / sizeof *offset; k++) {
        const float one[2] = {1, 1}, zero[2] = {0, 0};
        struct pnet_norm n = {.segments = {.rows = N, .count = 1},
            .c = 2,
            .groups = 2,
            .x = x,
            .weight = one,
            .bias = zero};
        float mean[2], inverse[2];
        double first = 0, squares = 0, worst = 0;
        for (int64_t i = 0; i < N; i++) {
            x[2 * i] = (float)(offset[k] + 2 * (double)pnet_rand_unit(&rand, (uint64_t)i));
            x[2 * i + 1] = (float)offset[k] + 0.3f;
            first += (double)x[2 * i] / N;
        }
        for (int64_t i = 0; i < N; i++) squares += pow((double)x[2 * i] - first, 2) / N;
        void *work = set_take(pnet_cpu_norm_work(&n));
        pnet_cpu_norm(&n, 1e-5, mean, inverse, y, work);
        free(work);
        snprintf(name, sizeof name, "numbers around %g", offset[k]);
        for (int64_t i = 0; i < N; i++) {
            double want = ((double)x[2 * i] - first) / sqrt(squares + 1e-5);
            worst = fmax(worst, fabs((double)y[2 * i] - want));
            if (y[2 * i + 1] != 0) worst = INFINITY; /* constant */
        }
        /* the mean is a float32 */
        check_close("batch norm", worst, 0, 1, 1e-4 + 1e-7 * offset[k]);
    }
    free(x);
    free(y);
}

/* The nearest points, in float64. */
static double nearest(const struct pnet_point_set *a, int64_t i, const struct pnet_point_set *b)
{
    double least = INFINITY;
    for (int64_t j = 0; j < b->rows.most; j++) {
        double d = 0;
        for (int c = 0; c < 3; c++)
            d += pow((double)a->xyz[3 * i + c] - (double)b->xyz[3 * j + c], 2);
        least = fmin(least, d);
    }
    return least;
}

/* Sums of the terms of chamfer (l1, l2), hypercd and infocd. */
static void wanted(const struct pnet_set_pair *p, double want[4])
{
    const struct pnet_point_set *set[2] = {&p->x, &p->y};
    for (int k = 0; k < 4; k++) want[k] = 0;
    for (int k = 0; k < 2; k++) {
        double n = (double)set[k]->rows.most, terms = 0;
        for (int64_t i = 0; i < set[k]->rows.most; i++)
            terms += exp(-sqrt(fmax(nearest(set[k], i, set[1 - k]), 1e-9)) / 2) + 1e-7;
        for (int64_t i = 0; i < set[k]->rows.most; i++) {
            double square = nearest(set[k], i, set[1 - k]);
            want[0] += sqrt(square) / n / 2;
            want[1] += square / n;
            want[2] += acosh(1 + fmax(square, 1e-5)) / n;
            want[3] += (sqrt(fmax(square, 1e-9)) / 2 + 1e-7 * log(terms)) / n / 2;
        }
    }
}

static void check_near_losses(struct pnet_set_pair p)
{
    int32_t *near[2];
    float got[4];
    double want[4];
    static const char *const what[] = {"chamfer, l1", "chamfer, l2", "hypercd", "infocd"};
    const struct pnet_infocd info = {.tau = 2, .lambda = 1e-7};
    const struct pnet_point_set *set[2] = {&p.x, &p.y};
    for (int k = 0; k < 2; k++) {
        near[k] = set_take((size_t)set[k]->rows.most * sizeof *near[k]);
        void *work = set_take(pnet_cpu_set_near_work(set[k], set[1 - k]) + 64);
        pnet_cpu_set_near(set[k], set[1 - k], near[k], work);
        free(work);
    }
    p.x_near = near[0];
    p.y_near = near[1];
    size_t bytes = pnet_cpu_chamfer_work(&p) + pnet_cpu_hypercd_work(&p) + pnet_cpu_infocd_work(&p);
    void *work = set_take(bytes);
    for (int squares = 0; squares < 2; squares++)
        pnet_cpu_chamfer(&p, squares, &got[squares], NULL, NULL, work);
    pnet_cpu_hypercd(&p, 1, &got[2], NULL, NULL, work);
    pnet_cpu_infocd(&p, &info, &got[3], NULL, NULL, work);
    wanted(&p, want);
    for (int k = 0; k < 4; k++) check_close(what[k], (double)got[k], want[k], 1e-6, want[k]);
    free(work);
    free(near[0]);
    free(near[1]);
}

struct transport {
    double sinkhorn;
    int32_t partner[40];
};

static struct transport transport_of(const struct pnet_set_pair *p, double scale)
{
    struct pnet_sinkhorn s = {*p, 0.05, 0.5};
    struct pnet_emd e = {.sets = *p, .eps = 0.005 * scale, .rounds = 10000};
    struct transport t;
    float loss;
    void *work = set_take(pnet_cpu_sinkhorn_work(&s, false) + 64);
    pnet_cpu_sinkhorn(&s, NULL, NULL, &loss, work);
    free(work);
    t.sinkhorn = (double)loss / (scale * scale);
    work = set_take(pnet_cpu_emd_assign_work(&e) + 64);
    pnet_cpu_emd_assign(&e, t.partner, work);
    free(work);
    return t;
}

/* Scales are powers of two, so that transport is the same but for the unit. */
static void test_sets(void)
{
    static const int exponent[] = {0, -50, -20, 20, 50, 59};
    struct set_case *c = set_case_of(40, 40, 3);
    struct transport first;
    for (size_t k = 0; k < sizeof exponent / sizeof *exponent; k++) {
        const double scale = exp2(exponent[k]);
        snprintf(name, sizeof name, "points up to %g", scale);
        for (int side = 0; side < 2; side++)
            for (int i = 0; i < 120; i++) c->xyz[side][i] *= (float)scale;
        check_near_losses(c->pair);
        struct transport t = transport_of(&c->pair, scale);
        if (k == 0) first = t;
        check_close("sinkhorn", t.sinkhorn, first.sinkhorn, 1e-6, first.sinkhorn);
        CHECKF(
            !memcmp(t.partner, first.partner, sizeof t.partner), "%s: emd assigns otherwise", name);
        for (int side = 0; side < 2; side++)
            for (int i = 0; i < 120; i++) c->xyz[side][i] /= (float)scale;
    }
    snprintf(name, sizeof name, "points around 1e5");
    set_case_move(c, 0, 1e5f, -1e5f, 3e4f);
    set_case_move(c, 1, 1e5f, -1e5f, 3e4f);
    check_near_losses(c->pair);
    set_case_free(c);
}

int main(void)
{
    omp_set_num_threads(1);
    test_rows();
    test_offsets();
    test_sets();
    return check_end();
}
