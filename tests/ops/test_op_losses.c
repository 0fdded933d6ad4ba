/* Losses, and metrics on labels: against the rows' references and against hand-made numbers. */
#include "tests/ops/opcase.h"

static struct opcase scores_of(
    const struct world *w, const char *name, int32_t classes, int level, int label_level)
{
    struct opcase c = opcase_of(w, name);
    opcase_in(&c, classes, level);
    opcase_label(&c, classes, label_level);
    if (strcmp(name, "top_k_accuracy") == 0) opcase_int(&c, "k", classes < 2 ? 1 : 2);
    return c;
}

static void on_levels(
    const struct world *w, const char *name, int32_t classes, void (*check)(struct opcase *))
{
    const int pairs[][2] = {
        {POINTS, POINTS}, {FINE, POINTS}, {COARSE, POINTS}, {COARSE, FINE}, {SAMPLE, SAMPLE}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct opcase c = scores_of(w, name, classes, pairs[i][0], pairs[i][1]);
        check(&c);
    }
}

static const double weights[] = {1, 2, 0.5, 0, 3};

static void cross_entropies(const struct world *w, void (*check)(struct opcase *))
{
    for (int level = POINTS; level <= COARSE; level++)
        for (int variant = 1; variant < 4; variant++) {
            struct opcase c = scores_of(w, "cross_entropy", 5, level, POINTS);
            if (variant & 1) opcase_list(&c, "weights", weights, 5);
            if (variant & 2) opcase_real(&c, "smoothing", 0.2);
            check(&c);
        }
}

static void focals(const struct world *w, void (*check)(struct opcase *))
{
    const double gammas[] = {0, 0.3, 1, 5};
    for (int level = POINTS; level <= COARSE; level++)
        for (int i = 0; i < 4; i++) {
            struct opcase c = scores_of(w, "focal", 5, level, POINTS);
            opcase_real(&c, "gamma", gammas[i]);
            if (i & 1) opcase_list(&c, "weights", weights, 5);
            check(&c);
        }
}

static void dices(const struct world *w, void (*check)(struct opcase *))
{
    for (int level = POINTS; level <= COARSE; level++) {
        struct opcase c = scores_of(w, "dice", 5, level, POINTS);
        opcase_int(&c, "square", 0);
        check(&c);
    }
}

static struct opcase difference_of(const struct world *w, const char *name)
{
    struct opcase c = opcase_of(w, name);
    opcase_in(&c, 3, FINE);
    opcase_in(&c, 3, FINE);
    return c;
}

static void differences(const struct world *w, void (*check)(struct opcase *))
{
    const char *const names[] = {"mse", "l1", "huber"};
    const double deltas[] = {0.2, 1.3, 1e6};
    for (int i = 0; i < 3; i++) {
        struct opcase c = difference_of(w, names[i]);
        check(&c);
        c = difference_of(w, "huber");
        opcase_real(&c, "delta", deltas[i]);
        check(&c);
    }
}

static void all_rows(const struct world *w, int32_t classes, void (*check)(struct opcase *))
{
    const char *const names[] = {"cross_entropy", "focal", "lovasz_softmax", "dice", "accuracy",
        "top_k_accuracy", "mean_accuracy", "precision", "recall", "f1", "iou", "miou", "confusion"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        on_levels(w, names[i], classes, check);
    cross_entropies(w, check);
    focals(w, check);
    dices(w, check);
    differences(w, check);
}

/* All labels ignored: loss 0 and gradient 0. */
static void test_ignored(const char *name, int level)
{
    const int64_t sizes[] = {30, 0, 12};
    struct world w = world_make(3, sizes);
    struct opcase c = scores_of(&w, name, 4, level, POINTS);
    opcase_fill(&c);
    for (int64_t i = 0; i < w.rows[POINTS]; i++) ((int32_t *)c.in_data[1])[i] = -1;
    opcase_forward(&c);
    opcase_backward(&c, false, false);
    CHECK(c.out[0] == 0);
    size_t wrong = 0;
    for (size_t k = 0; k < type_count(&w, c.in[0]); k++) wrong += c.gin[0][k] != 0;
    CHECKF(wrong == 0, "%s: %zu gradients", name, wrong);
    opcase_free(&c);
    world_free(&w);
}

/* Scores that separate the labels perfectly: losses vanish, metrics are 1. */
static void test_perfect(void)
{
    const int64_t sizes[] = {50, 20};
    struct world w = world_make(2, sizes);
    const char *const names[] = {"cross_entropy", "focal", "lovasz_softmax", "dice", "accuracy",
        "top_k_accuracy", "precision", "recall", "f1", "miou", "confusion"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct opcase c = scores_of(&w, names[i], 3, POINTS, POINTS);
        opcase_fill(&c);
        const int32_t *label = c.in_data[1];
        float *scores = c.in_data[0];
        for (int64_t row = 0; row < w.rows[POINTS]; row++)
            for (int ch = 0; ch < 3; ch++) scores[row * 3 + ch] = ch == label[row] ? 60 : 0;
        opcase_forward(&c);
        if (c.op->class_ == PNET_METRIC) {
            struct pnet_metric_result r = {.classes = 3};
            c.op->finish(c.attr, (const double *)(const void *)c.out, &r);
            CHECK(r.value == 1);
        } else {
            CHECKF(c.out[0] >= 0 && c.out[0] < 1e-6f, "%s: %g", names[i], (double)c.out[0]);
        }
        opcase_free(&c);
    }
    world_free(&w);
}

/* A label outside of the classes counts like -1: as if it were not there. */
static void test_stray_labels(const char *name, int level)
{
    const int64_t sizes[] = {40, 9};
    struct world w = world_make(2, sizes);
    struct opcase c = scores_of(&w, name, 4, level, POINTS);
    opcase_fill(&c);
    const int32_t stray[] = {-1, -7, 4, INT32_MAX, INT32_MIN};
    bool loss = c.op->class_ == PNET_LOSS;
    size_t out = bytes_of(&w, c.rule.out), gin = type_count(&w, c.in[0]) * sizeof(float);
    void *first_out = take(out), *first_gin = take(gin);
    for (int k = 0; k < 5; k++) {
        for (int64_t i = 0; i < w.rows[POINTS]; i += 3) ((int32_t *)c.in_data[1])[i] = stray[k];
        opcase_forward(&c);
        if (loss) opcase_backward(&c, false, false);
        if (k == 0) memcpy(first_out, c.out, out), memcpy(first_gin, c.gin[0], gin);
        CHECKF(memcmp(first_out, c.out, out) == 0, "%s: label %d", name, (int)stray[k]);
        CHECKF(!loss || memcmp(first_gin, c.gin[0], gin) == 0, "%s: label %d", name, (int)stray[k]);
    }
    free(first_out);
    free(first_gin);
    opcase_free(&c);
    world_free(&w);
}

/* A loss and its gradient at one point with two scores. */
struct single {
    double loss, gradient[2];
};

static struct single single_of(
    const char *name, double gamma, float score, float other, int32_t label)
{
    const int64_t sizes[] = {1};
    const float one = 1;
    struct world w = world_make(1, sizes);
    struct opcase c = scores_of(&w, name, 2, POINTS, POINTS);
    if (strcmp(name, "focal") == 0) opcase_real(&c, "gamma", gamma);
    c.seeds = &one;
    opcase_fill(&c);
    ((float *)c.in_data[0])[0] = score;
    ((float *)c.in_data[0])[1] = other;
    ((int32_t *)c.in_data[1])[0] = label;
    opcase_forward(&c);
    opcase_backward(&c, false, false);
    struct single s = {(double)c.out[0], {(double)c.gin[0][0], (double)c.gin[0][1]}};
    opcase_free(&c);
    world_free(&w);
    return s;
}

static void check_single(const char *what, struct single s, double loss, double gradient)
{
    CHECKF(fabs(s.loss - loss) <= 1e-6 * fabs(loss), "%s: %g, not %g", what, s.loss, loss);
    for (int i = 0; i < 2; i++) {
        double want = i ? -gradient : gradient;
        CHECKF(fabs(s.gradient[i] - want) <= 1e-6 * fabs(want), "%s: gradient %g, not %g", what,
            s.gradient[i], want);
    }
}

/* Large scores neither overflow nor lose the loss: nll of (1e4, -1e4) for the second is 2e4. */
static void test_large_scores(void)
{
    const double gammas[] = {0, 0.5, 2, 100};
    check_single("cross_entropy", single_of("cross_entropy", 0, 1000, 0, 1), 1000, 1);
    check_single("cross_entropy", single_of("cross_entropy", 0, 1e4f, -1e4f, 1), 2e4, 1);
    for (int i = 0; i < 4; i++) {
        check_single("focal, wrong", single_of("focal", gammas[i], 1e4f, -1e4f, 1), 2e4, 1);
        check_single("focal, right", single_of("focal", gammas[i], 1e4f, -1e4f, 0), 0, 0);
    }
    /* hits 0, mass of squares 0, one label */
    check_single("dice, wrong", single_of("dice", 0, 1e4f, -1e4f, 1), 1, 0);
    check_single("dice, right", single_of("dice", 0, 1e4f, -1e4f, 0), 0, 0);
}

/* What is left where one class has nearly all is not lost beside it: q = 1 - p = exp(-30) / (1 +
   exp(-30)) and -log p = log(1 + exp(-30)), where 1 - q is 1 in float. */
static void test_confident(void)
{
    const double gammas[] = {0.5, 1, 1.5};
    double e = exp(-30), q = e / (1 + e), nll = log1p(e);
    for (int i = 0; i < 3; i++) {
        double power = pow(q, gammas[i]);
        check_single("confident", single_of("focal", gammas[i], 30, 0, 0), power * nll,
            -power * (1 + gammas[i] * (1 - q) * nll / q) * q);
    }
    /* 1 - 2 p / (p^2 + 1) is q^2 / (p^2 + 1), of which little is left in float */
    q = exp(-8) / (1 + exp(-8));
    double p = 1 - q, both = p * p + 1;
    check_single("confident", single_of("dice", 0, 8, 0, 0), q * q / both,
        -p * q * 2 * q * (1 + p) / (both * both));
}

/* With gamma 0 nothing is left of the focus. */
static void test_focal_is_cross_entropy(int level)
{
    const int64_t sizes[] = {60, 0, 25};
    struct world w = world_make(3, sizes);
    struct opcase f = scores_of(&w, "focal", 5, level, POINTS);
    struct opcase e = scores_of(&w, "cross_entropy", 5, level, POINTS);
    opcase_real(&f, "gamma", 0);
    opcase_list(&f, "weights", weights, 5);
    opcase_list(&e, "weights", weights, 5);
    struct opcase *both[] = {&f, &e};
    for (int i = 0; i < 2; i++) {
        opcase_fill(both[i]);
        opcase_forward(both[i]);
        opcase_backward(both[i], false, false);
    }
    CHECK(fabsf(f.out[0] - e.out[0]) < 1e-6f);
    size_t n = type_count(&w, e.in[0]);
    double *want = take(n * sizeof *want);
    for (size_t i = 0; i < n; i++) want[i] = (double)e.gin[0][i];
    CHECK(distance(n, f.gin[0], want) < 1e-6);
    free(want);
    opcase_free(&f);
    opcase_free(&e);
    world_free(&w);
}

/* Scores that say nothing, classes 0 and 2 of 4 with 6 and 2 of 8 labels; the others do not occur. */
static void test_dice_absent(void)
{
    const int64_t sizes[] = {10};
    struct world w = world_make(1, sizes);
    for (int square = 0; square < 2; square++) {
        struct opcase c = scores_of(&w, "dice", 4, POINTS, POINTS);
        opcase_int(&c, "square", square);
        opcase_fill(&c);
        for (int i = 0; i < 40; i++) ((float *)c.in_data[0])[i] = 3;
        for (int i = 0; i < 10; i++) ((int32_t *)c.in_data[1])[i] = i < 6 ? 0 : i < 8 ? 2 : -1;
        opcase_forward(&c);
        double mass = square ? 8.0 / 16 : 8.0 / 4;
        double want = 1 - (2 * 1.5 / (mass + 6) + 2 * 0.5 / (mass + 2)) / 2;
        CHECKF(fabs((double)c.out[0] - want) < 1e-6, "%g, not %g", (double)c.out[0], want);
        opcase_free(&c);
    }
    world_free(&w);
}

/* Differences 0, 0.5, -3 and one that is not a number, or zero in its place. */
static void test_differences(void)
{
    static const struct {
        const char *name;
        double loss;
        float gradient[4];
    } cases[] = {{"mse", (0.25 + 9) / 4, {0, 1, -6, 0}}, {"l1", 3.5 / 4, {0, 1, -1, 0}},
        {"huber", (0.125 + 2 * (3 - 1)) / 4, {0, 0.5f, -2, 0}}};
    const int64_t sizes[] = {4};
    const float x[] = {1, 2, 0, 5}, y[] = {1, 1.5f, 3, 5}, four = 4;
    struct world w = world_make(1, sizes);
    for (int i = 0; i < 3; i++)
        for (int broken = 0; broken < 2; broken++) {
            struct opcase c = opcase_of(&w, cases[i].name);
            opcase_in(&c, 1, POINTS);
            opcase_in(&c, 1, POINTS);
            if (i == 2) opcase_real(&c, "delta", 2);
            c.seeds = &four;
            opcase_fill(&c);
            memcpy(c.in_data[0], x, sizeof x);
            memcpy(c.in_data[1], y, sizeof y);
            if (broken) ((float *)c.in_data[1])[3] = NAN;
            opcase_forward(&c);
            opcase_backward(&c, false, false);
            for (int k = 0; k < 4; k++)
                for (int side = 0; side < 2; side++) {
                    float got = c.gin[side][k], want = cases[i].gradient[k];
                    bool right = got == (side ? -want : want);
                    if (broken && k == 3) right = isnan(got);
                    CHECKF(right, "%s: gradient %d is %g", cases[i].name, k, (double)got);
                }
            if (broken)
                CHECKF(isnan(c.out[0]), "%s: %g", cases[i].name, (double)c.out[0]);
            else
                CHECKF(c.out[0] == (float)cases[i].loss, "%s: %g", cases[i].name, (double)c.out[0]);
            opcase_free(&c);
        }
    world_free(&w);
}

/* A prediction on a coarser level counts as that of all points of the cell: the same loss, and the
   gradient's sum over the cell. */
static void test_coarse_is_spread(const char *name)
{
    const int64_t sizes[] = {60, 0, 25};
    struct world w = world_make(3, sizes);
    struct opcase coarse = scores_of(&w, name, 4, FINE, POINTS);
    struct opcase fine = scores_of(&w, name, 4, POINTS, POINTS);
    opcase_fill(&coarse);
    opcase_fill(&fine);
    float *spread = fine.in_data[0];
    for (int64_t row = 0; row < w.rows[POINTS]; row++)
        memcpy(spread + row * 4, (float *)coarse.in_data[0] + (int64_t)w.parent[0][row] * 4,
            4 * sizeof(float));
    opcase_forward(&coarse);
    opcase_forward(&fine);
    CHECK(fabsf(coarse.out[0] - fine.out[0]) < 1e-6f);
    opcase_backward(&coarse, false, false);
    opcase_backward(&fine, false, false);
    double *sum = calloc(type_count(&w, coarse.in[0]), sizeof *sum);
    if (!sum) abort();
    for (int64_t row = 0; row < w.rows[POINTS]; row++)
        for (int64_t ch = 0; ch < 4; ch++)
            sum[(int64_t)w.parent[0][row] * 4 + ch] += (double)fine.gin[0][row * 4 + ch];
    double error = distance(type_count(&w, coarse.in[0]), coarse.gin[0], sum);
    CHECKF(error < 1e-5, "%s: off by %g", name, error);
    free(sum);
    opcase_free(&coarse);
    opcase_free(&fine);
    world_free(&w);
}

int main(void)
{
    const int64_t some[] = {37, 0, 1, 24}, one[] = {1}, none[] = {0, 0};
    const int64_t many[] = {9000, 0, 20001, 517};
    struct world w = world_make(4, some);
    all_rows(&w, 5, check_op);
    on_levels(&w, "cross_entropy", 1, check_op);
    on_levels(&w, "focal", 1, check_op);
    on_levels(&w, "dice", 1, check_op);
    on_levels(&w, "iou", 300, check_op);
    world_free(&w);
    w = world_make(1, one);
    all_rows(&w, 3, check_op);
    world_free(&w);
    w = world_make(2, none);
    all_rows(&w, 3, check_op);
    world_free(&w);
    w = world_make(4, many);
    all_rows(&w, 5, check_threads);
    world_free(&w);
    const char *const losses[] = {"cross_entropy", "focal", "lovasz_softmax", "dice"};
    for (int i = 0; i < 4; i++)
        for (int level = POINTS; level <= FINE; level++) {
            test_ignored(losses[i], level);
            test_stray_labels(losses[i], level);
        }
    for (int i = 0; i < 4; i++) test_coarse_is_spread(losses[i]);
    for (int level = POINTS; level <= COARSE; level++) test_focal_is_cross_entropy(level);
    test_perfect();
    test_large_scores();
    test_confident();
    test_dice_absent();
    test_differences();
    return check_end();
}
