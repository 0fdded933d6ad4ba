/* Losses and metrics on labels: against the rows' references and against hand-made numbers. */
#include "tests/ops/opcase.h"

static struct opcase scores_of(
    const struct world *w, const char *name, int32_t classes, int level, int label_level)
{
    struct opcase c = opcase_of(w, name);
    opcase_in(&c, classes, level);
    opcase_label(&c, classes, label_level);
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

static void squares(const struct world *w, void (*check)(struct opcase *))
{
    struct opcase c = opcase_of(w, "mse");
    opcase_in(&c, 3, FINE);
    opcase_in(&c, 3, FINE);
    check(&c);
}

static void all_rows(const struct world *w, int32_t classes, void (*check)(struct opcase *))
{
    const char *const names[] = {
        "cross_entropy", "lovasz_softmax", "accuracy", "mean_accuracy", "iou", "miou"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        on_levels(w, names[i], classes, check);
    cross_entropies(w, check);
    squares(w, check);
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

/* Scores that separate the labels perfectly: both losses vanish, metrics are 1. */
static void test_perfect(void)
{
    const int64_t sizes[] = {50, 20};
    struct world w = world_make(2, sizes);
    const char *const names[] = {"cross_entropy", "lovasz_softmax", "accuracy", "miou"};
    for (int i = 0; i < 4; i++) {
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

/* Large scores neither overflow nor lose the loss: nll of (1000, 0) for the second is 1000. */
static void test_large_scores(void)
{
    const int64_t sizes[] = {1};
    struct world w = world_make(1, sizes);
    struct opcase c = scores_of(&w, "cross_entropy", 2, POINTS, POINTS);
    opcase_fill(&c);
    ((float *)c.in_data[0])[0] = 1000;
    ((float *)c.in_data[0])[1] = 0;
    ((int32_t *)c.in_data[1])[0] = 1;
    opcase_forward(&c);
    opcase_backward(&c, false, false);
    CHECK(c.out[0] == 1000);
    CHECK(fabsf(c.gin[0][0] - seed_of(0)) < 1e-6f && fabsf(c.gin[0][1] + seed_of(0)) < 1e-6f);
    opcase_free(&c);
    world_free(&w);
}

static struct pnet_metric_result finish_of(
    const char *name, const double *sum, int32_t classes, double *per_class)
{
    struct pnet_metric_result r = {.per_class = per_class, .classes = classes};
    pnet_op_find(name)->finish(NULL, sum, &r);
    return r;
}

/* Matrices by label, then prediction. Class 2 of the second one never occurs. */
static void test_finish(void)
{
    const double full[] = {8, 2, 0, 1, 5, 4, 0, 0, 10};
    const double sparse[] = {3, 1, 0, 2, 4, 0, 0, 0, 0};
    const double unlabelled[] = {3, 0, 1, 0, 4, 0, 0, 0, 0};
    const double zero[9] = {0};
    double per[3];
    struct pnet_metric_result r = finish_of("iou", full, 3, per);
    CHECK(fabs(per[0] - 8.0 / 11) < 1e-12);
    CHECK(fabs(per[1] - 5.0 / 12) < 1e-12);
    CHECK(fabs(per[2] - 10.0 / 14) < 1e-12);
    CHECK(fabs(r.value - (8.0 / 11 + 5.0 / 12 + 10.0 / 14) / 3) < 1e-12);
    CHECK(finish_of("miou", full, 3, NULL).value == r.value);
    r = finish_of("mean_accuracy", full, 3, per);
    CHECK(fabs(per[0] - 0.8) < 1e-12 && fabs(per[1] - 0.5) < 1e-12 && fabs(per[2] - 1) < 1e-12);
    CHECK(fabs(r.value - 2.3 / 3) < 1e-12);
    r = finish_of("iou", sparse, 3, per);
    CHECK(isnan(per[2]) && fabs(r.value - (3.0 / 6 + 4.0 / 7) / 2) < 1e-12);
    r = finish_of("iou", unlabelled, 3, per); /* predicted once, never right */
    CHECK(per[2] == 0 && fabs(r.value - (0.75 + 1 + 0) / 3) < 1e-12);
    r = finish_of("mean_accuracy", unlabelled, 3, per);
    CHECK(isnan(per[2]) && fabs(r.value - 0.875) < 1e-12);
    CHECK(isnan(finish_of("iou", zero, 3, NULL).value));
    const double counts[] = {30, 40}, nothing[] = {0, 0};
    CHECK(finish_of("accuracy", counts, 0, NULL).value == 0.75);
    CHECK(isnan(finish_of("accuracy", nothing, 0, NULL).value));
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
    test_ignored("cross_entropy", POINTS);
    test_ignored("cross_entropy", FINE);
    test_ignored("lovasz_softmax", POINTS);
    test_ignored("lovasz_softmax", FINE);
    test_perfect();
    test_large_scores();
    test_finish();
    test_coarse_is_spread("cross_entropy");
    test_coarse_is_spread("lovasz_softmax");
    return check_end();
}
