/* Layers that stay on their level, on worlds of odd shapes. */
#include "kernels/drop_path.h"
#include "tests/ops/opcase.h"

static void one_input(const struct world *w, const char *name, int32_t width, int level,
    void (*check)(struct opcase *))
{
    struct opcase c = opcase_of(w, name);
    opcase_in(&c, width, level);
    check(&c);
}

static void two_inputs(
    const struct world *w, const char *name, int32_t a, int32_t b, void (*check)(struct opcase *))
{
    struct opcase c = opcase_of(w, name);
    opcase_in(&c, a, FINE);
    opcase_in(&c, b, FINE);
    check(&c);
}

static void elementwise(const struct world *w, int32_t width, void (*check)(struct opcase *))
{
    const char *const plain[] = {"relu", "leaky_relu", "gelu", "sigmoid", "softmax", "dropout",
        "bn", "instancenorm", "layernorm", "l2norm"};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        /* of one channel the result is constant: its gradient is rounding around 0 */
        if (width > 1 || strcmp(plain[i], "layernorm") != 0)
            one_input(w, plain[i], width, FINE, check);
    one_input(w, "swiglu", 2 * width, FINE, check);
    one_input(w, "cat", width, FINE, check);
    two_inputs(w, "add", width, width, check);
    two_inputs(w, "mul", width, width, check);
    two_inputs(w, "mul", width, 1, check);
    two_inputs(w, "cat", width, 3, check);
    struct opcase c = opcase_of(w, "add");
    opcase_in(&c, width, FINE);
    opcase_in(&c, width, FINE);
    opcase_real(&c, "scale", -0.75);
    check(&c);
    c = opcase_of(w, "scale");
    opcase_in(&c, width, FINE);
    opcase_real(&c, "by", -1.5);
    check(&c);
    c = opcase_of(w, "l2norm");
    opcase_in(&c, width, FINE);
    opcase_real(&c, "eps", 1);
    check(&c);
    for (int each = 0; each < 2; each++) {
        c = opcase_of(w, "drop_path");
        opcase_in(&c, width, each ? SAMPLE : FINE);
        opcase_real(&c, "p", 0.4);
        opcase_int(&c, "each", each);
        check(&c);
    }
    for (int bias = 0; bias < 2; bias++) {
        c = opcase_of(w, "linear");
        opcase_in(&c, width, FINE);
        opcase_int(&c, "channels", 5 + 16 * bias);
        opcase_int(&c, "bias", bias);
        check(&c);
    }
    c = opcase_of(w, "ones");
    opcase_int(&c, "level", COARSE);
    opcase_int(&c, "channels", width);
    check(&c);
}

static void groups(
    const struct world *w, int32_t width, int64_t groups, void (*check)(struct opcase *))
{
    struct opcase c = opcase_of(w, "groupnorm");
    opcase_in(&c, width, FINE);
    opcase_int(&c, "groups", groups);
    check(&c);
}

/* Running statistics after one step, against the formula of the documentation. */
static void test_running(void)
{
    const int64_t sizes[] = {40, 0, 30};
    struct world w = world_make(3, sizes);
    struct opcase c = opcase_of(&w, "bn");
    opcase_in(&c, 4, FINE);
    opcase_real(&c, "momentum", 0.3);
    opcase_fill(&c);
    opcase_forward(&c);
    double n = (double)w.rows[FINE];
    for (int32_t ch = 0; ch < 4; ch++) {
        double mean = 0, square = 0;
        for (int64_t row = 0; row < w.rows[FINE]; row++) mean += c.in_double[0][row * 4 + ch] / n;
        for (int64_t row = 0; row < w.rows[FINE]; row++) {
            double d = c.in_double[0][row * 4 + ch] - mean;
            square += d * d;
        }
        double want_mean = 0.7 * c.param_start[2][ch] + 0.3 * mean;
        double want_var = 0.7 * c.param_start[3][ch] + 0.3 * square / (n - 1);
        CHECK(fabs((double)c.param[2][ch] - want_mean) < 1e-6);
        CHECK(fabs((double)c.param[3][ch] - want_var) < 1e-6);
    }
    c.inference = true;
    opcase_forward(&c);
    for (int32_t ch = 0; ch < 4; ch++) {
        CHECK((double)c.param[2][ch] == (double)(float)c.param_start[2][ch]);
        CHECK((double)c.param[3][ch] == (double)(float)c.param_start[3][ch]);
    }
    opcase_free(&c);
    world_free(&w);
}

/* A batch of one row has no variance: the running statistics are used, and stay. */
static void test_one_row(void)
{
    const int64_t sizes[] = {0, 1};
    struct world w = world_make(2, sizes);
    struct opcase c = opcase_of(&w, "bn");
    opcase_in(&c, 4, FINE);
    opcase_fill(&c);
    opcase_forward(&c);
    opcase_backward(&c, false, false);
    for (int32_t ch = 0; ch < 4; ch++) {
        double scale = c.param_start[0][ch] / sqrt(c.param_start[3][ch] + 1e-5);
        double want = (c.in_double[0][ch] - c.param_start[2][ch]) * scale + c.param_start[1][ch];
        CHECK(fabs((double)c.out[ch] - want) < 1e-6);
        CHECK(fabs((double)c.gin[0][ch] - scale * (double)seed_of((uint64_t)ch)) < 1e-6);
        CHECK((double)c.param[2][ch] == (double)(float)c.param_start[2][ch]);
        CHECK((double)c.param[3][ch] == (double)(float)c.param_start[3][ch]);
    }
    opcase_free(&c);
    world_free(&w);
}

/* Mean 1000 and deviation 1 over many rows: float sums would lose the variance. */
static void test_large_mean(void)
{
    const int64_t sizes[] = {400000};
    struct world w = world_make(1, sizes);
    struct opcase c = opcase_of(&w, "bn");
    opcase_in(&c, 2, FINE);
    opcase_fill(&c);
    float *in = c.in_data[0];
    for (int64_t i = 0; i < w.rows[FINE] * 2; i++) c.in_double[0][i] = (double)(in[i] += 1000);
    opcase_forward(&c);
    double *want = opcase_reference(&c);
    /* the inputs themselves are rounded to 6e-5 of a deviation; the result must add little */
    double error = distance(type_count(&w, c.rule.out), c.out, want);
    CHECKF(error < 5e-5, "off by %g", error);
    free(want);
    opcase_free(&c);
    world_free(&w);
}

/* Dropout keeps about 1 - p of the elements, and nothing else changes but the scale. */
static void test_dropout(void)
{
    const int64_t sizes[] = {20000};
    struct world w = world_make(1, sizes);
    struct opcase c = opcase_of(&w, "dropout");
    opcase_in(&c, 8, FINE);
    opcase_real(&c, "p", 0.25);
    opcase_fill(&c);
    opcase_forward(&c);
    size_t n = type_count(&w, c.rule.out), dropped = 0, wrong = 0;
    const float *in = c.in_data[0];
    for (size_t k = 0; k < n; k++) {
        dropped += c.out[k] == 0;
        wrong += c.out[k] != 0 && fabsf(c.out[k] - in[k] / 0.75f) > 1e-6f;
    }
    CHECK(wrong == 0);
    double share = (double)dropped / (double)n;
    CHECKF(fabs(share - 0.25) < 0.005, "%g dropped", share);
    opcase_free(&c);
    world_free(&w);
}

enum { DROP_SAMPLES = 6000, DROP_WIDTH = 3 };

/* Drops rows of ones, and adds what is left to 2; counts rows that are not kept or dropped as a whole. Returns the rows. */
static float *drop(const int64_t *splits, int32_t samples, enum pnet_drop_each each, float p,
    uint32_t step, int64_t *broken)
{
    const struct pnet_rand rand = {.seed = 9, .purpose = PNET_DRAW_DROPOUT, .a = step, .b = 77};
    const struct pnet_segments s = {.rows = splits[samples], .count = samples, .splits = splits};
    size_t n = (size_t)s.rows * DROP_WIDTH;
    float *x = take(n * sizeof *x), *y = take(n * sizeof *y);
    for (size_t i = 0; i < n; i++) x[i] = 1, y[i] = 2;
    pnet_cpu_drop_path(s, DROP_WIDTH, each, p, &rand, x, true, y);
    for (size_t i = 0; i < n; i++) {
        bool kept = y[i] > 2;
        *broken += fabsf(y[i] - (kept ? 2 + 1 / (1 - p) : 2)) > 1e-6f ||
                   (i % DROP_WIDTH && y[i] != y[i - 1]);
    }
    free(x);
    return y;
}

static double share_dropped(const float *y, int64_t rows)
{
    double dropped = 0;
    for (int64_t row = 0; row < rows; row++) dropped += y[row * DROP_WIDTH] == 2;
    return dropped / (double)rows;
}

/* About p of the rows, or of the samples, are dropped, others in every step, and the same ones whatever other samples hold. */
static void test_drop_path(void)
{
    int64_t many[DROP_SAMPLES + 1], few[] = {0, 5000, 5000, 25000}, other[] = {0, 7, 9000, 29000};
    int64_t broken = 0, torn = 0, both = 0;
    for (int64_t s = 0; s <= DROP_SAMPLES; s++) many[s] = 2 * s;
    float *a = drop(few, 3, PNET_DROP_POINT, 0.25f, 1, &broken),
          *b = drop(other, 3, PNET_DROP_POINT, 0.25f, 1, &broken),
          *c = drop(few, 3, PNET_DROP_POINT, 0.25f, 2, &broken),
          *d = drop(many, DROP_SAMPLES, PNET_DROP_SAMPLE, 0.25f, 1, &broken);
    CHECK(broken == 0);
    CHECKF(fabs(share_dropped(a, few[3]) - 0.25) < 0.01, "%g", share_dropped(a, few[3]));
    CHECKF(fabs(share_dropped(d, 2 * DROP_SAMPLES) - 0.25) < 0.02, "%g",
        share_dropped(d, 2 * DROP_SAMPLES));
    CHECK(memcmp(a + 5000 * DROP_WIDTH, b + 9000 * DROP_WIDTH, 20000 * DROP_WIDTH * 4) == 0);
    for (int64_t row = 0; row < few[3]; row++)
        both += a[row * DROP_WIDTH] == 2 && c[row * DROP_WIDTH] == 2;
    CHECKF(fabs((double)both / (double)few[3] - 0.0625) < 0.01, "%d in both steps", (int)both);
    for (int64_t s = 0; s < DROP_SAMPLES; s++)
        torn += d[2 * s * DROP_WIDTH] != d[(2 * s + 1) * DROP_WIDTH];
    CHECK(torn == 0);
    free(a);
    free(b);
    free(c);
    free(d);
}

int main(void)
{
    const int64_t some[] = {37, 0, 1, 24}, one[] = {1}, none[] = {0, 0}, many[] = {9000, 0, 30001};
    struct world w = world_make(4, some);
    elementwise(&w, 6, check_op);
    elementwise(&w, 1, check_op);
    groups(&w, 6, 3, check_op);
    groups(&w, 6, 1, check_op);
    groups(&w, 5, 5, check_op);
    world_free(&w);
    w = world_make(1, one);
    elementwise(&w, 5, check_op);
    world_free(&w);
    w = world_make(2, none);
    elementwise(&w, 3, check_op);
    groups(&w, 4, 2, check_op);
    world_free(&w);
    w = world_make(3, many);
    elementwise(&w, 7, check_threads);
    groups(&w, 6, 2, check_threads);
    world_free(&w);
    test_running();
    test_one_row();
    test_large_mean();
    test_dropout();
    test_drop_path();
    return check_end();
}
